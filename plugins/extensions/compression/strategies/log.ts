import { pushTo } from '../../../../protocol/grouping.ts'
import {
  visitLines, roundRobinOrder, lineStartingAt, stripAnsiCodes, shortenLine, joinWithGaps, OffsetList
} from './lines.ts'
import { FailureNeighbours, type FoldedLog } from './neighbours.ts'
import { strategyBounds, formatQuantity, type Strategy } from './strategy.ts'

/** Matches a word that means a failure and is not part of a path or another name. */
const failure = new RegExp(
  '(?<![\\w/\\\\.@-])' +
  '(?:error|err|fatal|panic|critical|crit|alert|emerg|exception|fail(?:ed|ure|s|ing)?|traceback|assert(?:ion)?|' +
  'segfault|killed|refused|' +
  'denied|timed? ?out|unreachable|unhandled|abort(?:ed)?|(?:[\\w$]+\\.)*\\w*(?:Error|Exception))(?![\\w/\\\\-]|\\.\\w)',
  'i'
)
/** Matches a log level above `error`. */
const severePattern = /(?<![\w/\\.@-])(?:FATAL|PANIC|CRITICAL|EMERG(?:ENCY)?|fatal:|panic:)(?![\w/\\-])/
const warning = /\bwarn(?:ing)?\b|\bdeprecated\b/i
/** Matches an HTTP status 5xx in an access log (common log format). */
const serverErrorPattern = /" 5\d\d(?: |$)/
/** Matches an HTTP status 4xx in an access log. */
const clientErrorPattern = /" 4\d\d(?: |$)/
/** Matches a line that continues a message: a stack frame, a cause, an indented line, or the name of an exception. */
const continuation =
  /^(?:\s+\S|Caused by|\.\.\. \d+ more|During handling|The above exception|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b)/
/** Matches a line with the cause of an exception, as written by Java, Node.js or Python. */
const cause =
  /^\s*(?:Caused by|\[cause\]|During handling|The above exception|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b)/
/** Number of characters at the start of a line that are parsed. */
const parsedLength = 1_000

/**
 * Max number of folded failure lines that can be shown after all; also the max number of folded lines that can be shown
 * next to failures.
 */
const maxUnfolded = 1_000

/**
 * The strategy `log`: keeps failures with the lines around them, the first line of each shape, and the first and last
 * lines. Repeated lines are folded into one. If space is left, folded failure lines are shown, then folded lines next
 * to failures.
 */
export const logStrategy: Strategy = (text) => {
  const entries = foldLines(text)
  const { entryCount: total } = entries
  let order: number[] = []
  let unfolded: UnfoldedLines | undefined
  let neighbours: FailureNeighbours | undefined
  const failures = Math.min(entries.foldedFailureLines, maxUnfolded)
  return {
    highestLevel: total + failures + FailureNeighbours.countLines(entries, maxUnfolded),
    render: (level, maxLength) => {
      // Each entry needs at least one character, its line break.
      if (level > maxLength + 1) return undefined
      if (order.length < Math.min(level, total)) {
        order = highestRanked(entries.priorities, Math.min(total, maxLength + 1))
      }
      const kept = order.slice(0, level).sort((a, b) => a - b)
      if (level > total) unfolded ??= new UnfoldedLines(text, entries)
      const more = level > total ? unfolded?.firstLines(Math.min(level - total, failures)) : undefined
      if (level > total + failures) neighbours ??= new FailureNeighbours(text, entries, maxUnfolded)
      const around = level > total + failures ? neighbours?.firstLines(level - total - failures) : undefined
      const write = (index: number): string => {
        const { afterFailure: after = [], beforeFailure: before = [] } = around?.get(index) ?? {}
        const toShownText = (lines: readonly string[]): string =>
          lines.map((line) => shortenLine(stripAnsiCodes(line))).join('\n')
        const lines = [lineStartingAt(text, entries.starts.at(index)), ...more?.get(index) ?? [], ...after]
        const rest = entries.linesBefore.at(index + 1) - entries.linesBefore.at(index) - lines.length - before.length
        const head = rest === 0
          ? toShownText(lines)
          : `${toShownText(lines)}  (and ${formatQuantity(rest, 'line')} like it)`
        return before.length === 0 ? head : `${head}\n${toShownText(before)}`
      }
      return joinWithGaps(kept, total, write, (index) => entries.linesBefore.at(index))
    }
  }
}

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

/** The kind of a log line. Adjacent lines with the same shape are folded; `flags` mark failures and warnings. */
interface Kind { readonly shape: string, readonly flags: number }

const failureFlag = 1
const warningFlag = 2
/** Marks the first entry with its shape. */
const firstFlag = 4
/** Marks a failure with a level above `error`. */
const severeFlag = 8

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
  const foldedFailureEntries: number[] = []
  let foldedFailureLines = 0
  const failures: number[] = []
  for (let index = 0; index < starts.length && foldedFailureEntries.length < maxUnfolded; index++) {
    const more = linesBefore.at(index + 1) - linesBefore.at(index) - 1
    if ((kinds.at(index) & failureFlag) === 0) continue
    if (failures.length < maxUnfolded) failures.push(index)
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
    failureEntries: failures
  }
}

/** Returns a function that classifies a line, with a cache for repeated lines. */
function kindsOfLines (): (line: string) => Kind {
  const known = new Map<string, Kind>()
  return (line) => {
    let kind = known.get(line)
    if (!kind) {
      if (known.size >= 1_000) known.clear()
      known.set(line, kind = kindOf(stripAnsiCodes(line)))
    }
    return kind
  }
}

function kindOf (line: string): Kind {
  const isFailure = failure.test(line) || serverErrorPattern.test(line)
  const isWarning = warning.test(line) || clientErrorPattern.test(line)
  const flags = (isFailure
    ? failureFlag
    : 0) | (isWarning ? warningFlag : 0) | (severePattern.test(line) ? severeFlag | failureFlag : 0)
  // The flags are part of the shape, so that failures are not folded into other lines.
  return { shape: `${flags}${shapeOf(line)}`, flags }
}

/**
 * Returns the shape of a line: its text with `#` in place of times, ids and numbers, which differ between repetitions.
 */
function shapeOf (line: string): string {
  const start = shortenLine(line, 300)
  if (!/\d/.test(start)) return start
  return start
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b/gi, '#')
    .replace(/\d+/g, '#')
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
