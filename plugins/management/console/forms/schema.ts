import { isObject } from '../../../../protocol/json.ts'
import { errors } from '../../../base/errors/index.ts'
import { resolvePointer } from '../../../base/json-schema/index.ts'

export type Schema = Readonly<Record<string, unknown>>

/** The schema of a form, and the limits of its conversion. */
export interface FormContext {
  /** The schema in which `$ref` is resolved. */
  readonly root: Schema
  /** Max depth of the form; deeper values are edited as JSON. */
  readonly maxDepth: number
  /** The remaining steps of the conversion. Each field takes some, and so do the members and texts of its schema. */
  left: number
}

/** Reduces the remaining steps. @throws InvalidInput if not enough are left */
function takeSteps (context: FormContext, steps: number): void {
  context.left -= steps
  if (context.left < 0) throw new errors.InvalidInput('This form has too many fields: edit the arguments as JSON')
}

/** The steps that each field takes, since it adds several hundred characters to the page. */
const stepsPerField = 20
/** Number of characters of a schema's texts that cost one step. */
const charactersPerStep = 20
/** Max length of a `$ref`, in characters. */
const maxReference = 1_024
/** Max depth of nested `$ref`s and `allOf`s; a deeper schema counts as one that allows any value. */
const maxReferences = 16

/** The kind of form field for a schema. */
export interface FieldShape {
  /**
   * `long`: a text of several lines; `choice`: one of several given values; `map`: an object with string values and any
   * names; `either`: a value that matches one of several schemas; `json`: any value, edited as JSON.
   */
  readonly kind:
    'text' | 'long' | 'number' | 'integer' | 'boolean' | 'choice' | 'object' | 'map' | 'list' | 'either' | 'json'
  readonly title?: string
  readonly hint?: string
  /** The default of the schema. */
  readonly defaultValue?: unknown
  /** The values of a `choice`. */
  readonly values?: readonly unknown[]
  /** The members of an `object`. */
  readonly members?: ReadonlyArray<{ readonly name: string, readonly schema: Schema, readonly isRequired: boolean }>
  /** The schema of the elements of a `list`. */
  readonly item?: Schema
  /** The alternatives of an `either`. */
  readonly variants?: readonly Schema[]
}

const longTextName = /^(?:body|content|text|description|message|code|query|sql|prompt|markdown|script|diff|html|data)$/i

/**
 * Returns the kind of form field for a schema (JSON Schema 2020-12, with older keywords). A schema that no other field
 * can express gets a JSON field.
 * @param name the name of the member: some names, such as `description`, get a field with several lines
 * @param depth the depth of the field in the form; the form itself has depth 0
 * @throws InvalidInput if not enough steps are left
 */
export function fieldShapeOf (schema: unknown, context: FormContext, name: string, depth: number): FieldShape {
  const own = resolve(schema, context)
  const shown = JSON.stringify([own.title, own.description, own.default, own.enum, own.const])
  takeSteps(context, stepsPerField + Math.ceil(shown.length / charactersPerStep))
  const title = textOf(own.title)
  const hint = textOf(own.description)
  const common = {
    ...title && { title }, ...hint && { hint }, ...Object.hasOwn(own, 'default') && { defaultValue: own.default }
  }
  if (depth > context.maxDepth) return { kind: 'json', ...common }
  const { enum: values } = own
  if (Array.isArray(values)) return { kind: 'choice', ...common, values }
  if (Object.hasOwn(own, 'const')) return { kind: 'choice', ...common, values: [own.const] }
  const alternatives = [own.oneOf, own.anyOf].find(Array.isArray) as unknown[] | undefined
  if (alternatives) {
    return shapeOfAlternatives(alternatives.map((each) => resolve(each, context)), own, context, name, depth, common)
  }
  const types = [own.type].flat().filter((type) => type !== 'null' && type !== undefined)
  switch (types.length === 1 ? types[0] : isObject(own.properties) && types.length === 0 ? 'object' : undefined) {
    case 'string': return { kind: isLong(own, name) ? 'long' : 'text', ...common }
    case 'number': return { kind: 'number', ...common }
    case 'integer': return { kind: 'integer', ...common }
    case 'boolean': return { kind: 'boolean', ...common }
    case 'array':
      return isObject(own.items) ? { kind: 'list', ...common, item: own.items } : { kind: 'json', ...common }
    case 'object': return isObject(own.properties) && Object.keys(own.properties).length > 0
      ? { kind: 'object', ...common, members: membersOf(own) }
      : { kind: isStringMap(own) ? 'map' : 'json', ...common }
    default: return { kind: 'json', ...common }
  }
}

