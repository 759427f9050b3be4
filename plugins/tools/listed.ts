import { isObject } from '../../protocol/json.ts'
import type { Catalogue, Item } from '../upstream/catalogue.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { toCheck, type Check } from './check.ts'

/** What a tool takes: its input schema, and what checks arguments by it. */
export interface ToolInput { readonly schema: unknown, readonly check: Check }

const anything: ToolInput = { schema: undefined, check: () => [] }
const byName = new WeakMap<Catalogue, ReadonlyMap<string, Item>>()
const inputs = new WeakMap<Item, ToolInput>()

/** What a tool takes, by what its server lists to clients that declare nothing; where it lists no such tool: anything. */
export function inputOf (upstream: Upstream | undefined, tool: string): ToolInput {
  const catalogue = upstream?.listed
  if (!catalogue) return anything
  let items = byName.get(catalogue)
  if (!items) byName.set(catalogue, items = new Map(catalogue.lists.tools.map((item) => [item.key, item])))
  const item = items.get(tool)
  if (!item) return anything
  let input = inputs.get(item)
  if (!input) inputs.set(item, input = toInput(item))
  return input
}

function toInput ({ text }: Item): ToolInput {
  const value: unknown = JSON.parse(text)
  const schema = isObject(value) ? value.inputSchema : undefined
  return { schema, check: toCheck(schema, text.length) }
}
