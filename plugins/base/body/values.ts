import { largeText, memoryOf } from '../../../protocol/text.ts'
import { baseLimits } from '../limits/index.ts'

/** Counts of a JSON text: all values, the arrays and objects among them, and the members of objects. */
interface ValueCounts { readonly values: number, readonly containers: number, readonly memberCount: number }

/** The memory that values take while they are parsed from text, in bytes. */
export function memoryOfValues ({ values, containers, memberCount }: ValueCounts): number {
  const { value, container, member } = baseLimits.valueCosts
  return value * values + container * containers + member * memberCount
}

/** Upper bounds of the counts of a JSON text: commas and brackets within strings count as well. */
function estimateCounts (text: string): ValueCounts {
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

/** Counts words and URL parameters in all strings of a JSON value; stops above `max`. */
export function countWords (value: unknown, max: number): number {
  let count = 0
  if (typeof value === 'string') {
    separator.lastIndex = 0
    while (count <= max && separator.test(value)) count++
    return count + 1
  }
  if (typeof value !== 'object' || value === null) return 0
  for (const each of Object.values(value)) {
    if (count > max) break
    count += countWords(each, max - count)
  }
  return count
}

/**
 * The memory of a JSON text that is kept together with its values, in bytes, as an upper bound. For a text of more than
 * `largeText` characters the values do not count, since most are never made.
 */
export const memoryOfJson = (text: string): number =>
  memoryOf(text) + (text.length > largeText ? 0 : memoryOfValues(estimateCounts(text)))

/** Counts the values in a JSON value, itself included; stops above `max`. */
export function countValues (value: unknown, max: number): number {
  let count = 1
  if (typeof value !== 'object' || value === null) return count
  for (const each of Object.values(value)) {
    if (count > max) break
    count += countValues(each, max - count)
  }
  return count
}
