import type { FileResult } from './report.mjs'

interface Run {
  results: FileResult[]
  flaky: Array<{ file: string, path: string, first: string }>
  listed: Array<{ test: string, cause: string, date: string }>
  steps: Map<string, boolean>
  now?: number
}
export function verdict (run: Run): { lines: string[], ok: boolean }
