import { dirname, join, resolve } from 'node:path'
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

/** Runs a command, and prints its error as one sentence. */
export function main (run: () => Promise<void>): void {
  run().catch((error: unknown) => {
    print(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  })
}
