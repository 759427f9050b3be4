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

/** With --json: what would be printed, for the result. */
let remarks: string[] | undefined

/** Prints a message to stderr, or keeps it for the result. */
export const print = (message: string): void => {
  if (remarks) remarks.push(message)
  else process.stderr.write(`${message}\n`)
}

/** Prints the result of a command: for people as a sentence, with --json with all that was to be told. */
export function result (value: object, sentence: string): void {
  if (remarks) process.stdout.write(`${JSON.stringify({ ...value, remarks }, null, 2)}\n`)
  else print(sentence)
}

/**
 * Runs a command, and prints its error as one sentence, or as JSON with --json. Its exit code is that of docs/cli.md: 2 for wrong usage,
 * else 1.
 */
export function main (run: () => Promise<void>): void {
  const end = process.argv.indexOf('--')
  const isJson = process.argv.slice(2, end === -1 ? undefined : end).includes('--json')
  if (isJson) remarks = []
  run().catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error)
    process.stderr.write(`${isJson ? JSON.stringify({ success: false, message }) : message}\n`)
    const isUsage = (errorCode(error) ?? '').startsWith('ERR_PARSE_ARGS_')
    process.exitCode = error instanceof Failure ? error.exit : isUsage ? exits.usage : exits.failed
  })
}
