import { DerivedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import { isObject, memberOf, toOneLine } from '../../../protocol/json.ts'
import type { Provider } from '../../../protocol/provider.ts'
import { inPresentation, type View } from '../../settings/index.ts'
import { type Gateway, itemText } from '../../gateway/index.ts'
import { answerOf, resultOf } from './answer.ts'
import { nameIn } from './call-tool.ts'
import { hint, names, range } from './own-tools.ts'
import { smartProviderName } from './presentation.ts'
import { explanation } from './reasons.ts'
import type { Search } from './search.ts'
import { extensionsLimits } from '../limits.ts'

/** The arguments of `search_tools`. */
interface Asked { readonly query: string, readonly limit: number }

/** Runs `search_tools` and `describe_tool` on the tools of the caller's view. */
export class SmartProvider implements Provider {
  readonly name = smartProviderName
  readonly #gateway: Pick<Gateway, 'resolve' | 'surface' | 'exposedName'>
  readonly #search: Search
  readonly #progressive: () => boolean

  /** @param progressive whether only `describe_tool` returns schemas */
  constructor (
    gateway: Pick<Gateway, 'resolve' | 'surface' | 'exposedName'>, search: Search, progressive: () => boolean
  ) {
    this.#gateway = gateway
    this.#search = search
    this.#progressive = progressive
  }

  /** Its tools are listed by its presentation only, never by a catalogue. */
  catalogue (): undefined {}

  async call (given: Exchange, changes: Readonly<Record<string, string>>): ReturnType<Provider['call']> {
    const exchange = given as Exchange<View>
    const name: unknown = JSON.parse(changes.name ?? 'null')
    if (exchange.method !== 'tools/call') {
      throw new RpcError(code.methodNotFound, `Method not found: ${exchange.method}`)
    }
    const resultText = name === names.describe ? resultOf(await this.#describe(exchange)) : await this.#find(exchange)
    return { kind: 'response', id: null, resultText }
  }

  async #find (exchange: Exchange<View>): Promise<string> {
    const { query, limit } = asked(exchange.params.arguments)
    const { _meta: meta } = exchange.params
    const explains = isObject(meta) && meta[explanation] === true
    const { found, metadata } = await this.#search.find(exchange, query, limit, explains)
    const json = answerOf(found, metadata, { only: limit === 1, schemas: !this.#progressive() })
    if (!explains) return resultOf(json)
    return resultOf(json, Object.fromEntries(found.map(({ tool, why = {} }) => [tool.name, why])))
  }

  /** The tool as it is listed on the merged route. */
  async #describe (exchange: Exchange<View>): Promise<string> {
    const name = nameIn(memberOf(exchange.paramsText, 'arguments') ?? '{}')
    const { view, params, paramsText } = exchange
    const merged = inPresentation(view, 'merged')
    const target =
      await this.#gateway.resolve(new DerivedExchange(exchange, { view: merged, params, paramsText }), 'tools', name)
    const shown = target && this.#gateway.exposedName(merged, exchange.client, 'tools', target.provider, target.key)
    const { tools } = this.#gateway.surface(merged, exchange.client).parts
    const entry = shown === undefined ? undefined : tools.list.entries[[...tools.targets.keys()].indexOf(shown)]
    if (!entry) throw new RpcError(code.invalidParams, `Unknown tool: ${name}${hint}`, 'unknown-tool')
    return toOneLine(itemText(entry, 'name'))
  }
}

/** @throws RpcError -32602 */
function asked (args: unknown): Asked {
  const { query, limit: given = range.usual } = isObject(args) ? args : {}
  // Models often send a number as a string.
  const limit = typeof given === 'string' && /^\s*\d{1,9}\s*$/.test(given) ? Number(given) : given
  if (typeof query !== 'string') {
    throw new RpcError(code.invalidParams, 'Invalid params: "query" must say what is to be done')
  }
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < range.least || limit > range.most) {
    throw new RpcError(code.invalidParams, `Invalid params: "limit" must be a whole number from ${range.least} to ` +
      `${range.most}`)
  }
  return { query: query.slice(0, extensionsLimits.smartRouting.query), limit }
}
