import type { Exchange } from '../../../protocol/exchange.ts'
import type { View } from '../../settings/index.ts'
import type { Gateway, PresentationInput, Surface } from '../../gateway/index.ts'
import type { SearchHit, SearchMetadata } from './answer.ts'
import { fuseRankings, cosineWeights } from './fuse.ts'
import { ViewIndexes } from './indexes.ts'
import type { ToolUseLearning } from './learning/learning.ts'
import { serversSentence } from './own-tools.ts'
import { toSmartSurface, serversWithTools } from './presentation.ts'
import { listsTool, type ShownTool } from './shown-tools.ts'
import { StaticSimilarity } from './static-model/similarity.ts'
import type { ViewIndex } from './view-index.ts'
import type { RankedTool } from './words/index.ts'

/** The similarity of each tool to a query, or the reason why it is unknown. */
export type SimilarityResult = { readonly scores: ReadonlyMap<ShownTool, number> } | { readonly reason: string }

/** Semantic search: compares queries with tools by the embeddings of an API. */
export interface SemanticSearch {
  /** Whether an embeddings API is configured. */
  readonly isEnabled: boolean
  /** Embeds new tools in the background, so that later searches can compare them. */
  embedInBackground: (tools: ReadonlyMap<string, ShownTool>) => void
  /** Compares a query with tools. Never rejects; resolves within a time limit. */
  compareWithTools: (query: string, tools: ReadonlyMap<string, ShownTool>) => Promise<SimilarityResult>
}

/** The parts of the ranking that can be disabled. */
export interface RankingOptions {
  /** Whether the static model is used when the embeddings API is not. */
  readonly hasStaticModel: boolean
  /** Undefined if learning from use is disabled. */
  readonly learning?: Pick<ToolUseLearning, 'rankAndRemember'> | undefined
}

/**
 * Min number of top results by words that are merged with similarities: `withApi` if an embeddings API is configured,
 * otherwise `withStaticModel`.
 */
const fusedResults = { withApi: 200, withStaticModel: 100 }

/** Finds tools of a view. Tools outside the view are not found, and do not influence the ranking. */
export class ToolSearch {
  readonly #gateway: Pick<Gateway, 'waitForSurface' | 'surface'>
  readonly #embeddings: SemanticSearch
  readonly #indexes: ViewIndexes
  readonly #similarity = new StaticSimilarity<ShownTool>()
  readonly #parts: () => RankingOptions
  readonly #logError: (error: unknown) => void
  /** Maps each `$smart` surface to the merged surface from which it was made, and the key of the view. */
  readonly #origins = new WeakMap<Surface, Pick<PresentationInput, 'merged' | 'key'>>()

  constructor (
    gateway: Pick<Gateway, 'waitForSurface' | 'surface'>, embeddings: SemanticSearch, parts: () => RankingOptions,
    logError: (error: unknown) => void
  ) {
    this.#parts = parts
    this.#logError = logError
    this.#gateway = gateway
    this.#embeddings = embeddings
    this.#indexes = new ViewIndexes(logError)
  }

