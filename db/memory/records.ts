import { randomUUID } from 'node:crypto'
import type { Collection, Entry, Records, Selection, StoredEntry } from '../records.ts'

/** An entry with the time by which it is ordered. `value` is undefined if it is stored encrypted. */
export interface Kept extends Omit<Entry, 'expiresIn'> {
  readonly labels: readonly string[]
  readonly at: number
  readonly version: string
  readonly changedAt: number
}

/** The entries of one collection, by key. */
export type Entries = Map<string, Kept>

export function toKept ({ expiresIn, expiresAt, ...entry }: Entry, now: number): Kept {
  const expires = expiresIn === undefined ? expiresAt : now + expiresIn
  return {
    ...entry,
    labels: entry.labels ?? [],
    at: entry.at ?? now,
    version: entry.version ?? randomUUID(),
    changedAt: now,
    ...expires === undefined ? {} : { expiresAt: expires }
  }
}

export const isExpired = ({ expiresAt = Infinity }: Kept, now: number): boolean => expiresAt <= now

export const toStored = ({ value, owner, labels, version, changedAt, expiresAt }: Kept, now: number): StoredEntry =>
  ({ value, owner, labels, version, expiresAt, age: now - changedAt })

/** The matching entries, newest first. */
export function select (
  entries: ReadonlyMap<string, Kept>, { owner, labels, changedWithin }: Selection, now: number
): Kept[] {
  // Of entries with the same time, the one stored last comes first.
  return [...entries.values()]
    .reverse()
    .filter((entry) =>
      !isExpired(entry, now) &&
      (owner === undefined || entry.owner === owner) &&
      (labels === undefined || labels.some((label) => entry.labels.includes(label))) &&
      (changedWithin === undefined || entry.changedAt >= now - changedWithin))
    .sort((one, other) => other.at - one.at)
}

/** Removes expired entries, and those beyond the limits. @param written the owners of new entries */
export function trim (
  entries: Entries, collection: Collection, maxEntries: number, written: ReadonlySet<string>, now: number
): void {
  for (const [key, entry] of entries) if (isExpired(entry, now)) entries.delete(key)
  const { maxPerOwner = Infinity } = collection
  if (maxPerOwner < entries.size) {
    for (const owner of written) {
      for (const { key } of select(entries, { owner }, now).slice(maxPerOwner)) entries.delete(key)
    }
  }
  if (entries.size <= maxEntries) return
  if (collection.evicts === 'largest owners') removeLargest(entries, maxEntries)
  else for (const { key } of select(entries, {}, now).slice(maxEntries)) entries.delete(key)
}

/** Removes the entries of the owners with the most of them. */
function removeLargest (entries: Entries, maxEntries: number): void {
  const owners = new Map<string, { owner: string, size: number, last: number }>()
  for (const { owner = '', expiresAt = Infinity } of entries.values()) {
    const before = owners.get(owner)
    owners.set(owner, { owner, size: (before?.size ?? 0) + 1, last: Math.max(before?.last ?? 0, expiresAt) })
  }
  let running = 0
  const kept = new Set(
    [...owners.values()]
      .sort((one, other) => one.size - other.size || other.last - one.last)
      .filter(({ size }) => (running += size) <= maxEntries)
      .map(({ owner }) => owner)
  )
  for (const [key, { owner = '' }] of entries) if (!kept.has(owner)) entries.delete(key)
}

/** Min time between two removals of expired entries, in ms. */
const sweepInterval = 60_000

/** Records of this process alone; a restart loses them. */
export class MemoryRecords implements Records {
  readonly outlivesProcess = false
  readonly #now: () => number
  readonly #collections = new Map<string, { readonly entries: Entries, sweptAt: number }>()

  /** @param now the clock, in ms since 1970 */
  constructor (now = () => Date.now()) {
    this.#now = now
  }

  async put (collection: Collection, entries: readonly Entry[]): Promise<void> {
    this.#write(collection, entries)
  }

  async find (collection: Collection, key: string): Promise<StoredEntry | undefined> {
    const found = this.#find(collection, key)
    return found && toStored(found, this.#now())
  }

  async swap (
    collection: Collection, version: string | undefined, entry: Entry, added: readonly Entry[] = []
  ): Promise<boolean> {
    if (this.#find(collection, entry.key)?.version !== version) return false
    this.#write(collection, [entry, ...added])
    return true
  }

  async list (collection: Collection, which: Selection): Promise<StoredEntry[]> {
    return select(this.#entries(collection), which, this.#now()).map((entry) => toStored(entry, this.#now()))
  }

  async remove (collection: Collection, which: string | Selection): Promise<number> {
    const entries = this.#entries(collection)
    const keys = typeof which === 'string' ? [which] : select(entries, which, this.#now()).map(({ key }) => key)
    return keys.filter((key) => entries.delete(key)).length
  }

  #find (collection: Collection, key: string): Kept | undefined {
    const found = this.#entries(collection).get(key)
    return found === undefined || isExpired(found, this.#now()) ? undefined : found
  }

  #entries ({ name }: Collection): Entries {
    return this.#of(name).entries
  }

  #of (name: string): { readonly entries: Entries, sweptAt: number } {
    const known = this.#collections.get(name) ?? { entries: new Map(), sweptAt: this.#now() }
    this.#collections.set(name, known)
    return known
  }

  #write (collection: Collection, added: readonly Entry[]): void {
    const own = this.#of(collection.name)
    const now = this.#now()
    for (const entry of added) {
      // Re-inserted at the end, so that the oldest entries come first.
      own.entries.delete(entry.key)
      own.entries.set(entry.key, toKept({ ...entry, value: structuredClone(entry.value) }, now))
    }
    const isCrowded = own.entries.size > collection.maxEntries || collection.maxPerOwner !== undefined
    if (!isCrowded && now - own.sweptAt < sweepInterval) return
    own.sweptAt = now
    trim(own.entries, collection, collection.maxEntries, new Set(added.flatMap(({ owner }) => owner ?? [])), now)
  }
}
