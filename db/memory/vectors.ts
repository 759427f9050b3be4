import { most, type Vector, type Vectors } from '../ports.ts'

/** A vector of length 1 in the same direction. @throws RangeError when it has none */
export function unit (embedding: readonly number[]): Float32Array {
  const length = Math.sqrt(embedding.reduce((sum, each) => sum + each * each, 0))
  if (!Number.isFinite(length) || length === 0) throw new RangeError('An embedding has no direction: it is empty, all zero, or not finite.')
  return Float32Array.from(embedding, (each) => each / length)
}

/** Embeddings in this process alone; they are made anew after a restart. Bounded: the oldest go first. */
export class MemoryVectors implements Vectors {
  readonly #most: number
  /** By collection and id. */
  readonly #collections = new Map<string, Map<string, { hash: string; unit: Float32Array }>>()
  #numbers = 0

  /** @param numbers how many numbers are kept, in all embeddings */
  constructor (numbers: number = most.vectorNumbers) {
    this.#most = numbers
  }

  async put (collection: string, added: readonly Vector[]): Promise<void> {
    const units = added.map(({ embedding }) => unit(embedding))
    added.forEach(({ id, hash }, at) => {
      const own = units[at]
      if (own === undefined) return
      // Behind all others of the collection, and the collection behind all others: the first ones are the oldest.
      this.#remove(collection, id)
      const vectors = this.#collections.get(collection) ?? new Map()
      this.#collections.delete(collection)
      this.#collections.set(collection, vectors.set(id, { hash, unit: own }))
      this.#numbers += own.length
    })
    while (this.#numbers > this.#most) {
      const [[name, vectors] = []] = this.#collections
      const oldest = vectors?.keys().next().value
      if (name === undefined || oldest === undefined) return
      this.#remove(name, oldest)
    }
  }

  async hashes (collection: string, ids: readonly string[]): Promise<Map<string, string>> {
    const vectors = this.#collections.get(collection)
    return new Map(
      ids.flatMap((id) => {
        const vector = vectors?.get(id)
        return vector === undefined ? [] : [[id, vector.hash]]
      })
    )
  }

  async nearest (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ): Promise<Array<{ id: string; score: number }>> {
    const own = unit(embedding)
    const vectors = this.#collections.get(collection)
    const found = [...new Set(ids)].flatMap((id) => {
      const other = vectors?.get(id)?.unit
      return other === undefined || other.length !== own.length
        ? []
        : [{ id, score: other.reduce((sum, each, at) => sum + each * (own[at] ?? 0), 0) }]
    })
    return found.sort((one, other) => other.score - one.score).slice(0, count)
  }

  async keep (collection: string, ids: readonly string[]): Promise<void> {
    const kept = new Set(ids)
    for (const id of this.#collections.get(collection)?.keys() ?? []) if (!kept.has(id)) this.#remove(collection, id)
  }

  #remove (collection: string, id: string): void {
    const vectors = this.#collections.get(collection)
    this.#numbers -= vectors?.get(id)?.unit.length ?? 0
    vectors?.delete(id)
    if (vectors?.size === 0) this.#collections.delete(collection)
  }
}
