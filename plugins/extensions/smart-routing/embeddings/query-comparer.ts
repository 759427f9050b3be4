import { pushTo } from '../../../../protocol/grouping.ts'
import { waitAtMost } from '../../../../protocol/wait-at-most.ts'
import { BoundedMap } from '../../../base/limits/index.ts'
import type { SimilarityResult } from '../search.ts'
import type { ShownTool } from '../shown-tools.ts'
import { EmbeddingsError } from './api.ts'
import type { EmbedderDeps } from './embedder.ts'
import { knownVectorId } from './texts.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.embeddings

/** Texts for `metadata.reason`: why a search did not use embeddings although they are configured. */
const reasons = {
  /** The request failed, or the back-off after a failure is still running. */
  outage: 'the embeddings API is not available',
  slow: 'the embeddings API is slow',
  indexing: 'tools are still being embedded',
  storage: 'the embeddings cannot be read'
} as const

interface QueryComparerDeps extends Pick<EmbedderDeps, 'api' | 'backOff' | 'vectors' | 'collection' | 'warn'> {
  readonly isStored: (id: string) => boolean
  /** Whether a tool, given by the id of its vector, waits to be embedded, and the quota of embeddings allows it. */
  readonly isQueued: (id: string) => boolean
}

/** Compares a search query with the embedded tools, within a time limit. */
export class QueryComparer {
  readonly #deps: QueryComparerDeps
  readonly #closing = new AbortController()
  /** The embeddings of recent queries, by query, including those that are still being requested. */
  readonly #queryEmbeddings = new BoundedMap<string, Promise<number[]>>(bounds.cachedQueries)

  constructor (deps: QueryComparerDeps) {
    this.#deps = deps
  }

  close (): void { this.#closing.abort() }

  /**
   * Returns the similarity of the nearest embedded tools to a query, or the reason why it is unknown. Never rejects.
   * @param tools the tools to search, by name
   */
  async compare (query: string, tools: ReadonlyMap<string, ShownTool>): Promise<SimilarityResult> {
    const byId = new Map<string, ShownTool[]>()
    let [ready, pending] = [0, 0]
    for (const tool of tools.values()) {
      const id = knownVectorId(tool)
      if (id === undefined || !this.#deps.isStored(id)) {
        if (id === undefined || this.#deps.isQueued(id)) pending++
        continue
      }
      ready++
      pushTo(byId, id, tool)
    }
    const { backOff } = this.#deps
    const isNew = !this.#queryEmbeddings.has(query)
    if (isNew && backOff.waitTime > 0) return { reason: reasons.outage }
    // Otherwise, embedded tools would rank above tools that are not embedded yet.
    if (pending > (ready + pending) * bounds.maxPendingShare) return { reason: reasons.indexing }
    if (byId.size === 0) return { scores: new Map() }
    return await waitAtMost(bounds.searchTimeout, this.#compare(query, byId), () => ({ reason: reasons.slow }))
  }

  /**
   * Compares a query with tools. Continues after the time limit, so that the embedding is cached for a repeated query.
   * @param byId the tools by vector id
   */
  async #compare (query: string, byId: ReadonlyMap<string, readonly ShownTool[]>): Promise<SimilarityResult> {
    const { vectors, collection, warn } = this.#deps
    let embedding: number[]
    try {
      embedding = await this.#embeddingOf(query)
    } catch {
      return { reason: reasons.outage }
    }
    try {
      const scores = new Map<ShownTool, number>()
      const nearest = await (await vectors()).findNearest(collection, embedding, [...byId.keys()], bounds.nearestTools)
      for (const { id, score } of nearest) for (const tool of byId.get(id) ?? []) scores.set(tool, score)
      return nearest.length === 0 ? { reason: reasons.storage } : { scores }
    } catch (error) {
      warn(error, 'Embeddings could not be compared')
      return { reason: reasons.storage }
    }
  }

  #embeddingOf (query: string): Promise<number[]> {
    const known = this.#queryEmbeddings.get(query)
    if (known) return known
    const { api, backOff } = this.#deps
    const asking = api.embed([query], this.#closing.signal).then(([embedding = []]) => {
      backOff.recordSuccess()
      return embedding
    })
    this.#queryEmbeddings.set(query, asking)
    asking.catch((error: unknown) => {
      this.#queryEmbeddings.delete(query)
      if (this.#closing.signal.aborted) return
      backOff.recordFailure(error instanceof EmbeddingsError ? error.retryAfter : undefined, error)
    })
    return asking
  }
}
