import { styleText } from 'node:util'
import type { Command } from 'commander'
import type { ManagementApiClient } from './api.ts'
import type { Io, Environment } from './io.ts'
import { toJsonText, toPrintable } from './printable.ts'

/** One run of the command line: its inputs and outputs, arguments and exit code. */
export interface CommandRun extends Io {
  readonly argv: readonly string[]
  /** The exit code of the process if the command does not throw. */
  exitCode: number
}

/** The parameters of a command that uses the management API. */
export interface CommandContext { readonly api: ManagementApiClient, readonly out: Output, readonly run: CommandRun }

interface GlobalOptions { json?: boolean, color?: boolean, url?: string }

/** Creates the `Output` of a command, according to `--json` and `--no-color`. */
export function createOutput (run: CommandRun, command: Command): Output {
  const { json = false, color = true } = command.optsWithGlobals<GlobalOptions>()
  return new Output(run, { isJson: json, hasColor: color && Output.allowsColors(run.env, run.stdout.isTTY === true) })
}

/** Runs `work` with a client of the management API. @param needsGateway whether a gateway must be running */
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

/** The output of a command: writes results to stdout, and remarks and warnings to stderr. */
export class Output {
  readonly isJson: boolean
  readonly #hasColor: boolean
  readonly #io: Pick<Io, 'stdout' | 'stderr'>

  constructor (io: Pick<Io, 'stdout' | 'stderr'>, { isJson: json, hasColor: color }: OutputOptions) {
    this.#io = io
    this.isJson = json
    this.#hasColor = color
  }

  /** Whether output may be coloured: on a terminal that is not `dumb`, unless NO_COLOR is set (no-color.org). */
  static allowsColors (environment: Environment, isTerminal: boolean): boolean {
    return isTerminal && (environment.NO_COLOR ?? '') === '' && environment.TERM !== 'dumb'
  }

  /** Returns a text in a colour or style; unchanged if the output is not coloured. */
  style (style: Style, text: string): string {
    return this.#hasColor ? styleText(style, text, { validateStream: false } as never) : text
  }

  /** Writes a result: with `--json`, the value; otherwise the text, which may be given as a function. */
  writeResult (value: unknown, text: string | (() => string)): void {
    this.writeText(this.isJson ? toJsonText(value, 2) : typeof text === 'string' ? text : text())
  }

  /** Writes a result with the API's warnings: with `--json`, as a member `warnings`; otherwise on stderr. */
  writeResultWithWarnings (value: object, warnings: readonly string[], text: string): void {
    this.writeResult({ ...value, ...(warnings.length > 0 && { warnings }) }, text)
    if (!this.isJson) for (const warning of warnings) this.writeWarning(warning)
  }

  /** Writes a text and a line break to stdout; nothing if the text is empty. */
  writeText (text: string): void { if (text !== '') this.#io.stdout.write(`${text}\n`) }

  /** Writes a sentence that is not part of the result to stderr. */
  writeRemark (sentence: string): void { this.#io.stderr.write(`${sentence}\n`) }

  writeWarning (sentence: string): void {
    this.writeRemark(`${this.style('yellow', 'warning:')} ${toPrintable(sentence)}`)
  }

  /**
   * Formats a table whose columns are as wide as their longest cell.
   * @param paint returns a cell with colours; it does not get the headings
   */
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

  /** Returns the status of a server in a fitting colour. */
  styleStatus (status: string): string {
    if (status === 'connected') return this.style('green', status)
    if (status === 'disconnected') return this.style('red', status)
    return status === 'disabled' ? this.style('dim', status) : this.style('yellow', status)
  }
}

/**
 * Prints the progress and the result of a maintenance command (backup, restore, db): as text on stderr or, with
 * `--json`, as one JSON value on stdout.
 */
export class MaintenanceReporter {
  readonly #io: Pick<Io, 'stdout' | 'stderr'>
  /** The progress messages so far, which become part of the JSON value; undefined without `--json`. */
  readonly #remarks: string[] | undefined

  constructor (io: Pick<Io, 'stdout' | 'stderr'>, isJson: boolean) {
    this.#io = io
    this.#remarks = isJson ? [] : undefined
  }

  /** Prints a progress message; with `--json`, keeps it for the result. */
  readonly print = (message: string): void => {
    if (this.#remarks) this.#remarks.push(message)
    else this.#io.stderr.write(`${message}\n`)
  }

  /** Prints the result: the sentence; with `--json`, the value and the progress messages. */
  writeResult (value: object, sentence: string): void {
    if (this.#remarks) this.#io.stdout.write(`${toJsonText({ ...value, remarks: this.#remarks }, 2)}\n`)
    else this.print(sentence)
  }
}

/** The parameters of a maintenance command (backup, restore, db). */
export interface MaintenanceContext { readonly io: Io, readonly report: MaintenanceReporter }
