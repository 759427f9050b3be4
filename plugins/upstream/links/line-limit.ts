import type { PrintedLine } from '../../../protocol/transports/printed-line.ts'

/** Limits per second; `size` in characters, of which the last line may have more than is left. */
interface LineLimit { readonly lines: number, readonly size: number }

/**
 * Limits the lines that a process prints. Those that are dropped cost next to nothing, since their texts are not made.
 * @param pass gets the text of each line within the limit
 * @param report gets the number of lines that were dropped, with the first line of a later second
 */
export function limitLines (
  { lines, size }: LineLimit, pass: (text: string) => void, report: (dropped: number) => void
): (line: PrintedLine) => void {
  let second = 0
  let used = { lines: 0, size: 0 }
  let dropped = 0
  return ({ length, text }) => {
    const now = Math.floor(Date.now() / 1_000)
    if (now !== second) {
      if (dropped > 0) report(dropped)
      second = now
      used = { lines: 0, size: 0 }
      dropped = 0
    }
    if (used.lines >= lines || used.size >= size) {
      dropped++
      return
    }
    used.lines++
    used.size += length
    pass(text())
  }
}
