import { Readable } from 'node:stream'
import { orderedEntries } from '../../../db/order.ts'
import { membersAfterChanges } from '../../../protocol/json.ts'
import type { Item } from '../../../protocol/lists.ts'
import {
  defaultItemMembers, type ItemKind, type OverriddenServer, overrideMembers, overrideOf
} from '../../settings/index.ts'

/**
 * The items of a server as JSON text, with their overrides. The texts from the server's lists are not parsed and
 * serialized again, since they may have megabytes and numbers would lose digits.
 */
export class ItemTexts {
  readonly #items: readonly Item[]
  readonly #server: OverriddenServer
  readonly #kind: ItemKind

  constructor (items: readonly Item[], server: OverriddenServer, kind: ItemKind) {
    this.#items = items
    this.#server = server
    this.#kind = kind
  }

  get length (): number { return this.#items.length }

  /** Yields the items as one JSON array, in pieces. */
  * pieces (): Generator<string> {
    let before = '['
    for (const { key, text } of this.#items) {
      before += '{'
      for (const member of membersAfterChanges(
        text, overrideMembers(overrideOf(this.#server, this.#kind, key)), defaultItemMembers(this.#kind, text)
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

/** Length of the chunks of a response, in characters. */
const chunkSize = 64 * 1024

/**
 * Serializes a response that may contain `ItemTexts`, and objects whose members have a recorded order. A response
 * larger than one chunk becomes a stream, whose chunks are made as the client reads. A string is returned unchanged.
 */
export function serializeApiResponse (answer: unknown): string | Readable {
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

/** Joins small pieces into chunks, and splits large pieces. */
function * chunksOf (pieces: Iterable<string>): Generator<string, undefined> {
  let text = ''
  for (const piece of pieces) {
    text += piece
    while (text.length >= chunkSize) {
      // Do not split a surrogate pair.
      const end = /[\uD800-\uDBFF]/.test(text.charAt(chunkSize - 1)) ? chunkSize + 1 : chunkSize
      yield text.slice(0, end)
      text = text.slice(end)
    }
  }
  if (text !== '') yield text
}

/** The greatest depth at which a response (of `GET /api/settings`) has `ItemTexts`. Deeper values are not examined. */
const recordDepth = 4

function * piecesOf (value: unknown, depth: number): Generator<string> {
  if (value instanceof ItemTexts) yield * value.pieces()
  else if (depth > recordDepth || typeof value !== 'object' || value === null) yield JSON.stringify(value)
  else if (Array.isArray(value)) yield * listOf('[', value.map((each): Member => ['', each]), ']', depth)
  else {
    const named = value instanceof Map ? [...value] : orderedEntries(value as Record<string, unknown>)
    const members = named.flatMap(([name, each]): Member[] =>
      each === undefined ? [] : [[`${JSON.stringify(name)}:`, each]]
    )
    yield * listOf('{', members, '}', depth)
  }
}

/** A member of an object, or an element of an array. `prefix`: the name of the member with a colon; empty in arrays. */
type Member = readonly [prefix: string, value: unknown]

function * listOf (open: string, members: readonly Member[], close: string, depth: number): Generator<string> {
  yield open
  for (const [at, [prefix, value]] of members.entries()) {
    yield at === 0 ? prefix : `,${prefix}`
    yield * piecesOf(value, depth + 1)
  }
  yield close
}
