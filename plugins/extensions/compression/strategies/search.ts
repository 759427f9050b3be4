import { visitLines, roundRobinOrder, shortenLine } from './lines.ts'
import { strategyBounds, formatQuantity, formatNumber, type Strategy } from './strategy.ts'

/** A file with its first hits, and the number of all hits in it. */
interface FileHits { path: string, hits: string[], hitCount: number }

/** Matches `path:12:text`, `path:12:5:text` and `path-12-text`, as written by grep; the path may begin with a drive. */
const hitPattern = /^((?:[A-Za-z]:)?[^:\n]{1,500}?)[:-](\d{1,9})(?::\d{1,9})?[:-](.*)$/
/** Matches `12:text` and `12-text`, a hit below a line with the path, as written by ripgrep to a terminal. */
const headedHitPattern = /^(\d{1,9})[:-](.*)$/

/** Length to which a hit is truncated, in characters. */
const maxHitLength = 200

/** Number of characters at the start of a line that are parsed. */
const parsedLength = 1_000

/** The strategy `search`: keeps the first hits of each file, and the number of all hits. */
export const searchStrategy: Strategy = (text) => {
  const found = new HitCollector()
  visitLines(text, (start, end) => {
    found.addLine(text.slice(start, end))
    return true
  })
  const { files, otherCount: others, totalCount: total } = found
  if (files.length === 0) return undefined
  const order = roundRobinOrder(files.map(({ hits }) => hits.length))
  const allFiles = others === 0 ? formatQuantity(files.length, 'file') : `more than ${formatNumber(files.length)} files`
  const head = `${formatQuantity(total, 'hit')} in ${allFiles}`
  return {
    highestLevel: order.length,
    render: (level, maxLength) => {
      // A hit needs at least five characters.
      if (level * 5 > maxLength) return undefined
      const kept = new Map<number, number>()
      for (const [file] of order.slice(0, level)) kept.set(file, (kept.get(file) ?? 0) + 1)
      const parts = [head]
      let shown = 0
      for (const [index, shownHits] of [...kept].sort(([a], [b]) => a - b)) {
        const { path = '', hits = [], hitCount: count = 0 } = files[index] ?? {}
        parts.push(path, ...hits.slice(0, shownHits).map((each) => `  ${shortenLine(each, maxHitLength)}`))
        if (count > shownHits) parts.push(`  … ${formatQuantity(count - shownHits, 'more hit')}`)
        shown += count
      }
      const hidden = files.length - kept.size
      if (hidden > 0 || others > 0) {
        const more = others > 0
          ? `more than ${formatQuantity(hidden, 'more file')}`
          : formatQuantity(hidden, 'more file')
        parts.push(`… ${more} with ${formatQuantity(total - shown, 'hit')}`)
      }
      return parts.join('\n')
    }
  }
}

/** Collects the hits in the output of a search, by file, in the order of each file's first hit. */
export class HitCollector {
  readonly #files = new Map<string, FileHits>()
  /** The last line that may be the path of the hits below it. */
  #heading: string | undefined
  /** The number of hits that are kept in memory. */
  #keptCount = 0
  /** The number of all hits. */
  totalCount = 0
  /** The number of hits in files beyond the max number of files. */
  otherCount = 0

  get files (): FileHits[] { return [...this.#files.values()] }

  addLine (line: string): void {
    const start = line.slice(0, parsedLength)
    const headed = this.#heading === undefined ? null : headedHitPattern.exec(start)
    if (headed && this.#heading !== undefined) {
      this.#add(this.#heading, headed, line)
      return
    }
    const found = hitPattern.exec(start)
    if (found) this.#add(found[1] ?? '', [found[0], found[2] ?? '', found[3] ?? ''], line)
    // A line that is not a hit may be the path above the hits of a file.
    this.#heading = found || line.trim() === '' || line.length > 500 || line === '--' ? undefined : line
  }

  #add (path: string, [whole = '', number = '', text = '']: readonly string[], line: string): void {
    this.totalCount++
    let file = this.#files.get(path)
    if (!file) {
      if (this.#files.size >= strategyBounds.groups) {
        this.otherCount++
        return
      }
      this.#files.set(path, file = { path, hits: [], hitCount: 0 })
    }
    file.hitCount++
    if (this.#keptCount >= strategyBounds.items || file.hits.length >= strategyBounds.itemsPerGroup) return
    this.#keptCount++
    file.hits.push(`${number}: ${line.slice(whole.length - text.length).trim()}`)
  }
}
