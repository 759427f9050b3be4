import { setImmediate as turn } from 'node:timers/promises'
import { isPlainObject } from '../../schemas/unknown-members.ts'
import type { SettingsDocument } from '../apply.ts'
import {
  findEntry, MemoryRecords, removeEntries, selectEntries, toMemoryEntry, toStoredRecord, trimEntries,
  type MemoryEntries, type MemoryEntry
} from '../memory/records.ts'
import {
  recordCollections, sealedCollections, type RecordCollection, type RecordEntry, type Records, type RecordFilter,
  type StoredRecord
} from '../records.ts'
import type { Resealing, OutdatedSealCounts, Vault } from '../store.ts'
import { EntryList, type SectionAccess, type ReadSection, type SectionsUpdate } from './section.ts'

/** An entry in the settings file: with `value` as plain JSON, or with `data` and `sealed`, the encrypted value. */
interface FileEntry extends MemoryEntry {
  readonly data?: { readonly secret: string }
  readonly sealed?: string | null
}

/** Returns the `place` of a record for the vault: a value copied to another record cannot be decrypted there. */
const vaultPlaceOf = ({ name }: RecordCollection, key: string): string => `${name}/${key}`
/** Returns the id of the key with which a sealed text was encrypted. */
const keyIdOf = (sealed: string): string => sealed.split('.')[1] ?? ''
/** The first time whose year has more than four digits, in ms since 1970. */
const endOfTime = Date.UTC(10_000, 0)
const fileCollections = Object.values<RecordCollection>(recordCollections).filter(({ isInFile }) => isInFile)

/**
 * The records of a gateway without a database. A collection with `isInFile` is a section of the settings file; the
 * others are in memory. Items of a section that are not records are kept unchanged. While the process runs, an edit of
 * the file can remove records but not add any: otherwise, saving an older version in an editor would restore used
 * tokens.
 */
export class FileRecords implements Records, Resealing {
  readonly outlivesProcess = false
  readonly #file: SectionAccess
  readonly #vault: Vault
  readonly #now: () => number
  readonly #memory: MemoryRecords
  readonly #lists = new Map<string, EntryList<FileEntry>>()

  /** @param now the clock, in ms since 1970 */
  constructor (file: SectionAccess, vault: Vault, now = () => Date.now()) {
    this.#file = file
    this.#vault = vault
    this.#now = now
    this.#memory = new MemoryRecords(now)
  }

  async put (collection: RecordCollection, entries: readonly RecordEntry[]): Promise<void> {
    if (!collection.isInFile) return await this.#memory.put(collection, entries)
    await this.#list(collection).change((kept) => { this.#add(collection, kept, entries) })
  }

