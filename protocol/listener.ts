import { smallMemberOf } from './json.ts'

/** The log levels of MCP (RFC 5424), least severe first. */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = typeof logLevels[number]

export const isLogLevel = (value: unknown): value is LogLevel => logLevels.some((level) => level === value)

/** Whether a message of this level passes a filter for `wanted` and above. Unknown levels pass. */
export const meetsLogLevel = (level: unknown, wanted: LogLevel): boolean =>
  !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(wanted)

/** The less severe of two levels; undefined when neither is set. */
export const lowerLogLevel = (a: LogLevel | undefined, b: LogLevel | undefined): LogLevel | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  return logLevels.indexOf(a) < logLevels.indexOf(b) ? a : b
}

/**
 * The recipient of notifications that belong to no request: changed lists, updated resources, log messages. A legacy
 * session is one; it sets its level by `logging/setLevel`.
 */
export interface Listener<View = unknown> {
  readonly view: View
  /** The least severe level it receives. Undefined: all that is sent (MCP lets the server decide until it is set). */
  level: LogLevel | undefined
  /** Whether it passes only the notifications that its client asked for by name. Default: no. */
  readonly isFiltered?: boolean
  /** Sends a notification to the client; a log message below `level` is dropped. */
  deliver: (method: string, paramsText?: string) => void
}

/** Whether a notification is no log message below the level. @param paramsText params of the notification */
export function passesLogLevel (level: LogLevel | undefined, method: string, paramsText: string | undefined): boolean {
  if (level === undefined || method !== 'notifications/message' || paramsText === undefined) return true
  return meetsLogLevel(smallMemberOf(paramsText, 'level'), level)
}
