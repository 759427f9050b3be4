import { kinds, type Catalogue, type Item, type ListKind } from '../../../protocol/lists.ts'
import { limits } from '../../limits/index.ts'

/** The size of the catalogues that the servers of each user list, which has a bound for each user. */
export class CatalogueShares {
  /** By server. */
  readonly #held = new Map<string, { readonly user: string, readonly size: number }>()

  /** How much more a server may list, in characters. @param user its owner; undefined: an admin, who has no bound */
  room (server: string, user: string | undefined): number {
    if (user === undefined) return Infinity
    let room: number = limits.cataloguesPerUser
    for (const [name, held] of this.#held) if (held.user === user && name !== server) room -= held.size
    return Math.max(room, 0)
  }

  /** Notes what a server lists. @param size in characters */
  hold (server: string, user: string | undefined, size: number): void {
    if (user === undefined || size === 0) this.#held.delete(server)
    else this.#held.set(server, { user, size })
  }
}

/** The size of a catalogue, in characters. */
export function sizeOf ({ lists, instructions = '' }: Catalogue): number {
  let size = instructions.length
  for (const kind of kinds) for (const { text } of lists[kind]) size += text.length
  return size
}

/** A catalogue with as many of its items as fit, in order. @param room in characters @param warn called when items are left out */
export function fitting (catalogue: Catalogue, room: number, warn: (sentence: string) => void): Catalogue {
  if (room === Infinity || sizeOf(catalogue) <= room) return catalogue
  let left = room - (catalogue.instructions?.length ?? 0)
  const lists = {} as Record<ListKind, readonly Item[]>
  for (const kind of kinds) lists[kind] = catalogue.lists[kind].filter(({ text }) => (left -= text.length) >= 0)
  warn(`its owner's servers list more than ${limits.cataloguesPerUser} characters together; what does not fit is left out`)
  return { ...catalogue, lists }
}
