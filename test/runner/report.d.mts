/** How a test file ended. */
export interface FileResult {
  file: string
  ok: boolean
  ms: number
  passed: number
  failed: number
  skipped: number
  lines: string[]
  failures: Array<{ path: string, what: string, first: string }>
}
export function told (diagnosis: unknown): string
export function tapReader (onFile: (result: FileResult) => void): { write: (text: string) => void, end: () => void }
