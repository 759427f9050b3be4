import type { RequestId } from './message.ts'

/**
 * A map of open requests by id. It is an object and not a Map, since V8 links each outgrown hash table of a Map to the
 * next table: once a table is in the old generation, all later tables and their former entries are promoted, too.
 */
export class RequestTable<Key extends RequestId, Value> {
  #entries: Record<string | number, { key: Key, value: Value }> = Object.create(null)
  #size = 0

  get size (): number { return this.#size }

  get (key: Key): Value | undefined { return this.#entries[keyToName(key)]?.value }

  has (key: Key): boolean { return this.#entries[keyToName(key)] !== undefined }

  set (key: Key, value: Value): void {
    const name = keyToName(key)
    if (this.#entries[name] === undefined) this.#size++
    this.#entries[name] = { key, value }
  }

  /** Removes an entry. @returns its value */
  take (key: Key): Value | undefined {
    const name = keyToName(key)
    const entry = this.#entries[name]
    if (entry === undefined) return undefined
    delete this.#entries[name]
    this.#size--
    return entry.value
  }

  /** Returns a copy of the values: first the values with numeric keys, in ascending order of the keys. */
  values (): Value[] { return Object.values(this.#entries).map(({ value }) => value) }
  keys (): Key[] { return Object.values(this.#entries).map(({ key }) => key) }
}

/** Converts an id to a property name. The ids 1 and "1" get different names. */
const keyToName = (key: RequestId): string | number => typeof key === 'string' ? `"${key}` : key
