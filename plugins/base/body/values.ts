import { largeTextLength, memoryOf } from '../../../protocol/text.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * Returns an upper bound for the memory that the values of a JSON text take, in bytes. Punctuation in strings counts,
 * too.
 */
function memoryOfValues (text: string): number {
  let [values, containers, members] = [0, 0, 0]
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x2c: values++; break
      case 0x5b: case 0x7b: values++; containers++; break
      case 0x3a: members++; break
      default:
    }
  }
  const cost = baseLimits.valueCosts
  return cost.value * values + cost.container * containers + cost.member * members
}

/** Separators of words in a text and of query parameters in a URL. */
const separator = /[\s&"']+/g

/** Counts the words and URL parameters in all strings of a JSON value; stops counting above `max`. */
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
 * Returns an upper bound for the memory that a JSON text and its values take, in bytes. For a text of more than
 * `largeTextLength` characters, the values do not count, since most of them are never created.
 */
export const memoryOfJson = (text: string): number =>
  memoryOf(text) + (text.length > largeTextLength ? 0 : memoryOfValues(text))

/** Counts the values in a JSON value, including the value itself; stops counting above `max`. */
export function countValues (value: unknown, max: number): number {
  let count = 1
  if (typeof value !== 'object' || value === null) return count
  for (const each of Object.values(value)) {
    if (count > max) break
    count += countValues(each, max - count)
  }
  return count
}
