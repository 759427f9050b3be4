import { eachLine, inTurns, short } from './lines.ts'
import { bounds, counted, figure, type Strategy } from './strategy.ts'

/** A removed line, an added line, or both as a replacement. `block`: the number of the block of adjacent changes. */
interface Change { readonly block: number, removed?: string, added?: string }
/** `changes`: the first ones; `count`: of all changed lines. */
interface Hunk { header: string, changes: Change[], count: number }
/** `hunks`: the first ones; `count`: of all. */
interface FileDiff { path: string, headers: string[], hunks: Hunk[], count: number, added: number, removed: number }

const longestChange = 300

/** Number of files that are listed before any change is shown; more names would fill the space. */
const filesFirst = 20

/** Length of a line's start that is parsed, in characters. */
const looked = 1_000

/**
 * Keeps the headers of files and hunks and the changed lines; drops the context first, then the later changes of each
 * hunk. A removed line stays with its replacement, so that some files have whole changes and others none.
 */
export const diff: Strategy = (text) => {
  const { files, others, added, removed } = filesOf(text)
  if (files.length === 0) return undefined
  const hunks = files.flatMap(({ hunks }) => hunks)
  // Removals without a replacement come last.
  const byWeight =
    hunks.map(({ changes }) => [...changes].sort((one, other) => Number(isRemoval(one)) - Number(isRemoval(other))))
  const order = inTurns(hunks.map(({ changes }) => changes.length))
  /**
   * The numbers of files and changes of a level: first files, then a change for each further file, then other changes.
   */
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

/** The lines of some changes of a hunk. In a block, removed lines come first, as in a diff. */
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

/** Max number of headers of a file. */
const maxHeaders = 20

/** Matches the headers of a file that are kept. */
const fileHeader =
  /^(?:diff --git |--- |\+\+\+ |rename |new file|deleted file|old mode|new mode|Binary files|similarity )/

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
  /** The current block of adjacent changes, and the number of them with an added line. */
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
    // Without `diff --git`, a file begins with its old name.
    if (isGit || (isOldName && !before.startsWith('diff --git ') && (hunk !== undefined || file === undefined))) {
      file = begin()
    }
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
