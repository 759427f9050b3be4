import { setTimeout as sleep } from 'node:timers/promises'
import type { VectorStore } from '../../../../db/ports/vectors.ts'
import type { Counters } from '../../../../db/store.ts'
import { BoundedMap } from '../../../base/limits/index.ts'
import type { ShownTool } from '../shown-tools.ts'
import { EmbeddingsError, type EmbeddingsApi } from './api.ts'
import type { BackOff } from './back-off.ts'
import { EmbeddingQuota } from './quota.ts'
import { textToEmbed, vectorIdOf } from './texts.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.embeddings
/** Max number of tools that are hashed in one turn of the event loop. */
const perTurn = 50

export interface EmbedderDeps {
  readonly api: Pick<EmbeddingsApi, 'embed'>
  readonly backOff: BackOff
  /** Returns the vector store. @throws if it is unavailable */
  readonly vectors: () => Promise<VectorStore>
  readonly collection: string
  readonly counters: Counters
  /** Returns the owner of a server, whose quota the server's tools use; undefined if the owner is an admin. */
  readonly ownerOf: (server: string) => string | undefined
  readonly warn: (error: unknown, sentence: string) => void
}

/**
 * Embeds tools in the background, in batches and with back-off, unless their vectors are already stored. Only one
 * replica embeds at a time; each replica first looks for vectors that another one has stored.
 */
export class Embedder {
  readonly #deps: EmbedderDeps
  /** Maps the id of each known vector to the time when the vector was last stored, or found to be stored, in ms. */
  readonly #storedAt = new BoundedMap<string, number>(bounds.knownVectors)
  /** The tools to embed, by vector id. */
  readonly #queue = new Map<string, ShownTool>()
  /** The vector ids of queued tools that exceed the quota. */
  readonly #overQuota = new Set<string>()
  readonly #quota = new EmbeddingQuota(bounds)
  readonly #closing = new AbortController()
  /** Maps each argument of `enqueueMissing` to the time when its tools were last queued, in ms. */
  readonly #enqueuedAt = new WeakMap<ReadonlyMap<string, ShownTool>, number>()
  readonly #now: () => number
  /**
   * Max number of texts in the next request: halved after a rejected batch, doubled after a success, up to the initial
   * value.
   */
  #batchSize: number = bounds.batchSize
  #currentRun: Promise<void> | undefined

  /** @param now a clock, in ms */
  constructor (deps: EmbedderDeps, now: () => number = () => performance.now()) {
    this.#deps = deps
    this.#now = now
  }

  /** Whether a vector is known to be stored. */
  isStored (id: string): boolean { return this.#storedAt.has(id) }

  /** Whether the tool with this vector id is queued and within the quota. */
  isQueued (id: string): boolean { return this.#queue.has(id) && !this.#overQuota.has(id) }

  /**
   * Queues the tools whose vectors are not known to be stored, once per `markInterval` for the same map. The other
   * tools are queued once per interval, to mark their vectors as in use, and to embed tools whose vectors were removed.
   */
  enqueueMissing (tools: ReadonlyMap<string, ShownTool>): void {
    if (this.#isRecent(this.#enqueuedAt.get(tools))) return
    this.#enqueuedAt.set(tools, this.#now())
    void this.#enqueue([...tools.values()]).catch((error: unknown) => {
      this.#deps.warn(error, 'tools could not be embedded')
    })
  }

  /** Stops embedding. Resolves when no request is in flight. */
  async close (): Promise<void> {
    this.#closing.abort()
    await this.#currentRun
  }

  #isRecent (time: number | undefined): boolean {
    return time !== undefined && this.#now() - time < bounds.markInterval
  }

  async #enqueue (tools: readonly ShownTool[]): Promise<void> {
    for (const [at, tool] of tools.entries()) {
      if (at % perTurn === perTurn - 1) await new Promise((resolve) => { setImmediate(resolve) })
      const id = vectorIdOf(tool)
      if (!this.#isRecent(this.#storedAt.get(id)) && this.#queue.size < bounds.waitingTools) this.#queue.set(id, tool)
    }
    if (this.#queue.size > 0 && !this.#closing.signal.aborted) {
      this.#currentRun ??= this.#embedQueue().finally(() => { this.#currentRun = undefined })
    }
  }

