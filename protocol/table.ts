import type { RequestId } from './message.ts'

/**
 * Entries by request id, for requests in flight. Not a Map: V8 links each outgrown table of a Map to its successor, so
 * that once one of them is in the old generation, every later one is promoted, too, with all that it ever held. An
 * object used as a dictionary has no such chain.
 */
export class Table<Key extends RequestId, Value> {
  #entries: Record<string | number, { key: Key, value: Value }> = Object.create(null)
  #size = 0

  get size (): number { return this.#size }

  get (key: Key): Value | undefined { return this.#entries[nameOf(key)]?.value }

  has (key: Key): boolean { return this.#entries[nameOf(key)] !== undefined }

  set (key: Key, value: Value): void {
    const name = nameOf(key)
    if (this.#entries[name] === undefined) this.#size++
    this.#entries[name] = { key, value }
  }

  /** Removes an entry. @returns its value */
  take (key: Key): Value | undefined {
    const name = nameOf(key)
    const entry = this.#entries[name]
    if (entry === undefined) return undefined
    delete this.#entries[name]
    this.#size--
    return entry.value
  }

  /** A copy of the values: those under numbers first, in ascending order. */
  values (): Value[] { return Object.values(this.#entries).map(({ value }) => value) }
  keys (): Key[] { return Object.values(this.#entries).map(({ key }) => key) }
}

/** 1 and "1" are different ids. */
const nameOf = (key: RequestId): string | number => typeof key === 'string' ? `"${key}` : key
