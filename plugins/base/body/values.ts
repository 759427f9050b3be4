import { largeText } from '../../../protocol/large-message.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { limits } from '../limits/index.ts'

const { value, container, member } = limits.valueCosts

/**
 * The memory that the values of a part of a JSON text take while they are made, in bytes. Not less than that: commas and brackets within
 * texts count as well.
 */
export function costOfValues (text: string, from: number, to: number): number {
  let cost = 0
  for (let at = from; at < to; at++) {
    switch (text.charCodeAt(at)) {
      case 0x2c: cost += value; break
      case 0x5b: case 0x7b: cost += value + container; break
      case 0x3a: cost += member; break
      default:
    }
  }
  return cost
}

/** Separators of words in a text, and of query parameters in a URL. */
const separator = /[\s&"']+/g

/** The number of words, and of parameters of addresses, within all texts of a JSON value; the count stops above `max`. */
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
 * The memory of a JSON text that is kept together with its values, in bytes. Not less than that, as `costOfValues`. Of a text of more than
 * `largeText` characters the values do not count, since most are not made.
 */
export const memoryOfJson = (text: string): number =>
  memoryOf(text) + (text.length > largeText ? 0 : costOfValues(text, 0, text.length))

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
