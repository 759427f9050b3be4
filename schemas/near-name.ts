/** Names longer than this are not compared, since the work grows with the product of both lengths. */
const maxNameLength = 60

/** The form in which names are compared: lower case, without `-`, `_` and spaces. */
const toComparable = (name: string): string => name.toLowerCase().replace(/[-_ ]/g, '')

/**
 * The edit distance of two short texts: the number of insertions, deletions, replacements, and swaps of adjacent
 * characters (optimal string alignment).
 * @returns the number; if it is greater than `maxEdits`, that number or Infinity
 */
function editDistance (one: string, other: string, maxEdits: number): number {
  let beforeLast: number[] = []
  let fewestLast = 0
  let last = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      row.push(
        Math.min(replaced, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, isSwap ? (beforeLast[j - 2] ?? 0) + 1 : Infinity)
      )
    }
    const fewest = Math.min(...row)
    // Each following row is derived from these two rows (the earlier one by a swap), so the distance cannot get
    // smaller.
    if (fewest > maxEdits && fewestLast >= maxEdits) return Infinity
    fewestLast = fewest;
    [beforeLast, last] = [last, row]
  }
  return last[other.length] ?? 0
}

/**
 * Finds the known name that was probably meant.
 * @param maxEdits returns the max number of edits between two names, which ignore case, `-`, `_` and spaces
 * @returns undefined if no name is similar enough
 */
export function nearestName (
  name: string,
  known: Iterable<string>,
  maxEdits: (given: string, known: string) => number
): string | undefined {
  if (name.length > maxNameLength) return undefined
  const given = toComparable(name)
  let [nearest, fewest] = [undefined as string | undefined, Infinity]
  for (const each of known) {
    const candidate = toComparable(each)
    const max = maxEdits(given, candidate)
    if (Math.abs(given.length - candidate.length) > max) continue
    const distance = editDistance(given, candidate, max)
    if (distance <= max && distance < fewest) [nearest, fewest] = [each, distance]
  }
  return nearest
}