  async #embedQueue (): Promise<void> {
    const { signal } = this.#closing
    const { backOff, collection, counters } = this.#deps
    while (this.#queue.size > 0 && !signal.aborted) {
      try {
        if (backOff.waitTime > 0) await sleep(backOff.waitTime, undefined, { signal, ref: false })
        const vectors = await this.#deps.vectors()
        await this.#skipStored(vectors)
        if (this.#queue.size === 0) return
        const { count, left } = await counters.take(`embeddings ${collection}`, 1, bounds.leaseTime)
        if (count > 1) { await sleep(Math.min(left, bounds.pollInterval), undefined, { signal, ref: false }); continue }
        const isOverQuota = await this.#embedUntil(vectors, performance.now() + left - bounds.requestTimeout)
          // The lease is released after an error too, so that no replica waits until it expires.
          .finally(async () => { await counters.reset(`embeddings ${collection}`) })
        if (isOverQuota) await sleep(bounds.quotaRetryDelay, undefined, { signal, ref: false })
      } catch (error) {
        if (signal.aborted) return
        backOff.recordFailure(error instanceof EmbeddingsError ? error.retryAfter : undefined, error)
      }
    }
  }

  /** Removes from the queue the tools whose vectors are stored, and marks these vectors as in use. */
  async #skipStored (vectors: VectorStore): Promise<void> {
    const { collection } = this.#deps
    const ids = [...this.#queue.keys()]
    for (let at = 0; at < ids.length; at += bounds.idsPerQuery) {
      const part = ids.slice(at, at + bounds.idsPerQuery)
      const stored = await vectors.findHashes(collection, part)
      await vectors.markUsed(collection, [...stored.keys()])
      for (const id of part) {
        if (stored.has(id)) this.#markStored(id)
        else this.#storedAt.delete(id)
      }
    }
  }

  /**
   * Embeds batches until the queue is empty, or too little of the lease is left for another request.
   * @param until the time after which no request begins, by `performance.now()`
   * @returns whether it stopped because all queued tools exceed the quota
   */
  async #embedUntil (vectors: VectorStore, until: number): Promise<boolean> {
    while (performance.now() < until && !this.#closing.signal.aborted && this.#queue.size > 0) {
      const batch = this.#nextBatch()
      if (batch.length === 0) return true
      try {
        await this.#embedBatch(vectors, batch)
      } catch (error) {
        for (const [, tool] of batch) this.#quota.refund(this.#deps.ownerOf(tool.server))
        if (!(error instanceof EmbeddingsError) || !error.isRefusal) throw error
        // A single text may be the cause of the rejection: halve the batch until it is found.
        if (batch.length === 1) {
          this.#queue.delete(batch[0]?.[0] ?? '')
          this.#deps.warn(error, 'A tool cannot be embedded')
        }
        this.#batchSize = Math.max(1, Math.floor(batch.length / 2))
      }
    }
    return false
  }

  #nextBatch (): Array<[string, ShownTool]> {
    const batch: Array<[string, ShownTool]> = []
    this.#overQuota.clear()
    for (const [id, tool] of this.#queue) {
      if (batch.length >= this.#batchSize) break
      if (this.#quota.take(this.#deps.ownerOf(tool.server))) batch.push([id, tool])
      else this.#overQuota.add(id)
    }
    return batch
  }

  async #embedBatch (vectors: VectorStore, batch: ReadonlyArray<[string, ShownTool]>): Promise<void> {
    const { api, backOff, collection } = this.#deps
    const embeddings = await api.embed(batch.map(([, tool]) => textToEmbed(tool)), this.#closing.signal)
    backOff.recordSuccess()
    this.#batchSize = Math.min(bounds.batchSize, this.#batchSize * 2)
    await vectors.put(collection, batch.map(([id], at) => ({ id, hash: id, embedding: embeddings[at] ?? [] })))
    for (const [id] of batch) this.#markStored(id)
  }

  #markStored (id: string): void {
    this.#queue.delete(id)
    this.#overQuota.delete(id)
    this.#storedAt.set(id, this.#now())
  }
}
