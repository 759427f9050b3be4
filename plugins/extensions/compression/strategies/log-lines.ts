import { shortenLine, stripAnsiCodes } from './lines.ts'

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

/** The kind of a log line. Adjacent lines with the same shape are folded; `flags` mark failures and warnings. */
interface Kind { readonly shape: string, readonly flags: number }

export const failureFlag = 1
export const warningFlag = 2
/** Marks the first entry with its shape. */
export const firstFlag = 4
/** Marks a failure with a level above `error`. */
export const severeFlag = 8

/** Returns a function that classifies a line, with a cache for repeated lines. */
export function kindsOfLines (): (line: string) => Kind {
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
