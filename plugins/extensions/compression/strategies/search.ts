import { eachLine, inTurns, short } from './lines.ts'
import { bounds, counted, figure, type Strategy } from './strategy.ts'

/** `hits`: the first ones; `count`: of all. */
interface FileHits { path: string, hits: string[], count: number }

/** Matches `path:12:text`, `path:12:5:text` and `path-12-text` of grep-like tools, also with a Windows drive. */
const hit = /^((?:[A-Za-z]:)?[^:\n]{1,500}?)[:-](\d{1,9})(?::\d{1,9})?[:-](.*)$/
/** Matches a hit below a heading, the form of ripgrep at a terminal. */
const headedHit = /^(\d{1,9})[:-](.*)$/

const longestHit = 200

/** Length of a line's start that is parsed, in characters. */
const looked = 1_000

/** Keeps the first hits of each file, and the number of all. */
export const search: Strategy = (text) => {
  const found = new Hits()
  eachLine(text, (start, end) => {
    found.read(text.slice(start, end))
    return true
  })
  const { files, others, total } = found
  if (files.length === 0) return undefined
  const order = inTurns(files.map(({ hits }) => hits.length))
  const allFiles = others === 0 ? counted(files.length, 'file') : `more than ${figure(files.length)} files`
  const head = `${counted(total, 'hit')} in ${allFiles}`
  return {
    highest: order.length,
    render: (level, most) => {
      // A hit takes at least five characters.
      if (level * 5 > most) return undefined
      const kept = new Map<number, number>()
      for (const [file] of order.slice(0, level)) kept.set(file, (kept.get(file) ?? 0) + 1)
      const parts = [head]
      let shown = 0
      for (const [index, shownHits] of [...kept].sort(([a], [b]) => a - b)) {
        const { path = '', hits = [], count = 0 } = files[index] ?? {}
        parts.push(path, ...hits.slice(0, shownHits).map((each) => `  ${short(each, longestHit)}`))
        if (count > shownHits) parts.push(`  … ${counted(count - shownHits, 'more hit')}`)
        shown += count
      }
      const hidden = files.length - kept.size
      if (hidden > 0 || others > 0) {
        const more = others > 0 ? `more than ${counted(hidden, 'more file')}` : counted(hidden, 'more file')
        parts.push(`… ${more} with ${counted(total - shown, 'hit')}`)
      }
      return parts.join('\n')
    }
  }
}

/** The hits by file, in the order of the first hits. */
export class Hits {
  readonly #files = new Map<string, FileHits>()
  #heading: string | undefined
  #kept = 0
  total = 0
  /** Hits of files beyond the bound. */
  others = 0

  get files (): FileHits[] { return [...this.#files.values()] }

  read (line: string): void {
    const start = line.slice(0, looked)
    const headed = this.#heading === undefined ? null : headedHit.exec(start)
    if (headed && this.#heading !== undefined) {
      this.#add(this.#heading, headed, line)
      return
    }
    const found = hit.exec(start)
    if (found) this.#add(found[1] ?? '', [found[0], found[2] ?? '', found[3] ?? ''], line)
    // A line without a hit may be a heading.
    this.#heading = found || line.trim() === '' || line.length > 500 || line === '--' ? undefined : line
  }

  #add (path: string, [whole = '', number = '', text = '']: readonly string[], line: string): void {
    this.total++
    let file = this.#files.get(path)
    if (!file) {
      if (this.#files.size >= bounds.groups) {
        this.others++
        return
      }
      this.#files.set(path, file = { path, hits: [], count: 0 })
    }
    file.count++
    if (this.#kept >= bounds.items || file.hits.length >= bounds.inGroup) return
    this.#kept++
    file.hits.push(`${number}: ${line.slice(whole.length - text.length).trim()}`)
  }
}
