/** Max length of a name that is compared, in characters: the work grows with the product of the two lengths. */
const maxNameLength = 60

/** Converts a name to the form in which names are compared: lower case, without `-`, `_` and spaces. */
const toComparable = (name: string): string => name.toLowerCase().replace(/[-_ ]/g, '')

/**
 * Computes the edit distance of two short texts: the number of insertions, deletions, replacements, and swaps of
 * adjacent characters (optimal string alignment).
 * @returns the distance; Infinity may stand for any distance greater than `maxEdits`
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
    // Each following row is derived from the last two rows (from the earlier one by a swap), so the distance cannot
    // become smaller.
    if (fewest > maxEdits && fewestLast >= maxEdits) return Infinity
    fewestLast = fewest;
    [beforeLast, last] = [last, row]
  }
  return last[other.length] ?? 0
}

/**
 * Finds the known name that was probably meant.
 * @param maxEdits returns the number of edits up to which two names are similar; it is called with the names in lower
 * case, without `-`, `_` and spaces
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
