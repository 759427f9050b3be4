import { messageOf } from '../../../../db/errors.ts'
import { isObject } from '../../../../protocol/json.ts'
import type { FieldShape } from './schema.ts'

/** A field of a form, as the component `schema-field` expects it. */
export interface FormField {
  readonly kind: Exclude<FieldShape['kind'], 'integer'> | 'pair'
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly isRequired: boolean
  readonly value?: string | boolean
  readonly options?: ReadonlyArray<{ readonly value: string, readonly text: string, readonly isChosen: boolean }>
  /** The fields of an object, of an entry of a map, or of the chosen alternative. */
  readonly fields?: readonly FormField[]
  /** The items of a list, or the entries of a map. */
  readonly items?: readonly FormField[]
  /** Whether the field is an optional object without values, which the page shows collapsed. */
  readonly isFolded?: boolean
  /** The value of the button that adds an item to this list, for `SchemaForm.applyButton`. */
  readonly add?: string
  /** The value of the button that removes this item, for `SchemaForm.applyButton`. */
  readonly remove?: string
}

/** The texts of a form, as submitted or to be shown, by the names of its fields. */
export type Draft = Readonly<Record<string, string>>

/** Error messages by field name. */
export type FieldErrors = Readonly<Record<string, string>>

/** Max number of items of a list. */
export const maxItems = 200

/** Returns the field name of a member or item: the name of the whole, followed by a JSON pointer (RFC 6901). */
export const fieldNameOf = (name: string, part: string | number): string =>
  `${name}/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** Whether any field within an object has a text. @param name the field name of the object */
export const hasFilledFields = (draft: Draft, name: string): boolean =>
  Object.entries(draft).some(([key, value]) => value !== '' && key.startsWith(`${name}/`))

/** Returns the number of items of a list in a draft, at most `maxItems`. */
export function countItems (draft: Draft, name: string): number {
  const numbers = Object.keys(draft).flatMap((key) =>
    key.startsWith(`${name}/`) ? Number(/^\d{1,3}(?=$|[/~])/.exec(key.slice(name.length + 1))?.[0] ?? -1) : [])
  return Math.min(maxItems, 1 + Math.max(-1, ...numbers))
}

/** Adds the error of a field. @returns undefined, so that a caller can return it in place of a JSON text */
export function addError (errors: Record<string, string>, name: string, sentence: string): undefined {
  errors[name] = sentence
  return undefined
}

/** Reads the arguments from a form that consists of one JSON field. @param name the name of the field */
export function readJsonField (
  name: string, draft: Draft
): { readonly json: string } | { readonly errors: FieldErrors } {
  const text = draft[name]?.trim() ?? ''
  if (text === '') return { json: '{}' }
  try {
    if (isObject(JSON.parse(text))) return { json: text }
    return { errors: { [name]: 'Arguments are a JSON object.' } }
  } catch (error) {
    return { errors: { [name]: `This is not JSON: ${messageOf(error)}.` } }
  }
}

/** Returns a text as it is, and any other value as JSON. */
export const textOfValue = (value: unknown): string => typeof value === 'string' ? value : JSON.stringify(value)
