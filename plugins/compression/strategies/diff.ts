import { inTurns, linesOf, short } from './lines.ts'
import { counted, figure, type Strategy } from './strategy.ts'

interface Hunk { header: string, changes: string[] }
interface FileDiff { path: string, headers: string[], hunks: Hunk[], added: number, removed: number }

const longestChange = 300

/** Keeps the files' and hunks' headers and the changed lines; what stands around them goes first, then the later changes of each hunk. */
export const diff: Strategy = (text) => {
  const files = filesOf(linesOf(text))
  if (files.length === 0) return undefined
  const hunks = files.flatMap(({ hunks }) => hunks)
  const order = inTurns(hunks.map(({ changes }) => changes.length))
  const added = files.reduce((sum, file) => sum + file.added, 0)
  const removed = files.reduce((sum, file) => sum + file.removed, 0)
  const head = `${counted(files.length, 'file')} changed, +${figure(added)} -${figure(removed)}`
  return {
    // First the files, a line for each; then the changes.
    highest: files.length + order.length,
    render: (level) => {
      if (level <= files.length) {
        const left = files.length - level
        return [head, ...files.slice(0, level).map(summary), ...(left > 0 ? [`… ${counted(left, 'more file')}`] : [])].join('\n')
      }
      const kept = new Map<Hunk, number>()
      for (const [index] of order.slice(0, level - files.length)) {
        const hunk = hunks[index]
        if (hunk) kept.set(hunk, (kept.get(hunk) ?? 0) + 1)
      }
      return [head, ...files.map((file) => written(file, kept))].join('\n')
    }
  }
}

const summary = ({ path, added, removed }: FileDiff): string => `${path} +${figure(added)} -${figure(removed)}`

function written (file: FileDiff, kept: ReadonlyMap<Hunk, number>): string {
  const shown = file.hunks.filter((hunk) => kept.has(hunk))
  if (shown.length === 0) return summary(file)
  const parts = [...file.headers]
  for (const hunk of shown) {
    const count = kept.get(hunk) ?? 0
    parts.push(hunk.header, ...hunk.changes.slice(0, count).map((line) => short(line, longestChange)))
    if (hunk.changes.length > count) parts.push(`… ${counted(hunk.changes.length - count, 'more changed line')}`)
  }
  const hidden = file.hunks.length - shown.length
  if (hidden > 0) parts.push(`… ${counted(hidden, 'more hunk')}`)
  return parts.join('\n')
}

/** Headers of a file that say what happened to it. */
const fileHeader = /^(?:diff --git |--- |\+\+\+ |rename |new file|deleted file|old mode|new mode|Binary files|similarity )/

function filesOf (lines: readonly string[]): FileDiff[] {
  const files: FileDiff[] = []
  let file: FileDiff | undefined
  let hunk: Hunk | undefined
  let before = ''
  const begin = (): FileDiff => {
    hunk = undefined
    const begun: FileDiff = { path: '', headers: [], hunks: [], added: 0, removed: 0 }
    files.push(begun)
    return begun
  }
  for (const [index, line] of lines.entries()) {
    const isOldName = line.startsWith('--- ') && lines[index + 1]?.startsWith('+++ ') === true
    const isGit = line.startsWith('diff --git ')
    // Without `diff --git`, the old name is a file's first line.
    if (isGit || (isOldName && !before.startsWith('diff --git ') && (hunk !== undefined || file === undefined))) file = begin()
    if (isGit || isOldName) before = line
    if (file === undefined) continue
    if (line.startsWith('@@')) {
      hunk = { header: short(line), changes: [] }
      file.hunks.push(hunk)
      before = ''
    } else if (hunk === undefined) {
      if (!fileHeader.test(line)) continue
      file.headers.push(short(line))
      file.path = pathOf(line) ?? file.path
    } else if (line.startsWith('+') || line.startsWith('-')) {
      hunk.changes.push(line)
      if (line.startsWith('+')) file.added++
      else file.removed++
    }
  }
  return files
}

function pathOf (header: string): string | undefined {
  const [, path] = /^diff --git a\/.+ b\/(.+)$/.exec(header) ?? /^\+\+\+ (?:b\/)?([^\t]+)/.exec(header) ?? []
  return path === '/dev/null' ? undefined : path
}
