import { smallMemberOf } from './json.ts'

/** The log levels of MCP (RFC 5424), from the least to the most severe. */
export const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type Level = typeof levels[number]

export const isLevel = (value: unknown): value is Level => levels.some((level) => level === value)

/** True when a message of this level passes a filter for `wanted` and above. Unknown levels pass. */
export const reaches = (level: unknown, wanted: Level): boolean =>
  !isLevel(level) || levels.indexOf(level) >= levels.indexOf(wanted)

/** The lower of two levels; undefined: no level is set. */
export const lower = (a: Level | undefined, b: Level | undefined): Level | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  return levels.indexOf(a) < levels.indexOf(b) ? a : b
}

/**
 * The recipient of notifications that belong to no request: changed lists, updated resources, log messages. A legacy
 * session is one; it sets its level by `logging/setLevel`.
 */
export interface Listener<View = unknown> {
  readonly view: View
  /**
   * The lowest log level that it receives. Undefined: all that the upstream sends (MCP: the server decides while no
   * level is set).
   */
  level: Level | undefined
  /** Sends one notification to the client; a log message below `level` is dropped. */
  deliver: (method: string, paramsText?: string) => void
}

/** True unless the notification is a log message below the level. @param paramsText params of the notification */
export function wants (level: Level | undefined, method: string, paramsText: string | undefined): boolean {
  if (level === undefined || method !== 'notifications/message' || paramsText === undefined) return true
  return reaches(smallMemberOf(paramsText, 'level'), level)
}
