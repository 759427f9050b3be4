import { Readable } from 'node:stream'
import { orderedEntries } from '../../../db/order.ts'
import { changedMembers } from '../../../protocol/json.ts'
import type { Item } from '../../../protocol/lists.ts'
import { itemDefaults, type ItemKind, type Overridden, overrideMembers, overrideOf } from '../../settings/index.ts'

/**
 * Items as the management API shows them: each is the text that it was listed as, with its override. They are not
 * parsed and serialised again: a server may list megabytes, and numbers would lose digits.
 */
export class ItemTexts {
  readonly #items: readonly Item[]
  readonly #server: Overridden
  readonly #kind: ItemKind

  constructor (items: readonly Item[], server: Overridden, kind: ItemKind) {
    this.#items = items
    this.#server = server
    this.#kind = kind
  }

  get length (): number { return this.#items.length }

  /** A JSON array, in pieces. */
  * pieces (): Generator<string> {
    let before = '['
    for (const { key, text } of this.#items) {
      before += '{'
      for (const member of changedMembers(
        text, overrideMembers(overrideOf(this.#server, this.#kind, key)), itemDefaults
      )) {
        yield before
        yield member
        before = ','
      }
      before = '},'
    }
    yield this.#items.length === 0 ? '[]' : '}]'
  }
}

/** Characters of an answer that are sent at once. */
const chunkSize = 64 * 1024

/**
 * The JSON of an answer that holds servers, in their order; of a large one a stream, whose pieces are made as its
 * client reads them. An answer that is text already stays.
 */
export function recordsJson (answer: unknown): string | Readable {
  if (typeof answer === 'string') return answer
  const chunks = chunksOf(piecesOf(answer, 0))
  const first = chunks.next().value ?? ''
  const second = chunks.next()
  if (second.done === true) return first
  return Readable.from((function * () {
    yield Buffer.from(first)
    yield Buffer.from(second.value)
    for (const chunk of chunks) yield Buffer.from(chunk)
  })(), { objectMode: false })
}

/** Puts small pieces together, and cuts large ones. */
function * chunksOf (pieces: Iterable<string>): Generator<string, undefined> {
  let text = ''
  for (const piece of pieces) {
    text += piece
    while (text.length >= chunkSize) {
      // A surrogate pair stays together.
      const end = /[\uD800-\uDBFF]/.test(text.charAt(chunkSize - 1)) ? chunkSize + 1 : chunkSize
      yield text.slice(0, end)
      text = text.slice(end)
    }
  }
  if (text !== '') yield text
}

/** The depth at which records stand in an answer: in the list of all settings. */
const deepest = 4

function * piecesOf (value: unknown, depth: number): Generator<string> {
  if (value instanceof ItemTexts) yield * value.pieces()
  else if (depth > deepest || typeof value !== 'object' || value === null) yield JSON.stringify(value)
  else if (Array.isArray(value)) yield * listOf('[', value.map((each): Member => ['', each]), ']', depth)
  else {
    const named = value instanceof Map ? [...value] : orderedEntries(value as Record<string, unknown>)
    const members = named.flatMap(([name, each]): Member[] =>
      each === undefined ? [] : [[`${JSON.stringify(name)}:`, each]]
    )
    yield * listOf('{', members, '}', depth)
  }
}

/** The text before a value, and the value. */
type Member = readonly [prefix: string, value: unknown]

function * listOf (open: string, members: readonly Member[], close: string, depth: number): Generator<string> {
  yield open
  for (const [at, [prefix, value]] of members.entries()) {
    yield at === 0 ? prefix : `,${prefix}`
    yield * piecesOf(value, depth + 1)
  }
  yield close
}
