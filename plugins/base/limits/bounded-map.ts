interface BoundedMapOptions<Key, Value> {
  /** Whether an entry may be evicted. Default: always true. */
  readonly isEvictable?: (key: Key, value: Value) => boolean
  /** Called after an entry has been evicted. `delete` and `clear` do not call it. */
  readonly onEvict?: (key: Key, value: Value) => void
}

/**
 * A Map with a max number of entries. Beyond the max, the oldest evictable entries are removed, but not the entry just
 * set; the Map exceeds its max only if too few entries are evictable. Entries are ordered by age: `set` does not change
 * the age of an existing entry, `setNewest` makes it the newest.
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

  /** Sets an entry and makes it the newest. */
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

/** Removes the oldest entries while the total size exceeds `maxSize`. @param kept a key that is never removed */
export function evictOldest<Key, Value> (
  map: Map<Key, Value>, maxSize: number, sizeOf: (value: Value) => number, kept: Key
): void {
  let size = 0
  for (const value of map.values()) size += sizeOf(value)
  for (const [key, value] of map) {
    if (size <= maxSize) return
    if (key === kept) continue
    map.delete(key)
    size -= sizeOf(value)
  }
}

interface OwnedMapOptions<Value, Key> {
  /** The size of an entry, which must not change while the entry is stored. Default: 1. */
  readonly sizeOf?: (key: Key, value: Value) => number
  /** Called after an entry has been evicted. `delete` does not call it. */
  readonly onEvict?: (key: Key, value: Value) => void
}

/** The entries of one owner, the oldest first. */
interface Holder<Value, Key> {
  size: number
  /** Entries that are evicted before the others. */
  readonly expendable: Map<Key, Value>
  readonly others: Map<Key, Value>
}

/**
 * A map of entries by owner and key, with a max total size. Beyond the max, entries of the owner with the largest total
 * are evicted, so an owner that keeps adding entries soon evicts its own. Among owners with equal totals, the one that
 * has had entries for the longest time loses one. `set` makes an entry the newest. Values must not be undefined.
 */
export class OwnedMap<Value, Key = string> {
  readonly #max: number
  readonly #sizeOf: (key: Key, value: Value) => number
  readonly #onEvict: ((key: Key, value: Value) => void) | undefined
  readonly #holders = new Map<string, Holder<Value, Key>>()
  #size = 0

  /** @param max the max number of entries or, with `sizeOf`, their max total size */
  constructor (max: number, { sizeOf = () => 1, onEvict }: OwnedMapOptions<Value, Key> = {}) {
    this.#max = max
    this.#sizeOf = sizeOf
    this.#onEvict = onEvict
  }

  get (owner: string, key: Key): Value | undefined {
    const holder = this.#holders.get(owner)
    return holder?.others.get(key) ?? holder?.expendable.get(key)
  }

  /** @param isExpendable whether the entry is evicted before the other entries of its owner */
  set (owner: string, key: Key, value: Value, isExpendable = false): void {
    this.delete(owner, key)
    const holder = this.#holders.get(owner) ?? { size: 0, expendable: new Map(), others: new Map() }
    this.#holders.set(owner, holder)
    const entries = isExpendable ? holder.expendable : holder.others
    entries.set(key, value)
    this.#resize(holder, this.#sizeOf(key, value))
    while (this.#size > this.#max) this.#evict()
  }

  delete (owner: string, key: Key): void {
    const holder = this.#holders.get(owner)
    const entries = holder?.expendable.has(key) === true ? holder.expendable : holder?.others
    const value = entries?.get(key)
    if (holder === undefined || entries === undefined || value === undefined) return
    entries.delete(key)
    this.#resize(holder, -this.#sizeOf(key, value))
    if (holder.expendable.size + holder.others.size === 0) this.#holders.delete(owner)
  }

  #resize (holder: Holder<Value, Key>, change: number): void {
    holder.size += change
    this.#size += change
  }

  /** Evicts an entry of the owner with the largest total: the oldest expendable one, or else the oldest. */
  #evict (): void {
    let [largest] = this.#holders
    for (const each of this.#holders) if (each[1].size > (largest?.[1].size ?? 0)) largest = each
    if (largest === undefined) return
    const [owner, { expendable, others }] = largest
    const [oldest] = expendable.size > 0 ? expendable : others
    if (oldest === undefined) return
    this.delete(owner, oldest[0])
    this.#onEvict?.(...oldest)
  }
}
