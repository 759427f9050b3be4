import { pushTo } from '../../../../protocol/grouping.ts'
import { visitLines, roundRobinOrder, shortenLine } from './lines.ts'
import { strategyBounds, formatQuantity, formatNumber, type Strategy } from './strategy.ts'

/** A removed line, an added line, or both (a replacement). `block`: the number of the block of adjacent changes. */
interface Change { readonly block: number, removed?: string, added?: string }
/** A hunk of a file: the header, the first changes, and the number of all changed lines. */
interface Hunk { header: string, changes: Change[], changeCount: number }
/** The diff of one file: the first hunks, and the numbers of all hunks, added lines and removed lines. */
interface FileDiff { path: string, headers: string[], hunks: Hunk[], hunkCount: number, added: number, removed: number }

/** Length to which a changed line is truncated, in characters. */
const maxChangeLength = 300

/** Max number of files that are named before any change is shown; more names would leave no room for changes. */
const maxLeadingFiles = 20

/** Number of characters at the start of a header line that are parsed. */
const parsedLength = 1_000

/**
 * The strategy `diff`: keeps the headers of files and hunks, and the changed lines. Context lines are omitted; if more
 * must be omitted, the later changes of each hunk are. A removed line and its replacement are kept together.
 */
export const diffStrategy: Strategy = (text) => {
  const { files, otherFiles: others, added, removed } = parseDiff(text)
  if (files.length === 0) return undefined
  const hunks = files.flatMap(({ hunks }) => hunks)
  // Removals without a replacement come last.
  const byPriority =
    hunks.map(({ changes }) => [...changes].sort((one, other) => Number(isRemoval(one)) - Number(isRemoval(other))))
  const order = roundRobinOrder(hunks.map(({ changes }) => changes.length))
  /**
   * Returns the numbers of files and changes that are shown at a level. Low levels show the first files only; higher
   * levels add one change and one file in turn, then the remaining ones.
   */
  const shownAt = (level: number): { files: number, changes: number } => {
    const first = Math.min(files.length, maxLeadingFiles)
    const extra = Math.max(level - first, 0)
    const more = Math.max(Math.min(files.length - first, Math.ceil(extra / 2)), extra - order.length)
    return { files: Math.min(level, first) + more, changes: extra - more }
  }
  const head = `${formatQuantity(
    files.length + others, 'file'
  )} changed, +${formatNumber(added)} -${formatNumber(removed)}`
  return {
    highestLevel: files.length + order.length,
    render: (level, maxLength) => {
      // A file needs at least six characters, a change at least one.
      const shown = shownAt(level)
      if (level > maxLength || shown.files * 6 > maxLength) return undefined
      const left = files.length + others - shown.files
      const more = left > 0 ? [`… ${formatQuantity(left, 'more file')}`] : []
      const kept = new Map<Hunk, Change[]>()
      for (const [index, at] of order.slice(0, shown.changes)) {
        const [hunk, change] = [hunks[index], byPriority[index]?.[at]]
        if (!hunk || !change) continue
        pushTo(kept, hunk, change)
      }
      return [head, ...files.slice(0, shown.files).map((file) => writeFileDiff(file, kept)), ...more].join('\n')
    }
  }
}

const summary = ({ path, added, removed }: FileDiff): string =>
  `${path} +${formatNumber(added)} -${formatNumber(removed)}`

const isRemoval = ({ added }: Change): boolean => added === undefined

/** Returns the lines of the kept changes of a hunk. In a block, removed lines come before added ones, as in a diff. */
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

function writeFileDiff (file: FileDiff, kept: ReadonlyMap<Hunk, readonly Change[]>): string {
  const shown = file.hunks.filter((hunk) => kept.has(hunk))
  if (shown.length === 0) return summary(file)
  const parts = [...file.headers]
  for (const hunk of shown) {
    const lines = linesIn(hunk, kept.get(hunk) ?? [])
    parts.push(hunk.header, ...lines.map((line) => shortenLine(line, maxChangeLength)))
    if (hunk.changeCount > lines.length) {
      parts.push(`… ${formatQuantity(hunk.changeCount - lines.length, 'more changed line')}`)
    }
  }
  const hidden = file.hunkCount - shown.length
  if (hidden > 0) parts.push(`… ${formatQuantity(hidden, 'more hunk')}`)
  return parts.join('\n')
}

