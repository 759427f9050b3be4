import type { Server } from '../../db/store.ts'
import { kinds, type Catalogue, type ListKind } from '../../protocol/lists.ts'
import { limits } from '../limits/index.ts'

/** Counts readings of catalogues in this process, so that it can be told which of two items was listed first. */
let lastReading = 0

/**
 * Everything that a server lists, or has listed since its configuration last changed, for any class of clients. What it does not list any
 * more, or cannot list while it is away, stays its own.
 */
export class Claims {
  /** The number of the reading that first had each item. */
  readonly #first: Record<ListKind, Map<string, number>> = {
    tools: new Map(),
    prompts: new Map(),
    resources: new Map(),
    resourceTemplates: new Map()
  }

  readonly #noted = new WeakSet<Catalogue>()
  /** The number of the first reading. */
  #initial: number | undefined

  /** Whether any catalogue of the server is known. */
  get isKnown (): boolean { return this.#initial !== undefined }

  /**
   * When an item was listed first: the number of the reading, and whether that was the server's first one, which may come late because the
   * server does. Undefined: the server has never listed it.
   */
  first (kind: ListKind, key: string): { reading: number, isInitial: boolean } | undefined {
    const reading = this.#first[kind].get(key)
    return reading === undefined ? undefined : { reading, isInitial: reading === this.#initial }
  }

  /** The keys of all items that it lists or has listed. */
  keys (kind: ListKind): Iterable<string> { return this.#first[kind].keys() }

  /** Notes all catalogues of the server that are known now. */
  note (catalogues: readonly Catalogue[]): void {
    if (catalogues.every((catalogue) => this.#noted.has(catalogue))) return
    const reading = ++lastReading
    this.#initial ??= reading
    for (const catalogue of catalogues) this.#noted.add(catalogue)
    for (const kind of kinds) {
      const first = this.#first[kind]
      const listed = new Set<string>()
      for (const { lists } of catalogues) for (const { key } of lists[kind]) listed.add(key)
      for (const key of listed) if (!first.has(key)) first.set(key, reading)
      if (first.size > listed.size) forget(first, listed)
    }
  }
}

/** Forgets items that are not listed any more: those with long keys, and the oldest beyond the bound. */
function forget (first: Map<string, number>, listed: ReadonlySet<string>): void {
  let former = first.size - listed.size
  for (const key of first.keys()) {
    if (listed.has(key) || (former <= limits.formerItems && key.length <= limits.formerItemKey)) continue
    first.delete(key)
    former--
  }
}

/** The claims of all servers. Those of a server end with its configuration: the object of a server that did not change stays the same. */
export class ClaimsByServer {
  readonly #claims = new WeakMap<Server, Claims>()

  of (server: Server): Claims {
    let claims = this.#claims.get(server)
    if (!claims) this.#claims.set(server, claims = new Claims())
    return claims
  }
}
