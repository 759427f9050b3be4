import { isObject, memberOf } from '../../../protocol/json.ts'
import type { Catalogue, Item } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { errors } from '../../base/errors/index.ts'
import {
  type ArgumentCheckResult, convertAndCheckArguments, createQuickCheck, type QuickCheck, inputShapeOf
} from '../../base/json-schema/index.ts'
import { baseLimits } from '../../base/limits/index.ts'

interface ConvertedArguments { readonly args: Record<string, unknown>, readonly text: string }

const toolsByName = memoized(({ lists }: Catalogue): ReadonlyMap<string, Item> =>
  new Map(lists.tools.map((item) => [item.key, item])))
const inputOf = memoized((item: Item) => new ToolInputSchema(item))

/**
 * Returns the input schema of a tool in a catalogue; undefined if there is no such tool.
 * @param tool the name of the tool at its server
 */
export function findToolInputSchema (catalogue: Catalogue | undefined, tool: string): ToolInputSchema | undefined {
  const item = catalogue && toolsByName(catalogue).get(tool)
  return item && inputOf(item)
}

/** The input schema of a tool, which checks and converts arguments. A check that takes too long is given up. */
export class ToolInputSchema {
  readonly #schema: unknown
  readonly #schemaText: string | undefined
  readonly #now: () => number
  /** Undefined until the first check. `check` is undefined if the schema is too complex for a quick check. */
  #quick: { readonly check?: QuickCheck } | undefined
  /** The times until which a kind of check is skipped because one took too long, in ms of the clock `#now`. */
  readonly #pausedUntil = { validation: 0, conversion: 0 }

  /** @param now a clock, in ms */
  constructor ({ text }: Item, now = () => performance.now()) {
    const value: unknown = JSON.parse(text)
    const { inputSchema } = isObject(value) ? value : {}
    this.#schema = inputSchema
    this.#schemaText = memberOf(text, 'inputSchema')
    this.#now = now
  }

  /** Whether the schema declares a parameter. */
  hasParameter (argument: string): boolean {
    if (!isObject(this.#schema)) return false
    if ((this.#schemaText ?? '').length <= baseLimits.checkedSchema) {
      return inputShapeOf(this.#schema).properties.has(argument)
    }
    return isObject(this.#schema.properties) && Object.hasOwn(this.#schema.properties, argument)
  }

  /**
   * Validates arguments, and converts them to the types in the schema. If that takes too long, converts them only; if
   * that takes too long as well, returns them unchanged.
   * @param owner the owner to whom the check is charged (`chargedOwnerOf`)
   * @throws InvalidInput with the invalid arguments, or if they are too large to be validated in time; ShareError
   */
  async convert (given: Record<string, unknown>, owner: string): Promise<ConvertedArguments> {
    const text = JSON.stringify(given)
    if (text.length <= baseLimits.argumentChecks.quick.args && this.#fitsAsGiven(given)) return { args: given, text }
    const answer = await this.#check('validation', text, owner) ?? await this.#check('conversion', text, owner)
    if (answer !== undefined && answer.problems.length > 0) {
      throw new errors.InvalidInput(
        `The arguments do not match the input schema: ${answer.problems.join('; ')}`
      )
    }
    return answer === undefined || answer.args === text
      ? { args: given, text }
      : { args: JSON.parse(answer.args) as Record<string, unknown>, text: answer.args }
  }

  /** Whether arguments fit without conversion; false also if a quick check cannot decide. */
  #fitsAsGiven (args: Record<string, unknown>): boolean {
    const isShort = (this.#schemaText ?? '').length <= baseLimits.argumentChecks.quick.schema
    this.#quick ??= { check: isShort ? createQuickCheck(this.#schema) : undefined }
    return this.#quick.check?.(args) === true
  }

  /**
   * Converts arguments, and validates them if `kind` is `validation`.
   * @returns undefined if such a check took too long now or within the last `backoff` ms, or if there is no schema
   * @throws InvalidInput for large arguments whose check takes too long
   */
  async #check (
    kind: 'validation' | 'conversion', text: string, owner: string
  ): Promise<ArgumentCheckResult | undefined> {
    if (this.#schemaText === undefined || this.#now() < this.#pausedUntil[kind]) return undefined
    const isConversionOnly = kind === 'conversion'
    const answer = await convertAndCheckArguments({ schema: this.#schemaText, args: text, isConversionOnly }, owner)
    if (answer === undefined) {
      if (text.length > baseLimits.argumentChecks.large) {
        throw new errors.InvalidInput('The arguments are too large to be validated against the tool\'s schema in time')
      }
      this.#pausedUntil[kind] = this.#now() + baseLimits.argumentChecks.backoff
    }
    return answer
  }
}
