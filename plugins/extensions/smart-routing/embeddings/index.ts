import { setTimeout as sleep } from 'node:timers/promises'
import type { Vectors } from '../../../../db/ports/vectors.ts'
import type { Counters } from '../../../../db/store.ts'
import { Outage } from '../../../base/limits/index.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import type { Embeddings, Similarity } from '../search.ts'
import type { ShownTool } from '../search-tools.ts'
import { EmbeddingsApi } from './api.ts'
import { BackOff } from './back-off.ts'
import { Embedder, type EmbedderDeps } from './embedder.ts'
import { Meaning } from './meaning.ts'
import type { EmbeddingOptions } from './options.ts'
import type { VectorsAt } from './vectors-at.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.embeddings

interface ApiEmbeddingsDeps extends Pick<EmbedderDeps, 'ownerOf' | 'warn'> {
  /** The current options; undefined if embeddings are not configured. Equal options are the same object. */
  readonly options: () => EmbeddingOptions | undefined
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly counters: Counters
  /** The vectors in the gateway's own storage. */
  readonly vectors: Vectors
  readonly vectorsAt: VectorsAt
}

interface Current { readonly options: EmbeddingOptions, readonly embedder: Embedder, readonly meaning: Meaning }

/** Search by an embeddings API. A change of its settings replaces the client, the queue and the back-off. */
export class ApiEmbeddings implements Embeddings {
  readonly #deps: ApiEmbeddingsDeps
  readonly #closing = new AbortController()
  #current: Current | undefined

  constructor (deps: ApiEmbeddingsDeps) {
    this.#deps = deps
  }

  get isOn (): boolean { return this.#now() !== undefined }

  follow (tools: ReadonlyMap<string, ShownTool>): void { this.#now()?.embedder.follow(tools) }

  async similarity (question: string, tools: ReadonlyMap<string, ShownTool>): Promise<Similarity> {
    return await this.#now()?.meaning.similarity(question, tools) ?? { reason: 'embeddings are off' }
  }

  /**
   * Removes vectors that have not been used for a long time, in small steps: those of removed tools and of former
   * models.
   */
  async removeUnused (): Promise<void> {
    const { vectors: own, vectorsAt } = this.#deps
    const { signal } = this.#closing
    const dbUrl = this.#now()?.options.dbUrl
    const vectors = dbUrl === undefined ? own : await vectorsAt.at(dbUrl)
    while (!signal.aborted && await vectors.removeUnused(bounds.unused, bounds.removed) === bounds.removed) {
      await sleep(bounds.poll, undefined, { ref: false, signal }).catch(() => {})
    }
  }

  async close (): Promise<void> {
    this.#closing.abort()
    await this.#end()
    await this.#deps.vectorsAt.close()
  }

  #now (): Current | undefined {
    const options = this.#deps.options()
    if (options === this.#current?.options) return this.#current
    void this.#end()
    this.#current = options && this.#begin(options)
    return this.#current
  }

  #begin (options: EmbeddingOptions): Current {
    const { outbound, counters, vectors: own, vectorsAt, ownerOf, warn } = this.#deps
    const { collection, dbUrl } = options
    const api = new EmbeddingsApi(outbound, options)
    const vectors = async (): Promise<Vectors> => dbUrl === undefined ? own : await vectorsAt.at(dbUrl)
    const backOffOf = (ill: string, well: string): BackOff =>
      new BackOff(undefined, new Outage((_level, sentence) => { warn(undefined, sentence) }, { ill, well }))
    const backOff = backOffOf('tools cannot be embedded', 'tools are embedded')
    const embedder = new Embedder({ api, backOff, vectors, collection, counters, ownerOf, warn })
    const isReady = (id: string): boolean => embedder.isReady(id)
    const isPending = (id: string): boolean => embedder.isPending(id)
    const ofQuestions = backOffOf('questions cannot be embedded, and tools are searched ' +
      'by words', 'questions are embedded')
    const meaning = new Meaning({ api, backOff: ofQuestions, vectors, collection, isReady, isPending, warn })
    return { options, embedder, meaning }
  }

  async #end (): Promise<void> {
    const former = this.#current
    this.#current = undefined
    former?.meaning.close()
    await former?.embedder.close()
  }
}
