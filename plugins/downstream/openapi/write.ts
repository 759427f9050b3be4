import { withMembers } from '../../../protocol/json.ts'
import type { Item } from '../../../protocol/lists.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { TaskAborted, workers } from '../../base/threads/index.ts'
import type { ListedServer, ListedTool } from './collect.ts'
import { documentFrame, operationResponses, uniqueOperationId, type BodyInput } from './document.ts'
import type { JsonObject } from './keywords.ts'
import { notations, type Format, type Notation } from './notation.ts'
import { toOperation, type Operation } from './operation.ts'
import { downstreamLimits } from '../limits.ts'

/** The text of the beginning of a document, before the pieces of `writeBody`. */
export const writeHead = (head: JsonObject, { open, members, separator }: Notation): string =>
  `${open}${members(head, 0)}${separator}`.trimStart()

/** The `servers` of each operation of a group. */
export const writeServers = (url: string, { members, separator }: Notation): string =>
  `${members({ servers: [{ url }] }, 2)}${separator}`

/** A part of a document's text. The text of `writeServers` goes between `text` and `rest`, if there is a `rest`. */
export interface TextPiece { readonly text: string, readonly rest?: string }

/** Thrown when a document exceeds its max size. */
export class DocumentTooLarge extends Error {}

/** Min length of a piece of components, in characters. Shorter ones are joined. */
const minPiece = 4_096

/**
 * The part of a document after its head, piece by piece. A piece has at most one large tool.
 * @throws TooLarge if the components alone exceed the max size
 */
export function * writeBody (input: BodyInput, format: Format): Generator<TextPiece> {
  const { close, separator, members, begin, end } = notations[format]
  const { components: { schemas, ...components }, ...frame } = documentFrame(input)
  yield { text: `${members({ ...frame }, 0)}${separator}${begin('paths', 0)}` }
  const operations = new Operations(input, format)
  yield * operations.pieces()
  yield {
    text: `${end(operations.isEmpty)}${separator}${begin('components', 0)}${begin('schemas', 1)}${members(schemas, 2)}`
  }
  for (const text of operations.components) yield { text }
  yield { text: `${end(false)}${separator}${members(components, 1)}${end(false)}${close}` }
}

/** The operations of one document, one after the other. */
class Operations {
  isEmpty = true
  /** The components that the operations refer to, in texts of about `minPiece` characters. */
  readonly components: string[] = []
  readonly #ids = new Set<string>()
  #componentsSize = 0
  readonly #input: BodyInput
  readonly #format: Format
  /** The end of each operation's text. */
  readonly #end: string

  constructor (input: BodyInput, format: Format) {
    const { separator, members, end } = notations[format]
    this.#input = input
    this.#format = format
    this.#end = `${separator}${members({ responses: operationResponses }, 3)}${end(false)}${end(false)}`
  }

  * pieces (): Generator<TextPiece> {
    for (const server of this.#input.servers) {
      for (const item of server.items) {
        const piece = this.#piece(server, server.toTool(item))
        if (piece) yield piece
      }
    }
  }

