import { isObject } from '../../../protocol/json.ts'
import { valueSize } from './weight.ts'

/** The size of what is written at once, as `sizeOf` counts it: well below a millisecond. */
const pieceSize = 4_096

/** The JSON text of a value, in pieces: that of a megabyte of small values takes 30 ms to write. */
export function * jsonPieces (value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null || valueSize(value, pieceSize) <= pieceSize) yield JSON.stringify(value)
  else if (Array.isArray(value)) yield * listPieces(value)
  else if (isObject(value)) yield * memberPieces(value)
}

function * listPieces (list: readonly unknown[]): Generator<string> {
  let [from, size] = [0, 0]
  yield '['
  for (const [at, each] of list.entries()) {
    const own = valueSize(each, pieceSize)
    if (size > 0 && size + own > pieceSize) {
      yield textOf(list, from, at)
      from = at
      size = 0
    }
    if (own > pieceSize) {
      if (at > 0) yield ','
      yield * jsonPieces(each)
      from = at + 1
    } else size += own
  }
  if (from < list.length) yield textOf(list, from, list.length)
  yield ']'
}

/** Some elements of a list, with a comma before them where they are not the first. */
const textOf = (list: readonly unknown[], from: number, to: number): string =>
  `${from > 0 ? ',' : ''}${JSON.stringify(list.slice(from, to)).slice(1, -1)}`

function * memberPieces (members: Readonly<Record<string, unknown>>): Generator<string> {
  let before = '{'
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue
    yield `${before}${JSON.stringify(name)}:`
    yield * jsonPieces(value)
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}
