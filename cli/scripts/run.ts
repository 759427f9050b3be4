import { errorCode } from '../../db/error-code.ts'
import { exits, CommandError } from '../failure.ts'
import type { Io } from '../io.ts'
import { Report } from './report.ts'

const scripts = {
  backup: async () => (await import('./backup.ts')).backup,
  db: async () => (await import('./db.ts')).db,
  restore: async () => (await import('./restore.ts')).restoreCommand
}
type ScriptName = keyof typeof scripts

/**
 * Runs a script, and prints its error as one sentence, or as JSON with --json.
 * @returns the exit code of docs/cli.md: 2 for wrong usage, else 1
 */
export async function runScript (name: ScriptName, args: string[], io: Io): Promise<number> {
  const end = args.indexOf('--')
  const isJson = args.slice(0, end === -1 ? undefined : end).includes('--json')
  try {
    await (await scripts[name]())({ args, io, report: new Report(io, isJson) })
    return exits.ok
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    io.stderr.write(`${isJson ? JSON.stringify({ success: false, message }) : message}\n`)
    const isUsage = (errorCode(error) ?? '').startsWith('ERR_PARSE_ARGS_')
    return error instanceof CommandError ? error.exit : isUsage ? exits.usage : exits.failed
  }
}
