import { allListKinds, type Catalogue, type Item, type ListKind } from '../../../protocol/lists.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { TokenBucket } from '../../base/limits/index.ts'
import { upstreamLimits } from '../limits.ts'

/** Limits the size of a server's catalogues and how often they are read, and stores them. Sizes are memory in bytes. */
export interface CatalogueAllowance {
  /** The max size that the catalogues of all classes may reach together. */
  readonly remainingSize: () => number
  /** Reports the total size of the catalogues. */
  readonly setHeldSize: (size: number) => void
  /**
   * The time until the lists may be read again, in ms, if its owner's lists were read too often; 0: at once.
   * @param isFirst whether nothing is known of the server yet
   */
  readonly waitTime: (isFirst: boolean) => number
  /** Reports the size of the lists that were read. */
  readonly recordRead: (size: number) => void
  /** Stores a text for the next run, given in pieces. */
  readonly store: (text: Iterable<string>) => void
}

/** Limits the total size of the lists of each user's servers, and how often they are read. */
export class CatalogueShares {
  /** The size of each server's lists, by server. */
  readonly #held = new Map<string, { readonly user: string, readonly size: number }>()
  readonly #reads = new TokenBucket(upstreamLimits.catalogueReads)

  /** How much a server may add to its lists, in bytes. @param user its owner; undefined: an admin, without a limit */
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
   * The time until a server's lists may be read again, in ms. The servers of one user share a limit; each server of an
   * admin has its own.
   */
  waitTime (server: string, user: string | undefined): number {
    return this.#reads.waitTime(readBucketKey(server, user), 0)
  }

  /** Records that lists were read. @param size in bytes of memory */
  recordRead (server: string, user: string | undefined, size: number): void {
    this.#reads.spend(readBucketKey(server, user), size)
  }
}

/** The key under which readings are counted. */
const readBucketKey = (server: string, user: string | undefined): string =>
  user === undefined ? `server ${server}` : `user ${user}`

/** The memory of a catalogue, in bytes. */
export function catalogueSize ({ lists, instructions = '' }: Catalogue): number {
  let size = memoryOf(instructions)
  for (const kind of allListKinds) for (const { text } of lists[kind]) size += memoryOf(text)
  return size
}

/**
 * A catalogue with the first items that fit.
 * @param room in bytes of memory
 * @param warn gets a sentence per omission
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
