import { linesOf, plainLine } from './strategies/lines.ts'
import { Hits } from './strategies/search.ts'
import type { StrategyName } from './strategies/strategy.ts'

/** How many lines are looked at. */
const looked = 300

const hasTime = /^\W{0,3}(?:\w{3} +\d{1,2} \d{2}:\d{2}|\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}|\d{2}:\d{2}:\d{2}|\d{10,13}\b)/
const hasLevel = /^\W{0,3}(?:trace|debug|info|notice|warn(?:ing)?|error|fatal|critical|panic)\b|\b(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b|\blevel=\w+/i
/** A line of an access log (common log format). */
const isRequest = /^\S+ \S+ \S+ \[\d{2}\/\w{3}\/\d{4}:\d{2}:\d{2}:\d{2} /
/** Lines of output of test runners, of npm, of `docker build` (`#12 …`), and of levels in brackets (`[i] ERROR:`). */
const isStep = new RegExp([
  '^\\s*(?:PASS|FAIL|ok|not ok|RUNS?|---|===|[✓✔✕✖×])\\s',
  '\\b(?:PASSED|FAILED|SKIPPED)\\b',
  '^npm (?:ERR!|WARN|http|info|error|warn|notice)\\b',
  '^#\\d+ ',
  '^\\[\\w+\\] [A-Z]+:'
].join('|'))

/** A message of failure, as programs print it: `error: …`, `npm ERR! …`. */
const hasFailure = /(?:^|[\s:)\]])(?:error|fatal|failed|failure|exception|panic|npm ERR!)\b[^.!?]{0,12}[:!]/i
/** The first line of a Python traceback. */
const traceback = /^Traceback \(most recent call last\):/m

/** Whether many lines without paragraphs end with a failure: what a build or a test prints. */
function endsWithFailure (text: string): boolean {
  const lines = linesOf(text.slice(-200_000))
  if (lines.length < 100 || lines.filter((line) => line.trim() === '').length > lines.length / 10) return false
  return lines.slice(-40).some((line) => line.length < 1_000 && hasFailure.test(line))
}

const isEntry = /^\{.*"(?:level|severity|lvl|log\.level|levelname)"\s*:/
/** Lines of JSON that make a log of them. */
const fewest = 5

/** Whether lines are JSON objects with a level each, as many programs write their log. */
function isJsonLog (text: string): boolean {
  if (!text.startsWith('{')) return false
  const lines = linesOf(text.slice(0, 200_000)).slice(0, looked).filter((line) => line.trim() !== '')
  return lines.length >= fewest && lines.filter((line) => isEntry.test(line)).length / lines.length > 0.8
}

/** The strategy that fits a text. */
export function detect (text: string): StrategyName {
  const start = text.trimStart()
  // Braces alone do not make JSON; the strategy says no to what is not, and the caller goes on with `text`.
  if (isJsonLog(start)) return 'log'
  if (/^\{\s*["}]|^\[\s*(?:[[{"\]]|(?:-?\d[\d.eE+-]*|true|false|null)\s*[,\]])/.test(start)) return 'json'
  if (/^(?:diff --git |--- \S.*\n\+\+\+ |Index: )/m.test(start.slice(0, 20_000)) && /^@@ .*@@/m.test(start)) return 'diff'
  const lines = linesOf(start.slice(0, 200_000)).slice(0, looked).map(plainLine).filter((line) => line.trim() !== '')
  const share = (test: (line: string) => boolean): number => lines.filter(test).length / lines.length
  if (share((line) => hasTime.test(line) || isRequest.test(line)) > 0.3 || share((line) => hasLevel.test(line)) > 0.4) return 'log'
  if (share((line) => isStep.test(line)) > 0.4) return 'log'
  const hits = new Hits()
  for (const line of lines) hits.read(line)
  if (hits.total / lines.length > 0.6 && hits.files.every(({ path }) => isPath(path))) return 'search'
  if (endsWithFailure(text) || (lines.length > 30 && traceback.test(text))) return 'log'
  // Lines that say the same again are a log. Lines that are alike and differ in their figures may be a table, whose rows all count.
  return lines.length > 30 && new Set(lines).size < lines.length / 3 ? 'log' : 'text'
}

/** A year at the beginning of a date is none. */
const isPath = (text: string): boolean => /[./\\]|^[\w-]+$/.test(text) && !/\s{2}|^\d+$/.test(text)
