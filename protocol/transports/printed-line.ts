import { stripVTControlCharacters } from 'node:util'

/** A line that a process has printed. */
export interface PrintedLine {
  /** Its length as it was printed, at most `keptLine`. */
  readonly length: number
  /** Makes the text for people, of at most 8 KiB, which takes the longer the longer the line is: a process may print thousands a second. */
  readonly text: () => string
}

/** Max characters that are kept of a line: more than are shown, so that a secret is not cut before it is removed. */
export const keptLine = 64 * 1024

/** Control characters except the tab, line and paragraph separators, and bidirectional formatting characters (Unicode). */
const controls = /(?!\t)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** A line without escape sequences for terminals (ECMA-48), and without these characters. */
const withoutControls = (line: string): string => stripVTControlCharacters(line).replace(controls, '')

/**
 * A line that a process has printed, for people to read: without secrets, and without what controls a terminal, which might stand within
 * a secret.
 * @param line at most `keptLine` characters
 */
export function shownLine (line: string, redact: (text: string) => string): string {
  const plain = withoutControls(line)
  return redact(plain === line ? line : withoutControls(redact(line)))
}
