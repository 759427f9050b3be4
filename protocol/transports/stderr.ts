import type { ChildProcess } from 'node:child_process'
import { LineReader } from './line-reader.ts'

/** Max characters kept of an unfinished line: more than are reported, so that a secret is not cut before it is removed. */
const keptLine = 64 * 1024

/** Reads the child's stderr line by line, for as long as it lives; long lines are cut. */
export function drain (child: ChildProcess, onLine: (line: string) => void): void {
  const lines = new LineReader(keptLine, (line) => { if (line.trim() !== '') onLine(line.trimEnd()) })
  child.stderr?.setEncoding('utf8')
  child.stderr?.on('error', () => {})
  child.stderr?.on('data', (text: string) => { lines.push(text) })
  child.stderr?.once('end', () => { lines.push('\n') })
}
