import { isObject } from '../../schemas/unknown-members.ts'
import type { Document } from '../apply.ts'
import { isExpired, MemoryRecords, select, toKept, toStored, trim, type Entries, type Kept } from '../memory/records.ts'
import { collections, type Collection, type Entry, type Records, type Selection, type StoredEntry } from '../records.ts'
import type { Resealing, SealedCounts, Vault } from '../store.ts'
import { EntryList, type SectionFile, type Sections, type SectionsUpdate } from './section.ts'
import { pause } from './steps.ts'

/** An entry in the file, with its value in plain JSON or encrypted. */
interface FileEntry extends Kept {
  readonly data?: { readonly secret: string }
  readonly sealed?: string | null
}

/** The place that a value is encrypted for: it cannot be decrypted under another key. */
const placeOf = ({ name }: Collection, key: string): string => `${name}/${key}`
/** The id of the encryption key of an encrypted text. */
const keyIdOf = (sealed: string): string => sealed.split('.')[1] ?? ''
const inFile = Object.values<Collection>(collections).filter(({ isInFile }) => isInFile)

/**
 * Records in sections of the settings file, and in memory. Items of another shape in these sections are kept unchanged.
 * While the process runs, an edit of the file can remove entries but not add any: otherwise saving an older version
 * from an editor would bring back used tokens.
 */
export class FileRecords implements Records, Resealing {
  readonly outlivesProcess = false
  readonly #file: SectionFile
  readonly #vault: Vault
  readonly #now: () => number
  readonly #memory: MemoryRecords
  readonly #lists = new Map<string, EntryList<FileEntry>>()

  /** @param now the clock, in ms since 1970 */
  constructor (file: SectionFile, vault: Vault, now = () => Date.now()) {
    this.#file = file
    this.#vault = vault
    this.#now = now
    this.#memory = new MemoryRecords(now)
  }

  async put (collection: Collection, entries: readonly Entry[]): Promise<void> {
    if (!collection.isInFile) return await this.#memory.put(collection, entries)
    await this.#list(collection).change((kept) => { this.#add(collection, kept, entries) })
  }

  async find (collection: Collection, key: string): Promise<StoredEntry | undefined> {
    if (!collection.isInFile) return await this.#memory.find(collection, key)
    const found = this.#list(collection).entries.get(key)
    return found === undefined || isExpired(found, this.#now()) ? undefined : this.#open(collection, found)
  }

  async swap (
    collection: Collection, version: string | undefined, entry: Entry, added: readonly Entry[] = []
  ): Promise<boolean> {
    if (!collection.isInFile) return await this.#memory.swap(collection, version, entry, added)
    return await this.#list(collection).change((kept) => {
      const former = kept.get(entry.key)
      const current = former === undefined || isExpired(former, this.#now()) ? undefined : former.version
      if (current !== version) return false
      this.#add(collection, kept, [entry, ...added])
      return true
    })
  }

