import type { Command } from 'commander'
import { withApi, type CommandContext, type CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { toJsonText, toPrintableText } from '../printable.ts'

/** A line of the log. `timestamp`: in ms since 1970; `processId`: the name of the server that printed the line. */
interface Line { timestamp: number, level: string, source: string, message: string, processId?: string }
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal']

/** Registers the command `logs`, which prints the log of a running gateway. */
export function addLogsCommand (program: Command, run: CommandRun): void {
  program.command('logs')
    .description('the log of the gateway, and what servers print')
    .option('-f, --follow', 'follow the log')
    .option('-n, --lines <number>', 'the number of lines to show from the end', '100')
    .option('--level <level>', `the lowest level to show: ${levels.join(', ')}`, 'trace')
    .option('--server <name>', 'only the output of this server')
    .action(async (options: LogOptions, command: Command) => {
      if (!levels.includes(options.level)) {
        throw new CommandError(`--level: expected one of ${levels.join(', ')}`, exitCodes.usage)
      }
      if (!/^\d{1,5}$/.test(options.lines)) {
        throw new CommandError(`${linesOption(run.argv)}: expected a number`, exitCodes.usage)
      }
      await withApi(run, command, async (context) => {
        await (options.follow ? follow(context, options) : printLastLines(context, options))
      }, true)
    })
}

/** Returns the option as the user has written it, for an error message: `--lines` or `-n`. */
const linesOption = (argv: readonly string[]): string =>
  argv.some((each) => /^--lines(=|$)/.test(each)) ? '--lines' : '-n'

interface LogOptions { follow?: true, lines: string, level: string, server?: string }

const lineFilter = ({ level, server }: LogOptions) => (line: Line): boolean =>
  levels.indexOf(line.level) >= levels.indexOf(level) && (server === undefined || line.processId === server)

async function printLastLines ({ api, out }: CommandContext, options: LogOptions): Promise<void> {
  const lines = (await api.get<Line[]>('/api/logs')).filter(lineFilter(options))
  const shown = options.lines === '0' ? [] : lines.slice(-Number(options.lines))
  out.writeResult(shown, () => shown.map((line) => textOf(out, line)).join('\n'))
}

function textOf (out: CommandContext['out'], { timestamp, level, processId, message }: Line): string {
  const painted = level === 'warn'
    ? out.style('yellow', level)
    : level === 'error' || level === 'fatal' ? out.style('red', level) : level
  const shown = toPrintableText(message)
  return `${out.style('dim', new Date(timestamp).toISOString())} ${painted} ` +
    `${processId === undefined ? '' : `[${processId}] `}${shown}`
}

/**
 * Prints the last lines of the log, and then each new line, until nobody reads the output any more. With `--json`, each
 * line is printed as one JSON text.
 * @throws CommandError if the stream ends, since the gateway has ended or rejected the request
 */
async function follow ({ api, out, run: { signal, stdout } }: CommandContext, options: LogOptions): Promise<void> {
  const answer = await fetch(`${api.url}/api/logs/stream`, { headers: api.headers, signal })
  if (!answer.ok || answer.body === null) {
    const isRefused = answer.status === 401 || answer.status === 403
    throw new CommandError(`The gateway answered ${answer.status}`, isRefused ? exitCodes.forbidden : exitCodes.failed)
  }
  const write = (line: Line): void => { stdout.write(`${out.isJson ? toJsonText(line) : textOf(out, line)}\n`) }
  let rest = ''
  const decoder = new TextDecoder()
  try {
    for await (const chunk of answer.body) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true })
      const events = rest.split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        if (data === undefined) continue
        const message = JSON.parse(data) as { type: string, logs?: Line[], log?: Line }
        const lines = (message.logs ?? (message.log ? [message.log] : [])).filter(lineFilter(options))
        const shown = message.type !== 'initial'
          ? lines
          : options.lines === '0' ? [] : lines.slice(-Number(options.lines))
        for (const line of shown) write(line)
      }
    }
  } catch {
    // The connection breaks when the gateway is killed, and is closed when `signal` is aborted.
  }
  if (signal.aborted) return
  throw new CommandError('The gateway ended the stream', exitCodes.unreachable)
}
