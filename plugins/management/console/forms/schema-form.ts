import { messageOf } from '../../../../db/errors.ts'
import { isObject } from '../../../../protocol/json.ts'
import { errors } from '../../../base/errors/index.ts'
import { managementLimits } from '../../limits.ts'
import {
  addError, countItems, type Draft, type FieldErrors, fieldNameOf, type FormField, hasFilledFields, maxItems,
  readJsonField, textOfValue
} from './draft.ts'
import { fillMap, fieldsOfMap, readMap } from './map-fields.ts'
import { type Schema, type FieldShape, type FormContext, fieldShapeOf } from './schema.ts'
import { parseVariantIndex, describeVariant, variantFieldName } from './variants.ts'

export type { FormField } from './draft.ts'

/** The arguments as JSON text, in which numbers keep all digits as typed, or error messages by field name. */
type SubmittedArguments = { readonly json: string } | { readonly errors: FieldErrors }

/** Max depth of a form. For a large schema, it is reduced; a schema that is too large even so gets one JSON field. */
const maxDepth = 4

/** The hint of the JSON field that replaces a form that would be too large. */
const tooLargeHint = 'The schema of these arguments is too large for a form.'

/** The field name of the arguments as a whole. The names of all fields of a form begin with it. */
export const argumentsFieldName = 'arg'

/** A form for an object, such as the arguments of a tool, generated from the schema of the object. */
export class SchemaForm {
  readonly #schema: Schema
  /** The depth of the form; undefined if it is one JSON field. */
  readonly #depth: number | undefined
  readonly #wantsText: boolean
  #context: FormContext

