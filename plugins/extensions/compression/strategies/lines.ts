import { stripVTControlCharacters } from 'node:util'
import { truncate } from '../../../../protocol/text.ts'
import { formatQuantity } from './strategy.ts'

/** Length to which a line is truncated by default, in characters. */
const maxLineLength = 400

/** Splits a text into lines, without the line breaks. For long texts, `visitLines` needs less memory. */
export const splitLines = (text: string): string[] => text.replace(/\r?\n$/, '').split(/\r?\n/)

/**
 * Visits the lines of a text.
 * @param visit receives the start and the end of a line without its line break, and the start of the next line; returns
 *   false to stop
 */
export function visitLines (text: string, visit: (start: number, end: number, next: number) => boolean): void {
  for (let start = 0; ;) {
    const found = text.indexOf('\n', start)
    const last = found === -1 ? text.length : found
    const end = found > start && text.charCodeAt(found - 1) === 0x0d ? found - 1 : last
    const next = last + 1
    // A line break at the end of the text does not begin another line.
    if (!visit(start, end, next) || next >= text.length) return
    start = next
  }
}

/** Returns the line that begins at an index, without its line break. */
export function lineStartingAt (text: string, start: number): string {
  const found = text.indexOf('\n', start)
  if (found === -1) return text.slice(start)
  return text.slice(start, found > start && text.charCodeAt(found - 1) === 0x0d ? found - 1 : found)
}

/** Truncates a line that is longer than `maxLength` characters, and appends the number of missing characters. */
export function shortenLine (line: string, maxLength = maxLineLength): string {
  if (line.length <= maxLength) return line
  const head = truncate(line, maxLength)
  return `${head}… (${formatQuantity(line.length - head.length, 'more character')})`
}

/** Removes ANSI escape codes (terminal colours) from a line. */
export const stripAnsiCodes = (line: string): string => line.includes('\x1b') ? stripVTControlCharacters(line) : line

/**
 * Joins the kept entries of a text. Where lines are missing, a line states how many.
 * @param kept the indexes of the kept entries, ascending
 * @param total the number of all entries
 * @param write returns the text of an entry
 * @param linesBefore returns the number of lines before an entry; for the index `total`, the number of all lines
 */
export function joinWithGaps (
  kept: readonly number[],
  total: number,
  write: (index: number) => string,
  linesBefore: (index: number) => number
): string {
  const parts: string[] = []
  let next = 0
  const gap = (end: number): void => {
    const missing = linesBefore(end) - linesBefore(next)
    if (missing > 0) parts.push(`… ${formatQuantity(missing, 'line')} left out …`)
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
 * Orders the items of several groups: the first item of each group, then the second item of each group, and so on.
 * @param sizes the number of items of each group
 * @returns the indexes of the groups and of the items within their groups
 */
export function roundRobinOrder (sizes: readonly number[]): Array<[group: number, item: number]> {
  const order: Array<[number, number]> = []
  let open = sizes.map((size, group) => ({ size, group }))
  for (let item = 0; open.length > 0; item++) {
    open = open.filter(({ size }) => size > item)
    for (const { group } of open) order.push([group, item])
  }
  return order
}

/** A growing list of offsets in a text, stored in four bytes each. */
export class OffsetList {
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

  /** Returns the offset at an index, or 0 beyond the end of the list. */
  at (index: number): number { return this.#values[index] ?? 0 }
}
