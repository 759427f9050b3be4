import { inTurns, linesOf, short } from './lines.ts'
import { counted, type Strategy } from './strategy.ts'

interface FileHits { path: string, hits: string[] }

/** `path:12:text`, `path:12:5:text`, `path-12-text` of grep and its kin; also with the letter of a Windows drive. */
const hit = /^((?:[A-Za-z]:)?[^:\n]{1,500}?)[:-](\d{1,9})(?::\d{1,9})?[:-](.*)$/
/** A hit under a heading, as ripgrep writes them at a terminal. */
const headedHit = /^(\d{1,9})[:-](.*)$/

const longestHit = 200

/** Keeps the first hits of each file, as many as fit, and says how many there are. */
export const search: Strategy = (text) => {
  const files = hitsByFile(linesOf(text))
  if (files.length === 0) return undefined
  const total = files.reduce((sum, { hits }) => sum + hits.length, 0)
  const order = inTurns(files.map(({ hits }) => hits.length))
  const head = `${counted(total, 'hit')} in ${counted(files.length, 'file')}`
  return {
    highest: order.length,
    render: (level) => {
      const kept = new Map<number, number>()
      for (const [file] of order.slice(0, level)) kept.set(file, (kept.get(file) ?? 0) + 1)
      const parts = [head]
      for (const [index, count] of [...kept].sort(([a], [b]) => a - b)) {
        const { path = '', hits = [] } = files[index] ?? {}
        parts.push(path, ...hits.slice(0, count).map((each) => `  ${short(each, longestHit)}`))
        if (hits.length > count) parts.push(`  … ${counted(hits.length - count, 'more hit')}`)
      }
      const hidden = files.filter((_, index) => !kept.has(index))
      if (hidden.length > 0) {
        const hits = hidden.reduce((sum, file) => sum + file.hits.length, 0)
        parts.push(`… ${counted(hidden.length, 'more file')} with ${counted(hits, 'hit')}`)
      }
      return parts.join('\n')
    }
  }
}

/** The hits, by file, in the order of their first. */
export function hitsByFile (lines: readonly string[]): FileHits[] {
  const files = new Map<string, FileHits>()
  let heading: string | undefined
  const add = (path: string, text: string): void => {
    const file = files.get(path) ?? { path, hits: [] }
    file.hits.push(text)
    files.set(path, file)
  }
  for (const line of lines) {
    const headed = headedHit.exec(line)
    if (headed && heading !== undefined) { add(heading, `${headed[1]}: ${headed[2]?.trim()}`); continue }
    const found = hit.exec(line)
    if (found) add(found[1] ?? '', `${found[2]}: ${found[3]?.trim()}`)
    // A path on a line of its own may be a heading.
    heading = found || line.trim() === '' || line.length > 500 || line === '--' ? undefined : line
  }
  return [...files.values()]
}
