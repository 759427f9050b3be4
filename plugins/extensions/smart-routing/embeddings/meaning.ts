import type { Vectors } from '../../../../db/ports/vectors.ts'
import { BoundedMap } from '../../../base/limits/index.ts'
import type { Similarity } from '../search.ts'
import type { ShownTool } from '../search-tools.ts'
import { EmbeddingsFailed, type EmbeddingsApi } from './api.ts'
import type { BackOff } from './back-off.ts'
import { knownId } from './texts.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.embeddings

/** Why a search used words only although embeddings are configured. */
const reasons = {
  /** The request failed, or the back-off after a failure has not ended. */
  outage: 'the embeddings API is not available',
  slow: 'the embeddings API is slow',
  indexing: 'tools are still being embedded',
  storage: 'the embeddings cannot be read'
} as const

interface MeaningDeps {
  readonly api: Pick<EmbeddingsApi, 'embed'>
  readonly backOff: BackOff
  readonly vectors: () => Promise<Vectors>
  readonly collection: string
  /** Whether the vector of an id is stored. */
  readonly isReady: (id: string) => boolean
  /** Whether the vector of an id is queued. */
  readonly isPending: (id: string) => boolean
  readonly warn: (error: unknown, sentence: string) => void
}

/** Compares a query with the embedded tools, within a time limit. */
export class Meaning {
  readonly #deps: MeaningDeps
  readonly #end = new AbortController()
  /** The embeddings of recent queries, including requests in flight. */
  readonly #questions = new BoundedMap<string, Promise<number[]>>(bounds.questions)

  constructor (deps: MeaningDeps) {
    this.#deps = deps
  }

  close (): void { this.#end.abort() }

  async similarity (question: string, tools: ReadonlyMap<string, ShownTool>): Promise<Similarity> {
    const byId = new Map<string, ShownTool[]>()
    let [ready, pending] = [0, 0]
    for (const tool of tools.values()) {
      const id = knownId(tool)
      if (id === undefined || !this.#deps.isReady(id)) {
        if (id === undefined || this.#deps.isPending(id)) pending++
        continue
      }
      ready++
      const others = byId.get(id)
      if (others) others.push(tool)
      else byId.set(id, [tool])
    }
    const { backOff } = this.#deps
    const isNew = !this.#questions.has(question)
    if (isNew && backOff.left > 0) return { reason: reasons.outage }
    // Embedded tools would rank above all tools that are not embedded yet.
    if (pending > (ready + pending) * bounds.pending) return { reason: reasons.indexing }
    if (byId.size === 0) return { scores: new Map() }
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Similarity>((resolve) => {
      timer = setTimeout(() => { resolve({ reason: reasons.slow }) }, bounds.wait)
    })
    try {
      return await Promise.race([late, this.#compare(question, byId)])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Continues after the time limit, so that a repeated query finds its embedding in the cache. */
  async #compare (question: string, byId: ReadonlyMap<string, readonly ShownTool[]>): Promise<Similarity> {
    const { vectors, collection, warn } = this.#deps
    let embedding: number[]
    try {
      embedding = await this.#embedded(question)
    } catch {
      return { reason: reasons.outage }
    }
    try {
      const scores = new Map<ShownTool, number>()
      const nearest = await (await vectors()).nearest(collection, embedding, [...byId.keys()], bounds.nearest)
      for (const { id, score } of nearest) for (const tool of byId.get(id) ?? []) scores.set(tool, score)
      return nearest.length === 0 ? { reason: reasons.storage } : { scores }
    } catch (error) {
      warn(error, 'Embeddings could not be compared')
      return { reason: reasons.storage }
    }
  }

  #embedded (question: string): Promise<number[]> {
    const known = this.#questions.get(question)
    if (known) return known
    const { api, backOff } = this.#deps
    const asking = api.embed([question], this.#end.signal).then(([embedding = []]) => {
      backOff.succeeded()
      return embedding
    })
    this.#questions.set(question, asking)
    asking.catch((error: unknown) => {
      this.#questions.delete(question)
      if (this.#end.signal.aborted) return
      backOff.failed(error instanceof EmbeddingsFailed ? error.retryAfter : undefined, error)
    })
    return asking
  }
}
