import { styleText } from 'node:util'
import type { Command } from 'commander'
import type { ManagementApi } from './api.ts'
import type { Io, Environment } from './io.ts'

/** One run of the command line: the parts of the process that it uses, its arguments, and its exit code. */
export interface CommandRun extends Io {
  readonly argv: readonly string[]
  /** The exit code of the process if the command does not throw. */
  exitCode: number
}

/** The arguments of a command that uses the management API. */
export interface CommandContext { readonly api: ManagementApi, readonly out: Output, readonly run: CommandRun }

interface GlobalOptions { json?: boolean, color?: boolean, url?: string }

/** Creates the output of a command, according to `--json` and `--no-color`. */
export function createOutput (run: CommandRun, command: Command): Output {
  const { json = false, color = true } = command.optsWithGlobals<GlobalOptions>()
  return new Output(run, { isJson: json, hasColor: color && Output.allowsColors(run.env, run.stdout.isTTY === true) })
}

/** Runs `work` with a client of the management API. @param needsGateway whether the gateway must be running */
export async function withApi (
  run: CommandRun,
  command: Command,
  work: (context: CommandContext) => Promise<void>,
  needsGateway = false
): Promise<void> {
  const { url } = command.optsWithGlobals<GlobalOptions>()
  const { connectToManagementApi: connect } = await import('./connect.ts')
  const api = await connect({ url, needsGateway }, run)
  try {
    await work({ api, out: createOutput(run, command), run })
  } finally {
    await api.close()
  }
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

interface OutputOptions { readonly isJson: boolean, readonly hasColor: boolean }

/**
 * Replaces control characters in untrusted text, which a terminal would interpret. Line breaks and tabs become spaces.
 */
export const toPrintable = (text: string): string =>
  text.replace(/[\t\n\r]+/g, ' ').replace(/[\p{Cc}\p{Bidi_Control}]/gu, '�')

/** Makes each line of a text printable, and indents all but the first. */
export const toPrintableLines = (text: string): string => text.split('\n').map(toPrintable).join('\n  ')

/** Writes results to stdout, and remarks and warnings to stderr. */
export class Output {
  readonly isJson: boolean
  readonly #hasColor: boolean
  readonly #io: Pick<Io, 'stdout' | 'stderr'>

  constructor (io: Pick<Io, 'stdout' | 'stderr'>, { isJson: json, hasColor: color }: OutputOptions) {
    this.#io = io
    this.isJson = json
    this.#hasColor = color
  }

  /** Whether the environment allows colours: the output is a terminal, and NO_COLOR is not set (no-color.org). */
  static allowsColors (environment: Environment, isTerminal: boolean): boolean {
    return isTerminal && (environment.NO_COLOR ?? '') === '' && environment.TERM !== 'dumb'
  }

  style (style: Style, text: string): string {
    return this.#hasColor ? styleText(style, text, { validateStream: false } as never) : text
  }

  /** Writes a result: the value as JSON with `--json`, otherwise the text. */
  writeResult (value: unknown, text: string | (() => string)): void {
    this.writeText(this.isJson ? JSON.stringify(value, null, 2) : typeof text === 'string' ? text : text())
  }

  /** Writes a result with the API's warnings: as a member with `--json`, otherwise as lines on stderr. */
  writeResultWithWarnings (value: object, warnings: readonly string[], text: string): void {
    this.writeResult({ ...value, ...(warnings.length > 0 && { warnings }) }, text)
    if (!this.isJson) for (const warning of warnings) this.writeWarning(warning)
  }

  /** Writes a text and a line break; nothing for an empty text. */
  writeText (text: string): void { if (text !== '') this.#io.stdout.write(`${text}\n`) }

  /** Writes a remark that is not part of the result. */
  writeRemark (sentence: string): void { this.#io.stderr.write(`${sentence}\n`) }

  writeWarning (sentence: string): void {
    this.writeRemark(`${this.style('yellow', 'warning:')} ${toPrintable(sentence)}`)
  }

  /** Formats a table whose columns are as wide as their longest cell. The last column is not padded. */
  formatTable (
    headings: readonly string[],
    rows: ReadonlyArray<readonly string[]>,
    paint: (cell: string, column: number) => string = (cell) => cell
  ): string {
    const cells = [headings, ...rows.map((row) => row.map(toPrintable))]
    const widths = headings.map((_heading, column) => Math.max(...cells.map((row) => [...row[column] ?? ''].length)))
    return cells.map((row, at) => row.map((cell, column) => {
      const padding = column === row.length - 1 ? '' : ' '.repeat((widths[column] ?? 0) - [...cell].length)
      return `${at === 0 ? this.style('bold', cell) : paint(cell, column)}${padding}`
    }).join('  ').trimEnd()).join('\n')
  }

  /** Colours the status of a server. */
  styleStatus (status: string): string {
    if (status === 'connected') return this.style('green', status)
    if (status === 'disconnected') return this.style('red', status)
    return status === 'disabled' ? this.style('dim', status) : this.style('yellow', status)
  }
}

/** Prints the progress and the result of a maintenance command: as text on stderr, or as one JSON value (`--json`). */
export class MaintenanceReporter {
  readonly #io: Pick<Io, 'stdout' | 'stderr'>
  /** With `--json`, the progress messages so far, which are part of the result. */
  readonly #remarks: string[] | undefined

  constructor (io: Pick<Io, 'stdout' | 'stderr'>, isJson: boolean) {
    this.#io = io
    this.#remarks = isJson ? [] : undefined
  }

  /** Prints a progress message, or keeps it for the JSON result. */
  readonly print = (message: string): void => {
    if (this.#remarks) this.#remarks.push(message)
    else this.#io.stderr.write(`${message}\n`)
  }

  /** Prints the result: the sentence, or the value with `--json`. */
  writeResult (value: object, sentence: string): void {
    if (this.#remarks) this.#io.stdout.write(`${JSON.stringify({ ...value, remarks: this.#remarks }, null, 2)}\n`)
    else this.print(sentence)
  }
}

/** The arguments of a maintenance command (backup, restore, db). */
export interface MaintenanceContext { readonly io: Io, readonly report: MaintenanceReporter }
