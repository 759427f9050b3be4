/** Lines that are kept for the error that may follow. */
const most = 10
/** Max length of one, in characters; beyond: it is cut. */
const longest = 500

/** A frame of a stack: of JavaScript and Java, `... 12 more` of Java, a position in Go. */
const frame = /^\s+at\s|^\s+\.\.\. \d+ (?:more|common frames)|^\t\/.*\.go:\d+/
/** Where Node stopped; the source lines that follow end with carets. */
const position = /^(?:(?:node:|file:\/\/|\/|[A-Z]:\\)\S*|\[eval\d*\]):\d+$/
const carets = /^\s*\^+\s*$/
const nodeVersion = /^Node\.js v\d+\.\d+\.\d+/
const traceback = /^\s*Traceback \(most recent call last\):/

/**
 * The last lines that a process printed, without the frames of stacks: of an error that ended it, its words are what tells the operator
 * something, and the frames would push them out.
 */
export class LastWords {
  readonly #lines: string[] = []
  /** A part of a stack is under way: the source lines after a position in Node, or the indented lines of a traceback in Python. */
  #within: 'position' | 'traceback' | undefined
  #skipped = 0

  add (line: string): void {
    if (this.#isFrame(line)) return
    this.#lines.push(line.slice(0, longest))
    if (this.#lines.length > most) this.#lines.shift()
  }

  /** What follows the sentence of an error: the lines, each on one of its own; empty where there are none. */
  get detail (): string { return this.#lines.length === 0 ? '' : `; its last lines:\n${this.#lines.join('\n')}` }

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
