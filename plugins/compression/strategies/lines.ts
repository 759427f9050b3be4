import { cut } from '../../../protocol/text.ts'
import { counted } from './strategy.ts'

/** Longest line that is kept whole, in characters. */
const longestLine = 400

/** The lines of a text, without their ends. */
export const linesOf = (text: string): string[] => text.replace(/\r?\n$/, '').split(/\r?\n/)

/** A line, cut where it is very long. */
export function short (line: string, longest = longestLine): string {
  if (line.length <= longest) return line
  const head = cut(line, longest)
  return `${head}… (${counted(line.length - head.length, 'more character')})`
}

/**
 * Some of the lines, in order, with a mark where lines are missing.
 * @param kept the indexes of the entries, ascending
 * @param write the text of an entry
 * @param total how many entries there are
 * @param sizeOf how many lines an entry stands for
 */
export function withGaps (
  kept: readonly number[],
  total: number,
  write: (index: number) => string,
  sizeOf: (index: number) => number
): string {
  const parts: string[] = []
  let next = 0
  const gap = (end: number): void => {
    let missing = 0
    for (let index = next; index < end; index++) missing += sizeOf(index)
    if (missing > 0) parts.push(`… ${counted(missing, 'line')} left out …`)
  }
  for (const index of kept) {
    gap(index)
    parts.push(write(index))
    next = index + 1
  }
  gap(total)
  return parts.join('\n')
}

/**
 * The order in which items of several groups are kept: the first of each group, then the second of each, and so on.
 * @param sizes how many items each group has
 * @returns (group, item) pairs
 */
export function inTurns (sizes: readonly number[]): Array<[group: number, item: number]> {
  const order: Array<[number, number]> = []
  let open = sizes.map((size, group) => ({ size, group }))
  for (let item = 0; open.length > 0; item++) {
    open = open.filter(({ size }) => size > item)
    for (const { group } of open) order.push([group, item])
  }
  return order
}