/** Whether the schema of an object allows any names, with string values. */
function isStringMap ({ additionalProperties, patternProperties }: Schema): boolean {
  const schemas = [additionalProperties, ...isObject(patternProperties) ? Object.values(patternProperties) : []]
    .filter(isObject)
  return schemas.length > 0 && schemas.every(({ type, enum: values }) => type === 'string' && values === undefined)
}

/** Returns the kind of form field for a schema with `oneOf` or `anyOf`. @param all the resolved alternatives */
function shapeOfAlternatives (
  all: readonly Schema[], own: Schema, context: FormContext, name: string, depth: number, common: object
): FieldShape {
  const variants = all.filter(({ type }) => type !== 'null')
  const [only] = variants
  if (only === undefined) return { kind: 'json', ...common }
  // For "X or null", the form omits the value instead of sending null.
  if (variants.length === 1) return { ...fieldShapeOf(only, context, name, depth + 1), ...common }
  if (variants.every((each) => Object.hasOwn(each, 'const'))) {
    return { kind: 'choice', ...common, values: variants.map((each) => each.const) }
  }
  // The properties beside `oneOf` or `anyOf` belong to each alternative.
  takeSteps(context, variants.length * sizeOf(own))
  const shared = isObject(own.properties) ? { properties: own.properties, required: own.required } : undefined
  return {
    kind: 'either', ...common, variants: shared ? variants.map((each) => mergeSchemas([shared, each])) : variants
  }
}

function membersOf ({ properties, required }: Schema): FieldShape['members'] {
  const needed = new Set(Array.isArray(required) ? required : [])
  return Object.entries(isObject(properties) ? properties : {}).map(([name, schema]) =>
    ({ name, schema: isObject(schema) ? schema : {}, isRequired: needed.has(name) }))
}

const isLong = ({ maxLength, format, contentMediaType }: Schema, name: string): boolean =>
  typeof contentMediaType === 'string' || format === 'textarea' || longTextName.test(name) ||
  (typeof maxLength === 'number' && maxLength > 200 && maxLength < 1e9 && format === undefined)

/**
 * Resolves `$ref` and `allOf` of a schema, but not of schemas within it. A reference that cannot be resolved counts as
 * a schema that allows any value.
 */
function resolve (schema: unknown, context: FormContext, seen = 0): Schema {
  if (!isObject(schema) || seen > maxReferences) return {}
  takeSteps(context, sizeOf(schema))
  const { $ref, allOf, ...own } = schema
  const parts = [
    ...typeof $ref === 'string' ? [resolve(referencedIn(context, $ref), context, seen + 1)] : [],
    ...Array.isArray(allOf) ? allOf.map((each) => resolve(each, context, seen + 1)) : []
  ]
  takeSteps(context, parts.reduce((sum, part) => sum + sizeOf(part), 0))
  return parts.length === 0 ? own : mergeSchemas([...parts, own])
}

/** Returns the schema that a JSON pointer refers to; undefined if there is none, or the reference is not a pointer. */
const referencedIn = ({ root }: FormContext, reference: string): unknown =>
  reference.length > maxReference || !reference.startsWith('#') ? undefined : resolvePointer(root, reference)

/** Returns the steps for copying a schema. */
const sizeOf = ({ properties, required, ...others }: Schema): number => 1 + Object.keys(others).length +
  (isObject(properties) ? Object.keys(properties).length : 0) + (Array.isArray(required) ? required.length : 0)

/** Merges schemas that all apply, as far as a form needs them. The server checks the other constraints. */
function mergeSchemas (schemas: readonly Schema[]): Schema {
  const properties =
    Object.assign({}, ...schemas.map((each) => isObject(each.properties) ? each.properties : {})) as Schema
  const required = schemas.flatMap((each) => Array.isArray(each.required) ? each.required as unknown[] : [])
  return {
    ...Object.assign({}, ...schemas) as Schema,
    ...Object.keys(properties).length > 0 && { properties },
    ...required.length > 0 && { required }
  }
}

const textOf = (value: unknown): string | undefined => typeof value === 'string' && value !== '' ? value : undefined
