import { inTurns, lineAt, type Offsets } from './lines.ts'

/** The entries of a log. An entry is a line and the next lines that differ from it only in numbers, ids and times. */
export interface TextEntries {
  readonly total: number
  readonly starts: Offsets
  /** The number of lines before each entry, and at the end the number of all lines. */
  readonly linesBefore: Offsets
  /** The rank of each entry. */
  readonly priorities: Uint8Array
  /** The entries with failures and folded lines, and the number of these lines. */
  readonly failuresWithMore: readonly number[]
  readonly foldedFailures: number
  /** The first entries with failures. */
  readonly failures: readonly number[]
}

/** Lines of a folded entry: those after the failure above it, and those before the failure below it. */
interface Beside { readonly after: string[], readonly before: string[] }

/** One side of a failure: the entry there, and the number of its lines that can be shown. */
interface Side { readonly entry: number, readonly isBefore: boolean, readonly count: number }

/** The folded lines beside failures, the nearest of each failure first. */
export class Neighbours {
  readonly #text: string
  readonly #entries: TextEntries
  readonly #sides: readonly Side[]
  readonly #order: ReadonlyArray<readonly [side: number, line: number]>
  readonly #lines = new Map<Side, readonly string[]>()

  /** @param most lines of all failures together */
  constructor (text: string, entries: TextEntries, most: number) {
    this.#text = text
    this.#entries = entries
    this.#sides = sidesOf(entries, most)
    this.#order = inTurns(this.#sides.map(({ count }) => count)).slice(0, most)
  }

  /** The number of lines to show, or slightly more. */
  static count (entries: TextEntries, most: number): number {
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
      // An entry between two failures has lines for both. Its first line is shown anyway.
      if (beside.after.length + beside.before.length >= sizeOf(this.#entries, entry) - 1) continue
      if (isBefore) beside.before.unshift(text)
      else beside.after.push(text)
    }
    return found
  }

  /** The lines of a side, the nearest first, up to one that equals the entry's first line. */
  #linesOf (side: Side): readonly string[] {
    const known = this.#lines.get(side)
    if (known) return known
    const { entry, isBefore, count } = side
    const { starts } = this.#entries
    const text = this.#text
    const start = starts.at(entry)
    const first = lineAt(text, start)
    const lines: string[] = []
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

const sizeOf = ({ linesBefore }: TextEntries, entry: number): number =>
  linesBefore.at(entry + 1) - linesBefore.at(entry)

/** The sides of each failure with a folded entry that is no failure. */
function sidesOf (entries: TextEntries, most: number): Side[] {
  const { failures, total } = entries
  const isFailure = new Set(failures)
  const each = Math.max(1, Math.ceil(most / Math.max(1, failures.length)))
  return failures.flatMap((failure) => [[failure - 1, true], [failure + 1, false]] as const)
    .flatMap(([entry, isBefore]) => {
      const count = entry < 0 || entry >= total || isFailure.has(entry) ? 0 : Math.min(each, sizeOf(entries, entry) - 1)
      return count > 0 ? [{ entry, isBefore, count }] : []
    })
}
