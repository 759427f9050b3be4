import { isObject } from '../../protocol/json.ts'
import { limits } from '../limits/index.ts'

/** Longer URIs are not remembered. */
const longestUri = 1_024

/**
 * Which provider linked to a resource in the result of a tool. Such a resource need not be in any list (MCP, "Resource Links"), and is
 * read from the provider that linked to it.
 */
export class ResourceLinks {
  readonly #providers = new Map<string, string>()

  /** Notes the resource links in a result. @param principal whose result it is */
  note (result: string, principal: string, provider: string): void {
    if (!result.includes('"resource_link"')) return
    const { content } = JSON.parse(result) as { content?: unknown }
    if (!Array.isArray(content)) return
    for (const block of content) {
      if (!isObject(block) || block.type !== 'resource_link' || typeof block.uri !== 'string') continue
      if (block.uri.length <= longestUri) this.#add(keyOf(principal, block.uri), provider)
    }
  }

  /** The provider that last linked a principal to a resource. */
  providerOf (uri: string, principal: string): string | undefined { return this.#providers.get(keyOf(principal, uri)) }

  #add (key: string, provider: string): void {
    this.#providers.delete(key)
    this.#providers.set(key, provider)
    const oldest = this.#providers.size > limits.resourceLinks ? this.#providers.keys().next().value : undefined
    if (oldest !== undefined) this.#providers.delete(oldest)
  }
}

const keyOf = (principal: string, uri: string): string => `${principal}\n${uri}`
