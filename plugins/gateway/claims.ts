import type { Server } from '../../db/store.ts'
import { allListKinds, byListKind, type Catalogue, type ListingHistory, type ListKind } from '../../protocol/lists.ts'
import { memoized } from '../../protocol/memoized.ts'
import { itemKeysWithSkillFiles } from '../../protocol/skills.ts'
import { memoryOf } from '../../protocol/text.ts'
import { gatewayLimits } from './limits.ts'

/** The time of the last read of any catalogue, in ms since the epoch. */
let lastReading = 0

/** Returns the time of a new read, later than the times of previous reads, including those of restored claims. */
const nextReading = (): number => (lastReading = Math.max(lastReading + 1, Date.now()))

/** The claims that are stored with the catalogues, for the next start. */
export interface StoredItemClaims {
  /** The time of the server's first read; undefined: none. */
  readonly initial: number | undefined
  /** The items that are in no catalogue or that the first read did not list, with the time of their first listing. */
  readonly items: Readonly<Record<ListKind, Iterable<readonly [key: string, reading: number]>>>
}

/**
 * Records the items that a server lists, or has listed, for any client. The server has a claim to the names and URIs
 * of these items. The claims to items that it no longer lists are limited (`gatewayLimits.formerItems`).
 */
export class ItemClaims implements ListingHistory {
  /** For each kind of list: the time of the read that first listed an item, by the item's name or URI. */
  readonly #first = byListKind(() => new Map<string, number>())

  readonly #recordedCatalogues = new WeakSet<Catalogue>()
  #firstReadingTime: number | undefined
  /** Whether the next read drops the claims to unlisted items. */
  #isReconfigured = false

  get isKnown (): boolean { return this.#firstReadingTime !== undefined }

  firstListing (kind: ListKind, key: string): { reading: number, isInitial: boolean } | undefined {
    const reading = this.#first[kind].get(key)
    return reading === undefined ? undefined : { reading, isInitial: reading === this.#firstReadingTime }
  }

  keys (kind: ListKind): Iterable<string> { return this.#first[kind].keys() }

  /**
   * Records the items of a server's catalogues.
   * @param catalogues all known catalogues; claims to items that are in none of these may be dropped
   * @returns whether an item is listed for the first time
   */
  record (catalogues: readonly Catalogue[]): boolean {
    if (catalogues.every((catalogue) => this.#recordedCatalogues.has(catalogue))) return false
    const reading = nextReading()
    this.#firstReadingTime ??= reading
    for (const catalogue of catalogues) this.#recordedCatalogues.add(catalogue)
    let isAnyNew = false
    for (const kind of allListKinds) {
      const first = this.#first[kind]
      const listed = keysOf(catalogues, kind)
      const size = first.size
      for (const key of listed) if (!first.has(key)) first.set(key, reading)
      if (first.size > size) isAnyNew = true
      if (first.size > listed.size) forget(first, listed, this.#isReconfigured ? 0 : gatewayLimits.formerItems)
    }
    this.#isReconfigured = false
    return isAnyNew
  }

  /** Drops the claims to unlisted items at the next read. Called when the server's command or URL has changed. */
  reconfigure (): void { this.#isReconfigured = true }

  /**
   * Restores the claims of an earlier run. Items that are in a catalogue, but not in `stored`, count as listed by the
   * server's first read.
   * @param stored undefined: no claims were stored, and the catalogues count as read before those of other servers
   */
  restore (stored: StoredItemClaims | undefined, catalogues: readonly Catalogue[]): void {
    const initial = this.#firstReadingTime = stored?.initial ?? (catalogues.length > 0 ? 0 : undefined)
    if (initial === undefined) return
    lastReading = Math.max(lastReading, initial)
    for (const kind of allListKinds) {
      const first = this.#first[kind]
      for (const [key, reading] of stored?.items[kind] ?? []) {
        first.set(key, reading)
        lastReading = Math.max(lastReading, reading)
      }
      for (const key of keysOf(catalogues, kind)) if (!first.has(key)) first.set(key, initial)
    }
    for (const catalogue of catalogues) this.#recordedCatalogues.add(catalogue)
  }

  /** The claims to store beside these catalogues: those that `restore` cannot derive from the catalogues. */
  claimsToStore (catalogues: readonly Catalogue[]): StoredItemClaims {
    return {
      initial: this.#firstReadingTime,
      items: byListKind((kind) => this.#claimsBesideCatalogues(catalogues, kind))
    }
  }

  #claimsBesideCatalogues (catalogues: readonly Catalogue[], kind: ListKind): ReadonlyArray<readonly [string, number]> {
    const first = this.#first[kind]
    // Usually, one catalogue lists all items.
    const isAllListed = catalogues.some(({ lists }) => lists[kind].length >= first.size)
    const listed = isAllListed ? undefined : keysOf(catalogues, kind)
    const isListed = (key: string): boolean => listed?.has(key) ?? true
    const found: Array<readonly [string, number]> = []
    let former = 0
    for (const entry of first) {
      const [key, reading] = entry
      if (isListed(key)) {
        if (reading !== this.#firstReadingTime) found.push(entry)
      } else if (memoryOf(key) <= gatewayLimits.formerItemKey) {
        former++
        found.push(entry)
      }
    }
    // Items that only single clients can list are in none of these catalogues. `record` does not limit the claims to
    // such items, so they are limited here.
    return former <= gatewayLimits.formerItems
      ? found
      : found.filter(([key]) => isListed(key) || former-- <= gatewayLimits.formerItems)
  }
}

function keysOf (catalogues: readonly Catalogue[], kind: ListKind): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const catalogue of catalogues) for (const key of itemKeysWithSkillFiles(catalogue, kind)) keys.add(key)
  return keys
}

/**
 * Drops the claims to unlisted items that exceed the limits: those with long keys, and the oldest.
 * @param max the number of claims to unlisted items that may remain
 */
function forget (first: Map<string, number>, listed: ReadonlySet<string>, max: number): void {
  const former = [...first.keys()].filter((key) => !listed.has(key))
  let count = former.length
  let size = former.reduce((sum, key) => sum + memoryOf(key), 0)
  for (const key of former) {
    const own = memoryOf(key)
    if (count <= max && size <= gatewayLimits.formerItemsSize && own <= gatewayLimits.formerItemKey) continue
    first.delete(key)
    count--
    size -= own
  }
}

/**
 * The claims of servers whose providers do not record claims themselves. When the configuration of a server changes,
 * its claims end.
 */
export class ItemClaimsByServer {
  readonly of = memoized((_server: Server) => new ItemClaims())
}
