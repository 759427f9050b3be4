import type { Command } from 'commander'
import type { ManagementApi } from './api.ts'
import { connect } from './connect.ts'
import type { Io } from './io.ts'
import { Output } from './output.ts'

/** One run of the command line. */
export interface Run extends Io {
  readonly argv: readonly string[]
  /** The exit code of a command that does not fail. */
  exitCode: number
}

/** What a command works with. */
export interface Context { readonly api: ManagementApi, readonly out: Output, readonly run: Run }

interface GlobalOptions { json?: boolean, color?: boolean, url?: string }

/** How the results of a command are shown, by its options and those of the program. */
export function outputOf (run: Run, command: Command): Output {
  const { json = false, color = true } = command.optsWithGlobals<GlobalOptions>()
  return new Output(run, { json, color: color && Output.colors(run.env, run.stdout.isTTY === true) })
}

/** Runs a command with the management API, which is closed afterwards. @param needsGateway the settings alone will not do */
export async function withApi (
  run: Run,
  command: Command,
  work: (context: Context) => Promise<void>,
  needsGateway = false
): Promise<void> {
  const { url } = command.optsWithGlobals<GlobalOptions>()
  const api = await connect({ url, needsGateway }, run)
  try {
    await work({ api, out: outputOf(run, command), run })
  } finally {
    await api.close()
  }
}

export const segment = encodeURIComponent
