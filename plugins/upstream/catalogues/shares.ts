import { kinds, type Catalogue, type Item, type ListKind } from '../../../protocol/lists.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { TokenBucket } from '../../base/limits/index.ts'
import { upstreamLimits } from '../limits.ts'

/**
 * How much a server's catalogues may hold, how often they may be read, and where they are kept. Sizes are in
 * characters.
 */
export interface CatalogueAllowance {
  /** How much the catalogues of all classes may hold together. */
  readonly room: () => number
  /** Notes how much they hold. */
  readonly hold: (size: number) => void
  /**
   * How long the lists are not to be read, since its owner's were read often, in ms.
   * @param isFirst nothing of it is known
   */
  readonly wait: (isFirst: boolean) => number
  /** Notes how much was read. */
  readonly spend: (size: number) => void
  /** Keeps a text for the next run, given in pieces. */
  readonly keep: (text: Iterable<string>) => void
}

/** How much the servers of each user list, which has a bound, and how often their lists are read. */
export class CatalogueShares {
  /** By server. */
  readonly #held = new Map<string, { readonly user: string, readonly size: number }>()
  readonly #reads = new TokenBucket(upstreamLimits.catalogueReads)

  /**
   * How much more a server may list, in bytes of memory. @param user its owner; undefined: an admin, who has no bound
   */
  room (server: string, user: string | undefined): number {
    if (user === undefined) return Infinity
    let room: number = upstreamLimits.cataloguesPerUser
    for (const [name, held] of this.#held) if (held.user === user && name !== server) room -= held.size
    return Math.max(room, 0)
  }

  /** Notes what a server lists. @param size in bytes of memory */
  hold (server: string, user: string | undefined, size: number): void {
    if (user === undefined || size === 0) this.#held.delete(server)
    else this.#held.set(server, { user, size })
  }

  /**
   * How long a server's lists are not to be read again, in ms. The servers of one user count together, an admin's
   * alone.
   */
  wait (server: string, user: string | undefined): number {
    return this.#reads.wait(readerOf(server, user), 0)
  }

  /** Notes that lists were read. @param size in bytes of memory */
  spend (server: string, user: string | undefined, size: number): void {
    this.#reads.spend(readerOf(server, user), size)
  }
}

/** The key under which reads are counted. */
const readerOf = (server: string, user: string | undefined): string =>
  user === undefined ? `server ${server}` : `user ${user}`

/** The memory of a catalogue, in bytes. */
export function catalogueSize ({ lists, instructions = '' }: Catalogue): number {
  let size = memoryOf(instructions)
  for (const kind of kinds) for (const { text } of lists[kind]) size += memoryOf(text)
  return size
}

/**
 * A catalogue with as many of its items as fit, in order. @param room in bytes of memory @param warn told what is left
 * out
 */
export function fitting (catalogue: Catalogue, room: number, warn: (sentence: string) => void): Catalogue {
  if (room === Infinity || catalogueSize(catalogue) <= room) return catalogue
  let left = room - memoryOf(catalogue.instructions ?? '')
  const lists = {} as Record<ListKind, readonly Item[]>
  for (const kind of kinds) lists[kind] = catalogue.lists[kind].filter(({ text }) => (left -= memoryOf(text)) >= 0)
  warn(`its owner's servers list more than ${upstreamLimits.cataloguesPerUser} bytes together; what does not fit is ` +
    'left out')
  return { ...catalogue, lists }
}