  async find (collection: RecordCollection, key: string): Promise<StoredRecord | undefined> {
    if (!collection.isInFile) return await this.#memory.find(collection, key)
    const found = findEntry(this.#list(collection).entries, key, this.#now())
    return found && this.#decrypt(collection, found)
  }

  async swap (
    collection: RecordCollection, version: string | undefined, entry: RecordEntry, added: readonly RecordEntry[] = []
  ): Promise<boolean> {
    if (!collection.isInFile) return await this.#memory.swap(collection, version, entry, added)
    return await this.#list(collection).change((kept) => {
      if (findEntry(kept, entry.key, this.#now())?.version !== version) return false
      this.#add(collection, kept, [entry, ...added])
      return true
    })
  }

  async list (collection: RecordCollection, filter: RecordFilter, isBrief = false): Promise<StoredRecord[]> {
    if (!collection.isInFile) return await this.#memory.list(collection, filter)
    return selectEntries(this.#list(collection).entries, filter, this.#now())
      .map((entry) => isBrief ? toStoredRecord(entry, this.#now()) : this.#decrypt(collection, entry))
  }

  async remove (collection: RecordCollection, keyOrFilter: string | RecordFilter): Promise<number> {
    if (!collection.isInFile) return await this.#memory.remove(collection, keyOrFilter)
    return await this.#list(collection).change((kept) => removeEntries(kept as MemoryEntries, keyOrFilter, this.#now()))
  }

  /**
   * Computes the update of the file that removes the matching entries of a collection; it is empty if the section is
   * not a list.
   * @param onRemoved receives the owners of the removed entries, once the update is written
   */
  planRemoval (
    sections: ReadSection,
    collection: RecordCollection,
    filter: RecordFilter,
    onRemoved: (owners: string[]) => void = () => {}
  ): SectionsUpdate<void> {
    if (!Array.isArray(sections(collection.name))) return { changed: {}, result: undefined }
    const owners = new Set<string>()
    const update = this.#list(collection).planChange(sections, (kept) => {
      for (const { key, owner } of selectEntries(kept, filter, this.#now())) {
        kept.delete(key)
        if (owner !== undefined) owners.add(owner)
      }
    })
    return { ...update, result: undefined, onWritten: () => { update.onWritten?.(); onRemoved([...owners]) } }
  }

  async countOutdatedSeals (): Promise<OutdatedSealCounts> {
    const locked = new Map<string, { what: string, key: string, count: number }>()
    let former = 0
    for (const { what, sealed } of this.#sealedEntries()) {
      if (this.#vault.isSealedWithFormerKey(sealed)) former++
      if (this.#vault.isSealedWithFormerKey(sealed) || !this.#vault.isLocked(sealed)) continue
      const key = keyIdOf(sealed)
      const { count } = locked.get(`${what} ${key}`) ?? { count: 0 }
      locked.set(`${what} ${key}`, { what, key, count: count + 1 })
    }
    return { former, locked: [...locked.values()] }
  }

  /** Yields to the event loop after each value that is re-encrypted; then writes each changed collection once. */
  async resealAll (signal: AbortSignal): Promise<{ anew: number }> {
    const anew = new Map<FileEntry, FileEntry>()
    const changed = new Set<RecordCollection>()
    for (const { collection, entry, sealed } of this.#sealedEntries()) {
      if (!this.#vault.isSealedWithFormerKey(sealed)) continue
      const next = this.#resealEntry(collection, entry)
      if (next) {
        anew.set(entry, next)
        changed.add(collection)
      }
      await turn()
      signal.throwIfAborted()
    }
    for (const collection of changed) {
      await this.#list(collection).change((kept) => {
        for (const [key, entry] of [...kept]) kept.set(key, anew.get(entry) ?? entry)
      })
    }
    return { anew: anew.size }
  }

  #list (collection: RecordCollection): EntryList<FileEntry> {
    const { name } = collection
    const list =
      this.#lists.get(name) ?? new EntryList(this.#file, {
        name,
        isEntry: isFileEntry,
        keyOf: ({ key }) => key,
        isEditable: false
      })
    this.#lists.set(name, list)
    return list
  }

  #add (collection: RecordCollection, kept: Map<string, FileEntry>, added: readonly RecordEntry[]): void {
    for (const entry of added) kept.set(entry.key, this.#toFileEntry(collection, toMemoryEntry(entry, this.#now())))
    const owners = new Set(added.flatMap(({ owner }) => owner ?? []))
    trimEntries(kept as MemoryEntries, collection, collection.maxInFile ?? collection.maxEntries, owners, this.#now())
  }

  #toFileEntry (collection: RecordCollection, entry: MemoryEntry): FileEntry {
    if (!collection.isSealed) return entry
    // The vault's mask shows the last four characters of a long text, unless they contain a space. The appended space
    // keeps the end of the value out of the mask.
    const secret = `${JSON.stringify(entry.value)} `
    const { value: data, sealed } = this.#vault.encryptSecrets({ secret }, vaultPlaceOf(collection, entry.key))
    const { value: _, ...others } = entry
    return { ...others, data, sealed } as FileEntry
  }

  #decrypt (collection: RecordCollection, entry: FileEntry): StoredRecord {
    const stored = toStoredRecord(entry, this.#now())
    if (entry.data === undefined) return stored
    const decrypted = decryptValue(collection, entry, this.#vault)
    return decrypted === undefined ? { ...stored, isLocked: true } : { ...stored, ...decrypted }
  }

  * #sealedEntries (): Generator<{ collection: RecordCollection, what: string, entry: FileEntry, sealed: string }> {
    for (const { collection, what } of sealedCollections) {
      if (!collection.isInFile) continue
      for (const entry of this.#list(collection).entries.values()) {
        if (typeof entry.sealed === 'string') yield { collection, what, entry, sealed: entry.sealed }
      }
    }
  }

  /** Returns an entry with its value re-encrypted with the newest key; undefined if the value cannot be decrypted. */
  #resealEntry (collection: RecordCollection, entry: FileEntry): FileEntry | undefined {
    const place = vaultPlaceOf(collection, entry.key)
    try {
      const { value: data, sealed } =
        this.#vault.encryptSecrets(this.#vault.decryptSecrets(entry.data, entry.sealed ?? null, place), place)
      return { ...entry, data, sealed }
    } catch {
      return undefined
    }
  }
}

