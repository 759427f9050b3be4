import { eachLine, lineAt, short, withGaps } from './lines.ts'
import { Offsets } from './offsets.ts'
import { bounds, counted, type Strategy } from './strategy.ts'

/** What tells a failure; not where it is a part of a path or of another name. */
const failure = new RegExp(
  '(?<![\\w/\\\\.@-])' +
  '(?:error|err|fatal|panic|critical|crit|alert|emerg|exception|fail(?:ed|ure|s|ing)?|traceback|assert(?:ion)?|segfault|killed|refused|' +
  'denied|timed? ?out|unreachable|unhandled|abort(?:ed)?|\\w*Error|\\w*Exception)(?![\\w/\\\\-]|\\.\\w)',
  'i'
)
const warning = /\bwarn(?:ing)?\b|\bdeprecated\b/i
/** What continues the entry before: frames of a stack, causes, indented lines. */
const continuation = /^(?:\s+\S|Caused by|\.\.\. \d+ more|During handling|The above exception)/

/** How much of a line is looked at, in characters. */
const looked = 1_000

/** Keeps failures with what stands around them, the first line of each shape, and both ends; folds repeats. */
export const log: Strategy = (text) => {
  const entries = folded(text)
  const { total } = entries
  let order: number[] = []
  return {
    highest: total,
    render: (level, most) => {
      // Each entry takes one character, its end of line, at least.
      if (level > most + 1) return undefined
      if (order.length < Math.min(level, total)) order = foremost(entries.priorities, Math.min(total, most + 1))
      const kept = order.slice(0, level).sort((a, b) => a - b)
      const write = (index: number): string => {
        const line = short(lineAt(text, entries.starts.at(index)))
        const more = entries.linesBefore.at(index + 1) - entries.linesBefore.at(index) - 1
        return more === 0 ? line : `${line}  (and ${counted(more, 'line')} like it)`
      }
      return withGaps(kept, total, write, (index) => entries.linesBefore.at(index))
    }
  }
}

/** Entries: one line each, and those right after it that differ from it in numbers, ids and times only. */
interface Entries {
  readonly total: number
  readonly starts: Offsets
  /** How many lines stand before each; one more element with all lines. */
  readonly linesBefore: Offsets
  /** How much each matters. */
  readonly priorities: Uint8Array
}

/** The parts of a log line by which lines are compared. */
interface Kind { readonly shape: string, readonly isFailure: boolean, readonly isWarning: boolean }

const isFailed = 1
const isWarned = 2
const isFirst = 4

function folded (text: string): Entries {
  const starts = new Offsets()
  const linesBefore = new Offsets()
  const kinds = new Offsets()
  const seen = new Set<string>()
  const kindOf = kindsOfLines()
  let lines = 0
  let last: string | undefined
  eachLine(text, (start, end) => {
    const { shape, isFailure, isWarning } = kindOf(text.slice(start, Math.min(end, start + looked)))
    if (shape !== last) {
      // Beyond the bound nothing is new.
      const isNew = seen.size < bounds.shapes && !seen.has(shape)
      if (isNew) seen.add(shape)
      starts.push(start)
      linesBefore.push(lines)
      kinds.push((isFailure ? isFailed : 0) | (isWarning ? isWarned : 0) | (isNew ? isFirst : 0))
      last = shape
    }
    lines++
    return true
  })
  linesBefore.push(lines)
  return { total: starts.length, starts, linesBefore, priorities: prioritiesOf(text, starts, kinds) }
}

/** The kind of a line. Those of the lines that repeat are known. */
function kindsOfLines (): (line: string) => Kind {
  const known = new Map<string, Kind>()
  return (line) => {
    let kind = known.get(line)
    if (!kind) {
      if (known.size >= 1_000) known.clear()
      known.set(line, kind = { shape: shapeOf(line), isFailure: failure.test(line), isWarning: warning.test(line) })
    }
    return kind
  }
}

/** A line without what differs between its repeats: times, ids, numbers. */
function shapeOf (line: string): string {
  const start = short(line, 300)
  if (!/\d/.test(start)) return start
  return start
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b/gi, '#')
    .replace(/\d+/g, '#')
}

function prioritiesOf (text: string, starts: Offsets, kinds: Offsets): Uint8Array {
  const total = starts.length
  const values = new Uint8Array(total)
  for (let index = 0; index < total; index++) {
    const kind = kinds.at(index)
    const isNew = (kind & isFirst) !== 0
    const isFailure = (kind & isFailed) !== 0
    const isEnd = index < 3 || index >= total - 5
    // What it came to stands at the end.
    if (index >= total - 3) values[index] = isFailure && isNew ? 100 : 95
    else if (isFailure) values[index] = isNew ? 100 : 40
    else values[index] = Math.max(isEnd ? 70 : 0, (kind & isWarned) !== 0 ? (isNew ? 60 : 25) : isNew ? 30 : 10)
  }
  const raise = (index: number, value: number): void => {
    if (index >= 0 && index < total) values[index] = Math.max(values[index] ?? 0, value)
  }
  for (let index = 0; index < total; index++) {
    if (values[index] !== 100) continue
    for (const near of [-2, -1, 1, 2]) raise(index + near, 80)
    for (let next = index + 1; next <= Math.min(index + 12, total - 1); next++) {
      const start = starts.at(next)
      if (!continuation.test(lineAt(text.slice(start, start + looked), 0))) break
      raise(next, 90)
    }
  }
  return values
}

/** How much entries may matter. */
const ranks = [100, 95, 90, 80, 70, 60, 40, 30, 25, 10]

/** The indexes of the entries that matter most, foremost first, those that matter the same in their order. */
function foremost (priorities: Uint8Array, most: number): number[] {
  const order: number[] = []
  for (const rank of ranks) {
    for (let index = priorities.indexOf(rank); index !== -1 && order.length < most; index = priorities.indexOf(rank, index + 1)) {
      order.push(index)
    }
  }
  return order
}
