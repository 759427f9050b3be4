import { roundRobinOrder, lineStartingAt, type OffsetList } from './lines.ts'

/**
 * A log, divided into entries. An entry is a line together with the following lines that differ from it only in
 * numbers, ids and times.
 */
export interface FoldedLog {
  readonly entryCount: number
  /** The offset of the first line of each entry in the text. */
  readonly starts: OffsetList
  /** The number of lines before each entry; the last value is the number of all lines. */
  readonly linesBefore: OffsetList
  /** The rank of each entry; the entries with the highest ranks are kept first. */
  readonly priorities: Uint8Array
  /** The indexes of the first entries that have several lines, all of them failures. */
  readonly foldedFailureEntries: readonly number[]
  /** The number of lines of `foldedFailureEntries`, without the first line of each. */
  readonly foldedFailureLines: number
  /** The indexes of the first entries whose lines are failures. */
  readonly failureEntries: readonly number[]
}

/** Lines of an entry next to failures: those right after the preceding failure, and those right before the next one. */
interface BesideFailures { readonly afterFailure: string[], readonly beforeFailure: string[] }

/**
 * One side of a failure. `entry`: the index of the adjacent entry. `isBefore`: whether it is before the failure.
 * `count`: the number of lines of this entry that can be shown.
 */
interface FailureSide { readonly entry: number, readonly isBefore: boolean, readonly count: number }

/** The folded lines next to failures, ordered by their distance from a failure. */
export class FailureNeighbours {
  readonly #text: string
  readonly #entries: FoldedLog
  readonly #sides: readonly FailureSide[]
  readonly #order: ReadonlyArray<readonly [side: number, line: number]>
  readonly #linesBySide = new Map<FailureSide, readonly string[]>()

  /** @param text the log @param maxLines max number of lines, for all failures together */
  constructor (text: string, entries: FoldedLog, maxLines: number) {
    this.#text = text
    this.#entries = entries
    this.#sides = sidesOf(entries, maxLines)
    this.#order = roundRobinOrder(this.#sides.map(({ count }) => count)).slice(0, maxLines)
  }

  /** Returns the number of lines that `firstLines` can return, or slightly more. */
  static countLines (entries: FoldedLog, maxLines: number): number {
    return Math.min(maxLines, sidesOf(entries, maxLines).reduce((sum, { count }) => sum + count, 0))
  }

  /** Returns the lines that are nearest to failures, at most `maxLines`, by the index of their entry. */
  firstLines (maxLines: number): Map<number, BesideFailures> {
    const found = new Map<number, BesideFailures>()
    for (const [at, line] of this.#order.slice(0, maxLines)) {
      const side = this.#sides[at]
      const text = side && this.#linesOf(side)[line]
      if (side === undefined || text === undefined) continue
      const { entry, isBefore } = side
      const beside = found.get(entry) ?? { afterFailure: [], beforeFailure: [] }
      found.set(entry, beside)
      // The lines of an entry between two failures must not be shown for both. The first line is shown anyway.
      if (beside.afterFailure.length + beside.beforeFailure.length >= linesIn(this.#entries, entry) - 1) continue
      if (isBefore) beside.beforeFailure.unshift(text)
      else beside.afterFailure.push(text)
    }
    return found
  }

  /** Returns the lines on one side of a failure, nearest first. Stops at a line that equals the entry's first line. */
  #linesOf (side: FailureSide): readonly string[] {
    const known = this.#linesBySide.get(side)
    if (known) return known
    const { entry, isBefore, count } = side
    const { starts } = this.#entries
    const text = this.#text
    const start = starts.at(entry)
    const first = lineStartingAt(text, start)
    const lines: string[] = []
    let at = isBefore ? starts.at(entry + 1) : text.indexOf('\n', start) + 1
    while (lines.length < count) {
      if (isBefore) at = text.lastIndexOf('\n', at - 2) + 1
      const line = lineStartingAt(text, at)
      if (line === first) break
      lines.push(line)
      if (!isBefore) at = text.indexOf('\n', at) + 1
    }
    this.#linesBySide.set(side, lines)
    return lines
  }
}

const linesIn = ({ linesBefore }: FoldedLog, entry: number): number =>
  linesBefore.at(entry + 1) - linesBefore.at(entry)

/** Returns the sides of failures on which the adjacent entry has folded lines and is not a failure itself. */
function sidesOf (entries: FoldedLog, maxLines: number): FailureSide[] {
  const { failureEntries: failures, entryCount: total } = entries
  const isFailure = new Set(failures)
  const each = Math.max(1, Math.ceil(maxLines / Math.max(1, failures.length)))
  return failures.flatMap((failure) => [[failure - 1, true], [failure + 1, false]] as const)
    .flatMap(([entry, isBefore]) => {
      const isShown = entry >= 0 && entry < total && !isFailure.has(entry)
      const count = isShown ? Math.min(each, linesIn(entries, entry) - 1) : 0
      return count > 0 ? [{ entry, isBefore, count }] : []
    })
}
