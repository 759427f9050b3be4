import { LargestFirst, type Sized } from './largest-first.ts'

interface OwnedMapOptions<Value, Key> {
  /** What an entry counts, which must not change while it is held. Left out: 1. */
  readonly sizeOf?: (key: Key, value: Value) => number
  /** Called after an entry was evicted; not called by `delete`. */
  readonly onEvict?: (key: Key, value: Value) => void
}

/** What one owner holds, oldest first. `size` is that of all entries. */
interface Holder<Value, Key> extends Sized {
  readonly owner: string
  /** Entries that go before the others. */
  readonly spent: Map<Key, Value>
  readonly others: Map<Key, Value>
}

/**
 * Entries of several owners, with a max size for all: beyond it, the oldest entry of the owner that holds most is evicted, so that who adds
 * entries without end loses his own. An entry is as old as its last `set`. Of owners that hold as much as each other, the one that has held
 * something for longest loses.
 */
export class OwnedMap<Value, Key = string> {
  readonly #max: number
  readonly #sizeOf: (key: Key, value: Value) => number
  readonly #onEvict: ((key: Key, value: Value) => void) | undefined
  readonly #byOwner = new Map<string, Holder<Value, Key>>()
  readonly #holders = new LargestFirst<Holder<Value, Key>>()
  #size = 0
  #lastOwner = 0

  /** @param max number of entries or, with `sizeOf`, their size */
  constructor (max: number, { sizeOf = () => 1, onEvict }: OwnedMapOptions<Value, Key> = {}) {
    this.#max = max
    this.#sizeOf = sizeOf
    this.#onEvict = onEvict
  }

  get (owner: string, key: Key): Value | undefined {
    const holder = this.#byOwner.get(owner)
    return holder?.others.get(key) ?? holder?.spent.get(key)
  }

  /** @param isSpent it is evicted before all entries of its owner that are not */
  set (owner: string, key: Key, value: Value, isSpent = false): void {
    this.delete(owner, key)
    const holder = this.#byOwner.get(owner) ?? this.#begin(owner)
    const entries = isSpent ? holder.spent : holder.others
    entries.set(key, value)
    this.#resize(holder, this.#sizeOf(key, value))
    while (this.#size > this.#max) this.#evict()
  }

  delete (owner: string, key: Key): void {
    const holder = this.#byOwner.get(owner)
    if (holder === undefined) return
    const entries = holder.spent.has(key) ? holder.spent : holder.others
    const value = entries.get(key)
    if (value === undefined) return
    entries.delete(key)
    this.#resize(holder, -this.#sizeOf(key, value))
    if (holder.spent.size + holder.others.size > 0) return
    this.#byOwner.delete(owner)
    this.#holders.remove(holder)
  }

  #begin (owner: string): Holder<Value, Key> {
    const holder = { owner, size: 0, place: 0, since: ++this.#lastOwner, spent: new Map<Key, Value>(), others: new Map<Key, Value>() }
    this.#byOwner.set(owner, holder)
    this.#holders.add(holder)
    return holder
  }

  #resize (holder: Holder<Value, Key>, size: number): void {
    holder.size += size
    this.#size += size
    this.#holders.update(holder)
  }

  /** Evicts the oldest entry of the owner that holds most. */
  #evict (): void {
    const holder = this.#holders.first
    if (holder === undefined) return
    const [oldest] = holder.spent.size > 0 ? holder.spent : holder.others
    if (oldest === undefined) return
    const [key, value] = oldest
    this.delete(holder.owner, key)
    this.#onEvict?.(key, value)
  }
}
