import { isObject, memberOf } from '../../../protocol/json.ts'
import type { Catalogue, Item } from '../../../protocol/lists.ts'
import { errors } from '../../base/errors/index.ts'
import { fitArguments, quickCheck, type QuickCheck, shapeOf } from '../../base/json-schema/index.ts'
import { baseLimits } from '../../base/limits/index.ts'

/** Arguments as a tool takes them, and their JSON text. */
interface FitArguments { readonly args: Record<string, unknown>, readonly text: string }

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
  if (!input) inputs.set(item, input = new ToolInput(item))
  return input
}

/** The input of one tool. Its schema is a stranger's, and arguments are a caller's: neither may take long. */
export class ToolInput {
  /** It runs as a task only (MCP 2025-11-25, "Tasks"). */
  readonly asTask: boolean
  readonly #schema: unknown
  readonly #schemaText: string | undefined
  readonly #now: () => number
  /** Absent where the schema is not simple enough; undefined: not known yet. */
  #quick: { readonly check?: QuickCheck } | undefined
  /** Until when the schema is not tried, since it took too long. */
  #restsUntil = 0

  /** @param now a clock, in ms */
  constructor ({ text }: Item, now = () => performance.now()) {
    const value: unknown = JSON.parse(text)
    const { inputSchema, execution } = isObject(value) ? value : {}
    this.#schema = inputSchema
    this.#schemaText = memberOf(text, 'inputSchema')
    this.#now = now
    this.asTask = isObject(execution) && execution.taskSupport === 'required'
  }

  /** Whether the schema names such an argument. */
  names (argument: string): boolean {
    if (!isObject(this.#schema)) return false
    if ((this.#schemaText ?? '').length <= baseLimits.checkedSchema) {
      return shapeOf(this.#schema).properties.has(argument)
    }
    return isObject(this.#schema.properties) && Object.hasOwn(this.#schema.properties, argument)
  }

  /**
   * Arguments as the tool takes them; as they were given where its schema takes too long.
   * @param owner the caller
   * @throws InvalidInput that names those that do not fit, or for those that are too large to be checked in time;
   *   ShareError
   */
  async fit (given: Record<string, unknown>, owner: string): Promise<FitArguments> {
    const text = JSON.stringify(given)
    if (this.#schemaText === undefined || this.#now() < this.#restsUntil) return { args: given, text }
    if (text.length <= baseLimits.argumentChecks.quick.args && this.#fitsAsGiven(given)) return { args: given, text }
    const answer = await fitArguments({ schema: this.#schemaText, args: text }, owner)
    if (answer === undefined) return this.#late(given, text)
    if (answer.problems.length > 0) {
      throw new errors.InvalidInput('The arguments do not fit: ' +
      `${answer.problems.join('; ')}`)
    }
    return answer.args === text
      ? { args: given, text }
      : { args: JSON.parse(answer.args) as Record<string, unknown>, text: answer.args }
  }

  /** False also where it cannot be told at once. */
  #fitsAsGiven (args: Record<string, unknown>): boolean {
    const isShort = (this.#schemaText ?? '').length <= baseLimits.argumentChecks.quick.schema
    this.#quick ??= { check: isShort ? quickCheck(this.#schema) : undefined }
    return this.#quick.check?.(args) === true
  }

  /** @throws InvalidInput */
  #late (args: Record<string, unknown>, text: string): FitArguments {
    if (text.length > baseLimits.argumentChecks.large) {
      throw new errors.InvalidInput('The arguments are too large to be checked in time by the schema of the tool')
    }
    this.#restsUntil = this.#now() + baseLimits.argumentChecks.backoff
    return { args, text }
  }
}
