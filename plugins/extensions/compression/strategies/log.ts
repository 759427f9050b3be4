import { pushTo } from '../../../../protocol/grouping.ts'
import {
  visitLines, roundRobinOrder, lineStartingAt, stripAnsiCodes, shortenLine, joinWithGaps, OffsetList
} from './lines.ts'
import { failureFlag, firstFlag, kindsOfLines, severeFlag, warningFlag } from './log-lines.ts'
import { strategyBounds, formatQuantity, type Strategy } from './strategy.ts'

/** Matches a line that continues a message: a stack frame, a cause, an indented line, or the name of an exception. */
const continuation =
  /^(?:\s+\S|Caused by|\.\.\. \d+ more|During handling|The above exception|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b)/
/** Matches a line with the cause of an exception, as written by Java, Node.js or Python. */
const cause =
  /^\s*(?:Caused by|\[cause\]|During handling|The above exception|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b)/
/** Number of characters at the start of a line that are parsed. */
const parsedLength = 1_000

/** Max number of folded failure lines that can be shown after all; also the max number of lines before failures. */
const maxUnfolded = 1_000

/**
 * A log, divided into entries. An entry is a line together with the following lines that differ from it only in
 * numbers, ids and times.
 */
interface FoldedLog {
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
  /** The indexes of the first entries that have several lines and precede a failure, without failures themselves. */
  readonly entriesBeforeFailures: readonly number[]
}

/**
 * The strategy `log`: keeps failures with the lines around them, the first line of each shape, and the first and last
 * lines. Repeated lines are folded into one. If space is left, folded failure lines are shown, then the last of the
 * folded lines before a failure.
 */
export const logStrategy: Strategy = (text) => {
  const entries = foldLines(text)
  const { entryCount: total, starts, linesBefore } = entries
  let order: number[] = []
  let unfolded: UnfoldedLines | undefined
  const failures = Math.min(entries.foldedFailureLines, maxUnfolded)
  return {
    highestLevel: total + failures + entries.entriesBeforeFailures.length,
    render: (level, maxLength) => {
      // Each entry needs at least one character, its line break.
      if (level > maxLength + 1) return undefined
      if (order.length < Math.min(level, total)) {
        order = highestRanked(entries.priorities, Math.min(total, maxLength + 1))
      }
      const kept = order.slice(0, level).sort((a, b) => a - b)
      if (level > total) unfolded ??= new UnfoldedLines(text, entries)
      const more = level > total ? unfolded?.firstLines(Math.min(level - total, failures)) : undefined
      const withLast = new Set(entries.entriesBeforeFailures.slice(0, Math.max(0, level - total - failures)))
      const write = (index: number): string => {
        const first = lineStartingAt(text, starts.at(index))
        const last = withLast.has(index) ? lineBefore(text, starts.at(index + 1)) : first
        const shown = [first, ...more?.get(index) ?? []].map(toShownLine).join('\n')
        const tail = last === first ? [] : [toShownLine(last)]
        const rest =
          linesBefore.at(index + 1) - linesBefore.at(index) - 1 - (more?.get(index)?.length ?? 0) - tail.length
        return [rest === 0 ? shown : `${shown}  (and ${formatQuantity(rest, 'line')} like it)`, ...tail].join('\n')
      }
      return joinWithGaps(kept, total, write, (index) => linesBefore.at(index))
    }
  }
}

const toShownLine = (line: string): string => shortenLine(stripAnsiCodes(line))

/** Returns the line that ends right before an index at which another line begins. */
const lineBefore = (text: string, start: number): string =>
  lineStartingAt(text, text.lastIndexOf('\n', start - 2) + 1)

/** The lines that were folded into failure entries, without duplicates: one line of each entry, then the others. */
class UnfoldedLines {
  readonly #lines: Array<readonly string[]>
  readonly #entries: readonly number[]
  readonly #order: ReadonlyArray<readonly [entry: number, line: number]>

  constructor (text: string, { starts, linesBefore, foldedFailureEntries }: FoldedLog) {
    this.#entries = foldedFailureEntries
    const maxLines = Math.ceil(4 * maxUnfolded / foldedFailureEntries.length)
    this.#lines = foldedFailureEntries.map((index) => {
      const count = linesBefore.at(index + 1) - linesBefore.at(index)
      const seen = new Set<string>()
      let read = 0
      visitLines(text.slice(starts.at(index)), (start, end) => {
        seen.add(text.slice(starts.at(index) + start, starts.at(index) + Math.min(end, start + parsedLength)))
        return ++read < count && seen.size <= maxLines
      })
      return [...seen].slice(1)
    })
    this.#order = roundRobinOrder(this.#lines.map(({ length }) => length))
  }

  /** Returns the first `count` folded lines, by the index of their entry. */
  firstLines (count: number): Map<number, string[]> {
    const found = new Map<number, string[]>()
    for (const [at, line] of this.#order.slice(0, count)) {
      pushTo(found, this.#entries[at] ?? 0, this.#lines[at]?.[line] ?? '')
    }
    return found
  }
}

