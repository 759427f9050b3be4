import { isObject } from '../../protocol/json.ts'
import { convertArguments } from '../json-schema/arguments.ts'
import { shapeOf } from '../json-schema/input-shape.ts'
import { timeBudgetOf } from '../json-schema/time-budget.ts'
import type { Catalogue, Item } from '../upstream/catalogues/catalogue.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { createValidator, type Validator } from '../json-schema/validate.ts'

/** What a tool takes. Its schema is somebody else's, and so nothing that is done by it takes long: it is left undone instead. */
export interface ToolInput {
  /** Whether the schema names such an argument. */
  readonly names: (argument: string) => boolean
  /** Arguments as `convertArguments` reads them. */
  readonly read: (args: Record<string, unknown>, eager: boolean) => Record<string, unknown>
  readonly check: Validator
  /** It runs as a task only (MCP 2025-11-25, "Tasks"). */
  readonly asTask: boolean
}

/** What is read by a schema is read in so many ms. */
const longestRead = 50

const byName = new WeakMap<Catalogue, ReadonlyMap<string, Item>>()
const inputs = new WeakMap<Item, ToolInput>()

/** What a tool takes, by what its server lists to clients that declare nothing; undefined where it lists no such tool. */
export function inputOf (upstream: Upstream | undefined, tool: string): ToolInput | undefined {
  const catalogue = upstream?.listed
  if (!catalogue) return undefined
  let items = byName.get(catalogue)
  if (!items) byName.set(catalogue, items = new Map(catalogue.lists.tools.map((item) => [item.key, item])))
  const item = items.get(tool)
  if (!item) return undefined
  let input = inputs.get(item)
  if (!input) inputs.set(item, input = toInput(item, timeBudgetOf(catalogue.lists.tools)))
  return input
}

function toInput ({ key, text }: Item, watch: ReturnType<typeof timeBudgetOf>): ToolInput {
  const value: unknown = JSON.parse(text)
  const { inputSchema: schema, execution } = isObject(value) ? value : {}
  return {
    asTask: isObject(execution) && execution.taskSupport === 'required',
    names: (argument) => watch.run(key, longestRead, () => shapeOf(schema).properties.has(argument)) ?? false,
    read: (args, eager) => watch.run(key, longestRead, () => convertArguments(schema, args, eager)) ?? args,
    check: createValidator(schema, text.length, (longest, work) => watch.run(key, longest, work))
  }
}