  /** Creates the `$smart` surface of a view. Updates the view's index in the background if `shouldUpdateEarly`. */
  presentView (presented: PresentationInput, isProgressive: boolean): Surface {
    const surface = toSmartSurface(presented, isProgressive)
    // Not `presented` itself: its `before` would keep the whole chain of former surfaces in memory.
    const { merged, key } = presented
    this.#origins.set(surface, { merged, key })
    if (this.#indexes.shouldUpdateEarly(presented.key)) setImmediate(() => { this.#updateIndex(presented) })
    return surface
  }

  /**
   * Returns the tools that match a query, best first.
   * @param explains whether the results include the parts of their scores
   */
  async find (
    exchange: Exchange<View>, query: string, limit: number, explains = false
  ): Promise<{ found: SearchHit[], metadata: SearchMetadata }> {
    const origin = this.#origins.get(await this.#gateway.waitForSurface(exchange))
    if (!origin) return { found: [], metadata: { mode: 'words' } }
    if (query.trim() === '') {
      return emptyResult(origin, { mode: 'words' }, 'Describe the task in "query", in a few words')
    }
    const index = await this.#updatedIndex(origin, exchange.client.owner ?? exchange.client.id)
    const { tools } = index
    const { isEnabled } = this.#embeddings
    const fusedCount = isEnabled ? fusedResults.withApi : fusedResults.withStaticModel
    const words = index.search(query, Math.max(limit, fusedCount), explains)
    const similarity = isEnabled ? await this.#embeddings.compareWithTools(query, tools) : undefined
    const scores = similarity !== undefined && 'scores' in similarity ? similarity.scores : undefined
    const { learning } = this.#parts()
    const queryWords = index.queryWords(query)
    const fused = scores
      ? fuseRankings(words, scores, tools, cosineWeights.encoder)
      : fuseRankings(words, await this.#cosines(queryWords, index, words), tools, cosineWeights.staticModel)
    const ranked = await learning?.rankAndRemember(exchange.view.principal.key, queryWords, fused) ?? fused
    // Access may have changed during the search.
    const surface = this.#origins.get(this.#gateway.surface(exchange.view, exchange.client))?.merged
    const found = ranked.filter(({ tool }) => surface !== undefined && listsTool(surface, tool)).slice(0, limit)
    const metadata = metadataOf(similarity)
    if (found.length === 0) {
      return emptyResult(origin, metadata, 'No tool matches these words. Try other words, preferably in English')
    }
    return { found, metadata }
  }

  /**
   * Compares tools with a query by the static model.
   * @param queryWords the result of `ViewIndex.queryWords`
   * @param found the tools that were found by words
   * @returns cosine similarities; undefined if the model is disabled, cannot be read, or knows no word of the query
   */
  async #cosines (
    queryWords: readonly string[], index: ViewIndex, found: readonly RankedTool[]
  ): Promise<ReadonlyMap<ShownTool, number> | undefined> {
    if (!this.#parts().hasStaticModel) return undefined
    try {
      return await this.#similarity.cosines(queryWords, index.tools, new Set(found.map(({ tool }) => tool)))
    } catch (error) {
      this.#logError(error)
      return undefined
    }
  }

  /** Embeds the tools of all search indexes in the background. Called periodically, so that their vectors are kept. */
  embedAll (): void {
    if (this.#embeddings.isEnabled) for (const { tools } of this.#indexes.all) this.#embeddings.embedInBackground(tools)
  }

  /** Returns the index of a view once it is updated. If it is dropped meanwhile, it is built again. */
  async #updatedIndex (origin: Pick<PresentationInput, 'merged' | 'key'>, owner: string): Promise<ViewIndex> {
    const { index, updated } = this.#updateIndex(origin, owner)
    await updated
    return index.isClosed ? await this.#updatedIndex(origin, owner) : index
  }

  #updateIndex (
    { merged, key }: Pick<PresentationInput, 'merged' | 'key'>, owner?: string
  ): ReturnType<ViewIndexes['update']> {
    const update = this.#indexes.update(key, merged, owner)
    if (this.#embeddings.isEnabled) {
      void update.updated.then(() => { this.#embeddings.embedInBackground(update.index.tools) })
    }
    return update
  }
}

/**
 * Returns the result for a query that no tool matches. The hint names the servers, so that the next query can mention
 * one.
 */
function emptyResult (
  { merged }: Pick<PresentationInput, 'merged'>, metadata: SearchMetadata, hint: string
): { found: SearchHit[], metadata: SearchMetadata } {
  return { found: [], metadata: { ...metadata, hint: `${hint}. ${serversSentence(serversWithTools(merged))}` } }
}

function metadataOf (similarity: SimilarityResult | undefined): SearchMetadata {
  if (similarity === undefined) return { mode: 'words' }
  return 'scores' in similarity ? { mode: 'fused' } : { mode: 'words', reason: similarity.reason }
}
