import { stripVTControlCharacters } from 'node:util'

/** A line that a process printed. */
export interface PrintedLine {
  /** The number of characters kept, at most `maxKeptLine`. */
  readonly length: number
  /**
   * Creates the text to show, of at most 8 Ki characters. Call it only for lines that are shown: the cost grows with
   * the line's length, and a process may print thousands of lines per second.
   */
  readonly text: () => string
}

/**
 * Max number of characters kept of a line, and of all lines of `LastLines` together. It exceeds what is shown, so that
 * secrets are masked before a line is truncated.
 */
export const maxKeptLine = 64 * 1024

/** Control characters except tab; line and paragraph separators; bidirectional formatting characters (Unicode). */
const controls = /(?!\t)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Removes terminal escape sequences (ECMA-48) and control characters. */
const withoutControls = (line: string): string => stripVTControlCharacters(line).replace(controls, '')

/**
 * Prepares a printed line for display: masks secrets, and removes control sequences, which may split a secret.
 * @param line at most `maxKeptLine` characters
 */
export function toRedactedLine (line: string, redact: (text: string) => string): string {
  const plain = withoutControls(line)
  return redact(plain === line ? line : withoutControls(redact(line)))
}

/** Max lines kept for an error message. */
const maxLines = 10
/** Max length of a shown line, in characters; longer lines are truncated. */
const maxShownLength = 500

/** Matches a stack frame of JavaScript or Java, Java's `... 12 more`, or a source position in Go. */
const stackFrame = /^\s+at\s|^\s+\.\.\. \d+ (?:more|common frames)|^\t\/.*\.go:\d+/
/** Matches the line in which Node states the position of an error. A source line and a line of carets follow it. */
const nodePosition = /^(?:(?:node:|file:\/\/|\/|[A-Z]:\\)\S*|\[eval\d*\]):\d+$/
const carets = /^\s*\^+\s*$/
const nodeVersion = /^Node\.js v\d+\.\d+\.\d+/
const traceback = /^\s*Traceback \(most recent call last\):/

/** The last lines that a process printed, without stack frames, which would displace the message of a fatal error. */
export class LastLines {
  readonly #lines: string[] = []
  /** The total length of the lines. */
  #size = 0
  readonly #show: (line: string) => string
  /** What is being skipped: lines after a position that Node printed, or a Python traceback; undefined if nothing. */
  #within: 'position' | 'traceback' | undefined
  #skipped = 0

  /** @param show prepares a line for display. It is called when `detail` is read */
  constructor (show: (line: string) => string) {
    this.#show = show
  }

  /** Adds a line, unless it belongs to a stack trace. @param line at most `maxKeptLine` characters */
  add (line: string): void {
    if (this.#isFrame(line)) return
    this.#lines.push(line)
    this.#size += line.length
    while (this.#lines.length > maxLines || this.#size > maxKeptLine) this.#size -= this.#lines.shift()?.length ?? 0
  }

  /** The lines as a text to append to an error message; '' if there are none. */
  get detail (): string {
    const shown = this.#lines.map((line) => this.#show(line).slice(0, maxShownLength)).join('\n')
    return this.#lines.length === 0 ? '' : `; its last lines:\n${shown}`
  }

  #isFrame (line: string): boolean {
    if (traceback.test(line)) {
      this.#within = 'traceback'
      return true
    }
    if (nodePosition.test(line)) {
      this.#within = 'position'
      this.#skipped = 0
      return true
    }
    if (this.#within === 'traceback') {
      if (/^\s/.test(line)) return true
      this.#within = undefined
    } else if (this.#within === 'position') {
      // A source line, and the carets below it.
      if (++this.#skipped >= 2 || carets.test(line)) this.#within = undefined
      if (carets.test(line) || this.#skipped === 1) return true
    }
    return stackFrame.test(line) || nodeVersion.test(line)
  }
}
