import { maxTotalVectorComponents, type Vector, type VectorStore } from '../ports/vectors.ts'
import { unitVector } from '../unit-vector.ts'

/** An embedding as a unit vector, with the hash of the embedded text. `usedAt` is in ms since 1970. */
interface MemoryVector { readonly hash: string, readonly unit: Float32Array, usedAt: number }

/**
 * Embeddings in memory, which are lost at a restart. Beyond the limit, the oldest embeddings of the collection to which
 * none was added for the longest time are removed.
 */
export class MemoryVectors implements VectorStore {
  readonly #maxNumbers: number
  readonly #now: () => number
  /** The embeddings by collection and id. */
  readonly #collections = new Map<string, Map<string, MemoryVector>>()
  /** The total length of the stored embeddings, in numbers. */
  #numbers = 0

  /**
   * @param maxNumbers max total length of all embeddings, each number of a vector counting 1
   * @param now the clock, in ms since 1970
   */
  constructor (maxNumbers: number = maxTotalVectorComponents, now = () => Date.now()) {
    this.#maxNumbers = maxNumbers
    this.#now = now
  }

  async put (collection: string, added: readonly Vector[]): Promise<void> {
    const unitVectors = added.map(({ embedding }) => unitVector(embedding))
    added.forEach(({ id, hash }, at) => {
      const own = unitVectors[at]
      if (own === undefined) return
      // Inserted again at the end of its collection, and the collection behind all others, so that the oldest come
      // first.
      this.#remove(collection, id)
      const vectors = this.#collections.get(collection) ?? new Map()
      this.#collections.delete(collection)
      this.#collections.set(collection, vectors.set(id, { hash, unit: own, usedAt: this.#now() }))
      this.#numbers += own.length
    })
    while (this.#numbers > this.#maxNumbers) {
      const [[name, vectors] = []] = this.#collections
      const oldest = vectors?.keys().next().value
      if (name === undefined || oldest === undefined) return
      this.#remove(name, oldest)
    }
  }

  async findHashes (collection: string, ids: readonly string[]): Promise<Map<string, string>> {
    const vectors = this.#collections.get(collection)
    return new Map(
      ids.flatMap((id) => {
        const vector = vectors?.get(id)
        return vector === undefined ? [] : [[id, vector.hash]]
      })
    )
  }

  async findNearest (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ): Promise<Array<{ id: string, score: number }>> {
    const own = unitVector(embedding)
    const vectors = this.#collections.get(collection)
    const found = [...new Set(ids)].flatMap((id) => {
      const other = vectors?.get(id)?.unit
      return other === undefined || other.length !== own.length
        ? []
        : [{ id, score: cosine(own, other) }]
    })
    return found.sort((one, other) => other.score - one.score).slice(0, count)
  }

  async markUsed (collection: string, ids: readonly string[]): Promise<void> {
    const vectors = this.#collections.get(collection)
    for (const id of ids) {
      const vector = vectors?.get(id)
      if (vector) vector.usedAt = this.#now()
    }
  }

  async removeUnused (age: number, count: number): Promise<number> {
    const before = this.#now() - age
    let removed = 0
    for (const [collection, vectors] of this.#collections) {
      for (const [id, { usedAt }] of vectors) {
        if (removed >= count) return removed
        if (usedAt >= before) continue
        this.#remove(collection, id)
        removed++
      }
    }
    return removed
  }

  #remove (collection: string, id: string): void {
    const vectors = this.#collections.get(collection)
    this.#numbers -= vectors?.get(id)?.unit.length ?? 0
    vectors?.delete(id)
    if (vectors?.size === 0) this.#collections.delete(collection)
  }
}

/** Returns the cosine of two unit vectors of equal length. A plain loop is fastest for thousands of long vectors. */
function cosine (one: Float32Array, other: Float32Array): number {
  let sum = 0
  for (let at = 0; at < one.length; at++) sum += (one[at] ?? 0) * (other[at] ?? 0)
  return sum
}