  /**
   * @param schema the schema of an object, which is not validated
   * @param options `wantsText`: whether a required string must not be empty; by default, it may be
   */
  constructor (schema: unknown, { wantsText = false }: { readonly wantsText?: boolean } = {}) {
    this.#wantsText = wantsText
    this.#schema = isObject(schema) ? schema : {}
    this.#context = this.#newContext(0)
    let depth = maxDepth
    while (depth >= 0 && !this.#fits(depth)) depth--
    this.#depth = depth < 0 ? undefined : depth
  }

  /**
   * Returns the fields of the form. A list has as many items as the draft has texts for.
   * @throws InvalidInput if the lists of the draft make the form too large
   */
  fields (draft: Draft): FormField[] {
    if (this.#depth === undefined) {
      const value = draft[argumentsFieldName] ?? ''
      return [
        { kind: 'json', name: argumentsFieldName, label: 'Arguments', hint: tooLargeHint, isRequired: false, value }
      ]
    }
    this.#context = this.#newContext(this.#depth)
    const shape = this.#shape(this.#schema, '', 0)
    return (shape.members ?? []).map(({ name, schema, isRequired }) =>
      this.#field(schema, fieldNameOf(argumentsFieldName, name), name, isRequired, draft, 1))
  }

  /** Converts a submitted draft to arguments. @throws InvalidInput if its lists make the form too large */
  read (draft: Draft): SubmittedArguments {
    const errors: Record<string, string> = {}
    if (this.#depth === undefined) return readJsonField(argumentsFieldName, draft)
    this.#context = this.#newContext(this.#depth)
    const json = this.#read(this.#schema, argumentsFieldName, true, draft, errors, 0) ?? '{}'
    return Object.keys(errors).length > 0 ? { errors } : { json }
  }

  /** Converts the valid values of a draft to JSON text. @throws InvalidInput as `read` */
  readValid (draft: Draft): string {
    this.#context = this.#newContext(this.#depth ?? 0)
    return this.#read(this.#schema, argumentsFieldName, true, draft, {}, 0) ?? '{}'
  }

  /** Converts arguments to a draft. @throws InvalidInput if their lists make the form too large */
  toDraft (value: unknown): Draft {
    const draft: Record<string, string> = {}
    if (this.#depth === undefined) return { [argumentsFieldName]: JSON.stringify(value, undefined, 2) ?? '' }
    this.#context = this.#newContext(this.#depth)
    this.#fill(this.#schema, argumentsFieldName, value, draft, 0)
    return draft
  }

  /**
   * Returns the draft after a click on the button of a list or of alternatives.
   * @param button the value of the button: `add:<field name>`, `remove:<field name of the item>`, or
   *   `choose:<field name>`, which changes no texts
   */
  applyButton (draft: Draft, button: string): Draft {
    const [, action, name = ''] = /^(add|remove):(.*)$/s.exec(button) ?? []
    if (action === 'add') {
      const count = countItems(draft, name)
      return count >= maxItems ? draft : { ...draft, [fieldNameOf(name, count)]: '' }
    }
    if (action !== 'remove') return draft
    const [, list = '', number = ''] = /^(.*)\/(\d+)$/s.exec(name) ?? []
    return Object.fromEntries(Object.entries(draft).flatMap(([key, value]): Array<[string, string]> => {
      const at = key.startsWith(`${list}/`) ? /^(\d+)(.*)$/s.exec(key.slice(list.length + 1)) : null
      if (!at || Number(at[1]) < Number(number)) return [[key, value]]
      return at[1] === number ? [] : [[`${list}/${Number(at[1]) - 1}${at[2] ?? ''}`, value]]
    }))
  }

  #newContext (depth: number, left: number = managementLimits.console.formSteps): FormContext {
    return { root: this.#schema, maxDepth: depth, left }
  }

  /**
   * Whether a form of this depth takes at most a quarter of `formSteps`, with one item in each list and all
   * alternatives.
   */
  #fits (depth: number): boolean {
    this.#context = this.#newContext(depth, managementLimits.console.formSteps / 4)
    try {
      this.#measure(this.#schema, 0)
      return true
    } catch (error) {
      if (error instanceof errors.InvalidInput) return false
      throw error
    }
  }

  /**
   * Takes the steps of a form with one item in each list and all alternatives.
   * @throws InvalidInput if not enough steps are left
   */
  #measure (schema: unknown, depth: number): void {
    const { members = [], item, variants = [] } = this.#shape(schema, '', depth)
    for (const each of [...members.map((member) => member.schema), ...item ? [item] : [], ...variants]) {
      this.#measure(each, depth + 1)
    }
  }

  #shape (schema: unknown, name: string, depth: number): FieldShape {
    return fieldShapeOf(schema, this.#context, name, depth)
  }

  #field (schema: unknown, name: string, label: string, isRequired: boolean, draft: Draft, depth: number): FormField {
    const shape = this.#shape(schema, label, depth)
    const { kind, hint, title = label, defaultValue } = shape
    const typed = draft[name]
    const common = { name, label: title, ...hint !== undefined && { hint }, isRequired }
    switch (kind) {
      case 'object':
        return {
          ...common,
          kind,
          fields: (shape.members ?? []).map((each) =>
            this.#field(each.schema, fieldNameOf(name, each.name), each.name, each.isRequired, draft, depth + 1))
        }
      case 'list':
        return {
          ...common,
          kind,
          items: Array.from({ length: countItems(draft, name) }, (_, at) => ({
            ...this.#field(shape.item, fieldNameOf(name, at), `Item ${at + 1}`, true, draft, depth + 1),
            remove: `remove:${fieldNameOf(name, at)}`
          })),
          add: `add:${name}`
        }
      case 'map': return { ...common, kind, items: fieldsOfMap(name, draft), add: `add:${name}` }
      case 'either': {
        const variants = shape.variants ?? []
        const chosen = parseVariantIndex(typed, variants.length)
        return {
          ...common,
          kind,
          options: variants.map((each, at) =>
            ({ value: String(at), text: describeVariant(each, at), isChosen: at === chosen })),
          fields: [this.#field(variants[chosen], variantFieldName(name, chosen), 'Value', isRequired, draft, depth + 1)]
        }
      }
      case 'choice': {
        const values = shape.values ?? []
        const initial = JSON.stringify(defaultValue)
        const first = values.findIndex((value) => JSON.stringify(value) === initial)
        const chosen = typed ?? (first === -1 ? '' : String(first))
        return {
          ...common,
          kind,
          options: [
            ...isRequired && chosen !== ''
              ? []
              : [{ value: '', text: isRequired ? 'choose one' : 'not set', isChosen: chosen === '' }],
            ...values.map((value, at) => ({
              value: String(at), text: textOfValue(value), isChosen: chosen === String(at)
            }))
          ]
        }
      }
      case 'boolean': {
        const value = typed ?? (typeof defaultValue === 'boolean' ? String(defaultValue) : '')
        return { ...common, kind, ...value !== '' && { value: value === 'true' } }
      }
      default: {
        const initial = kind === 'json' ? JSON.stringify(defaultValue) : String(defaultValue)
        const text = typed ?? (defaultValue === undefined ? '' : initial)
        return { ...common, kind: kind === 'integer' ? 'number' : kind, value: text }
      }
    }
  }

  /** Returns the JSON text of one value; undefined if it is omitted, or not valid, in which case an error is added. */
  #read (
    schema: unknown, name: string, isRequired: boolean, draft: Draft, errors: Record<string, string>, depth: number
  ): string | undefined {
    const shape = this.#shape(schema, '', depth)
    const typed = draft[name] ?? ''
    switch (shape.kind) {
      case 'object': {
        if (!isRequired && !hasFilledFields(draft, name)) return undefined
        const members = (shape.members ?? []).flatMap((each) => {
          const json = this.#read(each.schema, fieldNameOf(name, each.name), each.isRequired, draft, errors, depth + 1)
          return json === undefined ? [] : [`${JSON.stringify(each.name)}:${json}`]
        })
        return members.length === 0 && !isRequired ? undefined : `{${members.join(',')}}`
      }
      case 'list': {
        const count = countItems(draft, name)
        if (count === 0 && !isRequired) return undefined
        const items = Array.from({ length: count }, (_, at) =>
          this.#read(shape.item, fieldNameOf(name, at), true, draft, errors, depth + 1) ?? 'null')
        return `[${items.join(',')}]`
      }
      case 'map': return readMap(name, isRequired, draft, errors)
      case 'either': {
        const variants = shape.variants ?? []
        const chosen = parseVariantIndex(typed, variants.length)
        return this.#read(variants[chosen], variantFieldName(name, chosen), isRequired, draft, errors, depth + 1)
      }
      case 'choice':
        if (typed !== '') return JSON.stringify(shape.values?.[Number(typed)])
        return isRequired ? addError(errors, name, 'Choose one.') : undefined
      case 'boolean':
        if (typed !== '') return String(typed === 'true')
        return isRequired ? addError(errors, name, 'Choose yes or no.') : undefined
      case 'number': case 'integer': {
        const text = typed.trim()
        if (text === '') return isRequired ? addError(errors, name, 'Enter a number.') : undefined
        const isNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)
        if (!isNumber) return addError(errors, name, 'This is not a number.')
        return shape.kind === 'integer' && /[.eE]/.test(text) ? addError(errors, name, 'Enter a whole number.') : text
      }
      case 'json':
        if (typed.trim() === '') return isRequired && depth > 0 ? addError(errors, name, 'Enter a value.') : undefined
        try {
          JSON.parse(typed)
          return typed
        } catch (error) {
          return addError(errors, name, `This is not JSON: ${messageOf(error)}.`)
        }
      default:
        if (typed.trim() === '' && isRequired && this.#wantsText) return addError(errors, name, 'Enter a text.')
        return typed === '' && !isRequired ? undefined : JSON.stringify(typed)
    }
  }

  /** Adds the texts for one value to a draft. */
  #fill (schema: unknown, name: string, value: unknown, draft: Record<string, string>, depth: number): void {
    if (value === undefined) return
    const shape = this.#shape(schema, '', depth)
    switch (shape.kind) {
      case 'object':
        if (!isObject(value)) return
        for (const each of (shape.members ?? []).filter((member) => Object.hasOwn(value, member.name))) {
          this.#fill(each.schema, fieldNameOf(name, each.name), value[each.name], draft, depth + 1)
        }
        return
      case 'list':
        if (!Array.isArray(value)) return
        value.slice(0, maxItems).forEach((item, at) => {
          draft[fieldNameOf(name, at)] = ''
          this.#fill(shape.item, fieldNameOf(name, at), item, draft, depth + 1)
        })
        return
      case 'map':
        fillMap(name, value, draft)
        return
      case 'either':
        draft[name] = '0'
        this.#fill(shape.variants?.[0], variantFieldName(name, 0), value, draft, depth + 1)
        return
      case 'choice': {
        const text = JSON.stringify(value)
        const at = shape.values?.findIndex((each) => JSON.stringify(each) === text) ?? -1
        if (at !== -1) draft[name] = String(at)
        return
      }
      case 'json':
        draft[name] = JSON.stringify(value, undefined, 2)
        return
      default: draft[name] = textOfValue(value)
    }
  }
}
