/** Names that are longer are not compared: the work grows with the product of both lengths. */
const longest = 60

/** A name in the form in which names are compared: without case, and without what separates words. */
const plain = (name: string): string => name.toLowerCase().replace(/[-_ ]/g, '')

/**
 * The edits between two texts: a character put in, left out, replaced, or swapped with the next one (optimal string
 * alignment). Both are short.
 * @returns Infinity, or the number, where it is greater than `most`
 */
function edits (one: string, other: string, most: number): number {
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
    // What follows is made of these two rows; the one before, by a swap.
    if (fewest > most && fewestLast >= most) return Infinity
    fewestLast = fewest;
    [beforeLast, last] = [last, row]
  }
  return last[other.length] ?? 0
}

/**
 * The name that was probably meant: the nearest of those that are known.
 * @param mostEdits how many edits may lie between two names, both without case, `-`, `_` and spaces
 * @returns undefined: none is near enough
 */
export function nearName (
  name: string,
  known: Iterable<string>,
  mostEdits: (given: string, known: string) => number
): string | undefined {
  if (name.length > longest) return undefined
  const given = plain(name)
  let [nearest, fewest] = [undefined as string | undefined, Infinity]
  for (const each of known) {
    const candidate = plain(each)
    const most = mostEdits(given, candidate)
    if (Math.abs(given.length - candidate.length) > most) continue
    const distance = edits(given, candidate, most)
    if (distance <= most && distance < fewest) [nearest, fewest] = [each, distance]
  }
  return nearest
}
