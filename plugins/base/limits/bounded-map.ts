interface BoundedMapOptions<Key, Value> {
  /** Whether an entry may be evicted. Default: every entry may. */
  readonly isEvictable?: (key: Key, value: Value) => boolean
  /** Called after an entry was evicted; not called by `delete` and `clear`. */
  readonly onEvict?: (key: Key, value: Value) => void
}

/**
 * A Map with a max number of entries: beyond it, the oldest evictable entry is removed, but never the one just set. The
 * Map exceeds its bound only while too few entries are evictable. Age is the place in the Map: `set` keeps the place of
 * a known key, `setNewest` moves it to the end.
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
export function shrink<Key, Value> (
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
  /** The size of an entry, which must not change while it is held. Default: 1. */
  readonly sizeOf?: (key: Key, value: Value) => number
  /** Called after an entry was evicted; not called by `delete`. */
  readonly onEvict?: (key: Key, value: Value) => void
}

/** The entries of one owner, oldest first. */
interface Holder<Value, Key> {
  size: number
  /** Entries that are evicted before the others. */
  readonly spent: Map<Key, Value>
  readonly others: Map<Key, Value>
}

/**
 * Entries of several owners, with a max size for all: beyond it, the oldest entry of the owner that holds most is
 * evicted, so that an owner who adds entries without end loses only its own. An entry is as old as its last `set`. Of
 * owners that hold equally much, the one that has held something for longest loses.
 */
export class OwnedMap<Value, Key = string> {
  readonly #max: number
  readonly #sizeOf: (key: Key, value: Value) => number
  readonly #onEvict: ((key: Key, value: Value) => void) | undefined
  readonly #holders = new Map<string, Holder<Value, Key>>()
  #size = 0

  /** @param max number of entries or, with `sizeOf`, their size */
  constructor (max: number, { sizeOf = () => 1, onEvict }: OwnedMapOptions<Value, Key> = {}) {
    this.#max = max
    this.#sizeOf = sizeOf
    this.#onEvict = onEvict
  }

  get (owner: string, key: Key): Value | undefined {
    const holder = this.#holders.get(owner)
    return holder?.others.get(key) ?? holder?.spent.get(key)
  }

  /** @param isSpent it is evicted before all entries of its owner that are not */
  set (owner: string, key: Key, value: Value, isSpent = false): void {
    this.delete(owner, key)
    const holder = this.#holders.get(owner) ?? { size: 0, spent: new Map(), others: new Map() }
    this.#holders.set(owner, holder)
    const entries = isSpent ? holder.spent : holder.others
    entries.set(key, value)
    this.#resize(holder, this.#sizeOf(key, value))
    while (this.#size > this.#max) this.#evict()
  }

  delete (owner: string, key: Key): void {
    const holder = this.#holders.get(owner)
    const entries = holder?.spent.has(key) === true ? holder.spent : holder?.others
    const value = entries?.get(key)
    if (holder === undefined || entries === undefined || value === undefined) return
    entries.delete(key)
    this.#resize(holder, -this.#sizeOf(key, value))
    if (holder.spent.size + holder.others.size === 0) this.#holders.delete(owner)
  }

  #resize (holder: Holder<Value, Key>, change: number): void {
    holder.size += change
    this.#size += change
  }

  /** Evicts the oldest entry of the owner that holds most. */
  #evict (): void {
    let [largest] = this.#holders
    for (const each of this.#holders) if (each[1].size > (largest?.[1].size ?? 0)) largest = each
    if (largest === undefined) return
    const [owner, { spent, others }] = largest
    const [oldest] = spent.size > 0 ? spent : others
    if (oldest === undefined) return
    this.delete(owner, oldest[0])
    this.#onEvict?.(...oldest)
  }
}
