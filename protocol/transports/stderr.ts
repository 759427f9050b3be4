import type { Readable } from 'node:stream'
import { LineReader } from '../pieces.ts'
import { maxKeptLine } from './printed-line.ts'

/** Reads a process's stderr line by line until it ends. Blank lines are skipped, and long lines are truncated. */
export function readStderr (stderr: Readable, onLine: (line: string) => void): void {
  const lines = new LineReader(maxKeptLine, (line) => { if (line.trim() !== '') onLine(line.trimEnd()) })
  stderr.setEncoding('utf8')
  stderr.on('error', () => {})
  stderr.on('data', (text: string) => { lines.push(text) })
  stderr.once('end', () => { lines.push('\n') })
}
