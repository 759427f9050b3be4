import { format } from 'node:util'
import { isatty } from 'node:tty'
import type { FastifyServerOptions } from 'fastify'
import { escapeTerminalControls } from '../../../protocol/text.ts'
import { maskLikelyCredentials, OwnCredentials } from '../../base/secrets/index.ts'
import { LogRing, type LogEntry } from './ring.ts'
import { extensionsLimits } from '../limits.ts'

type Logger = FastifyServerOptions['logger']
/** The pino hook that is called for each log call of an enabled level. */
type LogMethod = (this: unknown, args: unknown[], method: (...args: unknown[]) => void, level: number) => void

const levels: Readonly<Record<number, LogEntry['level']>> = {
  10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal'
}

/**
 * Returns a ring of the newest log lines, options of a logger that fills it, and the gateway's own credentials, which
 * the logger masks.
 * @param logger the options of the logger; returned unchanged if they are not an object
 * @param metricsToken the value of METRICS_TOKEN
 */
export function prepareLog (
  logger: Logger, metricsToken?: string
): { logger: Logger, ring: LogRing, credentials: OwnCredentials } {
  const ring = new LogRing(extensionsLimits.logs, maskLikelyCredentials)
  const credentials = new OwnCredentials(metricsToken)
  return { logger: withRing(logger, ring, (line) => credentials.mask(line)), ring, credentials }
}

/** Returns logger options with hooks that add each line to the ring, and mask each line before it is written. */
function withRing (logger: Logger, ring: LogRing, mask: (line: string) => string): Logger {
  if (typeof logger !== 'object' || logger === null) return logger
  const logMethod: LogMethod = function (args, method, level) {
    method.apply(this, args)
    const message = messageOf(args)
    if (message !== undefined) ring.addGatewayLine(levels[level] ?? 'info', message)
  }
  return {
    ...logger, hooks: { ...('hooks' in logger ? logger.hooks as object : {}), logMethod, streamWrite: mask }
  } as Logger
}

/** A key in a log object that marks a line printed by a child process: the ring already contains this line. */
export const childLineMark = Symbol('childLine')

/**
 * Returns the text of a log call for the ring: the message, details and the message of the error; undefined if the line
 * must not be added.
 */
function messageOf ([first, ...rest]: unknown[]): string | undefined {
  if (first instanceof Error) return rest.length > 0 ? `${format(...rest)}: ${first.message}` : first.message
  if (typeof first !== 'object' || first === null) return format(first, ...rest)
  if (childLineMark in first) return undefined
  const sentence = rest.length > 0 ? format(...rest) : 'msg' in first ? String(first.msg) : ''
  const { err, error = err } = first as { err?: unknown, error?: unknown }
  const details = detailsIn(first as Readonly<Record<string, unknown>>, sentence)
  return error instanceof Error
    ? `${sentence}${details}${sentence === '' ? '' : ': '}${error.message}`
    : `${sentence}${details}`
}

/** The members of a log object that are added to the text of the line. */
const detailMembers = ['guard', 'quota', 'action', 'found', 'in', 'server', 'tool', 'event', 'problem', 'freeAt']

/** Returns the `detailMembers` of a log object in parentheses, except values that the sentence already contains. */
function detailsIn (object: Readonly<Record<string, unknown>>, sentence: string): string {
  const parts = detailMembers.flatMap((member) => {
    const { [member]: value } = object
    const { name = value } = (value ?? {}) as { name?: unknown }
    const text = name instanceof Date ? name.toISOString() : Array.isArray(name) ? name.join(', ') : name
    return typeof text !== 'string' || sentence.includes(text) ? [] : [`${member} ${JSON.stringify(text)}`]
  })
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

/** The output of the log. `write` takes a line of JSON text, with its line feed. */
export interface LogOutput { readonly write: (line: string) => void }

/**
 * Creates a log output that writes lines to stdout, as JSON or formatted for people on a terminal. Texts of servers in
 * them can neither steer a terminal nor begin a line. A line that cannot be written (full disk, closed terminal, ended
 * reader) is lost. The caller must listen to the `error` events of the stream.
 */
export async function createLogOutput (stdout = process.stdout): Promise<LogOutput> {
  const write = (text: string): void => {
    try {
      stdout.write(text)
    } catch {}
  }
  if (!stdout.isTTY) return { write: (line) => { write(escapeTerminalControls(line)) } }
  const { default: { prettyFactory } } = await import('pino-pretty')
  const pretty = prettyFactory({ translateTime: 'HH:MM:ss', ignore: 'pid,hostname,server' })
  return { write: (line) => { write(toTerminalLines(pretty(line))) } }
}

/**
 * Makes a formatted line safe for a terminal: all lines but the first are indented, as pino-pretty indents the members
 * of an object. pino-pretty itself removes the other control characters.
 */
const toTerminalLines = (text: string): string =>
  escapeTerminalControls(text).replace(/\r\n?|\n(?! {4}|$)/g, '\n    ')

/**
 * Returns a function that closes the standard streams whose terminals no longer exist. It must be called at the end of
 * the process: at exit, Node 20 restores the mode of its terminals, and loops forever if that fails.
 * @param close closes a file descriptor
 */
export function createLostTerminalCloser (close: (fd: number) => void): () => void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  return () => {
    for (const fd of terminals) if (!isatty(fd)) close(fd)
  }
}
