import { dirname, join, resolve } from 'node:path'
import { errorCode } from '../../db/error-code.ts'
import { exits, Failure } from '../failure.ts'
import type { Env } from '../../schemas/env.ts'

/** Where a gateway with this environment keeps what it keeps on disk. */
export interface Places { readonly settings: string, readonly dataDir: string, readonly bundles: string, readonly key: string }

export function placesOf ({ SETTINGS_PATH, DATA_DIR }: Pick<Env, 'SETTINGS_PATH' | 'DATA_DIR'>): Places {
  const settings = resolve(SETTINGS_PATH)
  const dataDir = DATA_DIR === undefined ? join(dirname(settings), '.tool-hub') : resolve(DATA_DIR)
  return { settings, dataDir, bundles: join(dataDir, 'bundles'), key: join(dataDir, 'encryption.key') }
}

/** Prints a message to stderr. */
export const print = (message: string): void => { process.stderr.write(`${message}\n`) }

/** Runs a command, and prints its error as one sentence. Its exit code is that of docs/cli.md: 2 for wrong usage, else 1. */
export function main (run: () => Promise<void>): void {
  run().catch((error: unknown) => {
    print(error instanceof Error ? error.message : String(error))
    const isUsage = (errorCode(error) ?? '').startsWith('ERR_PARSE_ARGS_')
    process.exitCode = error instanceof Failure ? error.exit : isUsage ? exits.usage : exits.failed
  })
}
