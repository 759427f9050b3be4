import { splitLines, stripAnsiCodes } from './strategies/lines.ts'
import { HitCollector } from './strategies/search.ts'
import type { StrategyName } from './strategies/strategy.ts'

/** Max number of lines at the start of a text that are examined. */
const maxExaminedLines = 300

const timePattern =
  /^\W{0,3}(?:\w{3} +\d{1,2} \d{2}:\d{2}|\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}|\d{2}:\d{2}:\d{2}|\d{10,13}\b)/
const levelPattern =
  /^\W{0,3}(?:trace|debug|info|notice|warn(?:ing)?|error|fatal|critical|panic)\b|\b(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b|\blevel=\w+/i
/** Matches the beginning of a line in an access log (common log format). */
const accessLogPattern = /^\S+ \S+ \S+ \[\d{2}\/\w{3}\/\d{4}:\d{2}:\d{2}:\d{2} /
/** Matches output of test runners, npm and `docker build` (`#12 …`), and lines such as `[i] ERROR:`. */
const stepPattern = new RegExp([
  '^\\s*(?:PASS|FAIL|ok|not ok|RUNS?|---|===|[✓✔✕✖×])\\s',
  '\\b(?:PASSED|FAILED|SKIPPED)\\b',
  '^npm (?:ERR!|WARN|http|info|error|warn|notice)\\b',
  '^#\\d+ ',
  '^\\[\\w+\\] [A-Z]+:'
].join('|'))

/** Matches a failure message of a program: `error: …`, `npm ERR! …`. */
const failurePattern = /(?:^|[\s:)\]])(?:error|fatal|failed|failure|exception|panic|npm ERR!)\b[^.!?]{0,12}[:!]/i
/** Matches the first line of a Python traceback. */
const tracebackPattern = /^Traceback \(most recent call last\):/m

/** Whether a long text with few empty lines has a failure message near its end, like the output of a build. */
function endsWithFailure (text: string): boolean {
  const lines = splitLines(text.slice(-200_000))
  if (lines.length < 100 || lines.filter((line) => line.trim() === '').length > lines.length / 10) return false
  return lines.slice(-40).some((line) => line.length < 1_000 && failurePattern.test(line))
}

/** Matches a JSON object with a log level, written on one line. */
const jsonLogEntryPattern = /^\{.*"(?:level|severity|lvl|log\.level|levelname)"\s*:/
/** Min number of lines in a text that is treated as a log of JSON lines. */
const minJsonLogLines = 5

/** Whether most lines are JSON objects with a log level. */
function isJsonLog (text: string): boolean {
  if (!text.startsWith('{')) return false
  const lines = splitLines(text.slice(0, 200_000)).slice(0, maxExaminedLines).filter((line) => line.trim() !== '')
  return lines.length >= minJsonLogLines && lines.filter((line) =>
    jsonLogEntryPattern.test(line)).length / lines.length > 0.8
}

/** Selects the strategy for a text by its content. */
export function detectStrategy (text: string): StrategyName {
  const start = text.trimStart()
  // The selected strategy may still reject the text, for example if only its beginning looks like JSON. The caller then
  // uses the strategy `text`.
  if (isJsonLog(start)) return 'log'
  if (/^\{\s*["}]|^\[\s*(?:[[{"\]]|(?:-?\d[\d.eE+-]*|true|false|null)\s*[,\]])/.test(start)) return 'json'
  if (/^(?:diff --git |--- \S.*\n\+\+\+ |Index: )/m.test(start.slice(0, 20_000)) && /^@@ .*@@/m.test(start)) {
    return 'diff'
  }
  const lines = splitLines(start.slice(0, 200_000)).slice(0, maxExaminedLines).map(stripAnsiCodes).filter((line) =>
    line.trim() !== '')
  const share = (test: (line: string) => boolean): number => lines.filter(test).length / lines.length
  if (share((line) =>
    timePattern.test(line) || accessLogPattern.test(line)) > 0.3 || share((line) => levelPattern.test(line)) > 0.4) {
    return 'log'
  }
  if (share((line) => stepPattern.test(line)) > 0.4) return 'log'
  const hits = new HitCollector()
  for (const line of lines) hits.addLine(line)
  if (hits.totalCount / lines.length > 0.6 && hits.files.every(({ path }) => isPath(path))) return 'search'
  if (endsWithFailure(text) || (lines.length > 30 && tracebackPattern.test(text))) return 'log'
  // Many equal lines indicate a log. Lines that differ only in numbers may be a table, in which every row matters.
  return lines.length > 30 && new Set(lines).size < lines.length / 3 ? 'log' : 'text'
}

/** Whether a text can be the path of a search hit. A number alone cannot: it is more likely the year of a date. */
const isPath = (text: string): boolean => /[./\\]|^[\w-]+$/.test(text) && !/\s{2}|^\d+$/.test(text)
