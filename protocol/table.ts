import type { RequestId } from './message.ts'

/**
 * Entries by request id, for open requests. Not a Map: V8 links each outgrown hash table of a Map to its successor, so
 * once one is in the old generation, every later one is promoted with everything it ever held. An object used as a
 * dictionary has no such chain.
 */
export class Table<Key extends RequestId, Value> {
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

  /** A copy of the values: those with numeric keys first, in ascending order. */
  values (): Value[] { return Object.values(this.#entries).map(({ value }) => value) }
  keys (): Key[] { return Object.values(this.#entries).map(({ key }) => key) }
}

/** Converts an id to a property name that keeps 1 and "1" distinct. */
const keyToName = (key: RequestId): string | number => typeof key === 'string' ? `"${key}` : key
