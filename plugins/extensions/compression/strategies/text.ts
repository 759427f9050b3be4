import { truncate } from '../../../../protocol/text.ts'
import { counted, type Strategy } from './strategy.ts'

/** Keeps the head and the tail, two thirds and one third, ended at lines where one ends near. */
export const text: Strategy = (text) => ({
  highest: text.length,
  render: (level, most) => {
    if (level > most) return undefined
    const head = headOf(text, Math.ceil(level * 2 / 3))
    const tail = tailOf(text.slice(head.length), Math.floor(level / 3))
    const missing = text.length - head.length - tail.length
    return missing === 0 ? text : `${head}\n[… ${counted(missing, 'character')} left out …]\n${tail}`
  }
})

/** A line's end is preferred within this part of the length. */
const near = 0.2

function headOf (text: string, length: number): string {
  const head = truncate(text, length)
  if (head.length === text.length) return head
  const lineEnd = head.lastIndexOf('\n')
  return lineEnd > length * (1 - near) ? head.slice(0, lineEnd) : head
}

function tailOf (text: string, length: number): string {
  if (length === 0) return ''
  let from = Math.max(0, text.length - length)
  // The second half of a surrogate pair does not begin a text.
  const code = text.charCodeAt(from)
  if (from > 0 && code >= 0xdc00 && code <= 0xdfff) from++
  const lineEnd = text.indexOf('\n', from)
  return text.slice(from > 0 && lineEnd !== -1 && lineEnd - from < length * near ? lineEnd + 1 : from)
}
