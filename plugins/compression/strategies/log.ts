import { linesOf, short, withGaps } from './lines.ts'
import { counted, type Strategy } from './strategy.ts'

/** One line, and those right after it that differ from it in numbers, ids and times only. */
interface Entry { line: string, shape: string, lines: number }

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

/** Keeps failures with what stands around them, the first line of each shape, and both ends; folds repeats. */
export const log: Strategy = (text) => {
  const entries = folded(linesOf(text))
  const order = [...priorities(entries).entries()].sort(([a, first], [b, second]) => second - first || a - b).map(([index]) => index)
  return {
    highest: entries.length,
    render: (level) => {
      const kept = order.slice(0, level).sort((a, b) => a - b)
      const write = (index: number): string => {
        const { line = '', lines = 1 } = entries[index] ?? {}
        return lines === 1 ? short(line) : `${short(line)}  (and ${counted(lines - 1, 'line')} like it)`
      }
      return withGaps(kept, entries.length, write, (index) => entries[index]?.lines ?? 0)
    }
  }
}

function folded (lines: readonly string[]): Entry[] {
  const entries: Entry[] = []
  for (const line of lines) {
    const shape = shapeOf(line)
    const last = entries.at(-1)
    if (last?.shape === shape) last.lines++
    else entries.push({ line, shape, lines: 1 })
  }
  return entries
}

/** A line without what differs between its repeats: times, ids, numbers. */
const shapeOf = (line: string): string =>
  short(line, 300)
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b/gi, '#')
    .replace(/\d+/g, '#')

/** How much each entry matters. */
function priorities (entries: readonly Entry[]): number[] {
  const seen = new Set<string>()
  const values = entries.map(({ line, shape }, index) => {
    const isNew = !seen.has(shape)
    seen.add(shape)
    const isEnd = index < 3 || index >= entries.length - 5
    // What it came to stands at the end.
    if (index >= entries.length - 3) return failure.test(line) && isNew ? 100 : 95
    if (failure.test(line)) return isNew ? 100 : 40
    return Math.max(isEnd ? 70 : 0, warning.test(line) ? (isNew ? 60 : 25) : isNew ? 30 : 10)
  })
  const raise = (index: number, value: number): void => {
    const before = values[index]
    if (before !== undefined && before < value) values[index] = value
  }
  for (const [index, value] of [...values.entries()]) {
    if (value !== 100) continue
    for (const near of [-2, -1, 1, 2]) raise(index + near, 80)
    for (let next = index + 1; next <= index + 12 && continuation.test(entries[next]?.line ?? ''); next++) raise(next, 90)
  }
  return values
}
