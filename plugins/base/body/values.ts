import { largeText, memoryOf } from '../../../protocol/text.ts'
import { baseLimits } from '../limits/index.ts'

/** The number of values in a JSON text, of arrays and objects, and of members of objects. */
interface ValueCounts { readonly values: number, readonly containers: number, readonly memberCount: number }

/** The memory that values take while they are made of a text, in bytes. */
export function costOfValues ({ values, containers, memberCount }: ValueCounts): number {
  const { value, container, member } = baseLimits.valueCosts
  return value * values + container * containers + member * memberCount
}

/** The counts of a JSON text, or more: commas and brackets within its strings count as well. */
function upperCounts (text: string): ValueCounts {
  let [values, containers, memberCount] = [0, 0, 0]
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x2c: values++; break
      case 0x5b: case 0x7b: values++; containers++; break
      case 0x3a: memberCount++; break
      default:
    }
  }
  return { values, containers, memberCount }
}

/** Separators of words in a text, and of query parameters in a URL. */
const separator = /[\s&"']+/g

/**
 * The number of words, and of parameters of addresses, within all texts of a JSON value; the count stops above `max`.
 */
export function wordsIn (value: unknown, max: number): number {
  let count = 0
  if (typeof value === 'string') {
    separator.lastIndex = 0
    while (count <= max && separator.test(value)) count++
    return count + 1
  }
  if (typeof value !== 'object' || value === null) return 0
  for (const each of Object.values(value)) {
    if (count > max) break
    count += wordsIn(each, max - count)
  }
  return count
}

/**
 * The memory of a JSON text that is kept together with its values, in bytes, or more. The values of a text of more than
 * `largeText` characters do not count, since most are not made.
 */
export const memoryOfJson = (text: string): number =>
  memoryOf(text) + (text.length > largeText ? 0 : costOfValues(upperCounts(text)))

/** The number of values within a JSON value, itself included; the count stops above `max`. */
export function valuesIn (value: unknown, max: number): number {
  let count = 1
  if (typeof value !== 'object' || value === null) return count
  for (const each of Object.values(value)) {
    if (count > max) break
    count += valuesIn(each, max - count)
  }
  return count
}
