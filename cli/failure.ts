/** The exit codes of the command line (docs/cli.md). */
export const exits = { ok: 0, failed: 1, usage: 2, unreachable: 3, forbidden: 4, toolError: 5 } as const

/** Why a command failed, as a sentence, with the exit code that says so. */
export class CommandError extends Error {
  readonly exit: number
  /** The code of the API's error, if it has one. */
  readonly code: string | undefined
  /** The results of the API's answer, where it has some all the same. */
  results: unknown

  constructor (message: string, exit: number = exits.failed, code?: string) {
    super(message)
    this.exit = exit
    this.code = code
  }
}
