import { errors } from '../errors/list.ts'

/** A text that took work, in UTF-8, chunk by chunk; undefined: a place that is filled in each time. With a hash that tells it from others. */
export interface CachedText { readonly chunks: ReadonlyArray<Buffer | undefined>, readonly hash: string }

const sizeOf = ({ chunks }: CachedText): number => chunks.reduce((sum, chunk) => sum + (chunk?.length ?? 0), 0)

/** How many texts are kept, and how many bytes in all; how many may be in the making, the one in hand included. */
export interface CacheLimits { readonly maxTexts: number, readonly maxSize: number, readonly maxPending: number }

/** Texts by key, bounded in number and in size; the one used longest ago goes first. They are made one after the other, each once for all who wait. */
export class TextCache {
  readonly #kept = new Map<string, CachedText>()
  readonly #making = new Map<string, Promise<CachedText>>()
  readonly #bounds: CacheLimits
  #last: Promise<unknown> = Promise.resolve()
  #size = 0

  constructor (bounds: CacheLimits) {
    this.#bounds = bounds
  }

  /** The text of a key, made where it is not there. @throws LimitReached */
  async get (key: string, make: () => Promise<CachedText>): Promise<CachedText> {
    const known = this.#kept.get(key)
    if (known) {
      this.#kept.delete(key)
      this.#kept.set(key, known)
      return known
    }
    const making = this.#making.get(key)
    if (making) return await making
    if (this.#making.size >= this.#bounds.maxPending) {
      throw new errors.LimitReached('As many OpenAPI documents as may wait are being written; ask again in a few seconds')
    }
    const made = this.#last.then(make).then((kept) => { this.#keep(key, kept); return kept }).finally(() => { this.#making.delete(key) })
    this.#making.set(key, made)
    this.#last = made.catch(() => {})
    return await made
  }

  #keep (key: string, kept: CachedText): void {
    this.#size += key.length + sizeOf(kept)
    this.#kept.set(key, kept)
    for (const [oldest, text] of this.#kept) {
      if (this.#kept.size <= this.#bounds.maxTexts && this.#size <= this.#bounds.maxSize) break
      this.#kept.delete(oldest)
      this.#size -= oldest.length + sizeOf(text)
    }
  }
}
