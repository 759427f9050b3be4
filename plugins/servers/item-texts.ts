import { withMembers } from '../../protocol/json.ts'
import type { Pause } from '../../protocol/large-message.ts'
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

/** Where a large answer is written: in turns of its owner, and within the memory for texts in flight. */
export interface LargeAnswers {
  readonly run: <Result>(work: (pause: Pause) => Promise<Result>) => Promise<Result>
  /** Takes memory for so many more bytes. @throws ShareError */
  readonly hold: (bytes: number) => void
}

/** Characters that are encoded at once: one character beyond Latin-1 slows down a whole string. */
const chunkSize = 64 * 1024

/**
 * The JSON of an answer that holds records of servers: of a large one in chunks of UTF-8. An answer that is text already stays.
 * @throws ShareError for a large one, where its owner has had his share
 */
export async function recordsJson (answer: unknown, large: LargeAnswers): Promise<Buffer[] | string> {
  if (typeof answer === 'string') return answer
  const pieces = piecesOf(answer, 0)
  const [first, isAll] = chunkOf(pieces)
  if (isAll) return first
  return await large.run(async (pause) => {
    const chunks: Buffer[] = []
    for (let [chunk, isLast] = [first, false]; ; [chunk, isLast] = chunkOf(pieces)) {
      const bytes = Buffer.from(chunk)
      large.hold(bytes.length)
      chunks.push(bytes)
      if (isLast) return chunks
      await pause()
    }
  })
}

/** The next pieces of a text, and whether they are the last ones. */
function chunkOf (pieces: Iterator<string>): [chunk: string, isLast: boolean] {
  let chunk = ''
  while (chunk.length < chunkSize) {
    const { value, done } = pieces.next()
    if (done === true) return [chunk, true]
    chunk += value
  }
  return [chunk, false]
}

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
