import { isObject } from '../../protocol/json.ts'
import type { Catalogue, Item } from '../../protocol/lists.ts'
import { convertArguments } from '../json-schema/arguments.ts'
import { shapeOf } from '../json-schema/input-shape.ts'
import { timeBudgetOf } from '../json-schema/time-budget.ts'
import { createValidator, type Validator } from '../json-schema/validate.ts'

/** The input of one tool. Its schema is a stranger's: whatever it makes slow is left undone. */
export interface ToolInput {
  /** Whether the schema names such an argument. */
  readonly names: (argument: string) => boolean
  /** Arguments as `convertArguments` reads them. */
  readonly read: (args: Record<string, unknown>, eager: boolean) => Record<string, unknown>
  readonly check: Validator
  /** It runs as a task only (MCP 2025-11-25, "Tasks"). */
  readonly asTask: boolean
}

/** The longest time that reading arguments by a schema may take, in ms. */
const longestRead = 50

const byName = new WeakMap<Catalogue, ReadonlyMap<string, Item>>()
const inputs = new WeakMap<Item, ToolInput>()

/** The input of a tool that a catalogue lists, by its own name; undefined: it lists no such tool. */
export function inputOf (catalogue: Catalogue | undefined, tool: string): ToolInput | undefined {
  if (!catalogue) return undefined
  let items = byName.get(catalogue)
  if (!items) byName.set(catalogue, items = new Map(catalogue.lists.tools.map((item) => [item.key, item])))
  const item = items.get(tool)
  if (!item) return undefined
  let input = inputs.get(item)
  // All tools of one server share a time budget.
  if (!input) inputs.set(item, input = toInput(item, timeBudgetOf(catalogue.lists.tools)))
  return input
}

function toInput ({ key, text }: Item, budget: ReturnType<typeof timeBudgetOf>): ToolInput {
  const value: unknown = JSON.parse(text)
  const { inputSchema: schema, execution } = isObject(value) ? value : {}
  return {
    asTask: isObject(execution) && execution.taskSupport === 'required',
    names: (argument) => budget.run(key, longestRead, () => shapeOf(schema).properties.has(argument)) ?? false,
    read: (args, eager) => budget.run(key, longestRead, () => convertArguments(schema, args, eager)) ?? args,
    check: createValidator(schema, text.length, (longest, work) => budget.run(key, longest, work))
  }
}
