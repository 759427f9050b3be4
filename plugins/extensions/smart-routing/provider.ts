import { argumentsTextOf, DerivedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { isObject, toOneLine } from '../../../protocol/json.ts'
import type { Provider } from '../../../protocol/provider.ts'
import { inPresentation, type View } from '../../settings/index.ts'
import { type Gateway, itemText } from '../../gateway/index.ts'
import { toSearchResult, toSmartToolResult } from './answer.ts'
import { parseToolName } from './call-tool.ts'
import { unknownToolHint, smartToolNames, searchLimitRange } from './own-tools.ts'
import { smartProviderName } from './presentation.ts'
import { explanationKey } from './reasons.ts'
import type { ToolSearch } from './search.ts'
import { findSkills } from './skill-search.ts'
import { extensionsLimits } from '../limits.ts'

/** The arguments of `search_tools`. */
interface SearchArguments { readonly query: string, readonly limit: number }

/** The provider of `search_tools` and `describe_tool`, which search and describe the tools of the caller's view. */
export class SmartProvider implements Provider {
  readonly name = smartProviderName
  readonly #gateway: Pick<Gateway, 'resolve' | 'surface' | 'exposedName'>
  readonly #search: ToolSearch
  readonly #isProgressive: () => boolean

  /** @param isProgressive whether search results omit schemas, which `describe_tool` then returns */
  constructor (
    gateway: Pick<Gateway, 'resolve' | 'surface' | 'exposedName'>, search: ToolSearch, isProgressive: () => boolean
  ) {
    this.#gateway = gateway
    this.#search = search
    this.#isProgressive = isProgressive
  }

  /** Returns no catalogue: the `$smart` presentation lists the tools of this provider. */
  catalogue (): undefined {}

  /** Runs one of the two tools. @param changes contains the tool's `name`, as JSON text @throws RpcError */
  async call (given: Exchange, changes: Readonly<Record<string, string>>): ReturnType<Provider['call']> {
    const exchange = given as Exchange<View>
    const name: unknown = JSON.parse(changes.name ?? 'null')
    if (exchange.method !== 'tools/call') {
      throw new RpcError(rpcCode.methodNotFound, `Method not found: ${exchange.method}`)
    }
    const resultText = name === smartToolNames.describe
      ? toSmartToolResult(await this.#describeTool(exchange))
      : await this.#searchTools(exchange)
    return { kind: 'response', id: null, resultText }
  }

  async #searchTools (exchange: Exchange<View>): Promise<string> {
    const { query, limit } = parseSearchArguments(exchange.params.arguments)
    const { _meta: meta } = exchange.params
    const explains = isObject(meta) && meta[explanationKey] === true
    const { found, metadata } = await this.#search.find(exchange, query, limit, explains)
    const skills =
      await findSkills(this.#gateway.surface(inPresentation(exchange.view, 'merged'), exchange.client), query, limit)
    const json =
      toSearchResult(found, metadata, { isSingle: limit === 1, hasSchemas: !this.#isProgressive() }, skills)
    if (!explains) return toSmartToolResult(json)
    const reasons = found.map(({ tool, explanation = {} }) => [tool.name, explanation] as const)
    return toSmartToolResult(json, Object.fromEntries(reasons))
  }

  /** Returns the tool as the merged route lists it, as one line of JSON text. @throws RpcError */
  async #describeTool (exchange: Exchange<View>): Promise<string> {
    const name = parseToolName(argumentsTextOf(exchange))
    const { view, params, paramsText } = exchange
    const merged = inPresentation(view, 'merged')
    const target =
      await this.#gateway.resolve(new DerivedExchange(exchange, { view: merged, params, paramsText }), 'tools', name)
    const shown = target && this.#gateway.exposedName(merged, exchange.client, 'tools', target.provider, target.key)
    const { tools } = this.#gateway.surface(merged, exchange.client).parts
    const entry = shown === undefined ? undefined : tools.list.entries[[...tools.targets.keys()].indexOf(shown)]
    if (!entry) throw new RpcError(rpcCode.invalidParams, `Unknown tool: ${name}${unknownToolHint}`, 'unknown-tool')
    return toOneLine(itemText(entry, 'name'))
  }
}

/** Parses the arguments of `search_tools`. @throws RpcError -32602 */
function parseSearchArguments (args: unknown): SearchArguments {
  const { query, limit: rawLimit = searchLimitRange.default } = isObject(args) ? args : {}
  // Models often send a number as a string.
  const limit = typeof rawLimit === 'string' && /^\s*\d{1,9}\s*$/.test(rawLimit) ? Number(rawLimit) : rawLimit
  if (typeof query !== 'string') {
    throw new RpcError(rpcCode.invalidParams, 'Invalid params: "query" must describe the task')
  }
  const { min, max } = searchLimitRange
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < min || limit > max) {
    throw new RpcError(
      rpcCode.invalidParams,
      `Invalid params: "limit" must be a whole number from ${min} to ${max}`
    )
  }
  return { query: query.slice(0, extensionsLimits.smartRouting.queryLength), limit }
}
