import { gatewayClient } from '../../../protocol/exchange.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { Gateway, Surface } from '../../gateway/index.ts'
import { itemText } from '../../gateway/index.ts'
import { makeView, type Principal, type PresentationName } from '../../settings/index.ts'

/** The tokens that an agent spends on reading a list of tools. */
interface ListCost {
  /** The number of tools. */
  readonly tools: number
  readonly tokens: number
  /** The tokens by server, most first. */
  readonly servers: ReadonlyArray<{ readonly name: string, readonly tokens: number }>
}

/** Number of JSON characters per token, as an estimate: a tokenizer would take 65 MB of memory. */
const charactersPerToken = 4

/** Estimates the number of tokens of a JSON text. @param length in characters */
export const estimateTokens = (length: number): number => Math.ceil(length / charactersPerToken)

/** Estimates the tokens of tool lists. */
export class TokenEstimator {
  readonly #gateway: Gateway

  constructor (gateway: Gateway) {
    this.#gateway = gateway
  }

  /**
   * Returns the cost of the tool list of `/mcp` for a principal.
   * @param presentation `search` for the list of `/mcp/$smart`
   */
  ofToolList (principal: Principal, presentation: PresentationName = 'merged'): ListCost {
    return costOf(this.#gateway.surface(makeView(principal, { kind: 'global' }, presentation), gatewayClient))
  }

  /** Returns the cost of the tool list of a group's route for a principal, with the names of the tools. */
  ofGroup (principal: Principal, { id, name }: { id: string, name: string }): ListCost & { names: string[] } {
    const view = makeView(principal, { kind: 'group', id, name }, 'merged')
    const surface = this.#gateway.surface(view, gatewayClient)
    return { ...costOf(surface), names: [...surface.parts.tools.targets.keys()] }
  }

  /** Estimates the tokens of a JSON value, such as a tool or a result. */
  ofValue (value: unknown): number { return estimateTokens(JSON.stringify(value).length) }

  /** Estimates the tokens of all tools of a server, as the server lists them. */
  ofServer (name: string): number {
    const tools = this.#gateway.catalogue(name)?.lists.tools ?? []
    return tools.reduce((sum, { text }) => sum + estimateTokens(text.length), 0)
  }
}

/** Returns the cost of the tool list of a surface. Cached as long as the surface exists. */
const costOf = memoized(({ parts: { tools } }: Surface): ListCost => {
  const servers = new Map<string, number>()
  for (const { provider, item } of tools.targets.values()) {
    servers.set(provider, (servers.get(provider) ?? 0) + estimateTokens(item?.text.length ?? 0))
  }
  return {
    tools: tools.list.entries.length,
    tokens: tools.list.entries.reduce((sum, entry) => sum + estimateTokens(itemText(entry, 'name').length), 0),
    servers: [...servers].map(([name, tokens]) => ({ name, tokens })).sort((one, other) => other.tokens - one.tokens)
  }
})
