import type { Readable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { LineReader } from '../pieces.ts'

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

/**
 * Matches a stack frame of JavaScript or Java, Java's `... 12 more`, a source position in Go, or the version that Node
 * prints last.
 */
const stackFrame = /^\s+at\s|^\s+\.\.\. \d+ (?:more|common frames)|^\t\/.*\.go:\d+|^Node\.js v\d+\.\d+\.\d+/

/** The last lines that a process printed, without stack frames, which would displace the message of a fatal error. */
export class LastLines {
  readonly #lines: string[] = []
  /** The total length of the lines. */
  #size = 0
  readonly #show: (line: string) => string

  /** @param show prepares a line for display. It is called when `detail` is read */
  constructor (show: (line: string) => string) {
    this.#show = show
  }

  /** Adds a line, unless it is a stack frame. @param line at most `maxKeptLine` characters */
  add (line: string): void {
    if (stackFrame.test(line)) return
    this.#lines.push(line)
    this.#size += line.length
    while (this.#lines.length > maxLines || this.#size > maxKeptLine) this.#size -= this.#lines.shift()?.length ?? 0
  }

  /** The lines as a text to append to an error message; '' if there are none. */
  get detail (): string {
    const shown = this.#lines.map((line) => this.#show(line).slice(0, maxShownLength)).join('\n')
    return this.#lines.length === 0 ? '' : `; its last lines:\n${shown}`
  }
}

/** Reads a process's stderr line by line until it ends. Blank lines are skipped, and long lines are truncated. */
export function readStderr (stderr: Readable, onLine: (line: string) => void): void {
  const lines = new LineReader(maxKeptLine, (line) => { if (line.trim() !== '') onLine(line.trimEnd()) })
  stderr.setEncoding('utf8')
  stderr.on('error', () => {})
  stderr.on('data', (text: string) => { lines.push(text) })
  stderr.once('end', () => { lines.push('\n') })
}
