import type { Command } from 'commander'
import type { Api } from './api.ts'
import { connect } from './connect.ts'
import { Output } from './output.ts'

/** What a command works with. */
export interface Context { readonly api: Api, readonly out: Output }

interface GlobalOptions { json?: boolean, color?: boolean, url?: string }

/** How the results of a command are shown, by its options and those of the program. */
export function outputOf (command: Command): Output {
  const { json = false, color = true } = command.optsWithGlobals<GlobalOptions>()
  return new Output({ json, color: color && Output.colors(process.env, process.stdout.isTTY === true) })
}

/** Runs a command with the management API, which is closed afterwards. @param needsGateway the settings alone will not do */
export async function withApi (command: Command, run: (context: Context) => Promise<void>, needsGateway = false): Promise<void> {
  const { url } = command.optsWithGlobals<GlobalOptions>()
  const api = await connect({ url, needsGateway })
  try {
    await run({ api, out: outputOf(command) })
  } finally {
    await api.close()
  }
}

export const segment = encodeURIComponent
