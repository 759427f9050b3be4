import type { Command } from 'commander'
import { createOutput, type CommandRun } from '../context.ts'
import { CommandError } from '../errors.ts'
import { toIndentedPrintableLines } from '../printable.ts'

/** Registers the command `check`, which finds problems in the configuration. */
export function addCheckCommand (program: Command, run: CommandRun): void {
  program.command('check')
    .description('check the environment and the settings file, without starting the gateway')
    .action(async (_options, command: Command) => {
      const out = createOutput(run, command)
      const { findConfigurationProblems: findProblems } = await import('../findings.ts')
      const findings = await findProblems(run.env, run.cwd)
      const errors = findings.filter(({ level }) => level === 'error').length
      out.writeResult({ ok: errors === 0, findings }, () => findings.length === 0
        ? out.style('green', 'No problems found')
        : findings.map(({ level, place, message }) =>
          `${out.style(level === 'error' ? 'red' : 'yellow', level)} ` +
          `${place}: ${toIndentedPrintableLines(message)}`).join('\n'))
      if (errors > 0) throw new CommandError(`${errors} ${errors === 1 ? 'error' : 'errors'}`)
    })
}
