interface BoundedMapOptions<Key, Value> {
  /** True for an entry that may be evicted. Left out: every entry may be. */
  readonly isEvictable?: (key: Key, value: Value) => boolean
  /** Called after an entry was evicted; not called by `delete` and `clear`. */
  readonly onEvict?: (key: Key, value: Value) => void
}

/**
 * A Map with a max number of entries: beyond it, the oldest evictable entry is removed, but never the one that was just set. It stays
 * larger than its bound only while too few entries are evictable. An entry is as old as its place in the Map: `set` leaves the place of a
 * known key as it is, `setNewest` moves it to the end.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number
  readonly #isEvictable: (key: Key, value: Value) => boolean
  readonly #onEvict: ((key: Key, value: Value) => void) | undefined

  constructor (max: number, { isEvictable = () => true, onEvict }: BoundedMapOptions<Key, Value> = {}) {
    super()
    this.#max = max
    this.#isEvictable = isEvictable
    this.#onEvict = onEvict
  }

  override set (key: Key, value: Value): this {
    super.set(key, value)
    if (this.size > this.#max) this.#evict(key)
    return this
  }

  /** Sets an entry and makes it the newest one. */
  setNewest (key: Key, value: Value): this {
    this.delete(key)
    return this.set(key, value)
  }

  #evict (justSet: Key): void {
    for (const [key, value] of this) {
      if (this.size <= this.#max) return
      if (key === justSet || !this.#isEvictable(key, value)) continue
      this.delete(key)
      this.#onEvict?.(key, value)
    }
  }
}

/**
 * Removes the oldest entries of a Map while the sizes of all together exceed a bound.
 * @param kept the key of the entry that stays, however large it is
 */
export function shrink<Key, Value> (map: Map<Key, Value>, most: number, sizeOf: (value: Value) => number, kept: Key): void {
  let size = 0
  for (const value of map.values()) size += sizeOf(value)
  for (const [key, value] of map) {
    if (size <= most) return
    if (key === kept) continue
    map.delete(key)
    size -= sizeOf(value)
  }
}
