import type { Readable } from 'node:stream'
import { LineReader } from '../pieces.ts'
import { keptLine } from './printed-line.ts'

/** Reads a process's stderr line by line, for as long as it lives; long lines are cut. */
export function drain (stderr: Readable, onLine: (line: string) => void): void {
  const lines = new LineReader(keptLine, (line) => { if (line.trim() !== '') onLine(line.trimEnd()) })
  stderr.setEncoding('utf8')
  stderr.on('error', () => {})
  stderr.on('data', (text: string) => { lines.push(text) })
  stderr.once('end', () => { lines.push('\n') })
}
