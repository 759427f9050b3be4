import { indexedObjectToList, mend } from '../mending.ts'
import type { Shape } from './shape.ts'

/** Any value but `null`. */
export const anyValue: Shape = {}
/** An object whose members MCP does not define. */
export const anyObject: Shape = { isObject: true }
export const object = (
  members: Readonly<Record<string, Shape>>, more: Shape = {}
): Shape => ({ isObject: true, members, ...more })
export const list = (element: Shape): Shape => ({ element })
/** Members with any values but `null`. */
export const anyMembers = (...keys: string[]): Record<string, Shape> =>
  Object.fromEntries(keys.map((key) => [key, anyValue]))
/** A shape whose `null` is replaced. */
export const withFallback = (shape: Shape, fallback: string): Shape => ({ ...shape, fallback })
export const meta = { _meta: anyObject }

export const string: Shape = { type: 'string' }
export const number: Shape = { type: 'number' }
/** Members that are strings. */
export const stringMembers = (...keys: string[]): Record<string, Shape> =>
  Object.fromEntries(keys.map((key) => [key, string]))
/** A required string. A value of another type becomes its JSON text. */
export const requiredText: Shape = { ...string, fallback: '""', coerce: (text) => JSON.stringify(text) }
export const flag: Shape = {
  type: 'boolean', coerce: (text) => text === '"true"' || text === '1' ? 'true' : undefined
}
/**
 * A list whose elements are checked. An object with numbers as keys, as PHP writes it, is converted to a list.
 * @param single converts a value that is no list to its only element
 */
export const checkedList = (element: Shape, single: (text: string) => string | undefined = () => undefined): Shape => {
  const shape: Shape = { type: 'list', element }
  const coerce = (text: string): string | undefined => {
    const one = single(text)
    const list = indexedObjectToList(text) ?? (one === undefined ? undefined : `[${one}]`)
    return list === undefined ? undefined : mend(list, shape, true).text
  }
  return { ...shape, coerce }
}
