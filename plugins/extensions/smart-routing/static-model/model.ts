import { wordsOf } from '../words/tokens.ts'

/**
 * The first bytes of a model file. Then follow: the number of words, the number of dimensions and the length in bytes
 * of the list of words, as 32-bit little-endian integers; the words, in UTF-8, separated by line feeds; from the next
 * multiple of four, the scale of each word as a 32-bit float; and the vector of each word as 8-bit integers.
 */
export const modelMagic = 'TH01'
/** The length of a model file's part before the list of words, in bytes. */
export const modelHeaderLength = 16

/** Max number of distinct known words that are added to a text's vector; further ones are ignored. */
const maxWords = 200

/** A model with a vector for each of its words. The vector of a text is the normalized sum of its words' vectors. */
export class StaticModel {
  readonly dimensions: number
  readonly #rows = new Map<string, number>()
  readonly #scales: Float32Array
  readonly #vectors: Int8Array

  /** @param bytes the content of a model file @throws Error if they do not begin with `modelMagic` */
  constructor (bytes: Uint8Array) {
    // The copy starts at offset 0 of its buffer, so the scales are at a multiple of four, as `Float32Array` requires.
    const { buffer } = new Uint8Array(bytes)
    const view = new DataView(buffer)
    if (Buffer.from(buffer, 0, 4).toString('latin1') !== modelMagic) {
      throw new Error(
        'The static model file is not valid'
      )
    }
    const [count, dimensions, length] = [view.getUint32(4, true), view.getUint32(8, true), view.getUint32(12, true)]
    const scales = Math.ceil((modelHeaderLength + length) / 4) * 4
    const words = Buffer.from(buffer, modelHeaderLength, length).toString().split('\n')
    for (const [row, word] of words.entries()) this.#rows.set(word, row)
    this.dimensions = dimensions
    this.#scales = new Float32Array(buffer, scales, count)
    this.#vectors = new Int8Array(buffer, scales + 4 * count, count * dimensions)
  }

  /**
   * Returns a vector of length 1 for several texts together. A repeated word is added once, with the weight of the
   * first text that contains it.
   * @param parts the words of each text, with the weight of the text
   * @returns undefined if the model has none of the words
   */
  embed (parts: ReadonlyArray<readonly [weight: number, words: Iterable<string>]>): Float32Array | undefined {
    const sum = new Float32Array(this.dimensions)
    const seen = new Set<number>()
    for (const [weight, words] of parts) {
      for (const word of words) {
        const row = this.#rows.get(word)
        if (row === undefined || seen.has(row)) continue
        if (seen.add(row).size > maxWords) break
        const scale = weight * (this.#scales[row] ?? 0)
        const from = row * this.dimensions
        for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + scale * (this.#vectors[from + i] ?? 0)
      }
    }
    const length = Math.sqrt(dotProduct(sum, sum))
    if (length === 0) return undefined
    for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) / length
    return sum
  }
}

/** Returns the dot product of two vectors with the same even number of dimensions. */
export function dotProduct (one: Float32Array, other: Float32Array): number {
  // Two sums are faster than one: an addition need not wait for the previous one.
  let [even, odd] = [0, 0]
  for (let i = 0; i < one.length; i += 2) {
    even += (one[i] ?? 0) * (other[i] ?? 0)
    odd += (one[i + 1] ?? 0) * (other[i + 1] ?? 0)
  }
  return even + odd
}

/** Splits a text into words that the model may have. @param max max number of words */
export const modelWordsOf = (text: string, max: number): string[] => wordsOf(text, max, false)
