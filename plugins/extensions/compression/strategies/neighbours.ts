import { inTurns, lineAt, type Offsets } from './lines.ts'

/** Entries: one line each, and those right after it that differ from it in numbers, ids and times only. */
export interface Entries {
  readonly total: number
  readonly starts: Offsets
  /** How many lines stand before each; one more element with all lines. */
  readonly linesBefore: Offsets
  /** How much each matters. */
  readonly priorities: Uint8Array
  /** Which tell of a failure and have lines that are folded, and how many lines these are. */
  readonly failuresWithMore: readonly number[]
  readonly foldedFailures: number
  /** Which tell of a failure: the first ones. */
  readonly failures: readonly number[]
}

/** Lines of a folded entry: those right after the failure above it, and those right before the failure below it. */
interface Beside { readonly after: string[], readonly before: string[] }

/** One side of a failure: the entry there, and how many of its lines are of use. */
interface Side { readonly entry: number, readonly isBefore: boolean, readonly count: number }

/** The lines beside failures that were folded, the nearest ones of each failure first. */
export class Neighbours {
  readonly #text: string
  readonly #entries: Entries
  readonly #sides: readonly Side[]
  readonly #order: ReadonlyArray<readonly [side: number, line: number]>
  readonly #lines = new Map<Side, readonly string[]>()

  /** @param most lines of all failures together */
  constructor (text: string, entries: Entries, most: number) {
    this.#text = text
    this.#entries = entries
    this.#sides = sidesOf(entries, most)
    this.#order = inTurns(this.#sides.map(({ count }) => count)).slice(0, most)
  }

  /** How many lines there are to show, or a few more. */
  static count (entries: Entries, most: number): number {
    return Math.min(most, sidesOf(entries, most).reduce((sum, { count }) => sum + count, 0))
  }

  /** The first of these lines, by entry. */
  first (wanted: number): Map<number, Beside> {
    const found = new Map<number, Beside>()
    for (const [at, line] of this.#order.slice(0, wanted)) {
      const side = this.#sides[at]
      const text = side && this.#linesOf(side)[line]
      if (side === undefined || text === undefined) continue
      const { entry, isBefore } = side
      const beside = found.get(entry) ?? { after: [], before: [] }
      found.set(entry, beside)
      // An entry between two failures has lines for both; the first one stands there anyway.
      if (beside.after.length + beside.before.length >= sizeOf(this.#entries, entry) - 1) continue
      if (isBefore) beside.before.unshift(text)
      else beside.after.push(text)
    }
    return found
  }

  /** The lines of a side, the nearest to the failure first, as far as they say something else than the entry's first line. */
  #linesOf (side: Side): readonly string[] {
    const known = this.#lines.get(side)
    if (known) return known
    const { entry, isBefore, count } = side
    const { starts } = this.#entries
    const text = this.#text
    const start = starts.at(entry)
    const first = lineAt(text, start)
    const lines: string[] = []
    // Behind an entry before a failure stands that failure.
    let at = isBefore ? starts.at(entry + 1) : text.indexOf('\n', start) + 1
    while (lines.length < count) {
      if (isBefore) at = text.lastIndexOf('\n', at - 2) + 1
      const line = lineAt(text, at)
      if (line === first) break
      lines.push(line)
      if (!isBefore) at = text.indexOf('\n', at) + 1
    }
    this.#lines.set(side, lines)
    return lines
  }
}

const sizeOf = ({ linesBefore }: Entries, entry: number): number => linesBefore.at(entry + 1) - linesBefore.at(entry)

/** Both sides of each failure, where a folded entry that tells of none stands there. */
function sidesOf (entries: Entries, most: number): Side[] {
  const { failures, total } = entries
  const isFailure = new Set(failures)
  const each = Math.max(1, Math.ceil(most / Math.max(1, failures.length)))
  return failures.flatMap((failure) => [[failure - 1, true], [failure + 1, false]] as const).flatMap(([entry, isBefore]) => {
    const count = entry < 0 || entry >= total || isFailure.has(entry) ? 0 : Math.min(each, sizeOf(entries, entry) - 1)
    return count > 0 ? [{ entry, isBefore, count }] : []
  })
}
