import { format } from 'node:util'
import { isatty } from 'node:tty'
import type { FastifyServerOptions } from 'fastify'
import { limits } from '../../base/limits/index.ts'
import { maskPatterns, OwnCredentials } from '../../base/secrets/index.ts'
import { LogRing, type LogEntry } from './ring.ts'

type Logger = FastifyServerOptions['logger']
/** pino's hook: called for each line that its level lets pass. */
type LogMethod = (this: unknown, args: unknown[], method: (...args: unknown[]) => void, level: number) => void

const levels: Readonly<Record<number, LogEntry['level']>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }

/**
 * A ring for the newest lines of the log, the options of a logger that fills it, and what masks our own credentials in both.
 * @param metricsToken METRICS_TOKEN
 */
export function startLog (logger: Logger, metricsToken?: string): { logger: Logger, ring: LogRing, credentials: OwnCredentials } {
  const ring = new LogRing(limits.logs, maskPatterns)
  const credentials = new OwnCredentials(metricsToken)
  return { logger: tapped(logger, ring, (line) => credentials.mask(line)), ring, credentials }
}

/**
 * A logger's options, extended so that each line that is logged is in the ring as well, and written as `mask` leaves it. Without a logger
 * there are no lines.
 */
function tapped (logger: Logger, ring: LogRing, mask: (line: string) => string): Logger {
  if (typeof logger !== 'object' || logger === null) return logger
  const logMethod: LogMethod = function (args, method, level) {
    method.apply(this, args)
    const message = messageOf(args)
    if (message !== undefined) ring.add(levels[level] ?? 'info', message)
  }
  return { ...logger, hooks: { ...('hooks' in logger ? logger.hooks as object : {}), logMethod, streamWrite: mask } } as Logger
}

/** Marks the line of a child, which the ring has as such already. */
export const childLine = Symbol('childLine')

/** The sentence of a line, and the message of its error; undefined: it is not for the ring. */
function messageOf ([first, ...rest]: unknown[]): string | undefined {
  if (first instanceof Error) return rest.length > 0 ? `${format(...rest)}: ${first.message}` : first.message
  if (typeof first !== 'object' || first === null) return format(first, ...rest)
  if (childLine in first) return undefined
  const sentence = rest.length > 0 ? format(...rest) : 'msg' in first ? String(first.msg) : ''
  const { err, error = err } = first as { err?: unknown, error?: unknown }
  return error instanceof Error ? `${sentence}${sentence === '' ? '' : ': '}${error.message}` : sentence
}

/** Where the log goes: a line of JSON each, or prettier on a terminal. */
export interface LogOutput { readonly write: (line: string) => void }

/**
 * The standard output, for a log. What fails there (a full disk, a terminal that is gone, a reader that has ended) is no reason to stop:
 * such a line is lost, and the next one is tried again. The errors that the stream emits are to be listened to.
 */
export async function logOutput (stdout = process.stdout): Promise<LogOutput> {
  const write = (text: string): void => {
    try {
      stdout.write(text)
    } catch {}
  }
  if (!stdout.isTTY) return { write }
  const { prettyFactory } = await import('pino-pretty')
  const pretty = prettyFactory({ translateTime: 'HH:MM:ss', ignore: 'pid,hostname,server' })
  return { write: (line) => { write(pretty(line)) } }
}

/**
 * Lets go of terminals that are gone, before the process ends: Node 20 sets the mode of its terminal again then, and where that fails it
 * loops for ever, deaf to SIGTERM.
 * @returns to be called at the end of the process
 */
export function lostTerminals (close: (fd: number) => void): () => void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  return () => {
    for (const fd of terminals) if (!isatty(fd)) close(fd)
  }
}
