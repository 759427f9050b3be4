import { stripVTControlCharacters } from 'node:util'
import { truncate } from '../../../../protocol/text.ts'
import { counted } from './strategy.ts'

/** Longest line that is kept whole, in characters. */
const longestLine = 400

/** The lines of a short text, without their ends. */
export const linesOf = (text: string): string[] => text.replace(/\r?\n$/, '').split(/\r?\n/)

/**
 * The lines of a text, one after the other.
 * @param visit gets where a line begins and ends, without its end of line, and where the next one begins; false: that was enough
 */
export function eachLine (text: string, visit: (start: number, end: number, next: number) => boolean): void {
  for (let start = 0; ;) {
    const found = text.indexOf('\n', start)
    const last = found === -1 ? text.length : found
    const end = found > start && text.charCodeAt(found - 1) === 0x0d ? found - 1 : last
    const next = last + 1
    // The text's last end of line begins no line.
    if (!visit(start, end, next) || next >= text.length) return
    start = next
  }
}

/** The line that begins at an index, without its end. */
export function lineAt (text: string, start: number): string {
  const found = text.indexOf('\n', start)
  if (found === -1) return text.slice(start)
  return text.slice(start, found > start && text.charCodeAt(found - 1) === 0x0d ? found - 1 : found)
}

/** A line, cut where it is very long. */
export function short (line: string, longest = longestLine): string {
  if (line.length <= longest) return line
  const head = truncate(line, longest)
  return `${head}… (${counted(line.length - head.length, 'more character')})`
}

/** A line without the colours of a terminal (ANSI escape codes). */
export const plainLine = (line: string): string => line.includes('\x1b') ? stripVTControlCharacters(line) : line

/**
 * Some of the entries of a text, in order, with a mark where lines are missing.
 * @param kept the indexes of the entries, ascending
 * @param total how many entries there are
 * @param write the text of an entry
 * @param linesBefore how many lines stand before an entry; for `total`, all lines
 */
export function withGaps (
  kept: readonly number[],
  total: number,
  write: (index: number) => string,
  linesBefore: (index: number) => number
): string {
  const parts: string[] = []
  let next = 0
  const gap = (end: number): void => {
    const missing = linesBefore(end) - linesBefore(next)
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

/** Numbers in a row, four bytes each: places in a text, of which a text of megabytes may have millions. */
export class Offsets {
  #values = new Uint32Array(256)
  length = 0

  push (value: number): void {
    if (this.length === this.#values.length) {
      const larger = new Uint32Array(2 * this.length)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[this.length++] = value
  }

  /** 0 beyond the end. */
  at (index: number): number { return this.#values[index] ?? 0 }
}
