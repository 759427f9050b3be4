/** The log levels of MCP (RFC 5424), from the least to the most severe. */
export const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type Level = typeof levels[number]

export const isLevel = (value: unknown): value is Level => levels.some((level) => level === value)

/** True when a message of this level is wanted by someone who asked for `wanted` and above. */
export const reaches = (level: unknown, wanted: Level): boolean => !isLevel(level) || levels.indexOf(level) >= levels.indexOf(wanted)

/** The lower of two levels; undefined is "none asked for". */
export const lower = (a: Level | undefined, b: Level | undefined): Level | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  return levels.indexOf(a) < levels.indexOf(b) ? a : b
}

/**
 * Who hears what belongs to no request: changed lists, updated resources, log messages. A legacy session is one, and what it wants
 * changes by `logging/setLevel` and `resources/subscribe`.
 */
export interface Listener<View = unknown> {
  readonly view: View
  /** The lowest log level it wants. Undefined: everything that the upstream sends (MCP: the server decides while no level is set). */
  level: Level | undefined
  /** Takes one notification; a log message below `level` is dropped. */
  deliver: (method: string, paramsText?: string) => void
}

/** True for a message that a listener with this level wants. @param paramsText params of the notification */
export function wants (level: Level | undefined, method: string, paramsText: string | undefined): boolean {
  if (level === undefined || method !== 'notifications/message' || paramsText === undefined) return true
  return reaches((JSON.parse(paramsText) as { level?: unknown }).level, level)
}
