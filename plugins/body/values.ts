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
