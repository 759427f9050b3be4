import { elementsOf, isObject, memberOf } from '../../protocol/json.ts'
import { memoryOf } from '../../protocol/text.ts'
import { limits, OwnedMap } from '../base/limits/index.ts'

/** URIs that take more memory are not remembered, in bytes. */
const longestUri = 1_024
/** Further blocks of a result, and longer ones (in characters), are not looked at. */
const mostBlocks = 10_000
const longestBlock = 64 * 1024

/**
 * The resources that results of tools linked to, and the provider of each link. Such a resource need not be in any list (MCP, "Resource
 * Links"), and is read from the provider that linked to it.
 */
export class ResourceLinks {
  readonly #providers = new OwnedMap<string>(limits.resourceLinks)

  /** Notes the resource links in a result. @param principal the one that gets the result */
  note (result: string, principal: string, provider: string): void {
    if (!result.includes('"resource_link"')) return
    for (const text of elementsOf(memberOf(result, 'content') ?? '', mostBlocks)) {
      if (text.length > longestBlock || !text.includes('"resource_link"')) continue
      const block: unknown = JSON.parse(text)
      if (!isObject(block) || block.type !== 'resource_link' || typeof block.uri !== 'string') continue
      if (memoryOf(block.uri) <= longestUri) this.#providers.set(principal, block.uri, provider)
    }
  }

  /** The provider that last linked a principal to a resource. */
  providerOf (uri: string, principal: string): string | undefined { return this.#providers.get(principal, uri) }
}
