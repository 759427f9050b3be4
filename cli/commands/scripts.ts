import type { Command } from 'commander'
import type { Run } from '../context.ts'
import { runScript } from '../scripts/run.ts'

/** `backup`, `restore` and `db`, which explain their options themselves. */
export function addScripts (program: Command, run: Run): void {
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
        run.exitCode = await runScript(name, [...json ? ['--json'] : [], ...withDashes(args, run.argv)], run)
      })
  }
}

/** Commander takes the two dashes away, after which nothing is an option. */
function withDashes (args: readonly string[], argv: readonly string[]): string[] {
  const at = argv.indexOf('--')
  if (at === -1) return [...args]
  const first = args.length - (argv.length - at - 1)
  return [...args.slice(0, first), '--', ...args.slice(first)]
}
