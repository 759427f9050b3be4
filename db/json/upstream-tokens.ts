import { randomUUID } from 'node:crypto'
import { isObject } from '../../schemas/unknown-members.ts'
import { maxRecords, retention, type LoginChange, type StoredLogin, type UpstreamTokens } from '../ports.ts'
import type { Resealing, SealedCounts, Vault } from '../store.ts'
import { EntryList, type SectionFile } from './section.ts'
import { pause } from './steps.ts'

/** The name of the section of logins at upstreams. */
export const upstreamSection = 'upstreamTokens'

/** A value as it is stored in the file: sealed, unlike the settings, which people edit. */
interface Entry {
  readonly server: string
  readonly holder: string
  readonly version: string
  readonly changedAt: number
  readonly data: { readonly secret: string }
  readonly sealed: string | null
}

const keyOf = (server: string, holder: string): string => JSON.stringify([server, holder])
/** The place that a value is sealed for: it cannot be opened as another one's. */
const placeOf = (server: string, holder: string): string => `${upstreamSection}/${keyOf(server, holder)}`

/** The id of the key of a sealed text. */
const keyIdOf = (sealed: string): string => sealed.split('.')[1] ?? ''

/** Logins at upstreams in the settings file. While the process runs, an edit of the file can remove some, but not bring any back. */
export class FileUpstreamTokens implements UpstreamTokens, Resealing {
  readonly #list: EntryList<Entry>
  readonly #vault: Vault
  readonly #now: () => number
  /** Claims by key: the version that is being replaced, and until when. */
  readonly #claims = new Map<string, { readonly version: string, readonly until: number }>()
  /** What was removed lately, by key. */
  readonly #removed = new Map<string, { readonly server: string, readonly holder: string, readonly at: number }>()