  async list (collection: Collection, which: Selection, isBrief = false): Promise<StoredEntry[]> {
    if (!collection.isInFile) return await this.#memory.list(collection, which)
    return select(this.#list(collection).entries, which, this.#now())
      .map((entry) => isBrief ? toStored(entry, this.#now()) : this.#open(collection, entry))
  }

  async remove (collection: Collection, which: string | Selection): Promise<number> {
    if (!collection.isInFile) return await this.#memory.remove(collection, which)
    return await this.#list(collection).change((kept) => this.#removeFrom(kept, which))
  }

  /**
   * Computes the update that removes entries of a collection from the file; none if the section is not a list.
   * @param onRemoved called with the owners of the entries once they are removed
   */
  planRemoval (
    sections: Sections,
    collection: Collection,
    which: Selection,
    onRemoved: (owners: string[]) => void = () => {}
  ): SectionsUpdate<void> {
    if (!Array.isArray(sections(collection.name))) return { changed: {}, result: undefined }
    const owners = new Set<string>()
    const update = this.#list(collection).plan(sections, (kept) => {
      for (const { key, owner } of select(kept, which, this.#now())) {
        kept.delete(key)
        if (owner !== undefined) owners.add(owner)
      }
    })
    return { ...update, result: undefined, onWritten: () => { update.onWritten?.(); onRemoved([...owners]) } }
  }

  /** Counts the encrypted values whose key is a former one, or is not available. */
  async count (): Promise<SealedCounts> {
    const locked = new Map<string, number>()
    let former = 0
    for (const { sealed } of this.#sealed()) {
      if (this.#vault.outdated(sealed)) former++
      else if (this.#vault.locked(sealed)) locked.set(keyIdOf(sealed), (locked.get(keyIdOf(sealed)) ?? 0) + 1)
    }
    return { former, locked: [...locked].map(([key, count]) => ({ what: 'logins at servers', key, count })) }
  }

  /**
   * Re-encrypts, in steps, what a former key has encrypted, and writes it at once. An entry that changes meanwhile
   * stays as it is.
   */
  async run (signal: AbortSignal): Promise<{ anew: number, broken: number }> {
    const anew = new Map<FileEntry, FileEntry>()
    let broken = 0
    const changed = new Set<Collection>()
    for (const { collection, entry, sealed } of this.#sealed()) {
      if (!this.#vault.outdated(sealed)) continue
      const next = this.#resealed(collection, entry)
      if (next) anew.set(entry, next)
      else broken++
      changed.add(collection)
      await pause()
      signal.throwIfAborted()
    }
    for (const collection of anew.size > 0 ? changed : []) {
      await this.#list(collection).change((kept) => {
        for (const [key, entry] of [...kept]) kept.set(key, anew.get(entry) ?? entry)
      })
    }
    return { anew: anew.size, broken }
  }

  #list (collection: Collection): EntryList<FileEntry> {
    const { name } = collection
    const list =
      this.#lists.get(name) ?? new EntryList(this.#file, { name, isEntry, keyOf: ({ key }) => key, isEditable: false })
    this.#lists.set(name, list)
    return list
  }

  #add (collection: Collection, kept: Map<string, FileEntry>, added: readonly Entry[]): void {
    for (const entry of added) kept.set(entry.key, this.#sealedEntry(collection, toKept(entry, this.#now())))
    const owners = new Set(added.flatMap(({ owner }) => owner ?? []))
    trim(kept as Entries, collection, collection.maxInFile ?? collection.maxEntries, owners, this.#now())
  }

  #removeFrom (kept: Map<string, FileEntry>, which: string | Selection): number {
    const keys = typeof which === 'string' ? [which] : select(kept, which, this.#now()).map(({ key }) => key)
    return keys.filter((key) => kept.delete(key)).length
  }

  #sealedEntry (collection: Collection, entry: Kept): FileEntry {
    if (!collection.isSealed) return entry
    // With a trailing space, the mask does not show the last characters of the text.
    const secret = `${JSON.stringify(entry.value)} `
    const { value: data, sealed } = this.#vault.hide({ secret }, placeOf(collection, entry.key))
    const { value: _, ...others } = entry
    return { ...others, data, sealed } as FileEntry
  }

  #open (collection: Collection, entry: FileEntry): StoredEntry {
    const stored = toStored(entry, this.#now())
    if (entry.data === undefined) return stored
    try {
      const { secret } = this.#vault.reveal(entry.data, entry.sealed ?? null, placeOf(collection, entry.key))
      return { ...stored, value: JSON.parse(secret) as unknown }
    } catch {
      return { ...stored, isLocked: true }
    }
  }

  * #sealed (): Generator<{ collection: Collection, entry: FileEntry, sealed: string }> {
    for (const collection of inFile.filter(({ isSealed }) => isSealed)) {
      for (const entry of this.#list(collection).entries.values()) {
        if (typeof entry.sealed === 'string') yield { collection, entry, sealed: entry.sealed }
      }
    }
  }

  /** @returns undefined: it cannot be decrypted */
  #resealed (collection: Collection, entry: FileEntry): FileEntry | undefined {
    const place = placeOf(collection, entry.key)
    try {
      const { value: data, sealed } =
        this.#vault.hide(this.#vault.reveal(entry.data, entry.sealed ?? null, place), place)
      return { ...entry, data, sealed }
    } catch {
      return undefined
    }
  }
}

/**
 * Removes the records from a document, for a copy of it: restoring the copy must not bring back tokens and consents
 * that were used, revoked or withdrawn since.
 */
export function withoutRecords (document: Document): Document {
  const changed = inFile.flatMap(({ name }) => {
    const value = document[name]
    return Array.isArray(value) && value.some(isEntry) ? [[name, value.filter((entry) => !isEntry(entry))]] : []
  })
  return changed.length === 0 ? document : { ...document, ...Object.fromEntries(changed) }
}

function isEntry (entry: unknown): entry is FileEntry {
  if (!isObject(entry)) return false
  const { key, owner, labels, version, at, changedAt, expiresAt, data, sealed } = entry
  return (
    [key, version].every((value) => typeof value === 'string') &&
    [owner, sealed ?? undefined].every((value) => value === undefined || typeof value === 'string') &&
    Array.isArray(labels) && labels.every((label) => typeof label === 'string') &&
    [at, changedAt].every((value) => typeof value === 'number') &&
    (expiresAt === undefined || typeof expiresAt === 'number') &&
    (data === undefined || (isObject(data) && typeof data.secret === 'string'))
  )
}
