import type { Item } from '../upstream/catalogue.ts'
import { frameOf, responses, unique, type BodyInput } from './document.ts'
import type { Json } from './keywords.ts'
import { notations, type Format, type Notation } from './notation.ts'
import { toOperation, type Operation } from './operation.ts'

/** The beginning of a document; what `writeBody` gives follows. */
export const writeHead = (head: Json, { before, members, between }: Notation): string => `${before}${members(head, 0)}${between}`.trimStart()

/** Where the operations of a group are reached, as it stands with each of them. */
export const writeServers = (url: string, { members, between }: Notation): string => `${members({ servers: [{ url }] }, 2)}${between}`

/**
 * The part of a document that its head does not change, piece by piece: no piece has more than one tool; undefined: the place of
 * what `writeServers` gives. Pure but for what is remembered of each item.
 */
export function * writeBody (input: BodyInput, format: Format): Generator<string | undefined> {
  const { servers, disabled, inGroup } = input
  const notation = notations[format]
  const { after, between, members, begin, end } = notation
  const { components: { schemas, ...components }, ...frame } = frameOf(input)
  yield `${members({ ...frame }, 0)}${between}${begin('paths', 0)}`
  const answers = members({ responses }, 3)
  const ids = new Set<string>()
  const texts = new Map<string, string>()
  let isEmpty = true
  for (const { name, tools } of servers) {
    for (const { item, description, enabled } of tools()) {
      const known = enabled || disabled ? written(name, item, format) : undefined
      if (!known) continue
      const { operation: { method, path, summary, description: own }, tail, components } = known
      const text = description ?? own
      const said = members({ operationId: unique(`${name}_${item.key}`, `${name}\n${item.key}`, ids), summary, ...(text === undefined ? {} : { description: text }) }, 3)
      const start = `${isEmpty ? '' : between}${begin(path, 1)}`
      if (inGroup) { yield start; yield undefined }
      yield `${inGroup ? '' : start}${begin(method, 2)}${said}${between}${tail}${between}${answers}${end(false)}${end(false)}`
      isEmpty = false
      for (const [component, schema] of components) texts.set(component, schema)
    }
  }
  yield `${end(isEmpty)}${between}${begin('components', 0)}${begin('schemas', 1)}${members(schemas, 2)}`
  for (const schema of texts.values()) yield `${between}${schema}`
  yield `${end(false)}${between}${members(components, 1)}${end(false)}${after}`
}

/** What of an operation is the same in every document of a format, as text; of the rest the short words. */
interface Written {
  readonly operation: Pick<Operation, 'method' | 'path' | 'summary' | 'description'>
  readonly tail: string
  readonly components: ReadonlyArray<readonly [name: string, text: string]>
}

const known: Readonly<Record<Format, WeakMap<Item, { server: string, written: Written | undefined }>>> = { json: new WeakMap(), yaml: new WeakMap() }

/** An item's operation, written once for each format; undefined where there is none. */
function written (server: string, item: Item, format: Format): Written | undefined {
  let found = known[format].get(item)
  if (found?.server !== server) known[format].set(item, found = { server, written: write(server, item, notations[format]) })
  return found.written
}

function write (server: string, item: Item, { members }: Notation): Written | undefined {
  const operation = toOperation(server, item)
  if (!operation) return undefined
  const { input, components, ...rest } = operation
  return { operation: rest, tail: members({ tags: [server], ...input }, 3), components: Object.entries(components).map(([name, schema]) => [name, members({ [name]: schema }, 2)]) }
}
