import { withMembers } from '../../protocol/json.ts'
import { toBytes } from '../../protocol/yield.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { Item } from '../../protocol/lists.ts'

/**
 * Items as the management API shows them: each the text that it came as, with what an admin said of it. They are not made values of,
 * to be made text again: a server may list megabytes, and numbers would lose digits.
 */
export class ItemTexts {
  readonly #items: readonly Item[]
  readonly #overrides: ServerConfig['tools']

  constructor (items: readonly Item[], overrides: ServerConfig['tools']) {
    this.#items = items
    this.#overrides = overrides
  }

  /** A JSON array, in pieces. */
  * pieces (): Generator<string> {
    yield '['
    for (const [at, { key, text }] of this.#items.entries()) {
      const { enabled, description } =
        this.#overrides !== undefined && Object.hasOwn(this.#overrides, key) ? (this.#overrides[key] ?? {}) : {}
      if (at > 0) yield ','
      yield withMembers(text, {
        ...(description === undefined ? {} : { description: JSON.stringify(description), overridden: 'true' }),
        enabled: String(enabled !== false)
      })
    }
    yield ']'
  }
}

/** The JSON of an answer that has servers' records in it, written in turns. An answer that is text already stays. */
export const recordsJson = async (answer: unknown): Promise<Buffer | string> =>
  typeof answer === 'string' ? answer : await toBytes(piecesOf(answer, 0))

/** Records stand so deep in an answer: in the list of all settings. */
const deepest = 4

function * piecesOf (value: unknown, depth: number): Generator<string> {
  if (value instanceof ItemTexts) yield * value.pieces()
  else if (depth > deepest || typeof value !== 'object' || value === null) yield JSON.stringify(value)
  else if (Array.isArray(value)) {
    yield *
    listOf(
      '[',
      value.map((each): [string, unknown] => ['', each]),
      ']',
      depth
    )
  } else {
    yield *
    listOf(
      '{',
      Object.entries(value).flatMap(([name, each]): Array<[string, unknown]> =>
        each === undefined ? [] : [[`${JSON.stringify(name)}:`, each]]
      ),
      '}',
      depth
    )
  }
}

function * listOf (open: string, members: ReadonlyArray<[name: string, value: unknown]>, close: string, depth: number): Generator<string> {
  yield open
  for (const [at, [name, value]] of members.entries()) {
    yield at === 0 ? name : `,${name}`
    yield * piecesOf(value, depth + 1)
  }
  yield close
}
