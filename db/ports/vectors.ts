/**
 * Max total length of all embeddings in memory, as a count of numbers, each of four bytes. Beyond it, the oldest
 * embeddings of the least recently extended collection are removed.
 */
export const maxTotalVectorComponents = 32 * 1024 * 1024

/** An embedding. `id`: its id within the collection; `hash`: the hash of the embedded text. */
export interface Vector { readonly id: string, readonly hash: string, readonly embedding: readonly number[] }

/** Stores embeddings in collections. All embeddings of a collection must be from the same model. */
export interface VectorStore {
  /**
   * Adds vectors, or replaces those with the same ids.
   * @throws RangeError when a vector has no direction: it is empty, all zeros, or contains a number that is not finite
   */
  put: (collection: string, vectors: readonly Vector[]) => Promise<void>
  /** Returns the `hash` of each stored vector by id. The result lacks ids that are not stored. */
  findHashes: (collection: string, ids: readonly string[]) => Promise<Map<string, string>>
  /**
   * Searches the vectors with the given ids for those most similar to an embedding, best first. Vectors of another
   * length are ignored.
   * @param count max number of results
   * @returns `score`: the cosine, from -1 to 1
   */
  findNearest: (
    collection: string,
    embedding: readonly number[],
    ids: readonly string[],
    count: number
  ) => Promise<Array<{ id: string, score: number }>>
  /** Marks vectors as used now; `put` does the same. */
  markUsed: (collection: string, ids: readonly string[]) => Promise<void>
  /**
   * Removes vectors, of any collection, that were neither stored nor marked as used within the last `age` ms.
   * @param count max number of vectors to remove
   * @returns the number of removed vectors
   */
  removeUnused: (age: number, count: number) => Promise<number>
}

/** A vector store in a database of its own. `close` closes the database, and never throws. */
export interface OpenedVectorStore { readonly vectors: VectorStore, readonly close: () => Promise<void> }
