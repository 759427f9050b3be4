import { eachLine, inTurns, lineAt, plainLine, short, withGaps, Offsets } from './lines.ts'
import { Neighbours, type TextEntries } from './neighbours.ts'
import { bounds, counted, type Strategy } from './strategy.ts'

/** Matches a word for a failure that is not part of a path or another name. */
const failure = new RegExp(
  '(?<![\\w/\\\\.@-])' +
  '(?:error|err|fatal|panic|critical|crit|alert|emerg|exception|fail(?:ed|ure|s|ing)?|traceback|assert(?:ion)?|' +
  'segfault|killed|refused|' +
  'denied|timed? ?out|unreachable|unhandled|abort(?:ed)?|(?:[\\w$]+\\.)*\\w*(?:Error|Exception))(?![\\w/\\\\-]|\\.\\w)',
  'i'
)
/** Levels above `error`. */
const severe = /(?<![\w/\\.@-])(?:FATAL|PANIC|CRITICAL|EMERG(?:ENCY)?|fatal:|panic:)(?![\w/\\-])/
const warning = /\bwarn(?:ing)?\b|\bdeprecated\b/i
/** The HTTP status of a request in an access log (common log format): 5xx, and 4xx. */
const requestFailed = /" 5\d\d(?: |$)/
const requestRefused = /" 4\d\d(?: |$)/
/** Matches a continuation of a log entry: stack frame, cause, indented line, name and message of an exception. */
const continuation =
  /^(?:\s+\S|Caused by|\.\.\. \d+ more|During handling|The above exception|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b)/
/** Matches the cause of an exception, in the form of Java, Node.js or Python. */
const cause =
  /^\s*(?:Caused by|\[cause\]|During handling|The above exception|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b)/
/** Length of a line's start that is parsed, in characters. */
const looked = 1_000

/** Max number of folded lines that can be shown: different lines of failures, and lines beside failures. */
const mostUnfolded = 1_000

/**
 * Keeps failures with the lines around them, the first line of each shape, and both ends. Repeated lines are folded;
 * with space left, those of failures and beside failures are shown.
 */
export const log: Strategy = (text) => {
  const entries = folded(text)
  const { total } = entries
  let order: number[] = []
  let unfolded: Unfolded | undefined
  let neighbours: Neighbours | undefined
  const failures = Math.min(entries.foldedFailures, mostUnfolded)
  return {
    highest: total + failures + Neighbours.count(entries, mostUnfolded),
    render: (level, most) => {
      // Each entry takes at least one character, its line break.
      if (level > most + 1) return undefined
      if (order.length < Math.min(level, total)) order = foremost(entries.priorities, Math.min(total, most + 1))
      const kept = order.slice(0, level).sort((a, b) => a - b)
      if (level > total) unfolded ??= new Unfolded(text, entries)
      const more = level > total ? unfolded?.first(Math.min(level - total, failures)) : undefined
      if (level > total + failures) neighbours ??= new Neighbours(text, entries, mostUnfolded)
      const around = level > total + failures ? neighbours?.first(level - total - failures) : undefined
      const write = (index: number): string => {
        const { after = [], before = [] } = around?.get(index) ?? {}
        const shown = (lines: readonly string[]): string => lines.map((line) => short(plainLine(line))).join('\n')
        const lines = [lineAt(text, entries.starts.at(index)), ...more?.get(index) ?? [], ...after]
        const rest = entries.linesBefore.at(index + 1) - entries.linesBefore.at(index) - lines.length - before.length
        const head = rest === 0 ? shown(lines) : `${shown(lines)}  (and ${counted(rest, 'line')} like it)`
        return before.length === 0 ? head : `${head}\n${shown(before)}`
      }
      return withGaps(kept, total, write, (index) => entries.linesBefore.at(index))
    }
  }
}

/** The different lines of folded entries with failures, taken from the entries in turns. */
class Unfolded {
  readonly #lines: Array<readonly string[]>
  readonly #entries: readonly number[]
  readonly #order: ReadonlyArray<readonly [entry: number, line: number]>

  constructor (text: string, { starts, linesBefore, failuresWithMore }: TextEntries) {
    this.#entries = failuresWithMore
    const most = Math.ceil(4 * mostUnfolded / failuresWithMore.length)
    this.#lines = failuresWithMore.map((index) => {
      const count = linesBefore.at(index + 1) - linesBefore.at(index)
      const seen = new Set<string>()
      let read = 0
      eachLine(text.slice(starts.at(index)), (start, end) => {
        seen.add(text.slice(starts.at(index) + start, starts.at(index) + Math.min(end, start + looked)))
        return ++read < count && seen.size <= most
      })
      return [...seen].slice(1)
    })
    this.#order = inTurns(this.#lines.map(({ length }) => length))
  }

  /** The first of these lines, by entry. */
  first (count: number): Map<number, string[]> {
    const found = new Map<number, string[]>()
    for (const [at, line] of this.#order.slice(0, count)) {
      const index = this.#entries[at] ?? 0
      const lines = found.get(index)
      const text = this.#lines[at]?.[line] ?? ''
      if (lines) lines.push(text)
      else found.set(index, [text])
    }
    return found
  }
}

