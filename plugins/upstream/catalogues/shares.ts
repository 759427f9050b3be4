import {
  allListKinds, isSameCatalogue, type Catalogue, type Item, type ListKind
} from '../../../protocol/lists.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { TokenBucket } from '../../base/limits/index.ts'
import { upstreamLimits } from '../limits.ts'

/**
 * Limits the size of one server's catalogues and how often they are read, and stores them on disk. Sizes are in bytes
 * of memory.
 */
export interface CatalogueLimitsAndStorage {
  /** Returns the max total size of the server's catalogues, which exist for several capability classes and clients. */
  readonly remainingSize: () => number
  /** Reports the total size of the server's catalogues. */
  readonly setHeldSize: (size: number) => void
  /**
   * Returns the time until the lists may be read again, in ms; 0 unless they were read too often.
   * @param isFirst whether no list of the server is known yet
   */
  readonly waitTime: (isFirst: boolean) => number
  /** Reports the size of lists that were just read. */
  readonly recordRead: (size: number) => void
  /** Stores the catalogues for the next run, as a text in pieces. */
  readonly store: (text: Iterable<string>) => void
}

/** Limits the total size of the lists of each user's servers, and how often they are read. */
export class CatalogueShares {
  /** The owner and the size of each server's lists, by the server's name; without servers of admins. */
  readonly #held = new Map<string, { readonly user: string, readonly size: number }>()
  readonly #reads = new TokenBucket(upstreamLimits.catalogueReads)

  /**
   * Returns the max size of a server's lists, in bytes of memory: the user's limit minus the lists of the user's other
   * servers.
   * @param user the server's owner; undefined for an admin, who has no limit
   */
  remainingSize (server: string, user: string | undefined): number {
    if (user === undefined) return Infinity
    let room: number = upstreamLimits.cataloguesPerUser
    for (const [name, held] of this.#held) if (held.user === user && name !== server) room -= held.size
    return Math.max(room, 0)
  }

  /** Sets the size of a server's lists. @param size in bytes of memory */
  setHeldSize (server: string, user: string | undefined, size: number): void {
    if (user === undefined || size === 0) this.#held.delete(server)
    else this.#held.set(server, { user, size })
  }

  /**
   * Returns the time until a server's lists may be read again, in ms. The servers of one user share a limit; each
   * server of an admin has its own.
   */
  waitTime (server: string, user: string | undefined): number {
    return this.#reads.waitTime(readBucketKey(server, user), 0)
  }

  /** Records that lists were read. @param size in bytes of memory */
  recordRead (server: string, user: string | undefined, size: number): void {
    this.#reads.spend(readBucketKey(server, user), size)
  }
}

/** Returns the key under which the readings of a server's lists are counted. */
const readBucketKey = (server: string, user: string | undefined): string =>
  user === undefined ? `server ${server}` : `user ${user}`

/** The sizes of catalogues that share items with another one, without these items. */
const ownSizes = new WeakMap<Catalogue, number>()

/** Returns the size of a catalogue's items and instructions, in bytes of memory. Shared items do not count. */
export function catalogueSize (catalogue: Catalogue): number {
  const { lists, instructions = '' } = catalogue
  const own = ownSizes.get(catalogue)
  if (own !== undefined) return own
  let size = memoryOf(instructions)
  for (const kind of allListKinds) for (const { text } of lists[kind]) size += memoryOf(text)
  return size
}

/** Returns the total size of catalogues, in bytes of memory; each counts once. @param excluded does not count */
export function totalSize (catalogues: Iterable<Catalogue>, excluded: Catalogue | undefined): number {
  let size = 0
  for (const catalogue of new Set(catalogues)) if (catalogue !== excluded) size += catalogueSize(catalogue)
  return size
}

/**
 * Returns the server's base catalogue (that of clients without capabilities) in place of one that looks the same to
 * clients, as most servers list the same to all clients. Of any other one, records the size without shared items.
 * @param base the base catalogue; undefined if it has not been read
 */
export function shareCatalogue (catalogue: Catalogue, base: Catalogue | undefined): Catalogue {
  if (!base) return catalogue
  if (base.version === catalogue.version && isSameCatalogue(base, catalogue)) return base
  let size = memoryOf(catalogue.instructions ?? '')
  for (const kind of allListKinds) {
    const shared = new Set(base.lists[kind])
    for (const item of catalogue.lists[kind]) if (!shared.has(item)) size += memoryOf(item.text)
  }
  ownSizes.set(catalogue, size)
  return catalogue
}

/**
 * Returns a catalogue of clients other than those of the base catalogue; the base catalogue if it does not fit.
 * @param others the total size of the other ones, in bytes of memory
 * @param warn called with a sentence if it does not fit
 */
export function fitOther (
  catalogue: Catalogue, base: Catalogue | undefined, others: number, warn: (sentence: string) => void
): Catalogue {
  if (!base || catalogue === base || others + catalogueSize(catalogue) <= upstreamLimits.otherLists) return catalogue
  warn(`its lists for certain capabilities, users or sessions are larger than ${upstreamLimits.otherLists} bytes in ` +
    'total; further clients get its lists for clients without capabilities')
  return base
}

/**
 * Limits the size of a catalogue: omits the first item that does not fit, and all items after it.
 * @param room the max size, in bytes of memory
 * @param warn called with a sentence if items are omitted
 */
export function fitCatalogue (catalogue: Catalogue, room: number, warn: (sentence: string) => void): Catalogue {
  if (room === Infinity || catalogueSize(catalogue) <= room) return catalogue
  let left = room - memoryOf(catalogue.instructions ?? '')
  const lists = {} as Record<ListKind, readonly Item[]>
  for (const kind of allListKinds) {
    lists[kind] = catalogue.lists[kind].filter(({ text }) => (left -= memoryOf(text)) >= 0)
  }
  warn(
    `its owner's servers list more than ${upstreamLimits.cataloguesPerUser} bytes in total; further items are omitted`
  )
  return { ...catalogue, lists }
}
