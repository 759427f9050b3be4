import { isObject } from '../../protocol/json.ts'
import { limits } from '../limits/index.ts'

/** A longer URI is not remembered. */
const longestUri = 1_024

/** Which server linked to a resource in the result of a tool: such a resource need not stand in any list (MCP, "Resource Links"), and is read where it comes from. */
export class ResourceLinks {
  readonly #servers = new Map<string, string>()

  /** Notes what a result links to, for whom it is. */
  note (result: string, principal: string, server: string): void {
    if (!result.includes('"resource_link"')) return
    const { content } = JSON.parse(result) as { content?: unknown }
    if (!Array.isArray(content)) return
    for (const block of content) {
      if (isObject(block) && block.type === 'resource_link' && typeof block.uri === 'string' && block.uri.length <= longestUri) { this.#add(keyOf(principal, block.uri), server) }
    }
  }

  /** The server that linked a principal to a resource last. */
  serverOf (uri: string, principal: string): string | undefined { return this.#servers.get(keyOf(principal, uri)) }

  #add (key: string, server: string): void {
    this.#servers.delete(key)
    this.#servers.set(key, server)
    const oldest = this.#servers.size > limits.resourceLinks ? this.#servers.keys().next().value : undefined
    if (oldest !== undefined) this.#servers.delete(oldest)
  }
}

const keyOf = (principal: string, uri: string): string => `${principal}\n${uri}`
