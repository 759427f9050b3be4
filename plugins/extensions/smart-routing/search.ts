import type { Exchange } from '../../../protocol/exchange.ts'
import type { View } from '../../settings/index.ts'
import type { Gateway, PresentationInput, Surface } from '../../gateway/index.ts'
import type { Found, Metadata } from './answer.ts'
import { fuse } from './fuse.ts'
import { Indexes } from './indexes.ts'
import { behind } from './own-tools.ts'
import { presentBySearch, serversOf } from './presentation.ts'
import { isListed, type ShownTool } from './search-tools.ts'

/** The similarity of each tool to a query, or the reason why it is unknown. */
export type Similarity = { readonly scores: ReadonlyMap<ShownTool, number> } | { readonly reason: string }

/** Semantic search. */
export interface Embeddings {
  /** Whether embeddings are configured. */
  readonly isOn: boolean
  /** Embeds new tools in the background, so that later searches can compare them. */
  follow: (tools: ReadonlyMap<string, ShownTool>) => void
  /** Compares a query with tools. Never rejects; resolves within a time limit. */
  similarity: (question: string, tools: ReadonlyMap<string, ShownTool>) => Promise<Similarity>
}

/** Number of top results of each ranking that are fused. */
const considered = 200

/** Finds tools of a view. Tools outside the view are not found, and do not influence the ranking. */
export class Search {
  readonly #gateway: Pick<Gateway, 'settled' | 'surface'>
  readonly #embeddings: Embeddings
  readonly #indexes: Indexes
  /** The merged surface and the view key from which each `$smart` surface was made. */
  readonly #origins = new WeakMap<Surface, Pick<PresentationInput, 'merged' | 'key'>>()

  constructor (
    gateway: Pick<Gateway, 'settled' | 'surface'>, embeddings: Embeddings, logError: (error: unknown) => void
  ) {
    this.#gateway = gateway
    this.#embeddings = embeddings
    this.#indexes = new Indexes(logError)
  }

  /** Makes the `$smart` surface of a view, and updates its search index in the background. */
  present (presented: PresentationInput, progressive: boolean): Surface {
    const surface = presentBySearch(presented, progressive)
    // Not `presented` itself: its `before` would keep the whole chain of former surfaces in memory.
    const { merged, key } = presented
    this.#origins.set(surface, { merged, key })
    if (this.#indexes.keeps(presented.key)) setImmediate(() => { this.#follow(presented) })
    return surface
  }

  /** The tools that match a query, best first. */
  async find (exchange: Exchange<View>, query: string, limit: number): Promise<{ found: Found[], metadata: Metadata }> {
    const origin = this.#origins.get(await this.#gateway.settled(exchange))
    if (!origin) return { found: [], metadata: { mode: 'words' } }
    if (query.trim() === '') {
      return nothing(origin, { mode: 'words' }, 'Write into "query" what is to be done, in some words')
    }
    const { index, updated } = this.#follow(origin)
    await updated
    const { tools } = index
    const { isOn } = this.#embeddings
    const words = index.search(query, isOn ? Math.max(limit, considered) : limit)
    const similarity = isOn ? await this.#embeddings.similarity(query, tools) : undefined
    const scores = similarity !== undefined && 'scores' in similarity ? similarity.scores : undefined
    // Access may have changed during the search.
    const now = this.#origins.get(this.#gateway.surface(exchange.view, exchange.client))?.merged
    const found =
      fuse(words, scores, tools).filter(({ tool }) => now !== undefined && isListed(now, tool)).slice(0, limit)
    const metadata = metadataOf(similarity)
    if (found.length === 0) {
      return nothing(origin, metadata, 'No tool has these words. Say it in other words, best in English')
    }
    return { found, metadata }
  }

  /** Passes all searched tools to the embeddings. Called periodically, so that the vectors in use are kept. */
  followAll (): void {
    if (this.#embeddings.isOn) for (const { tools } of this.#indexes.all) this.#embeddings.follow(tools)
  }

  #follow ({ merged, key }: Pick<PresentationInput, 'merged' | 'key'>): ReturnType<Indexes['of']> {
    const followed = this.#indexes.of(key, merged)
    if (this.#embeddings.isOn) void followed.updated.then(() => { this.#embeddings.follow(followed.index.tools) })
    return followed
  }
}

/** The result when no tool matches. It names the servers, so that the next query can mention one. */
function nothing (
  { merged }: Pick<PresentationInput, 'merged'>, metadata: Metadata, hint: string
): { found: Found[], metadata: Metadata } {
  return { found: [], metadata: { ...metadata, hint: `${hint}. ${behind(serversOf(merged))}` } }
}

function metadataOf (similarity: Similarity | undefined): Metadata {
  if (similarity === undefined) return { mode: 'words' }
  return 'scores' in similarity ? { mode: 'fused' } : { mode: 'words', reason: similarity.reason }
}
