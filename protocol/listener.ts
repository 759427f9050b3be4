import { parseSmallMember } from './json.ts'

/** The log levels of MCP (RFC 5424), least severe first. */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = typeof logLevels[number]

export const isLogLevel = (value: unknown): value is LogLevel => logLevels.some((level) => level === value)

/** Whether a message's level is at least `wanted`, or unknown. */
export const meetsLogLevel = (level: unknown, wanted: LogLevel): boolean =>
  !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(wanted)

/** The less severe of two levels; undefined if neither is set. */
export const lowerLogLevel = (a: LogLevel | undefined, b: LogLevel | undefined): LogLevel | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  return logLevels.indexOf(a) < logLevels.indexOf(b) ? a : b
}

/**
 * Receives the notifications for a client that belong to no request: changed lists, updated resources, log messages.
 */
export interface Listener<View = unknown> {
  readonly view: View
  /**
   * The least severe log level to receive; legacy clients set it with `logging/setLevel`. Undefined: all levels (MCP
   * lets the server decide until one is set).
   */
  level: LogLevel | undefined
  /** Whether the listener delivers only the kinds of notifications that the client requested. Default: false. */
  readonly isFiltered?: boolean
  /** Whether each request of the client states its own log level (MCP 2026-07-28). Default: false. */
  readonly hasLevelInRequests?: boolean
  /** Sends a notification to the client; a log message below `level` is dropped. */
  deliver: (method: string, paramsText?: string) => void
}

/**
 * Whether a listener with this level receives a notification: true for all but log messages below the level.
 * @param paramsText params of the notification
 */
export function passesLogLevel (level: LogLevel | undefined, method: string, paramsText: string | undefined): boolean {
  if (level === undefined || method !== 'notifications/message' || paramsText === undefined) return true
  return meetsLogLevel(parseSmallMember(paramsText, 'level'), level)
}
