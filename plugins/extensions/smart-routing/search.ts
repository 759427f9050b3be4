import type { Exchange } from '../../../protocol/exchange.ts'
import type { View } from '../../settings/index.ts'
import type { Gateway, PresentationInput, Surface } from '../../gateway/index.ts'
import type { Found, Metadata } from './answer.ts'
import { fuse } from './fuse.ts'
import { Indexes } from './indexes.ts'
import { behind } from './own-tools.ts'
import { presentBySearch, serversOf } from './presentation.ts'
import { isListed, type ShownTool } from './search-tools.ts'

/** How similar tools are to a question, by tool, or why that is not known. */
export type Similarity = { readonly scores: ReadonlyMap<ShownTool, number> } | { readonly reason: string }

/** Searching by what texts mean. */
export interface Embeddings {
  /** Whether it is set up. */
  readonly isOn: boolean
  /** Tools that will be searched: those that are new are embedded, in the background. */
  follow: (tools: ReadonlyMap<string, ShownTool>) => void
  /** Never rejects, and answers within a bounded time. */
  similarity: (question: string, tools: ReadonlyMap<string, ShownTool>) => Promise<Similarity>
}

/** As many of the best of both rankings are fused. */
const considered = 200

/**
 * Finds tools among those that a view shows. What a view does not show is neither found nor counted, and influences no
 * ranking.
 */
export class Search {
  readonly #gateway: Pick<Gateway, 'settled' | 'surface'>
  readonly #embeddings: Embeddings
  readonly #indexes: Indexes
  /** What the surfaces of `$smart` were made of, and the key of their views. */
  readonly #origins = new WeakMap<Surface, Pick<PresentationInput, 'merged' | 'key'>>()

  constructor (
    gateway: Pick<Gateway, 'settled' | 'surface'>, embeddings: Embeddings, logError: (error: unknown) => void
  ) {
    this.#gateway = gateway
    this.#embeddings = embeddings
    this.#indexes = new Indexes(logError)
  }

  /** Makes the surface that `$smart` shows, and brings the index of its tools up to date in the background. */
  present (presented: PresentationInput, progressive: boolean): Surface {
    const surface = presentBySearch(presented, progressive)
    // Not `presented`: with `before`, each would keep the one before it.
    const { merged, key } = presented
    this.#origins.set(surface, { merged, key })
    if (this.#indexes.keeps(presented.key)) setImmediate(() => { this.#follow(presented) })
    return surface
  }

  /** The tools that fit a question, best first. */
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
    const similarity = isOn ? await this.#embeddings.similarity(index.interpret(query), tools) : undefined
    const scores = similarity !== undefined && 'scores' in similarity ? similarity.scores : undefined
    // Access may have changed meanwhile.
    const now = this.#origins.get(this.#gateway.surface(exchange.view, exchange.client))?.merged
    const found =
      fuse(words, scores, tools).filter(({ tool }) => now !== undefined && isListed(now, tool)).slice(0, limit)
    const metadata = metadataOf(similarity)
    if (found.length === 0) {
      return nothing(origin, metadata, 'No tool has these words. Say it in other words, best in English')
    }
    return { found, metadata }
  }

  /** Tells the embeddings which tools are searched: once in a while, so that the vectors of these are kept. */
  followAll (): void {
    if (this.#embeddings.isOn) for (const { tools } of this.#indexes.all) this.#embeddings.follow(tools)
  }

  #follow ({ merged, key }: Pick<PresentationInput, 'merged' | 'key'>): ReturnType<Indexes['of']> {
    const followed = this.#indexes.of(key, merged)
    if (this.#embeddings.isOn) void followed.updated.then(() => { this.#embeddings.follow(followed.index.tools) })
    return followed
  }
}

/** An answer without tools. It names the servers, so that the next question can be about one of them. */
function nothing (
  { merged }: Pick<PresentationInput, 'merged'>, metadata: Metadata, hint: string
): { found: Found[], metadata: Metadata } {
  return { found: [], metadata: { ...metadata, hint: `${hint}. ${behind(serversOf(merged))}` } }
}

function metadataOf (similarity: Similarity | undefined): Metadata {
  if (similarity === undefined) return { mode: 'words' }
  return 'scores' in similarity ? { mode: 'fused' } : { mode: 'words', reason: similarity.reason }
}
