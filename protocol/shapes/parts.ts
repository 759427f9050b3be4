import { indexedObjectToList, mend } from '../mending.ts'
import type { Shape } from './shape.ts'

/** The shape of any value but `null`. */
export const anyValue: Shape = {}
/** The shape of an object whose members may be anything. */
export const anyObject: Shape = { isObject: true }
export const object = (
  members: Readonly<Record<string, Shape>>, more: Shape = {}
): Shape => ({ isObject: true, members, ...more })
export const list = (element: Shape): Shape => ({ element })
/** Creates the shapes of members that may have any value but `null`. */
export const anyMembers = (...keys: string[]): Record<string, Shape> =>
  Object.fromEntries(keys.map((key) => [key, anyValue]))
/** Returns a shape with a fallback, which replaces `null`. @param fallback as JSON text */
export const withFallback = (shape: Shape, fallback: string): Shape => ({ ...shape, fallback })
export const meta = { _meta: anyObject }

export const string: Shape = { type: 'string' }
export const number: Shape = { type: 'number' }
/** Creates the shapes of members that are strings. */
export const stringMembers = (...keys: string[]): Record<string, Shape> =>
  Object.fromEntries(keys.map((key) => [key, string]))
/** The shape of a required string. A value of another type is replaced by its JSON text, as a string. */
export const requiredText: Shape = { ...string, fallback: '""', coerce: (text) => JSON.stringify(text) }
export const flag: Shape = {
  type: 'boolean', coerce: (text) => text === '"true"' || text === '1' ? 'true' : undefined
}
/**
 * Creates the shape of a list. An object with numbers as keys, as PHP writes it, is converted to a list.
 * @param single converts a value that is not a list to the only element of a list; returns undefined if impossible
 */
export const coercedList = (element: Shape, single: (text: string) => string | undefined = () => undefined): Shape => {
  const shape: Shape = { type: 'list', element }
  const coerce = (text: string): string | undefined => {
    const one = single(text)
    const list = indexedObjectToList(text) ?? (one === undefined ? undefined : `[${one}]`)
    return list === undefined ? undefined : mend(list, shape, true).text
  }
  return { ...shape, coerce }
}
