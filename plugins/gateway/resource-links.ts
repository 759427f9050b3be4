import { isObject, elementsOf, memberOf } from '../../protocol/json.ts'
import { memoryOf } from '../../protocol/text.ts'
import { OwnedMap } from '../base/limits/index.ts'
import { gatewayLimits } from './limits.ts'

/** Max memory of a remembered URI, in bytes. */
const maxUri = 1_024
/** Max number of content blocks that are examined, and max length of each, in characters. */
const maxBlocks = 10_000
const maxBlock = 64 * 1024

/**
 * The resources to which tool results have linked, with their providers. A server need not list such a resource (MCP,
 * "Resource Links"); it is read from the provider that has linked to it.
 */
export class ResourceLinks {
  readonly #providers = new OwnedMap<string>(gatewayLimits.resourceLinks)

  /** Records the resource links in a result. @param principal the receiver of the result */
  record (result: string, principal: string, provider: string): void {
    if (!result.includes('"resource_link"')) return
    for (const text of elementsOf(memberOf(result, 'content') ?? '', maxBlocks)) {
      if (text.length > maxBlock || !text.includes('"resource_link"')) continue
      const block: unknown = JSON.parse(text)
      if (!isObject(block) || block.type !== 'resource_link' || typeof block.uri !== 'string') continue
      if (memoryOf(block.uri) <= maxUri) this.#providers.set(principal, block.uri, provider)
    }
  }

  /** The provider whose result last sent a principal a link to the resource. */
  providerOf (uri: string, principal: string): string | undefined { return this.#providers.get(principal, uri) }
}