  /** The text of one operation; undefined if the tool is not shown, or cannot be an operation. */
  #piece (listed: ListedServer, tool: ListedTool | undefined): TextPiece | undefined {
    if (!tool || !(tool.enabled || this.#input.includesDisabled)) return undefined
    const { item, description } = tool
    const { name: server } = listed
    const operation = operationTextOf(server, item, this.#format, this.#input.large)
    if (!operation) return undefined
    const { separator, members } = notations[this.#format]
    const start = this.isEmpty ? operation.start : `${separator}${operation.start}`
    const own = {
      operationId: uniqueOperationId(server, item.key, listed.hasPlainId?.(item.key) ?? true, this.#ids),
      summary: operation.summary,
      description: description ?? operation.description
    }
    const rest = `${operation.method}${members(own, 3)}${separator}${operation.tail}${this.#end}`
    this.isEmpty = false
    if (operation.components !== '') this.#addComponents(operation.components)
    return this.#input.isForGroup ? { text: start, rest } : { text: `${start}${rest}` }
  }

  #addComponents (components: string): void {
    this.#componentsSize += components.length
    if (this.#componentsSize > downstreamLimits.documentSize) throw new DocumentTooLarge()
    const { components: texts } = this
    const last = texts.length - 1
    if (last < 0 || (texts[last] ?? '').length >= minPiece) texts.push(components)
    else texts[last] += components
  }
}

/** The texts of an operation that are the same in all documents of a format, and the two values that are not. */
interface OperationText extends Pick<Operation, 'summary' | 'description'> {
  /** The key of the path. */
  readonly start: string
  /** The key of the method. */
  readonly method: string
  readonly tail: string
  /** The components that this operation alone refers to. */
  readonly components: string
}

type OperationCache = Readonly<Record<Format, WeakMap<Item, { server: string; operation: OperationText | undefined }>>>

/** The cached texts of the items, by format, with the server that each was written for. */
let operationCache: OperationCache = { json: new WeakMap(), yaml: new WeakMap() }
/** The memory of all texts since the last reset, in bytes. */
let operationCacheSize = 0

function cacheOperation (item: Item, server: string, operation: OperationText | undefined, format: Format): void {
  const { summary = '', description = '', start = '', tail = '', components = '' } = operation ?? {}
  for (const text of [summary, description, start, tail, components]) operationCacheSize += memoryOf(text)
  if (operationCacheSize > downstreamLimits.operationsSize) {
    operationCache = { json: new WeakMap(), yaml: new WeakMap() }
    operationCacheSize = 0
    return
  }
  operationCache[format].set(item, { server, operation })
}

/** The operation of an item, written once for each format; undefined where the item cannot be an operation. */
function operationTextOf (
  server: string, item: Item, format: Format, large: BodyInput['large']
): OperationText | undefined {
  const cached = operationCache[format].get(item)
  if (cached && cached.server === server) return cached.operation
  const isLarge = item.text.length >= downstreamLimits.translations.large
  const operation = isLarge ? large?.get(item) ?? toGenericOperation(server, item) : toOperation(server, item)
  const text = writeOperation(operation, server, notations[format])
  cacheOperation(item, server, text, format)
  return text
}

/**
 * Translates large tools in a worker thread, since an upstream's schema may take unlimited time. Tools that take too
 * long are left out.
 * @param owner the caller that the tasks count for
 */
export async function translateLarge (
  servers: readonly ListedServer[], disabled: boolean, format: Format, owner: string
): Promise<ReadonlyMap<Item, Operation>> {
  const { large, time, stopped } = downstreamLimits.translations
  const operations = new Map<Item, Operation>()
  for (const { name: server, items, canShow } of servers) {
    let late = 0
    const wanted = items.filter((item) => item.text.length >= large && canShow?.(item, disabled) !== false)
    for (const item of wanted) {
      if (operationCache[format].get(item)?.server === server || late >= stopped) continue
      try {
        const operation = await workers
          .run<Operation | undefined>('plugins/downstream/openapi/worker', { server, item }, { owner, time })
        if (operation) operations.set(item, operation)
      } catch (error) {
        if (!(error instanceof TaskAborted)) throw error
        late++
      }
    }
  }
  return operations
}

const anyObject = '{"type":"object","additionalProperties":{"description":"The arguments of the tool"}}'
/** A tool that takes any object. */
const toGenericOperation = (server: string, item: Item): Operation | undefined =>
  toOperation(server, { key: item.key, text: withMembers(item.text, { inputSchema: anyObject }) })

function writeOperation (
  operation: Operation | undefined, server: string, notation: Notation
): OperationText | undefined {
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

/** A component, with the separator before it. */
const writeComponent = (name: string, schema: JsonObject, { separator, members, begin, end }: Notation): string =>
  `${separator}${begin(name, 2)}${members(schema, 3)}${end(Object.keys(schema).length === 0)}`
