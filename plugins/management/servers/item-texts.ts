import { orderedEntries } from '../../../db/order.ts'
import { changedMembers } from '../../../protocol/json.ts'
import type { Item } from '../../../protocol/lists.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { BodyPart } from '../../base/limits/index.ts'
import { itemDefaults, type ItemKind, type Overridden, overrideMembers, overrideOf } from '../../settings/index.ts'

/**
 * Items as the management API shows them: each the text that it was listed as, with its override. They are not parsed and serialised
 * again: a server may list megabytes, and numbers would lose digits.
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

  /** A JSON array, in pieces: what is large in it is part of a text that is in memory already. */
  * pieces (): Generator<string> {
    let before = '['
    for (const { key, text } of this.#items) {
      before += '{'
      for (const member of changedMembers(text, overrideMembers(overrideOf(this.#server, this.#kind, key)), itemDefaults)) {
        yield before
        yield member
        before = ','
      }
      before = '},'
    }
    yield this.#items.length === 0 ? '[]' : '}]'
  }
}

/** Characters that are encoded at once: one character beyond Latin-1 slows down a whole string. */
const chunkSize = 64 * 1024

/** A large answer. `length`: in bytes of UTF-8. */
interface LargeAnswer { readonly parts: readonly BodyPart[], readonly length: number }

/**
 * The JSON of an answer that holds servers, in their order. Of a large one, what servers listed stays the text that it is, to be encoded
 * when the client reads it; all else is encoded in chunks. An answer that is text already stays.
 * @param hold takes memory for so many more bytes of a large one
 * @throws ShareError for a large one, where its owner has had his share
 */
export async function recordsJson (answer: unknown, hold: (bytes: number) => void): Promise<LargeAnswer | string> {
  if (typeof answer === 'string') return answer
  const chunks = chunksOf(piecesOf(answer, 0))
  const first = chunks.next().value ?? { text: '', isShared: false }
  let next = chunks.next()
  if (next.done === true) return first.text
  const budget = new LoopBudget()
  const parts: BodyPart[] = []
  let length = 0
  const add = ({ text, isShared }: Chunk): void => {
    const size = Buffer.byteLength(text)
    hold(size)
    length += size
    parts.push(isShared ? text : Buffer.from(text))
  }
  add(first)
  for (; next.done !== true; next = chunks.next()) {
    add(next.value)
    await budget.pause()
  }
  return { parts, length }
}

/** `isShared`: it is one piece, which is mostly a part of a text that is in memory already. */
interface Chunk { readonly text: string, readonly isShared: boolean }

/** Puts the small ones of a text's pieces together. */
function * chunksOf (pieces: Iterable<string>): Generator<Chunk, undefined> {
  let text = ''
  for (const piece of pieces) {
    const isShared = piece.length >= chunkSize
    if (!isShared) text += piece
    if (text !== '' && (isShared || text.length >= chunkSize)) {
      yield { text, isShared: false }
      text = ''
    }
    if (isShared) yield { text: piece, isShared }
  }
  if (text !== '') yield { text, isShared: false }
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

/** What stands before a value, and the value. */
type Member = readonly [prefix: string, value: unknown]

function * listOf (open: string, members: readonly Member[], close: string, depth: number): Generator<string> {
  yield open
  for (const [at, [prefix, value]] of members.entries()) {
    yield at === 0 ? prefix : `,${prefix}`
    yield * piecesOf(value, depth + 1)
  }
  yield close
}
