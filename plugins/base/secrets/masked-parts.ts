import { isObject } from '../../../protocol/json.ts'

/** A part of a value that is masked: its path in the value, the part itself, and the mask that replaces it. */
export type MaskedPart = readonly [path: ReadonlyArray<string | number>, value: unknown, shown: unknown]

/** Yields the parts of a value that differ from their masked form. @param shown the value as masked */
export function * maskedParts (value: unknown, shown: unknown, path: MaskedPart[0] = []): Generator<MaskedPart> {
  if (value === shown) return
  if (Array.isArray(value) && Array.isArray(shown)) {
    for (const [at, each] of value.entries()) yield * maskedParts(each, shown[at], [...path, at])
  } else if (isObject(value) && isObject(shown)) {
    for (const [key, each] of Object.entries(value)) yield * maskedParts(each, shown[key], [...path, key])
  } else yield [path, value, shown]
}
