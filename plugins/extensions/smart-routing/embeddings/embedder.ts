import { setTimeout as sleep } from 'node:timers/promises'
import type { Vectors } from '../../../../db/ports/vectors.ts'
import type { Counters } from '../../../../db/store.ts'
import { BoundedMap } from '../../../base/limits/index.ts'
import type { ShownTool } from '../search-tools.ts'
import { EmbeddingsFailed, type EmbeddingsApi } from './api.ts'
import type { BackOff } from './back-off.ts'
import { Quota } from './quota.ts'
import { embeddedText, idOf } from './texts.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.embeddings
/** Number of tools that one turn of the event loop hashes. */
const perTurn = 50

export interface EmbedderDeps {
  readonly api: Pick<EmbeddingsApi, 'embed'>
  readonly backOff: BackOff
  /** The store of the vectors. @throws when it is unavailable */
  readonly vectors: () => Promise<Vectors>
  readonly collection: string
  readonly counters: Counters
  /** The owner of a server, whose quota its tools use; undefined for a server of an admin. */
  readonly ownerOf: (server: string) => string | undefined
  readonly warn: (error: unknown, sentence: string) => void
}

/**
 * Embeds tools in the background, in batches and with back-off, unless their vectors are stored already. Only one
 * replica embeds at a time; each first looks for vectors that another one has stored.
 */
export class Embedder {
  readonly #deps: EmbedderDeps
  /** The time when each vector was last stored or looked up, by id. */
  readonly #ready = new BoundedMap<string, number>(bounds.known)
  readonly #wanted = new Map<string, ShownTool>()
  /** The ids in `#wanted` that exceed the quota. */
  readonly #over = new Set<string>()
  readonly #quota = new Quota(bounds)
  readonly #end = new AbortController()
  readonly #seen = new WeakMap<ReadonlyMap<string, ShownTool>, number>()
  readonly #now: () => number
  /** Max number of texts in the next request. A rejected batch halves it. */
  #size: number = bounds.batch
  #running: Promise<void> | undefined

  /** @param now a clock, in ms */
  constructor (deps: EmbedderDeps, now: () => number = () => performance.now()) {
    this.#deps = deps
    this.#now = now
  }

  /** Whether the vector of this id is stored. */
  isReady (id: string): boolean { return this.#ready.has(id) }

  /** Whether the vector of this id is queued and within the quota. */
  isPending (id: string): boolean { return this.#wanted.has(id) && !this.#over.has(id) }

  /**
   * Queues the tools that are not embedded yet. From time to time it also looks up the vectors of the others and marks
   * them as in use, since another process may have removed them.
   */
  follow (tools: ReadonlyMap<string, ShownTool>): void {
    if (this.#isRecent(this.#seen.get(tools))) return
    this.#seen.set(tools, this.#now())
    void this.#want([...tools.values()]).catch((error: unknown) => { this.#deps.warn(error, 'tools are not embedded') })
  }

  /** Stops embedding. Resolves when no request is in flight. */
  async close (): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  #isRecent (time: number | undefined): boolean { return time !== undefined && this.#now() - time < bounds.marked }

  async #want (tools: readonly ShownTool[]): Promise<void> {
    for (const [at, tool] of tools.entries()) {
      if (at % perTurn === perTurn - 1) await new Promise((resolve) => { setImmediate(resolve) })
      const id = idOf(tool)
      if (!this.#isRecent(this.#ready.get(id)) && this.#wanted.size < bounds.waiting) this.#wanted.set(id, tool)
    }
    if (this.#wanted.size > 0 && !this.#end.signal.aborted) {
      this.#running ??= this.#run().finally(() => { this.#running = undefined })
    }
  }

  async #run (): Promise<void> {
    const { signal } = this.#end
    const { backOff, collection, counters } = this.#deps
    while (this.#wanted.size > 0 && !signal.aborted) {
      try {
        if (backOff.left > 0) await sleep(backOff.left, undefined, { signal, ref: false })
        const vectors = await this.#deps.vectors()
        await this.#skipStored(vectors)
        if (this.#wanted.size === 0) return
        const { count, left } = await counters.hit(`embeddings ${collection}`, bounds.lease)
        if (count > 1) { await sleep(Math.min(left, bounds.poll), undefined, { signal, ref: false }); continue }
        const isStopped = await this.#embed(vectors, performance.now() + left - bounds.time)
          // Releases the lease in every case, so that no replica waits for its expiry.
          .finally(async () => { await counters.reset(`embeddings ${collection}`) })
        if (isStopped) await sleep(bounds.overQuota, undefined, { signal, ref: false })
      } catch (error) {
        if (signal.aborted) return
        backOff.failed(error instanceof EmbeddingsFailed ? error.retryAfter : undefined, error)
      }
    }
  }

  /** Removes from the queue the tools whose vectors are stored, and marks these vectors as in use. */
  async #skipStored (vectors: Vectors): Promise<void> {
    const { collection } = this.#deps
    const ids = [...this.#wanted.keys()]
    for (let at = 0; at < ids.length; at += bounds.lookUps) {
      const asked = ids.slice(at, at + bounds.lookUps)
      const stored = await vectors.hashes(collection, asked)
      await vectors.use(collection, [...stored.keys()])
      for (const id of asked) {
        if (stored.has(id)) this.#stored(id)
        else this.#ready.delete(id)
      }
    }
  }

  /**
   * Embeds batches until the lease ends.
   * @returns true if all queued tools exceed the quota
   */
  async #embed (vectors: Vectors, until: number): Promise<boolean> {
    while (performance.now() < until && !this.#end.signal.aborted && this.#wanted.size > 0) {
      const batch = this.#nextBatch()
      if (batch.length === 0) return true
      try {
        await this.#embedBatch(vectors, batch)
      } catch (error) {
        for (const [, tool] of batch) this.#quota.give(this.#deps.ownerOf(tool.server))
        if (!(error instanceof EmbeddingsFailed) || !error.isRefusal) throw error
        // A single text may be the reason for the rejection: halve the batch until it is found.
        if (batch.length === 1) {
          this.#wanted
            .delete(batch[0]?.[0] ?? ''); this.#deps.warn(error, 'A tool cannot be embedded')
        }
        this.#size = Math.max(1, Math.floor(batch.length / 2))
      }
    }
    return false
  }

  #nextBatch (): Array<[string, ShownTool]> {
    const batch: Array<[string, ShownTool]> = []
    this.#over.clear()
    for (const [id, tool] of this.#wanted) {
      if (batch.length >= this.#size) break
      if (this.#quota.take(this.#deps.ownerOf(tool.server))) batch.push([id, tool])
      else this.#over.add(id)
    }
    return batch
  }

  async #embedBatch (vectors: Vectors, batch: ReadonlyArray<[string, ShownTool]>): Promise<void> {
    const { api, backOff, collection } = this.#deps
    const embeddings = await api.embed(batch.map(([, tool]) => embeddedText(tool)), this.#end.signal)
    backOff.succeeded()
    this.#size = Math.min(bounds.batch, this.#size * 2)
    await vectors.put(collection, batch.map(([id], at) => ({ id, hash: id, embedding: embeddings[at] ?? [] })))
    for (const [id] of batch) this.#stored(id)
  }

  #stored (id: string): void {
    this.#wanted.delete(id)
    this.#over.delete(id)
    this.#ready.set(id, this.#now())
  }
}
