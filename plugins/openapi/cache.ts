/** A text that took work, and a hash that tells it from others. */
export interface Kept { readonly text: string, readonly hash: string }

/** Texts by key, bounded in number and in size; the one used longest ago goes first. */
export class TextCache {
  readonly #kept = new Map<string, Kept>()
  readonly #most: number
  readonly #mostSize: number
  #size = 0

  /** @param mostSize characters in all */
  constructor (most: number, mostSize: number) {
    this.#most = most
    this.#mostSize = mostSize
  }

  /** The text of a key, made where it is not there. */
  get (key: string, make: () => Kept): Kept {
    const known = this.#kept.get(key)
    if (known !== undefined) this.#kept.delete(key)
    else this.#size += key.length
    const kept = known ?? make()
    if (known === undefined) this.#size += kept.text.length
    this.#kept.set(key, kept)
    for (const [oldest, { text }] of this.#kept) {
      if (this.#kept.size <= this.#most && this.#size <= this.#mostSize) break
      this.#kept.delete(oldest)
      this.#size -= oldest.length + text.length
    }
    return kept
  }
}