/** Folds the adjacent lines of a log that have the same shape. */
function foldLines (text: string): FoldedLog {
  const starts = new OffsetList()
  const linesBefore = new OffsetList()
  const kinds = new OffsetList()
  const seen = new Set<string>()
  const kindOf = kindsOfLines()
  let lines = 0
  let last: string | undefined
  visitLines(text, (start, end) => {
    const { shape, flags } = kindOf(text.slice(start, Math.min(end, start + parsedLength)))
    if (shape !== last) {
      // When the bound is reached, no shape is treated as new.
      const isNew = seen.size < strategyBounds.logShapes && !seen.has(shape)
      if (isNew) seen.add(shape)
      starts.push(start)
      linesBefore.push(lines)
      kinds.push(flags | (isNew ? firstFlag : 0))
      last = shape
    }
    lines++
    return true
  })
  linesBefore.push(lines)
  const isFailure = (index: number): boolean => (kinds.at(index) & failureFlag) !== 0
  const foldedLines = (index: number): number => linesBefore.at(index + 1) - linesBefore.at(index) - 1
  const foldedFailureEntries: number[] = []
  let foldedFailureLines = 0
  const entriesBeforeFailures: number[] = []
  for (let index = 0; index < starts.length && foldedFailureEntries.length < maxUnfolded; index++) {
    if (!isFailure(index)) continue
    const [before, more] = [index - 1, foldedLines(index)]
    if (before >= 0 && !isFailure(before) && foldedLines(before) > 0 && entriesBeforeFailures.length < maxUnfolded) {
      entriesBeforeFailures.push(before)
    }
    if (more === 0) continue
    foldedFailureEntries.push(index)
    foldedFailureLines += more
  }
  const priorities = prioritiesOf(text, starts, kinds)
  return {
    entryCount: starts.length,
    starts,
    linesBefore,
    priorities,
    foldedFailureEntries,
    foldedFailureLines,
    entriesBeforeFailures
  }
}

/** Max number of first failures, and max number of severe failures, that rank highest. */
const maxTopFailures = 6
/** Max number of shown lines of a stack trace. */
const maxStackLines = 12
/** Max number of entries after a failure that are searched for the stack trace of the failure. */
const maxStackEntries = 200

/** Max distance from a failure, in entries, at which an entry ranks higher than similar entries elsewhere. */
const maxNearDistance = 8

/** The ranks of log entries. Entries with higher ranks are kept first. */
const rank = {
  failure: 100,
  end: 95,
  stack: 90,
  laterFailure: 85,
  near: 80,
  laterStack: 75,
  edge: 70,
  warning: 60,
  repeatedFailure: 40,
  first: 30,
  besideRepeated: 28,
  nearRepeated: 27,
  repeatedWarning: 25,
  further: 15,
  rest: 10
}

/** Returns the rank of each entry. @param kinds the flags of each entry */
function prioritiesOf (text: string, starts: OffsetList, kinds: OffsetList): Uint8Array {
  const total = starts.length
  const values = new Uint8Array(total)
  const failures: number[] = []
  for (let index = 0; index < total; index++) {
    const kind = kinds.at(index)
    const isNew = (kind & firstFlag) !== 0
    const isFailure = (kind & failureFlag) !== 0
    const isWarning = (kind & warningFlag) !== 0
    const isEdge = index < 3 || index >= total - 5
    if (isFailure && isNew) failures.push(index)
    // The first and the last entries.
    if (index === 0 || index >= total - 3) values[index] = isFailure && isNew ? rank.failure : rank.end
    else if (isFailure) values[index] = isNew ? rank.laterFailure : rank.repeatedFailure
    else if (isEdge) values[index] = rank.edge
    else if (isWarning) values[index] = isNew ? rank.warning : rank.repeatedWarning
    else values[index] = isNew ? rank.first : rank.rest
  }
  const raise = (index: number, value: number): void => {
    if (index >= 0 && index < total) values[index] = Math.max(values[index] ?? 0, value)
  }
  for (let index = 0; index < total; index++) {
    if ((kinds.at(index) & failureFlag) === 0) continue
    for (let distance = 1; distance <= maxNearDistance; distance++) {
      const value = distance === 1 ? rank.besideRepeated : distance === 2 ? rank.nearRepeated : rank.further
      for (const near of [index - distance, index + distance]) raise(near, value)
    }
  }
  const isForemost = (index: number): boolean => (kinds.at(index) & severeFlag) !== 0 || values[index] === rank.failure
  const top = new Set(
    [...failures.filter(isForemost).slice(0, maxTopFailures), ...failures.slice(0, maxTopFailures)]
  )
  for (const index of failures) {
    const isTop = top.has(index)
    if (isTop) raise(index, rank.failure)
    for (const near of [-2, -1, 1, 2]) raise(index + near, isTop ? rank.near : rank.warning)
    const [stack, causes] = isTop ? [rank.stack, rank.end] : [rank.laterStack, rank.laterStack]
    let shown = 0
    for (let next = index + 1; next < total && next <= index + maxStackEntries; next++) {
      const start = starts.at(next)
      const line = stripAnsiCodes(lineStartingAt(text.slice(start, start + parsedLength), 0))
      if (!continuation.test(line)) break
      const isCause = cause.test(line)
      // After a cause, at least two more lines are shown, since they show its location.
      if (isCause) shown = Math.min(shown, maxStackLines - 2)
      if (isCause || shown++ < maxStackLines) raise(next, isCause ? causes : stack)
    }
  }
  return values
}

/**
 * Returns the indexes of the entries with the highest ranks, at most `maxCount`, highest first. Entries of equal rank
 * keep their order.
 */
function highestRanked (priorities: Uint8Array, maxCount: number): number[] {
  const order: number[] = []
  for (const value of [...new Set(priorities)].sort((a, b) => b - a)) {
    for (let index = priorities.indexOf(value); index !== -1 &&
      order.length < maxCount; index = priorities.indexOf(value, index + 1)) {
      order.push(index)
    }
  }
  return order
}
