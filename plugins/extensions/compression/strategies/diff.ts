import { eachLine, inTurns, short } from './lines.ts'
import { bounds, counted, figure, type Strategy } from './strategy.ts'

/** A removed line with the added one that stands in its place, or one line alone. `block`: the number of the lines that change together. */
interface Change { readonly block: number, removed?: string, added?: string }
/** `changes`: the first ones; `count`: of all changed lines. */
interface Hunk { header: string, changes: Change[], count: number }
/** `hunks`: the first ones; `count`: of all. */
interface FileDiff { path: string, headers: string[], hunks: Hunk[], count: number, added: number, removed: number }

const longestChange = 300

/** How many files are named before any change is shown: of very many, their names alone would fill the room. */
const filesFirst = 20

/** How much of a line is looked at, in characters. */
const looked = 1_000

/**
 * Keeps the files' and hunks' headers and the changed lines; what stands around them goes first, then the later changes of each hunk. A
 * removed line stays with the one in its place: where there is room for few, some files have whole changes, and the others none.
 */
export const diff: Strategy = (text) => {
  const { files, others, added, removed } = filesOf(text)
  if (files.length === 0) return undefined
  const hunks = files.flatMap(({ hunks }) => hunks)
  // What is only removed comes after all that is added.
  const byWeight = hunks.map(({ changes }) => [...changes].sort((one, other) => Number(isRemoval(one)) - Number(isRemoval(other))))
  const order = inTurns(hunks.map(({ changes }) => changes.length))
  /** How many files and changes a level shows: some files, then a change for each further file, then the other changes. */
  const shownAt = (level: number): { files: number, changes: number } => {
    const first = Math.min(files.length, filesFirst)
    const extra = Math.max(level - first, 0)
    const more = Math.max(Math.min(files.length - first, Math.ceil(extra / 2)), extra - order.length)
    return { files: Math.min(level, first) + more, changes: extra - more }
  }
  const head = `${counted(files.length + others, 'file')} changed, +${figure(added)} -${figure(removed)}`
  return {
    highest: files.length + order.length,
    render: (level, most) => {
      // A file takes six characters, a change one.
      const shown = shownAt(level)
      if (level > most || shown.files * 6 > most) return undefined
      const left = files.length + others - shown.files
      const more = left > 0 ? [`… ${counted(left, 'more file')}`] : []
      const kept = new Map<Hunk, Change[]>()
      for (const [index, at] of order.slice(0, shown.changes)) {
        const [hunk, change] = [hunks[index], byWeight[index]?.[at]]
        if (!hunk || !change) continue
        const changes = kept.get(hunk)
        if (changes) changes.push(change)
        else kept.set(hunk, [change])
      }
      return [head, ...files.slice(0, shown.files).map((file) => written(file, kept)), ...more].join('\n')
    }
  }
}

const summary = ({ path, added, removed }: FileDiff): string => `${path} +${figure(added)} -${figure(removed)}`

const isRemoval = ({ added }: Change): boolean => added === undefined

/** Some changes of a hunk as lines: of those that change together, the removed ones first, as diffs have them. */
function linesIn (hunk: Hunk, kept: readonly Change[]): string[] {
  const shown = new Set(kept)
  const lines: string[] = []
  let waiting: string[] = []
  let last = 0
  for (const { block, removed, added } of hunk.changes.filter((change) => shown.has(change))) {
    if (block !== last) {
      lines.push(...waiting)
      waiting = []
      last = block
    }
    if (removed !== undefined) lines.push(removed)
    if (added !== undefined) waiting.push(added)
  }
  return [...lines, ...waiting]
}