/** The parts of a log line by which lines are compared. */
interface Kind { readonly shape: string, readonly flags: number }

const isFailed = 1
const isWarned = 2
const isFirst = 4
const isSevere = 8

function folded (text: string): TextEntries {
  const starts = new Offsets()
  const linesBefore = new Offsets()
  const kinds = new Offsets()
  const seen = new Set<string>()
  const kindOf = kindsOfLines()
  let lines = 0
  let last: string | undefined
  eachLine(text, (start, end) => {
    const { shape, flags } = kindOf(text.slice(start, Math.min(end, start + looked)))
    if (shape !== last) {
      // Beyond the bound, no shape counts as new.
      const isNew = seen.size < bounds.shapes && !seen.has(shape)
      if (isNew) seen.add(shape)
      starts.push(start)
      linesBefore.push(lines)
      kinds.push(flags | (isNew ? isFirst : 0))
      last = shape
    }
    lines++
    return true
  })
  linesBefore.push(lines)
  const failuresWithMore: number[] = []
  let foldedFailures = 0
  const failures: number[] = []
  for (let index = 0; index < starts.length && failuresWithMore.length < mostUnfolded; index++) {
    const more = linesBefore.at(index + 1) - linesBefore.at(index) - 1
    if ((kinds.at(index) & isFailed) === 0) continue
    if (failures.length < mostUnfolded) failures.push(index)
    if (more === 0) continue
    failuresWithMore.push(index)
    foldedFailures += more
  }
  const priorities = prioritiesOf(text, starts, kinds)
  return { total: starts.length, starts, linesBefore, priorities, failuresWithMore, foldedFailures, failures }
}

/** Makes a function that returns the kind of a line, with a cache for repeated lines. */
function kindsOfLines (): (line: string) => Kind {
  const known = new Map<string, Kind>()
  return (line) => {
    let kind = known.get(line)
    if (!kind) {
      if (known.size >= 1_000) known.clear()
      known.set(line, kind = kindOf(plainLine(line)))
    }
    return kind
  }
}

function kindOf (line: string): Kind {
  const isFailure = failure.test(line) || requestFailed.test(line)
  const isWarning = warning.test(line) || requestRefused.test(line)
  const flags = (isFailure ? isFailed : 0) | (isWarning ? isWarned : 0) | (severe.test(line) ? isSevere | isFailed : 0)
  // The flags in the shape keep a failure from being folded into other lines.
  return { shape: `${flags}${shapeOf(line)}`, flags }
}

/** A line without times, ids and numbers, which differ between repeats. */
function shapeOf (line: string): string {
  const start = short(line, 300)
  if (!/\d/.test(start)) return start
  return start
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b/gi, '#')
    .replace(/\d+/g, '#')
}

/** Number of failures with the highest rank, of lines of a stack, and of entries that are searched for a stack. */
const foremostFailures = 6
const frames = 12
const longestStack = 200

/** Max distance from a failure at which an entry ranks higher than others of its kind. */
const farthest = 8

/** The ranks of entries. */
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

function prioritiesOf (text: string, starts: Offsets, kinds: Offsets): Uint8Array {
  const total = starts.length
  const values = new Uint8Array(total)
  const failures: number[] = []
  for (let index = 0; index < total; index++) {
    const kind = kinds.at(index)
    const isNew = (kind & isFirst) !== 0
    const isFailure = (kind & isFailed) !== 0
    const isWarning = (kind & isWarned) !== 0
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
    if ((kinds.at(index) & isFailed) === 0) continue
    for (let distance = 1; distance <= farthest; distance++) {
      const value = distance === 1 ? rank.besideRepeated : distance === 2 ? rank.nearRepeated : rank.further
      for (const near of [index - distance, index + distance]) raise(near, value)
    }
  }
  const isForemost = (index: number): boolean => (kinds.at(index) & isSevere) !== 0 || values[index] === rank.failure
  const top = new Set(
    [...failures.filter(isForemost).slice(0, foremostFailures), ...failures.slice(0, foremostFailures)]
  )
  for (const index of failures) {
    const isTop = top.has(index)
    if (isTop) raise(index, rank.failure)
    for (const near of [-2, -1, 1, 2]) raise(index + near, isTop ? rank.near : rank.warning)
    const [stack, causes] = isTop ? [rank.stack, rank.end] : [rank.laterStack, rank.laterStack]
    let shown = 0
    for (let next = index + 1; next < total && next <= index + longestStack; next++) {
      const start = starts.at(next)
      const line = plainLine(lineAt(text.slice(start, start + looked), 0))
      if (!continuation.test(line)) break
      const isCause = cause.test(line)
      // The frame after a cause has its location.
      if (isCause) shown = Math.min(shown, frames - 2)
      if (isCause || shown++ < frames) raise(next, isCause ? causes : stack)
    }
  }
  return values
}

/** The indexes of the entries with the highest ranks, highest first; entries of equal rank keep their order. */
function foremost (priorities: Uint8Array, most: number): number[] {
  const order: number[] = []
  for (const value of [...new Set(priorities)].sort((a, b) => b - a)) {
    for (let index = priorities.indexOf(value); index !== -1 &&
      order.length < most; index = priorities.indexOf(value, index + 1)) {
      order.push(index)
    }
  }
  return order
}
