import { elementsOf, isDeeperThan, membersOf } from '../../../protocol/json.ts'
import { cut } from '../../../protocol/text.ts'
import { linesOf } from './lines.ts'
import { schemaOf } from './schema.ts'
import { counted, figure, type Renderings, type Strategy } from './strategy.ts'

/** How much of a value is written: items of an array, keys of an object, characters of a string, levels below the top. */
interface Amount { items: number, keys: number, characters: number, depth: number }

const highest = 180
/** Deeper values are another kind of text. */
const deepest = 500

const amountOf = (level: number): Amount => ({
  items: Math.floor(1.063 ** level) - 1,
  keys: Math.floor(6 * 1.063 ** level),
  characters: Math.floor(32 * 1.057 ** level),
  depth: 2 + Math.floor(level / 9)
})

/** Keeps the structure: long arrays become a line that tells what their items look like, and a sample; long strings are cut. */
export const json: Strategy = (text) => {
  const value = valueOf(text)
  return value === undefined ? undefined : renderingsOf(value, false)
}

/**
 * The same for a value that a program reads: nothing is added to it, keys stay, and only arrays and strings get shorter.
 * @param text one JSON value
 */
export const plainJson = (text: string): Renderings => renderingsOf(text, true)

const renderingsOf = (text: string, isPlain: boolean): Renderings => ({
  highest,
  render: (level) => written(text, amountOf(level), isPlain)
})

/** A JSON text, as it is; lines of one JSON object each as an array. */
function valueOf (text: string): string | undefined {
  const trimmed = text.trim()
  if (!/^[[{]/.test(trimmed) || isDeeperThan(trimmed, deepest)) return undefined
  if (isJson(trimmed)) return trimmed
  const lines = linesOf(trimmed).filter((line) => line.trim() !== '')
  return lines.length > 1 && lines.every((line) => line.startsWith('{') && isJson(line)) ? `[${lines.join(',')}]` : undefined
}

function isJson (text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A value, shortened. Numbers, and strings that are short enough, keep their bytes. */
function written (text: string, amount: Amount, isPlain: boolean): string {
  const first = text.charAt(0)
  if (first === '[') return writtenArray(elementsOf(text), amount, isPlain)
  if (first === '{') return writtenObject(text, amount, isPlain)
  return first === '"' ? writtenString(text, amount.characters) : text
}

const below = (amount: Amount): Amount => ({ ...amount, depth: amount.depth - 1, items: Math.ceil(amount.items / 2) })

function writtenArray (elements: readonly string[], amount: Amount, isPlain: boolean): string {
  if (!isPlain && amount.depth === 0 && elements.length > 0) return JSON.stringify(`[… ${counted(elements.length, 'item')} …]`)
  const write = (element: string): string => written(element, below(amount), isPlain)
  // A line about one missing item is no shorter than the item.
  if (elements.length <= amount.items + 1) return `[${elements.map(write).join(',')}]`
  const tail = Math.floor(amount.items / 4)
  const sample = [...elements.slice(0, amount.items - tail), ...elements.slice(elements.length - tail)].map(write)
  if (isPlain) return `[${sample.join(',')}]`
  const last = tail === 0 ? '' : ` and the last ${figure(tail)}`
  const shown = amount.items === 0 ? 'none shown' : `the first ${figure(amount.items - tail)}${last} shown`
  const summary = `${counted(elements.length, 'item')}, each ${schemaOf(elements)}; ${shown}`
  return `[${[JSON.stringify(summary), ...sample].join(',')}]`
}

function writtenObject (text: string, amount: Amount, isPlain: boolean): string {
  const members = membersOf(text)
  if (!isPlain && amount.depth === 0 && members.length > 0) return JSON.stringify(`{… ${counted(members.length, 'key')} …}`)
  const shown = isPlain ? members : members.slice(0, amount.keys)
  const parts = shown.map(({ keyStart, start, end }) => {
    const key = text.slice(keyStart, start).replace(/\s*:\s*$/, ':')
    return `${key}${written(text.slice(start, end), below(amount), isPlain)}`
  })
  const hidden = members.slice(shown.length)
  if (hidden.length > 0) {
    const names = hidden.slice(0, amount.keys).map(({ key }) => key).join(', ')
    parts.push(`"…":${JSON.stringify(`${counted(hidden.length, 'more key')}: ${cut(names, 8 * amount.keys)}`)}`)
  }
  return `{${parts.join(',')}}`
}

function writtenString (text: string, characters: number): string {
  if (text.length <= characters + 40) return text
  const value = JSON.parse(text) as string
  const head = cut(value, characters)
  return JSON.stringify(`${head}… (${counted(value.length - head.length, 'more character')})`)
}
