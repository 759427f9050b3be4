import type { Io } from '../io.ts'

/** Prints the progress and the result of a script: as text, or as JSON with `--json`. */
export class Report {
  readonly #io: Io
  /** With --json: what would be printed, for the result. */
  readonly #remarks: string[] | undefined

  constructor (io: Io, isJson: boolean) {
    this.#io = io
    this.#remarks = isJson ? [] : undefined
  }

  /** Prints a message to stderr, or keeps it for the result. */
  readonly print = (message: string): void => {
    if (this.#remarks) this.#remarks.push(message)
    else this.#io.stderr.write(`${message}\n`)
  }

  /** Prints the result: for people as a sentence, with --json with all that was to be told. */
  result (value: object, sentence: string): void {
    if (this.#remarks) this.#io.stdout.write(`${JSON.stringify({ ...value, remarks: this.#remarks }, null, 2)}\n`)
    else this.print(sentence)
  }
}
