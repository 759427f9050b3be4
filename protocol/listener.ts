/** The log levels of MCP (RFC 5424), from the least to the most severe. */
export const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type Level = typeof levels[number]

export const isLevel = (value: unknown): value is Level => levels.some((level) => level === value)

/** True when a message of this level is wanted by someone who asked for `wanted` and above. */
export const reaches = (level: unknown, wanted: Level): boolean => !isLevel(level) || levels.indexOf(level) >= levels.indexOf(wanted)

/** The lower of two levels; undefined is "none asked for". */
export const lower = (a: Level | undefined, b: Level | undefined): Level | undefined =>
  a === undefined ? b : b === undefined ? a : levels.indexOf(a) < levels.indexOf(b) ? a : b

/** Who hears news that belong to no request. A legacy session is one; its wants change by setLevel and subscribe. */
export interface Listener<View = unknown> {
  readonly view: View
  /** Undefined: everything the upstream sends (MCP: the server decides while no level is set). */
  readonly level: Level | undefined
  /** Takes a message, as its text. */
  send: (text: string) => void
}