  /**
   * @param count max values kept; beyond, those that were unchanged longest are removed
   * @param now the clock, in ms since 1970
   */
  constructor (file: SectionFile, vault: Vault, count: number = maxRecords.upstreamTokensInFile, now = () => Date.now()) {
    this.#vault = vault
    this.#now = now
    this.#list = new EntryList(file, {
      name: upstreamSection,
      isEntry: isUpstreamToken,
      keyOf: ({ server, holder }) => keyOf(server, holder),
      isEditable: false,
      limit: (entries) => {
        const excess = [...entries].sort(([, one], [, other]) => other.changedAt - one.changedAt).slice(count)
        for (const [key] of excess) entries.delete(key)
      }
    })
  }

  /** A value whose key is gone counts as none: whoever it is for logs in again. */
  async find (server: string, holder: string): Promise<StoredLogin | undefined> {
    const found = this.#list.entries.get(keyOf(server, holder))
    const opened = found && this.#open(found)
    return opened && { version: found.version, ...opened }
  }

  #open ({ server, holder, data, sealed }: Entry): { value: unknown } | undefined {
    try {
      return { value: JSON.parse(this.#vault.reveal(data, sealed, placeOf(server, holder)).secret) as unknown }
    } catch {
      return undefined
    }
  }

  async swap (
    server: string,
    holder: string,
    replaces: { readonly version: string } | 'any' | undefined,
    value: unknown
  ): Promise<string | undefined> {
    const key = keyOf(server, holder)
    // The trailing space keeps the last characters of the text out of its mask.
    const { value: data, sealed } = this.#vault.hide({ secret: `${JSON.stringify(value)} ` }, placeOf(server, holder))
    const version = await this.#list.change((entries) => {
      const former = entries.get(key)
      const isFree = replaces === undefined && (former === undefined || this.#open(former) === undefined)
      if (replaces !== 'any' && !isFree && (replaces === undefined || former?.version !== replaces.version)) return undefined
      const entry: Entry = { server, holder, version: randomUUID(), changedAt: this.#now(), data, sealed }
      entries.set(key, entry)
      return entry.version
    })
    if (version === undefined) return undefined
    this.#claims.delete(key)
    this.#removed.delete(key)
    return version
  }

  async claim (server: string, holder: string, version: string, time: number): Promise<boolean> {
    const key = keyOf(server, holder)
    if (this.#list.entries.get(key)?.version !== version) return false
    const held = this.#claims.get(key)
    if (held?.version === version && held.until > this.#now()) return false
    this.#claims.set(key, { version, until: this.#now() + time })
    return true
  }

  async remove (server: string, holder: string): Promise<boolean> {
    return await this.#remove((entry) => entry.server === server && entry.holder === holder) > 0
  }

  async removeAll (target: { readonly server: string } | { readonly holder: string }): Promise<void> {
    await this.#remove((entry) => 'server' in target ? entry.server === target.server : entry.holder === target.holder)
  }

  async changedWithin (time: number): Promise<LoginChange[]> {
    const since = this.#now() - time
    const stored = [...this.#list.entries.values()].filter(({ changedAt }) => changedAt >= since)
    const removed = [...this.#removed.values()].filter(({ at }) => at >= since)
    return [
      ...stored.map(({ server, holder, version }) => ({ server, holder, version })),
      ...removed.map(({ server, holder }) => ({ server, holder, version: undefined }))
    ]
  }

  /** Counts the values of former keys and of those that are not available. */
  async count (): Promise<SealedCounts> {
    const keys = [...this.#list.entries.values()].flatMap(({ sealed }) => sealed ?? [])
    const locked = new Map<string, number>()
    for (const sealed of keys) if (this.#vault.locked(sealed)) locked.set(keyIdOf(sealed), (locked.get(keyIdOf(sealed)) ?? 0) + 1)
    return {
      former: keys.filter((sealed) => this.#vault.outdated(sealed)).length,
      locked: [...locked].map(([key, count]) => ({ what: 'logins at servers', key, count }))
    }
  }

  /** Seals anew what a former key has sealed, in steps, and writes it at once. A value that was changed meanwhile stays as it is. */
  async run (signal: AbortSignal): Promise<{ anew: number, broken: number }> {
    const anew = new Map<Entry, Entry>()
    let broken = 0
    for (const entry of this.#list.entries.values()) {
      if (entry.sealed === null || !this.#vault.outdated(entry.sealed)) continue
      const next = this.#resealed(entry)
      if (next) anew.set(entry, next)
      else broken++
      await pause()
      signal.throwIfAborted()
    }
    if (anew.size > 0) {
      await this.#list.change((entries) => {
        for (const [key, entry] of [...entries]) entries.set(key, anew.get(entry) ?? entry)
      })
    }
    return { anew: anew.size, broken }
  }

  /** @returns undefined: it cannot be opened */
  #resealed (entry: Entry): Entry | undefined {
    const place = placeOf(entry.server, entry.holder)
    try {
      const { value: data, sealed } = this.#vault.hide(this.#vault.reveal(entry.data, entry.sealed, place), place)
      return { ...entry, data, sealed }
    } catch {
      return undefined
    }
  }

  /** @returns how many were removed */
  async #remove (which: (entry: Entry) => boolean): Promise<number> {
    const gone = await this.#list.change((entries) => {
      const found = [...entries].filter(([, entry]) => which(entry))
      for (const [key] of found) entries.delete(key)
      return found
    })
    const at = this.#now()
    for (const [key, removed] of this.#removed) if (removed.at < at - retention) this.#removed.delete(key)
    for (const [key, { server, holder }] of gone) {
      this.#claims.delete(key)
      this.#removed.set(key, { server, holder, at })
    }
    return gone.length
  }
}

export function isUpstreamToken (entry: unknown): entry is Entry {
  if (!isObject(entry)) return false
  const { server, holder, version, changedAt, data, sealed } = entry
  return (
    [server, holder, version].every((value) => typeof value === 'string') &&
    typeof changedAt === 'number' &&
    isObject(data) &&
    typeof data.secret === 'string' &&
    (sealed === null || typeof sealed === 'string')
  )
}
