import { gatewayClient } from '../../../protocol/exchange.ts'
import type { Gateway, Surface } from '../../gateway/index.ts'
import { itemText } from '../../gateway/index.ts'
import { makeView, type Principal, type PresentationName } from '../../settings/index.ts'

/** What a list of tools costs an agent that reads it. */
interface ListCost {
  readonly tools: number
  readonly tokens: number
  /** Of each server, the dearest first. */
  readonly servers: ReadonlyArray<{ readonly name: string, readonly tokens: number }>
}

/** Characters of JSON per token, about: a tokenizer takes 65 MB. */
const perToken = 4

/** The number of tokens of text of JSON, about. @param length in characters */
export const estimateTokens = (length: number): number => Math.ceil(length / perToken)

/** Tells what lists of tools cost. A surface that is the same object is counted once. */
export class ListCosts {
  readonly #gateway: Gateway
  readonly #known = new WeakMap<Surface, ListCost>()

  constructor (gateway: Gateway) {
    this.#gateway = gateway
  }

  /** The list of the global route, as a principal gets it. @param presentation `search`: through `$smart` */
  of (principal: Principal, presentation: PresentationName = 'merged'): ListCost {
    return this.#costOf(this.#gateway.surface(makeView(principal, { kind: 'global' }, presentation), gatewayClient))
  }

  /** The list of a group's route, with the names in it. */
  ofGroup (principal: Principal, { id, name }: { id: string, name: string }): ListCost & { names: string[] } {
    const view = makeView(principal, { kind: 'group', id, name }, 'merged')
    const surface = this.#gateway.surface(view, gatewayClient)
    return { ...this.#costOf(surface), names: [...surface.parts.tools.targets.keys()] }
  }

  #costOf (surface: Surface): ListCost {
    const known = this.#known.get(surface) ?? costOf(surface)
    this.#known.set(surface, known)
    return known
  }

  /** A value of JSON, such as one tool or a result. */
  ofValue (value: unknown): number { return estimateTokens(JSON.stringify(value).length) }

  /** The tools of a server under their own names. */
  ofServer (name: string): number {
    const tools = this.#gateway.catalogue(name)?.lists.tools ?? []
    return tools.reduce((sum, { text }) => sum + estimateTokens(text.length), 0)
  }
}

function costOf ({ parts: { tools } }: Surface): ListCost {
  const servers = new Map<string, number>()
  for (const { provider, item } of tools.targets.values()) {
    servers.set(provider, (servers.get(provider) ?? 0) + estimateTokens(item?.text.length ?? 0))
  }
  return {
    tools: tools.list.entries.length,
    tokens: tools.list.entries.reduce((sum, entry) => sum + estimateTokens(itemText(entry, 'name').length), 0),
    servers: [...servers].map(([name, tokens]) => ({ name, tokens })).sort((one, other) => other.tokens - one.tokens)
  }
}