/**
 * Returns a copy of a settings document without records: its tokens and consents may have been used, revoked or
 * withdrawn by the time the copy is restored.
 * @param kept the names of the collections whose records stay in the copy
 */
export function withoutRecords (document: SettingsDocument, kept: readonly string[] = []): SettingsDocument {
  const changed = fileCollections.flatMap(({ name }) => {
    const value = kept.includes(name) ? undefined : document[name]
    return Array.isArray(value) && value.some(isFileEntry) ? [[name, value.filter((entry) => !isFileEntry(entry))]] : []
  })
  return changed.length === 0 ? document : { ...document, ...Object.fromEntries(changed) }
}

/**
 * Returns the records of a collection with encrypted values that a settings document contains, without those that
 * expire, such as marks of removal, and without those whose time no database has. Of several with one key, it returns
 * the first, which is the one that counts in a file. `locked`: the number of those that cannot be decrypted.
 */
export function sealedRecordsIn (
  document: SettingsDocument, collection: RecordCollection, vault: Vault
): { records: RecordEntry[], locked: number } {
  const value = document[collection.name]
  const lasting = (Array.isArray(value) ? value.filter(isFileEntry) : [])
    .filter(({ at, expiresAt }) => expiresAt === undefined && at >= 0 && at < endOfTime)
  const entries = [...new Map(lasting.reverse().map((entry) => [entry.key, entry])).values()]
  const records = entries.flatMap((entry) => {
    const decrypted = decryptValue(collection, entry, vault)
    const { key, owner, labels, at, version } = entry
    return decrypted === undefined ? [] : [{ key, owner, labels, at, version, ...decrypted }]
  })
  return { records, locked: entries.length - records.length }
}

/** Decrypts the value of an entry; undefined if it cannot be decrypted. */
function decryptValue (
  collection: RecordCollection, { key, data, sealed }: FileEntry, vault: Vault
): { value: unknown } | undefined {
  try {
    const { secret } = vault.decryptSecrets(data, sealed ?? null, vaultPlaceOf(collection, key)) as { secret: string }
    return { value: JSON.parse(secret) as unknown }
  } catch {
    return undefined
  }
}

function isFileEntry (entry: unknown): entry is FileEntry {
  if (!isPlainObject(entry)) return false
  const { key, owner, labels, version, at, changedAt, expiresAt, data, sealed } = entry
  return (
    [key, version].every((value) => typeof value === 'string') &&
    [owner, sealed ?? undefined].every((value) => value === undefined || typeof value === 'string') &&
    Array.isArray(labels) && labels.every((label) => typeof label === 'string') &&
    [at, changedAt].every((value) => typeof value === 'number') &&
    (expiresAt === undefined || typeof expiresAt === 'number') &&
    (data === undefined || (isPlainObject(data) && typeof data.secret === 'string'))
  )
}
