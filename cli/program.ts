// The command line, `tool-hub`. It starts the gateway, manages a running gateway, or changes the settings while none is
// running.
import { Command, CommanderError } from 'commander'
import { addCallCommand } from './commands/call.ts'
import { addCheckCommand } from './commands/check.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addImportCommand } from './commands/import.ts'
import { addEditCommands } from './commands/edit.ts'
import { addGroupCommands } from './commands/groups.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addMaintenanceCommands } from './commands/maintenance.ts'
import { addSearchEvalCommand } from './commands/search-eval.ts'
import { addServerCommands } from './commands/servers.ts'
import { addUserCommands } from './commands/users.ts'
import type { CommandRun } from './context.ts'
import { exitCodes, CommandError, printError } from './errors.ts'
import type { Io } from './io.ts'
import { packageVersion } from '../package.ts'
import { nearestName } from '../schemas/near-name.ts'

interface ServeOptions { port?: string, host?: string }

/** Runs the command in the arguments. @param argv without the program name @returns the exit code of the process */
export async function runCommandLine (argv: readonly string[], io: Io): Promise<number> {
  const env = { ...io.env }
  const run: CommandRun = { ...io, env, argv, exitCode: exitCodes.ok }
  const program = programOf(run, env)
  try {
    await program.parseAsync(argv, { from: 'user' })
    return run.exitCode
  } catch (error) {
    const form = { isJson: isJson(program), prefix: 'tool-hub: ' }
    if (!(error instanceof CommanderError)) return printError(error, io, form)
    if (error.exitCode === 0) return exitCodes.ok
    // Without `--json`, commander has already printed the error.
    if (form.isJson) printError(new Error(usageMessage(error)), io, form)
    return exitCodes.usage
  }
}

const isJson = (program: Command): boolean => program.opts<{ json?: boolean }>().json === true

/** Returns the message of a wrong usage. Commander's own code `commander.help` means that a subcommand is missing. */
const usageMessage = ({ code, message }: CommanderError): string =>
  code === 'commander.help' ? 'Specify a subcommand: --help lists them' : message.replace(/^error: /, '')

/**
 * Creates the commander program with all commands.
 * @param env the environment variables of the run; options such as `--config` overwrite some of them
 */
function programOf (run: CommandRun, env: Record<string, string | undefined>): Command {
  const { stdout, stderr } = run
  const program: Command = new Command('tool-hub')
    .description('A gateway that puts many MCP servers behind one endpoint. Without a command, it starts.')
    .version(packageVersion(), '-v, --version')
    .option('--config <file>', 'the settings file (SETTINGS_PATH)')
    .option('--url <address>', 'a gateway elsewhere (TOOL_HUB_URL); TOOL_HUB_KEY is a system key for it')
    .option('--json', 'answer as JSON')
    .option('--no-color', 'no colours (NO_COLOR)')
    .configureOutput({
      writeOut: (text) => { stdout.write(text) },
      writeErr: (text) => { if (!isJson(program)) stderr.write(text) },
      getOutHelpWidth: () => stdout.columns ?? 80,
      getErrHelpWidth: () => stderr.columns ?? 80
    })
    .exitOverride()
    .showSuggestionAfterError()
    .hook('preAction', (command) => {
      const { config } = command.opts<{ config?: string }>()
      if (config !== undefined) env.SETTINGS_PATH = config
    })

  program.command('serve', { isDefault: true })
    .description('start the gateway')
    .option('--port <number>', 'the port to listen on (PORT)')
    .option('--host <address>', 'the address to listen on (HOST)')
    // An unknown command is parsed as an argument of the default command.
    .allowExcessArguments()
    .action(async ({ port, host }: ServeOptions, { args: [word] }: Command) => {
      if (word !== undefined) {
        throw new CommandError(
          unknownCommandMessage(word, program.commands.map((command) => command.name())), exitCodes.usage
        )
      }
      const problem =
        port === undefined ? undefined : (await import('../schemas/read-env.ts')).optionProblem('PORT', port)
      if (problem !== undefined) {
        throw new CommandError(`--port cannot be ${JSON.stringify(port)}: ${problem}`, exitCodes.usage)
      }
      if (port !== undefined) env.PORT = port
      if (host !== undefined) env.HOST = host
      await run.serve(env)
    })
  addServerCommands(program, run)
  addEditCommands(program, run)
  addGroupCommands(program, run)
  addCallCommand(program, run)
  addSearchEvalCommand(program, run)
  addImportCommand(program, run)
  addKeyCommands(program, run)
  addUserCommands(program, run)
  addCheckCommand(program, run)
  addMaintenanceCommands(program, run)
  addLogsCommand(program, run)
  addCompletionCommand(program, run)
  return program.addHelpText(
    'after',
    '\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 no gateway answers, 4 not allowed, 5 the tool answered with an ' +
    'error.'
  )
}

function unknownCommandMessage (word: string, names: readonly string[]): string {
  const near = nearestName(word, names, () => 2)
  const hint = near === undefined ? 'tool-hub --help lists all' : `did you mean ${near}? tool-hub --help lists all`
  return `There is no command ${JSON.stringify(word)}: ${hint}`
}
