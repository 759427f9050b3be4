import type { SettingsDocument } from '../apply.ts'
import { StorageError } from '../store.ts'

/** Returns the value of a section by its name; undefined if the settings do not have the section. */
export type ReadSection = (name: string) => unknown

/** A change of sections of the settings file. `result`: what the caller of `updateSections` gets. */
export interface SectionsUpdate<Result> {
  /** The new values by section name; if empty, nothing is written. */
  readonly changed: SettingsDocument
  readonly result: Result
  /** Called once the sections are written, before the next update. */
  readonly onWritten?: () => void
  /** Whether the change removes a secret in plain text, so that the backup must be overwritten, too. */
  readonly dropsSecret?: boolean
}

/** Access to the sections of a settings file that are not part of snapshots: OAuth clients and records. */
export interface SectionAccess {
  /** Returns the value of a section as last read from or written to the file. */
  readSection: ReadSection
  /**
   * Changes sections durably, in one write; updates run one at a time.
   * @param change computes the update; called again if the file is edited meanwhile
   * @throws StorageError when nothing was changed, or the error of `change`
   */
  updateSections: <Result>(change: (sections: ReadSection) => SectionsUpdate<Result>) => Promise<Result>
}

/** Merges updates of different sections into one update, with `result` and `dropsSecret` of the first update. */
export function mergeUpdates<Result> (
  first: SectionsUpdate<Result>,
  ...others: ReadonlyArray<SectionsUpdate<void>>
): SectionsUpdate<Result> {
  return {
    changed: Object.assign({}, first.changed, ...others.map(({ changed }) => changed)) as SettingsDocument,
    result: first.result,
    onWritten: () => { for (const { onWritten } of [first, ...others]) onWritten?.() },
    dropsSecret: first.dropsSecret
  }
}

interface EntryListOptions<Entry> {
  /** The name of the section. */
  name: string
  isEntry: (item: unknown) => item is Entry
  /** Returns the key of an entry. If several entries have the same key, the first is used. */
  keyOf: (entry: Entry) => string
  /** Whether an edit of the file can add and change entries; otherwise, it can only remove entries. */
  isEditable: boolean
}

/** Reads and changes a section that is a list of entries. Items of another shape are kept unchanged. */
export class EntryList<Entry extends object> {
  readonly #file: SectionAccess
  readonly #options: EntryListOptions<Entry>
  /** The section as last read or written: its value, and the entries in it; undefined if it was not read yet. */
  #lastRead: { readonly value: unknown, readonly entries: ReadonlyMap<string, Entry> } | undefined

  constructor (file: SectionAccess, options: EntryListOptions<Entry>) {
    this.#file = file
    this.#options = options
  }

  /** The current entries of the section, by key. */
  get entries (): ReadonlyMap<string, Entry> {
    return this.#read(this.#file.readSection(this.#options.name))
  }

  /** Runs work on a copy of the entries, and writes the copy if it was changed. @throws StorageError */
  async change<Result> (work: (entries: Map<string, Entry>) => Result): Promise<Result> {
    return await this.#file.updateSections((sections) => this.planChange(sections, work))
  }

  /** Computes the update for `change`, without writing it. @throws StorageError when the section is not a list */
  planChange<Result> (sections: ReadSection, work: (entries: Map<string, Entry>) => Result): SectionsUpdate<Result> {
    const { name } = this.#options
    const value = sections(name)
    if (!isMissing(value) && !Array.isArray(value)) {
      throw new StorageError(
        `"${name}" in the settings has the wrong type, and cannot be changed: correct it first.`, false
      )
    }
    const former = this.#read(value)
    const entries = new Map(former)
    const result = work(entries)
    if (entries.size === former.size && [...entries].every(([key, entry]) => former.get(key) === entry)) {
      return { changed: {}, result }
    }
    const next = this.#mergeEntries(value ?? [], entries)
    return { changed: { [name]: next }, result, onWritten: () => { this.#lastRead = { value: next, entries } } }
  }

  #read (value: unknown): ReadonlyMap<string, Entry> {
    if (this.#lastRead !== undefined && this.#lastRead.value === value) return this.#lastRead.entries
    const { isEntry, keyOf, isEditable } = this.#options
    const found =
      new Map((Array.isArray(value) ? value : []).filter(isEntry).reverse().map((entry) => [keyOf(entry), entry]))
    const entries = this.#lastRead === undefined || isEditable
      ? new Map([...found].reverse())
      : new Map([...this.#lastRead.entries].filter(([key]) => found.has(key)))
    this.#lastRead = { value, entries }
    return entries
  }

  /** Returns the new items of the section: existing entries keep their positions, new ones come last. */
  #mergeEntries (items: readonly unknown[], entries: ReadonlyMap<string, Entry>): unknown[] {
    const { isEntry, keyOf, isEditable } = this.#options
    const left = new Map(entries)
    const kept = items.flatMap((item) => {
      if (!isEntry(item)) return [item]
      const key = keyOf(item)
      const entry = left.get(key)
      left.delete(key)
      if (entry !== undefined) return [entry]
      // The entry was removed, or it repeats the key of an earlier one in a hand-edited section. A repeated entry is
      // kept as long as the earlier one.
      return isEditable && entries.has(key) ? [item] : []
    })
    return [...kept, ...left.values()]
  }
}

const isMissing = (value: unknown): value is undefined | null => value === undefined || value === null
