import { randomUUID } from 'node:crypto'
import type { RecordCollection, RecordEntry, Records, RecordFilter, StoredRecord } from '../records.ts'

/**
 * A record as stored in memory or in the settings file, with the defaults of `RecordEntry` filled in. `changedAt`: the
 * time of the last write, in ms since 1970. `value` is undefined if the settings file contains it in encrypted form.
 */
export interface MemoryEntry extends Omit<RecordEntry, 'expiresIn'> {
  readonly labels: readonly string[]
  readonly at: number
  readonly version: string
  readonly changedAt: number
}

/** The records of one collection, by key. */
export type MemoryEntries = Map<string, MemoryEntry>

export function toMemoryEntry ({ expiresIn, expiresAt, ...entry }: RecordEntry, now: number): MemoryEntry {
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

const isExpired = ({ expiresAt = Infinity }: MemoryEntry, now: number): boolean => expiresAt <= now

export const toStoredRecord = (
  { value, owner, labels, version, changedAt, expiresAt }: MemoryEntry, now: number
): StoredRecord =>
  ({ value, owner, labels, version, expiresAt, age: now - changedAt })

/** Returns the unexpired records that match a filter, newest first. */
export function selectEntries (
  entries: ReadonlyMap<string, MemoryEntry>, { owner, labels, changedWithin }: RecordFilter, now: number
): MemoryEntry[] {
  // Reversed first, so that among records with the same time, the one stored last comes first.
  return [...entries.values()]
    .reverse()
    .filter((entry) =>
      !isExpired(entry, now) &&
      (owner === undefined || entry.owner === owner) &&
      (labels === undefined || labels.some((label) => entry.labels.includes(label))) &&
      (changedWithin === undefined || entry.changedAt >= now - changedWithin))
    .sort((one, other) => other.at - one.at)
}

/** Returns the record with a key; undefined if there is none, or it has expired. */
export function findEntry<Entry extends MemoryEntry> (
  entries: ReadonlyMap<string, Entry>, key: string, now: number
): Entry | undefined {
  const found = entries.get(key)
  return found === undefined || isExpired(found, now) ? undefined : found
}

/** Removes the record with a key, or the records that match a filter. @returns how many were removed */
export function removeEntries (
  entries: Map<string, MemoryEntry>, keyOrFilter: string | RecordFilter, now: number
): number {
  const keys = typeof keyOrFilter === 'string'
    ? [keyOrFilter]
    : selectEntries(entries, keyOrFilter, now).map(({ key }) => key)
  return keys.filter((key) => entries.delete(key)).length
}

/**
 * Removes expired records, and those beyond the limits of their collection.
 * @param maxEntries the max number of records; `collection.maxEntries` is not used
 * @param written the owners of the records just added; `maxPerOwner` is checked for these only
 */
export function trimEntries (
  entries: MemoryEntries, collection: RecordCollection, maxEntries: number, written: ReadonlySet<string>, now: number
): void {
  for (const [key, entry] of entries) if (isExpired(entry, now)) entries.delete(key)
  const { maxPerOwner = Infinity } = collection
  if (maxPerOwner < entries.size) {
    for (const owner of written) {
      for (const { key } of selectEntries(entries, { owner }, now).slice(maxPerOwner)) entries.delete(key)
    }
  }
  if (entries.size <= maxEntries) return
  if (collection.evicts === 'largest owners') removeLargestOwners(entries, maxEntries)
  else for (const { key } of selectEntries(entries, {}, now).slice(maxEntries)) entries.delete(key)
}

/** Removes all records of the owners that have the most, until at most `maxEntries` records remain. */
function removeLargestOwners (entries: MemoryEntries, maxEntries: number): void {
  const owners = new Map<string, { owner: string, size: number, last: number }>()
  for (const { owner = '', expiresAt = Infinity } of entries.values()) {
    const before = owners.get(owner)
    owners.set(owner, { owner, size: (before?.size ?? 0) + 1, last: Math.max(before?.last ?? 0, expiresAt) })
  }
  let total = 0
  const kept = new Set(
    [...owners.values()]
      .sort((one, other) => one.size - other.size || other.last - one.last)
      .filter(({ size }) => (total += size) <= maxEntries)
      .map(({ owner }) => owner)
  )
  for (const [key, { owner = '' }] of entries) if (!kept.has(owner)) entries.delete(key)
}

/** Min time between two removals of expired records, in ms. Writes that must check a limit remove them at once. */
const sweepInterval = 60_000

/** Records in memory, which are lost at a restart. */
export class MemoryRecords implements Records {
  readonly outlivesProcess = false
  readonly #now: () => number
  readonly #collections = new Map<string, { readonly entries: MemoryEntries, sweptAt: number }>()

  /** @param now the clock, in ms since 1970 */
  constructor (now = () => Date.now()) {
    this.#now = now
  }

  async put (collection: RecordCollection, entries: readonly RecordEntry[]): Promise<void> {
    this.#write(collection, entries)
  }

  async find (collection: RecordCollection, key: string): Promise<StoredRecord | undefined> {
    const found = findEntry(this.#entries(collection), key, this.#now())
    return found && toStoredRecord(found, this.#now())
  }

  async swap (
    collection: RecordCollection, version: string | undefined, entry: RecordEntry, added: readonly RecordEntry[] = []
  ): Promise<boolean> {
    if (findEntry(this.#entries(collection), entry.key, this.#now())?.version !== version) return false
    this.#write(collection, [entry, ...added])
    return true
  }

  async list (collection: RecordCollection, filter: RecordFilter): Promise<StoredRecord[]> {
    return selectEntries(this.#entries(collection), filter, this.#now()).map((entry) =>
      toStoredRecord(entry, this.#now()))
  }

  async remove (collection: RecordCollection, keyOrFilter: string | RecordFilter): Promise<number> {
    return removeEntries(this.#entries(collection), keyOrFilter, this.#now())
  }

  #entries ({ name }: RecordCollection): MemoryEntries {
    return this.#stateOf(name).entries
  }

  #stateOf (name: string): { readonly entries: MemoryEntries, sweptAt: number } {
    const known = this.#collections.get(name) ?? { entries: new Map(), sweptAt: this.#now() }
    this.#collections.set(name, known)
    return known
  }

  #write (collection: RecordCollection, added: readonly RecordEntry[]): void {
    const own = this.#stateOf(collection.name)
    const now = this.#now()
    for (const entry of added) {
      // Inserted again at the end, so that the entries are in the order of their last writes.
      own.entries.delete(entry.key)
      own.entries.set(entry.key, toMemoryEntry({ ...entry, value: structuredClone(entry.value) }, now))
    }
    const isCrowded = own.entries.size > collection.maxEntries || collection.maxPerOwner !== undefined
    if (!isCrowded && now - own.sweptAt < sweepInterval) return
    own.sweptAt = now
    trimEntries(own.entries, collection, collection.maxEntries, new Set(added.flatMap(({ owner }) => owner ?? [])), now)
  }
}
