/** How many letters of a word of this length may be wrong. */
export const mistakesIn = (length: number): number => length < 4 ? 0 : length < 8 ? 1 : 2

/**
 * How many letters must be changed, added, left out or swapped with their neighbour (optimal string alignment).
 * @param most where it stops counting: what is more is `most + 1`
 */
export function distance (a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      const differs = a.charCodeAt(i - 1) === b.charCodeAt(j - 1) ? 0 : 1
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + differs)
      const isSwap = i > 1 && j > 1 && a.charCodeAt(i - 1) === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === b.charCodeAt(j - 1)
      if (isSwap) cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      row.push(cost)
      least = Math.min(least, cost)
    }
    if (least > most) return most + 1
    before = last
    last = row
  }
  return last[b.length] ?? 0
}

/** The letters of a word as bits: two words that differ in few letters differ in few bits. */
export function letters (word: string): number {
  let bits = 0
  for (let i = 0; i < word.length; i++) bits |= 1 << (word.charCodeAt(i) % 32)
  return bits
}

/** Number of bits in which two differ. */
export function differing (a: number, b: number): number {
  let bits = a ^ b
  let count = 0
  for (; bits !== 0; bits &= bits - 1) count++
  return count
}
