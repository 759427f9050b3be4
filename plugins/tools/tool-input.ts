import { isObject } from '../../protocol/json.ts'
import type { Catalogue, Item } from '../../protocol/lists.ts'
import { convertArguments } from '../json-schema/arguments.ts'
import { shapeOf } from '../json-schema/input-shape.ts'
import { timeBudgetOf, type CpuBudget } from '../json-schema/time-budget.ts'
import { createValidator, type RunWithTimeout, type Validator } from '../json-schema/validate.ts'
import { sizeOf, weightOf } from '../json-schema/weight.ts'
import { limits } from '../limits/index.ts'

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

const byName = new WeakMap<Catalogue, ReadonlyMap<string, Item>>()
const inputs = new WeakMap<Item, ToolInput>()

/**
 * The input of a tool that a catalogue lists, by its own name; undefined: it lists no such tool.
 * @param cpuOf the CPU budget of the server's owner
 */
export function inputOf (catalogue: Catalogue | undefined, tool: string, cpuOf: () => CpuBudget): ToolInput | undefined {
  if (!catalogue) return undefined
  let items = byName.get(catalogue)
  if (!items) byName.set(catalogue, items = new Map(catalogue.lists.tools.map((item) => [item.key, item])))
  const item = items.get(tool)
  if (!item) return undefined
  let input = inputs.get(item)
  if (!input) {
    // All tools of one server share a time budget, and all servers of one owner their CPU time.
    const budget = timeBudgetOf(catalogue.lists.tools)
    inputs.set(item, input = toInput(item, (timeout, work) => budget.run(tool, timeout, work, cpuOf())))
  }
  return input
}

function toInput ({ text }: Item, runWithTimeout: RunWithTimeout): ToolInput {
  const value: unknown = JSON.parse(text)
  const { inputSchema: schema, execution } = isObject(value) ? value : {}
  const { schema: maxSchema, work: maxWork } = limits.untimedChecks
  const weight = text.length > maxSchema ? undefined : weightOf(schema)
  const isCheap = (args: unknown, charactersPerStep?: number): boolean =>
    weight !== undefined && weight * sizeOf(args, maxWork, charactersPerStep) <= maxWork
  return {
    asTask: isObject(execution) && execution.taskSupport === 'required',
    names: (argument) => {
      const isNamed = (): boolean => shapeOf(schema).properties.has(argument)
      return isCheap(argument) ? isNamed() : runWithTimeout(limits.schemaCpu.validation, isNamed) ?? false
    },
    read: (args, eager) => {
      const convert = (): Record<string, unknown> => convertArguments(schema, args, eager)
      // Each character of a text may become an element of an array.
      return isCheap(args, 1) ? convert() : runWithTimeout(limits.schemaCpu.validation, convert) ?? args
    },
    check: createValidator(schema, text.length, runWithTimeout, isCheap)
  }
}
