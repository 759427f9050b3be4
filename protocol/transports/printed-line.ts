import { stripVTControlCharacters } from 'node:util'

/** A line that a process has printed. */
export interface PrintedLine {
  /** Its length as it was printed, at most `keptLine`. */
  readonly length: number
  /**
   * Makes the text for people, of at most 8 KiB, which takes the longer the longer the line is: a process may print
   * thousands a second.
   */
  readonly text: () => string
}

/** Max characters that are kept of a line: more than are shown, so that a secret is not cut before it is removed. */
export const keptLine = 64 * 1024

/**
 * Control characters except the tab, line and paragraph separators, and bidirectional formatting characters (Unicode).
 */
const controls = /(?!\t)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** A line without escape sequences for terminals (ECMA-48), and without these characters. */
const withoutControls = (line: string): string => stripVTControlCharacters(line).replace(controls, '')

/**
 * A line that a process has printed, for people to read: without secrets, and without what controls a terminal, which
 * might stand within a secret.
 * @param line at most `keptLine` characters
 */
export function shownLine (line: string, redact: (text: string) => string): string {
  const plain = withoutControls(line)
  return redact(plain === line ? line : withoutControls(redact(line)))
}

/** Lines that are kept for the error that may follow. */
const most = 10
/** Max length of one, in characters, as it is shown; beyond: it is cut. */
const maxLength = 500

/** A frame of a stack: of JavaScript and Java, `... 12 more` of Java, a position in Go. */
const frame = /^\s+at\s|^\s+\.\.\. \d+ (?:more|common frames)|^\t\/.*\.go:\d+/
/** Where Node stopped; the source lines that follow end with carets. */
const position = /^(?:(?:node:|file:\/\/|\/|[A-Z]:\\)\S*|\[eval\d*\]):\d+$/
const carets = /^\s*\^+\s*$/
const nodeVersion = /^Node\.js v\d+\.\d+\.\d+/
const traceback = /^\s*Traceback \(most recent call last\):/

/**
 * The last lines that a process printed, without the frames of stacks: of an error that ended it, its words are what
 * tells the operator something, and the frames would push them out.
 */
export class LastWords {
  readonly #lines: string[] = []
  /** The sum of their lengths. */
  #size = 0
  readonly #show: (line: string) => string
  /**
   * A part of a stack is under way: the source lines after a position in Node, or the indented lines of a traceback in
   * Python.
   */
  #within: 'position' | 'traceback' | undefined
  #skipped = 0

  /**
   * @param show makes a line one for people. It is called for the lines that are asked for: a process may print
   * thousands a second
   */
  constructor (show: (line: string) => string) {
    this.#show = show
  }

  /** @param line at most `keptLine` characters */
  add (line: string): void {
    if (this.#isFrame(line)) return
    this.#lines.push(line)
    this.#size += line.length
    while (this.#lines.length > most || this.#size > keptLine) this.#size -= this.#lines.shift()?.length ?? 0
  }

  /** The lines, to be appended to the sentence of an error, one a line; empty where there are none. */
  get detail (): string {
    const shown = this.#lines.map((line) => this.#show(line).slice(0, maxLength)).join('\n')
    return this.#lines.length === 0 ? '' : `; its last lines:\n${shown}`
  }

  #isFrame (line: string): boolean {
    if (traceback.test(line)) {
      this.#within = 'traceback'
      return true
    }
    if (position.test(line)) {
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
    return frame.test(line) || nodeVersion.test(line)
  }
}
