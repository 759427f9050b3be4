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
