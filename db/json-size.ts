import { memoized } from '../protocol/memoized.ts'

/** The length of a value's JSON text, in characters. Parts of the settings are immutable. */
export const jsonSize = memoized((value: object) => JSON.stringify(value).length)
