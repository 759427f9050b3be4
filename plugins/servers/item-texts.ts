import { withMembers } from '../../protocol/json.ts'
import { toBytes } from '../../protocol/yield.ts'
import type { Item } from '../../protocol/lists.ts'
import { overrideMembers, overrideOf, type ItemKind, type Overridden } from '../access/overrides.ts'

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

  /** A JSON array, in pieces. */
  * pieces (): Generator<string> {
    yield '['
    for (const [at, { key, text }] of this.#items.entries()) {
      if (at > 0) yield ','
      yield withMembers(text, overrideMembers(overrideOf(this.#server, this.#kind, key)))
    }
    yield ']'
  }
}

/** The JSON of an answer that holds records of servers, written in turns of the event loop. An answer that is text already stays. */
export const recordsJson = async (answer: unknown): Promise<Buffer | string> =>
  typeof answer === 'string' ? answer : await toBytes(piecesOf(answer, 0))

/** The depth at which records stand in an answer: in the list of all settings. */
const deepest = 4

function * piecesOf (value: unknown, depth: number): Generator<string> {
  if (value instanceof ItemTexts) yield * value.pieces()
  else if (depth > deepest || typeof value !== 'object' || value === null) yield JSON.stringify(value)
  else if (Array.isArray(value)) yield * listOf('[', value.map((each): Member => ['', each]), ']', depth)
  else {
    const members = (value instanceof Map ? [...value] : Object.entries(value)).flatMap(([name, each]): Member[] =>
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
