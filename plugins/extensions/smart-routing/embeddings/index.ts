import { setTimeout as sleep } from 'node:timers/promises'
import type { VectorStore } from '../../../../db/ports/vectors.ts'
import type { Counters } from '../../../../db/store.ts'
import { OutageLog } from '../../../base/limits/index.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import type { SemanticSearch, SimilarityResult } from '../search.ts'
import type { ShownTool } from '../shown-tools.ts'
import { EmbeddingsApi } from './api.ts'
import { BackOff } from './back-off.ts'
import { Embedder, type EmbedderDeps } from './embedder.ts'
import { QueryComparer } from './query-comparer.ts'
import type { EmbeddingOptions } from './options.ts'
import type { SeparateVectorDatabase } from './separate-vectors.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.embeddings

interface ApiEmbeddingsDeps extends Pick<EmbedderDeps, 'ownerOf' | 'warn'> {
  /** Returns the current options, or undefined if embeddings are not configured. Equal options are the same object. */
  readonly options: () => EmbeddingOptions | undefined
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly counters: Counters
  /** The vector store in the gateway's own storage. */
  readonly vectors: VectorStore
  readonly separateVectors: SeparateVectorDatabase
}

/** The current options, with the objects created from them. */
interface Current {
  readonly options: EmbeddingOptions, readonly embedder: Embedder, readonly queryComparer: QueryComparer
}

/** Semantic search with an embeddings API. When its settings change, the client, queue and back-off are replaced. */
export class ApiEmbeddings implements SemanticSearch {
  readonly #deps: ApiEmbeddingsDeps
  readonly #closing = new AbortController()
  #current: Current | undefined

  constructor (deps: ApiEmbeddingsDeps) {
    this.#deps = deps
  }

  get isEnabled (): boolean { return this.#ensureCurrent() !== undefined }

  embedInBackground (tools: ReadonlyMap<string, ShownTool>): void {
    this.#ensureCurrent()?.embedder.enqueueMissing(tools)
  }

  async compareWithTools (query: string, tools: ReadonlyMap<string, ShownTool>): Promise<SimilarityResult> {
    return await this.#ensureCurrent()?.queryComparer.compare(query, tools) ?? { reason: 'embeddings are off' }
  }

  /** Removes vectors that have long been unused (of removed tools or former models), in small steps. */
  async removeUnused (): Promise<void> {
    const { vectors: own, separateVectors: vectorsAt } = this.#deps
    const { signal } = this.#closing
    const dbUrl = this.#ensureCurrent()?.options.dbUrl
    const vectors = dbUrl === undefined ? own : await vectorsAt.open(dbUrl)
    while (!signal.aborted && await vectors.removeUnused(
      bounds.unusedLifetime, bounds.removalBatchSize
    ) === bounds.removalBatchSize) {
      await sleep(bounds.pollInterval, undefined, { ref: false, signal }).catch(() => {})
    }
  }

  async close (): Promise<void> {
    this.#closing.abort()
    await this.#closeCurrent()
    await this.#deps.separateVectors.close()
  }

  #ensureCurrent (): Current | undefined {
    const options = this.#deps.options()
    if (options === this.#current?.options) return this.#current
    void this.#closeCurrent()
    this.#current = options && this.#createCurrent(options)
    return this.#current
  }

  #createCurrent (options: EmbeddingOptions): Current {
    const { outbound, counters, vectors: own, separateVectors: vectorsAt, ownerOf, warn } = this.#deps
    const { collection, dbUrl } = options
    const api = new EmbeddingsApi(outbound, options)
    const vectors = async (): Promise<VectorStore> => dbUrl === undefined ? own : await vectorsAt.open(dbUrl)
    const backOffOf = (failing: string, working: string): BackOff =>
      new BackOff(undefined, new OutageLog((_level, sentence) => { warn(undefined, sentence) }, { failing, working }))
    const backOff = backOffOf('tools cannot be embedded', 'tools are embedded')
    const embedder = new Embedder({ api, backOff, vectors, collection, counters, ownerOf, warn })
    const isStored = (id: string): boolean => embedder.isStored(id)
    const isQueued = (id: string): boolean => embedder.isQueued(id)
    const queryBackOff = backOffOf('questions cannot be embedded, and tools are searched ' +
      'by words', 'questions are embedded')
    const queryComparer = new QueryComparer(
      { api, backOff: queryBackOff, vectors, collection, isStored, isQueued, warn }
    )
    return { options, embedder, queryComparer }
  }

  async #closeCurrent (): Promise<void> {
    const former = this.#current
    this.#current = undefined
    former?.queryComparer.close()
    await former?.embedder.close()
  }
}
