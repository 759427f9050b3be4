import { isObject } from '../../../protocol/json.ts'
import type { Catalogue, Item } from '../../../protocol/lists.ts'
import { errors } from '../../base/errors/index.ts'
import {
  convertArguments, type CpuBudget, createValidator, machine, type RunWithTimeout, schemaWeight, shapeOf,
  timeBudgetOf, type Validator, valueSize
} from '../../base/json-schema/index.ts'
import { limits } from '../../base/limits/index.ts'

/**
 * The input of one tool. Checks that an untrusted schema makes slow are skipped. Arguments that are too large to be
 * checked in time are refused, without cost to the owner of the schema.
 */
export interface ToolInput {
  /** Whether reading and checking these arguments may be slow. */
  readonly isLarge: (args: Record<string, unknown>) => boolean
  /** Whether checking these arguments may be slow, so that it is done once only. */
  readonly isLargeToCheck: (args: Record<string, unknown>) => boolean
  /** Whether the schema names this argument. */
  readonly names: (argument: string) => boolean
  /** Converts arguments (`convertArguments`). @throws InvalidInput for arguments that are too large */
  readonly read: (args: Record<string, unknown>, eager: boolean) => Record<string, unknown>
  /** @throws InvalidInput for arguments that are too large */
  readonly check: Validator
  /** The tool runs as a task only (MCP 2025-11-25, "Tasks"). */
  readonly asTask: boolean
}

const byName = new WeakMap<Catalogue, ReadonlyMap<string, Item>>()
const inputs = new WeakMap<Item, ToolInput>()

/**
 * The input of a tool in a catalogue, by its name at the server.
 * @param cpuOf the CPU budget of the server's owner for schemas, or for large arguments
 */
export function inputOf (
  catalogue: Catalogue | undefined, tool: string, cpuOf: (isLarge: boolean) => CpuBudget, meter = machine
): ToolInput | undefined {
  if (!catalogue) return undefined
  let items = byName.get(catalogue)
  if (!items) byName.set(catalogue, items = new Map(catalogue.lists.tools.map((item) => [item.key, item])))
  const item = items.get(tool)
  if (!item) return undefined
  let input = inputs.get(item)
  if (!input) {
    // All tools of one server share a time budget, and all servers of one owner a CPU budget.
    const budget = timeBudgetOf(catalogue.lists.tools, meter)
    inputs.set(item, input = toInput(
      item,
      (timeout, work) => budget.run(tool, timeout, work, cpuOf(false)),
      // Slow arguments do not count against the next call.
      (timeout, work) => timeBudgetOf({}, meter).run(tool, timeout, work, cpuOf(true))
    ))
  }
  return input
}

function toInput ({ text }: Item, runWithTimeout: RunWithTimeout, runLarge: RunWithTimeout): ToolInput {
  const value: unknown = JSON.parse(text)
  const { inputSchema: schema, execution } = isObject(value) ? value : {}
  const { schema: maxSchema, work: maxWork, largeWork, small } = limits.untimedChecks
  const weight = text.length > maxSchema ? undefined : schemaWeight(schema)
  /** Whether validating the arguments takes at most this number of steps. */
  const takes = (steps: number, args: unknown, charactersPerStep?: number): boolean =>
    weight !== undefined && weight * valueSize(args, steps, charactersPerStep) <= steps
  const isCheap = (args: unknown, charactersPerStep?: number): boolean => takes(maxWork, args, charactersPerStep)
  // With a schema of known cost, large arguments are the cause of slowness; otherwise small ones are not.
  const isLarge = (args: unknown, charactersPerStep?: number): boolean =>
    !isCheap(args, charactersPerStep) && (weight !== undefined || valueSize(args, small) > small)
  /** Does work on arguments. @returns undefined if the schema makes it slow @throws InvalidInput if the arguments do */
  const work = <Result>(args: unknown, run: () => Result, charactersPerStep?: number): Result | undefined => {
    if (isCheap(args, charactersPerStep)) return run()
    if (!isLarge(args, charactersPerStep)) return runWithTimeout(limits.schemaCpu.validation, run)
    if (takes(largeWork, args, charactersPerStep)) return run()
    const result = runLarge(limits.schemaCpu.largeArguments, run)
    if (result === undefined) throw new errors.InvalidInput('The arguments are too large to be checked in time by the schema of the tool')
    return result
  }
  return {
    asTask: isObject(execution) && execution.taskSupport === 'required',
    isLarge: (args) => isLarge(args, 1),
    isLargeToCheck: (args) => isLarge(args),
    names: (argument) => {
      const isNamed = (): boolean => shapeOf(schema).properties.has(argument)
      return isCheap(argument) ? isNamed() : runWithTimeout(limits.schemaCpu.validation, isNamed) ?? false
    },
    // Each character of a string may become an element of an array.
    read: (args, eager) => work(args, () => convertArguments(schema, args, eager), 1) ?? args,
    check: createValidator(schema, text.length, runWithTimeout, { isLarge, work })
  }
}

/** Max other readings that are tried if the first one does not fit. */
const maxReadings = 20

/** Converts arguments to fit the schema. @throws InvalidInput that names the arguments that do not fit */
export function fitting ({ read, check, isLargeToCheck }: ToolInput, given: Record<string, unknown>): Record<string, unknown> {
  let args = read(given, false)
  let problems = check(args)
  if (problems.length === 0) return args
  // A string that does not fit a pattern or length may fit as a number. Not tried for large arguments, since it is
  // slow.
  const others = isLargeToCheck(given) ? [] : Object.entries(read(given, true)).filter(([name, value]) => value !== args[name])
  for (const other of others.slice(0, maxReadings)) {
    const tried = Object.fromEntries([...Object.entries(args), other])
    const left = check(tried)
    if (left.length < problems.length) { args = tried; problems = left }
  }
  if (problems.length > 0) throw new errors.InvalidInput(`The arguments do not fit: ${problems.slice(0, 10).join('; ')}`)
  return args
}