/** Max number of header lines of a file that are kept. */
const maxHeaders = 20

/** Matches the header lines of a file that are kept. */
const fileHeader =
  /^(?:diff --git |--- |\+\+\+ |rename |new file|deleted file|old mode|new mode|Binary files|similarity )/

/**
 * A parsed diff: the first files, the number of further files, and the numbers of added and removed lines in all files.
 */
interface ParsedDiff { files: FileDiff[], otherFiles: number, added: number, removed: number }

function parseDiff (text: string): ParsedDiff {
  const found: ParsedDiff = { files: [], otherFiles: 0, added: 0, removed: 0 }
  const left = { hunks: strategyBounds.groups, changes: strategyBounds.items }
  let file: FileDiff | undefined
  let hunk: Hunk | undefined
  /** The last line that began a file or named its old version. */
  let fileHeaderLine = ''
  const begin = (): FileDiff => {
    hunk = undefined
    const begun: FileDiff = { path: '', headers: [], hunks: [], hunkCount: 0, added: 0, removed: 0 }
    if (found.files.length < strategyBounds.groups) found.files.push(begun)
    else found.otherFiles++
    return begun
  }
  /** The current block of adjacent changes. `added`: the number of added lines read in the block. */
  let block = { number: 0, changes: [] as Change[], added: 0 }
  const nextBlock = (): void => { block = { number: block.number + 1, changes: [], added: 0 } }
  const readHunk = (file: FileDiff, line: string): void => {
    file.hunkCount++
    hunk = { header: '', changes: [], changeCount: 0 }
    fileHeaderLine = ''
    nextBlock()
    if (left.hunks === 0) return
    left.hunks--
    hunk.header = shortenLine(line)
    file.hunks.push(hunk)
  }
  const readChange = (file: FileDiff, hunk: Hunk, line: string): void => {
    const kind = line.startsWith('+') ? 'added' : 'removed'
    file[kind]++
    found[kind]++
    hunk.changeCount++
    if (left.changes === 0 || hunk.changes.length >= strategyBounds.itemsPerGroup) return
    left.changes--
    if (kind === 'removed' && block.added > 0) nextBlock()
    // The first added line of a block replaces the first removed line of the block, and so on.
    const removal = kind === 'added' ? block.changes[block.added++] : undefined
    if (removal) removal.added = line
    else {
      const change: Change = { block: block.number, [kind]: line }
      hunk.changes.push(change)
      if (kind === 'removed') block.changes.push(change)
    }
  }
  visitLines(text, (start, end, next) => {
    const isOldName = text.startsWith('--- ', start) && text.startsWith('+++ ', next)
    const isGit = text.startsWith('diff --git ', start)
    // Without `diff --git`, the line with the old name (`---`) begins a file.
    const isInGitHeader = fileHeaderLine.startsWith('diff --git ')
    if (isGit || (isOldName && !isInGitHeader && (hunk !== undefined || file === undefined))) {
      file = begin()
    }
    if (isGit || isOldName) fileHeaderLine = text.slice(start, Math.min(end, start + parsedLength))
    if (file === undefined) return true
    if (text.startsWith('@@', start)) readHunk(file, text.slice(start, end))
    else if (hunk !== undefined) {
      if (text.startsWith('+', start) || text.startsWith('-', start)) readChange(file, hunk, text.slice(start, end))
      else if (!text.startsWith('\\', start)) nextBlock()
    } else {
      const line = text.slice(start, Math.min(end, start + parsedLength))
      if (file.headers.length >= maxHeaders || !fileHeader.test(line)) return true
      file.headers.push(shortenLine(line))
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
