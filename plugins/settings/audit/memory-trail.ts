import type { AuditEntry, AuditFilter, AuditTrail } from '../../../db/audit-trail.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { OwnedMap } from '../../base/limits/index.ts'

/** `entries`: max number of entries; `size`: max memory of all `before` and `after` together, in bytes. */
export interface TrailBounds { readonly entries: number, readonly size: number }

const sizeOf = ({ before = '', after = '' }: AuditEntry): number => memoryOf(before) + memoryOf(after)

/** The actor of an entry: a user, including the user's keys, or a system key without an owner. */
const actorOf = ({ username, keyId }: AuditEntry): string =>
  keyId !== undefined && username === 'system' ? `key ${keyId}` : `user ${username}`

/**
 * Entries in the order of their changes, within two limits. Beyond a limit, the oldest entry of the actor with the
 * largest share is dropped, so that no actor can evict the entries of others.
 */
export class BoundedAuditEntries {
  readonly #entries = new Set<AuditEntry>()
  readonly #bounds: ReadonlyArray<OwnedMap<true, AuditEntry>>

  constructor ({ entries, size }: TrailBounds) {
    const onEvict = (entry: AuditEntry): void => { this.delete(entry) }
    this.#bounds = [new OwnedMap(entries, { onEvict }), new OwnedMap(size, { sizeOf, onEvict })]
  }

  get size (): number { return this.#entries.size }

  [Symbol.iterator] (): IterableIterator<AuditEntry> { return this.#entries.values() }

  /** Adds entries. @returns how many were dropped */
  add (entries: readonly AuditEntry[]): number {
    const before = this.#entries.size
    for (const entry of entries) {
      this.#entries.add(entry)
      for (const bound of this.#bounds) if (this.#entries.has(entry)) bound.set(actorOf(entry), entry, true)
    }
    return before + entries.length - this.#entries.size
  }

  delete (entry: AuditEntry): void {
    this.#entries.delete(entry)
    for (const bound of this.#bounds) bound.delete(actorOf(entry), entry)
  }
}

/** The newest entries of each actor, in the memory of this process, within bounds. */
export class MemoryAuditTrail implements AuditTrail {
  readonly #entries: BoundedAuditEntries

  constructor (bounds: TrailBounds) {
    this.#entries = new BoundedAuditEntries(bounds)
  }

  async append (entries: readonly AuditEntry[]): Promise<void> { this.#entries.add(entries) }

  async list (filter: AuditFilter, limit: number, after?: string): Promise<AuditEntry[] | undefined> {
    const newestFirst = [...this.#entries].reverse()
    const from = after === undefined ? 0 : newestFirst.findIndex(({ id }) => id === after) + 1
    if (after !== undefined && from === 0) return undefined
    return newestFirst.slice(from).filter((entry) => matches(entry, filter)).slice(0, limit)
  }

  async trim (): Promise<number> { return 0 }
}

function matches (entry: AuditEntry, { from = -Infinity, to = Infinity, ...equal }: AuditFilter): boolean {
  if (entry.timestamp < from || entry.timestamp >= to) return false
  return (Object.entries(equal) as Array<[keyof typeof equal, string | undefined]>).every(([name, value]) =>
    value === undefined || entry[name] === value
  )
}