function written (file: FileDiff, kept: ReadonlyMap<Hunk, readonly Change[]>): string {
  const shown = file.hunks.filter((hunk) => kept.has(hunk))
  if (shown.length === 0) return summary(file)
  const parts = [...file.headers]
  for (const hunk of shown) {
    const lines = linesIn(hunk, kept.get(hunk) ?? [])
    parts.push(hunk.header, ...lines.map((line) => short(line, longestChange)))
    if (hunk.count > lines.length) parts.push(`… ${counted(hunk.count - lines.length, 'more changed line')}`)
  }
  const hidden = file.count - shown.length
  if (hidden > 0) parts.push(`… ${counted(hidden, 'more hunk')}`)
  return parts.join('\n')
}

/** More headers than a file has in any diff. */
const maxHeaders = 20

/** Headers of a file that say what happened to it. */
const fileHeader = /^(?:diff --git |--- |\+\+\+ |rename |new file|deleted file|old mode|new mode|Binary files|similarity )/

/** A parsed diff: its first file, the number of its other files, and the changed lines of all files. */
interface Changes { files: FileDiff[], others: number, added: number, removed: number }

function filesOf (text: string): Changes {
  const found: Changes = { files: [], others: 0, added: 0, removed: 0 }
  const left = { hunks: bounds.groups, changes: bounds.items }
  let file: FileDiff | undefined
  let hunk: Hunk | undefined
  let before = ''
  const begin = (): FileDiff => {
    hunk = undefined
    const begun: FileDiff = { path: '', headers: [], hunks: [], count: 0, added: 0, removed: 0 }
    if (found.files.length < bounds.groups) found.files.push(begun)
    else found.others++
    return begun
  }
  /** The changes of the lines that change together now, and how many of them have an added line. */
  let block = { number: 0, changes: [] as Change[], added: 0 }
  const nextBlock = (): void => { block = { number: block.number + 1, changes: [], added: 0 } }
  const readHunk = (file: FileDiff, line: string): void => {
    file.count++
    hunk = { header: '', changes: [], count: 0 }
    before = ''
    nextBlock()
    if (left.hunks === 0) return
    left.hunks--
    hunk.header = short(line)
    file.hunks.push(hunk)
  }
  const readChange = (file: FileDiff, hunk: Hunk, line: string): void => {
    const kind = line.startsWith('+') ? 'added' : 'removed'
    file[kind]++
    found[kind]++
    hunk.count++
    if (left.changes === 0 || hunk.changes.length >= bounds.inGroup) return
    left.changes--
    if (kind === 'removed' && block.added > 0) nextBlock()
    const mate = kind === 'added' ? block.changes[block.added++] : undefined
    if (mate) mate.added = line
    else {
      const change: Change = { block: block.number, [kind]: line }
      hunk.changes.push(change)
      if (kind === 'removed') block.changes.push(change)
    }
  }
  eachLine(text, (start, end, next) => {
    const isOldName = text.startsWith('--- ', start) && text.startsWith('+++ ', next)
    const isGit = text.startsWith('diff --git ', start)
    // Without `diff --git`, the old name is a file's first line.
    if (isGit || (isOldName && !before.startsWith('diff --git ') && (hunk !== undefined || file === undefined))) file = begin()
    if (isGit || isOldName) before = text.slice(start, Math.min(end, start + looked))
    if (file === undefined) return true
    if (text.startsWith('@@', start)) readHunk(file, text.slice(start, end))
    else if (hunk !== undefined) {
      if (text.startsWith('+', start) || text.startsWith('-', start)) readChange(file, hunk, text.slice(start, end))
      else if (!text.startsWith('\\', start)) nextBlock()
    } else {
      const line = text.slice(start, Math.min(end, start + looked))
      if (file.headers.length >= maxHeaders || !fileHeader.test(line)) return true
      file.headers.push(short(line))
      file.path = pathOf(line) ?? file.path
    }
    return true
  })
  return found
}

function pathOf (header: string): string | undefined {
  const [, path] = /^diff --git a\/.+ b\/(.+)$/.exec(header) ?? /^\+\+\+ (?:b\/)?([^\t]+)/.exec(header) ?? []
  return path === '/dev/null' ? undefined : path
}
