import { styleText } from 'node:util'
import type { Command } from 'commander'
import type { ManagementApi } from './api.ts'
import type { Io, Environment } from './io.ts'

/** One run of the command line. */
export interface Run extends Io {
  readonly argv: readonly string[]
  /** The exit code of a command that does not fail. */
  exitCode: number
}

/** The needs of a command that uses the management API. */
export interface Context { readonly api: ManagementApi, readonly out: Output, readonly run: Run }

interface GlobalOptions { json?: boolean, color?: boolean, url?: string }

/** The output of a command, by its options and those of the program. */
export function outputOf (run: Run, command: Command): Output {
  const { json = false, color = true } = command.optsWithGlobals<GlobalOptions>()
  return new Output(run, { json, color: color && Output.colors(run.env, run.stdout.isTTY === true) })
}

/** Runs a command with the management API. @param needsGateway the command needs a running gateway */
export async function withApi (
  run: Run,
  command: Command,
  work: (context: Context) => Promise<void>,
  needsGateway = false
): Promise<void> {
  const { url } = command.optsWithGlobals<GlobalOptions>()
  const { connect } = await import('./connect.ts')
  const api = await connect({ url, needsGateway }, run)
  try {
    await work({ api, out: outputOf(run, command), run })
  } finally {
    await api.close()
  }
}

export const segment = encodeURIComponent

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

interface OutputOptions { readonly json: boolean, readonly color: boolean }

/** Replaces control characters, which a terminal would obey, in a server's text. Line breaks and tabs become spaces. */
export const printable = (text: string): string =>
  text.replace(/[\t\n\r]+/g, ' ').replace(/[\p{Cc}\p{Bidi_Control}]/gu, '�')

/** Makes each line of a text printable, and indents all but the first. */
export const plainLines = (text: string): string => text.split('\n').map(printable).join('\n  ')

/** Writes results to stdout, and remarks and warnings to stderr. */
export class Output {
  readonly json: boolean
  readonly #color: boolean
  readonly #io: Pick<Io, 'stdout' | 'stderr'>

  constructor (io: Pick<Io, 'stdout' | 'stderr'>, { json, color }: OutputOptions) {
    this.#io = io
    this.json = json
    this.#color = color
  }

  /** Whether the environment allows colours: at a terminal, without NO_COLOR (no-color.org). */
  static colors (environment: Environment, isTerminal: boolean): boolean {
    return isTerminal && (environment.NO_COLOR ?? '') === '' && environment.TERM !== 'dumb'
  }

  style (style: Style, text: string): string {
    return this.#color ? styleText(style, text, { validateStream: false } as never) : text
  }

  /** Writes a result: the value as JSON with `--json`, else the text. */
  result (value: unknown, text: string | (() => string)): void {
    this.text(this.json ? JSON.stringify(value, null, 2) : typeof text === 'string' ? text : text())
  }

  /** Writes a result with the API's warnings: as a member with `--json`, else as lines on stderr. */
  resultWithWarnings (value: object, warnings: readonly string[], text: string): void {
    this.result({ ...value, ...(warnings.length > 0 && { warnings }) }, text)
    if (!this.json) for (const warning of warnings) this.warn(warning)
  }

  /** Writes a text and a line break; nothing for an empty text. */
  text (text: string): void { if (text !== '') this.#io.stdout.write(`${text}\n`) }

  /** Writes a remark that is not part of the result. */
  remark (sentence: string): void { this.#io.stderr.write(`${sentence}\n`) }

  warn (sentence: string): void { this.remark(`${this.style('yellow', 'warning:')} ${printable(sentence)}`) }

  /** A table whose columns are as wide as their longest cell. The last column is not padded. */
  table (
    headings: readonly string[],
    rows: ReadonlyArray<readonly string[]>,
    paint: (cell: string, column: number) => string = (cell) => cell
  ): string {
    const cells = [headings, ...rows.map((row) => row.map(printable))]
    const widths = headings.map((_heading, column) => Math.max(...cells.map((row) => [...row[column] ?? ''].length)))
    return cells.map((row, at) => row.map((cell, column) => {
      const padding = column === row.length - 1 ? '' : ' '.repeat((widths[column] ?? 0) - [...cell].length)
      return `${at === 0 ? this.style('bold', cell) : paint(cell, column)}${padding}`
    }).join('  ').trimEnd()).join('\n')
  }

  /** A server's status in its colour. */
  status (status: string): string {
    if (status === 'connected') return this.style('green', status)
    if (status === 'disconnected') return this.style('red', status)
    return status === 'disabled' ? this.style('dim', status) : this.style('yellow', status)
  }
}

/**
 * Prints the progress and the result of a maintenance command: as text on stderr, or as one JSON value with `--json`.
 */
export class Report {
  readonly #io: Pick<Io, 'stdout' | 'stderr'>
  /** The progress messages so far, with `--json`: they are part of the result. */
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
  result (value: object, sentence: string): void {
    if (this.#remarks) this.#io.stdout.write(`${JSON.stringify({ ...value, remarks: this.#remarks }, null, 2)}\n`)
    else this.print(sentence)
  }
}

/** The input of a maintenance command (backup, restore, db). */
export interface Task { readonly io: Io, readonly report: Report }
