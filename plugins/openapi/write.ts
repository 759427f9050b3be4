import { withMembers } from '../../protocol/json.ts'
import { timeBudgetOf } from '../json-schema/time-budget.ts'
import type { Item } from '../../protocol/lists.ts'
import type { ListedTool } from './collect.ts'
import { frameOf, responses, uniqueOperationId, type BodyInput } from './document.ts'
import type { JsonObject } from './keywords.ts'
import { notations, type Format, type Notation } from './notation.ts'
import { toOperation, type Operation } from './operation.ts'

/** The beginning of a document; what `writeBody` gives follows. */
export const writeHead = (head: JsonObject, { open: before, members, separator: between }: Notation): string =>
  `${before}${members(head, 0)}${between}`.trimStart()

/** Where the operations of a group are reached, as it stands with each of them. */
export const writeServers = (url: string, { members, separator: between }: Notation): string =>
  `${members({ servers: [{ url }] }, 2)}${between}`

/** Some text of a document. Where there is a `rest`, what `writeServers` gives stands before it. */
export interface Piece { readonly text: string, readonly rest?: string }

/** So many characters of small texts become one piece. */
const together = 4_096

/**
 * The part of a document that its head does not change, piece by piece: no piece has more than one tool that is not small. Pure but for what is
 * remembered of each item.
 */
export function * writeBody (input: BodyInput, format: Format): Generator<Piece> {
  const { close: after, separator: between, members, begin, end } = notations[format]
  const { components: { schemas, ...components }, ...frame } = frameOf(input)
  yield { text: `${members({ ...frame }, 0)}${between}${begin('paths', 0)}` }
  const operations = new Operations(input, format)
  yield * operations.pieces()
  yield { text: `${end(operations.isEmpty)}${between}${begin('components', 0)}${begin('schemas', 1)}${members(schemas, 2)}` }
  for (const text of operations.components) yield { text }
  yield { text: `${end(false)}${between}${members(components, 1)}${end(false)}${after}` }
}

/** The operations of one document, one after the other. */
class Operations {
  isEmpty = true
  /** What they refer to, in texts of about `together`. */
  readonly components: string[] = []
  readonly #ids = new Set<string>()
  readonly #input: BodyInput
  readonly #format: Format
  /** How each one ends. */
  readonly #end: string

  constructor (input: BodyInput, format: Format) {
    const { separator: between, members, end } = notations[format]
    this.#input = input
    this.#format = format
    this.#end = `${between}${members({ responses }, 3)}${end(false)}${end(false)}`
  }

  * pieces (): Generator<Piece> {
    for (const { name, items, toTool } of this.#input.servers) {
      for (const item of items) {
        const piece = this.#piece(name, toTool(item), items)
        if (piece) yield piece
      }
    }
  }

  #piece (server: string, tool: ListedTool | undefined, owner: object): Piece | undefined {
    if (!tool || !(tool.enabled || this.#input.disabled)) return undefined
    const { item, description } = tool
    const known = written(server, item, this.#format, owner)
    if (!known) return undefined
    const { separator: between, members } = notations[this.#format]
    const start = this.isEmpty ? known.start : `${between}${known.start}`
    const said = members(
      {
        operationId: uniqueOperationId(server, item.key, this.#ids),
        summary: known.summary,
        description: description ?? known.description
      },
      3
    )
    const rest = `${known.method}${said}${between}${known.tail}${this.#end}`
    this.isEmpty = false
    if (known.components !== '') this.#keep(known.components)
    return this.#input.inGroup ? { text: start, rest } : { text: `${start}${rest}` }
  }

  #keep (components: string): void {
    const { components: texts } = this
    const last = texts.length - 1
    if (last < 0 || (texts[last] ?? '').length >= together) texts.push(components)
    else texts[last] += components
  }
}

/** What of an operation is the same in every document of a format, as text; of the rest the short words. */
interface Written extends Pick<Operation, 'summary' | 'description'> {
  /** The path's begin. */
  readonly start: string
  /** The method's begin. */
  readonly method: string
  readonly tail: string
  /** The schemas that it refers to, which no other operation does. */
  readonly components: string
}

const known: Readonly<Record<Format, WeakMap<Item, { server: string; written: Written | undefined }>>> = {
  json: new WeakMap(),
  yaml: new WeakMap()
}

/** An item's operation, written once for each format; undefined where there is none. */
function written (server: string, item: Item, format: Format, owner: object): Written | undefined {
  let found = known[format].get(item)
  if (found?.server !== server) known[format].set(item, found = { server, written: write(server, item, notations[format], owner) })
  return found.written
}

/** A tool of more characters may take long, and is then said to take any object. */
const watched = 8_000
const anyObject = '{"type":"object","additionalProperties":{"description":"What the tool takes"}}'
/** In ms. */
const longestOperation = 100

function write (server: string, item: Item, notation: Notation, owner: object): Written | undefined {
  const operation =
    item.text.length < watched
      ? toOperation(server, item)
      : (timeBudgetOf(owner).run(item.key, longestOperation, () => toOperation(server, item)) ??
        toOperation(server, { key: item.key, text: withMembers(item.text, { inputSchema: anyObject }) }))
  if (!operation) return undefined
  const { method, path, summary, description, input, components } = operation
  const { members, begin } = notation
  return {
    summary,
    description,
    start: begin(path, 1),
    method: begin(method, 2),
    tail: members({ tags: [server], ...input }, 3),
    components: Array.from(components, ([name, schema]) => writeComponent(name, schema, notation)).join('')
  }
}

const writeComponent = (name: string, schema: JsonObject, { separator: between, members, begin, end }: Notation): string =>
  `${between}${begin(name, 2)}${members(schema, 3)}${end(Object.keys(schema).length === 0)}`
