import type { Command } from 'commander'
import { spawn } from 'node:child_process'
import { entryPath } from '../../package.ts'
import { exits } from '../failure.ts'

/** `backup`, `restore` and `db`, which are scripts of their own and explain their options themselves. */
export function addScripts (program: Command): void {
  for (const [name, usage, description] of [
    ['backup', '[file] [--with-key] [--force]', 'write settings, tokens and bundles to one file; the gateway may run meanwhile, unless its database is pglite://'],
    ['db', '<migrate|import|export> [file]', 'a database: make its tables, fill it from a settings file, write one'],
    ['restore', '<file> [--replace] [--keep-tokens] [--without-key]', 'put a backup back; the gateway must not run']
  ] as const) {
    program.command(name)
      .description(description)
      .argument('[arguments...]', usage)
      .allowUnknownOption()
      .action(async (args: string[], _options, command: Command) => {
        const { json = false } = command.optsWithGlobals<{ json?: boolean }>()
        process.exitCode = await run(name, [...json ? ['--json'] : [], ...withDashes(args)])
      })
  }
}

/** Commander takes the two dashes away, after which nothing is an option. */
function withDashes (args: readonly string[]): string[] {
  const at = process.argv.indexOf('--')
  if (at === -1) return [...args]
  const first = args.length - (process.argv.length - at - 1)
  return [...args.slice(0, first), '--', ...args.slice(first)]
}

async function run (name: string, args: readonly string[]): Promise<number> {
  const script = entryPath(`cli/${name}`)
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], { stdio: 'inherit' })
  return await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => { resolve(code ?? exits.failed) })
  })
}
