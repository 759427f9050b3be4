import { addTo } from '../../../../protocol/grouping.ts'
import { stemOf } from './stem.ts'
import { wordsOf } from './tokens.ts'

/** Max number of servers that a word may name; a word in the names of more servers names none. */
const maxNamesakes = 3

/** Knows by which words a query names a server, and which words are usual in the tool names of a server. */
export class ServerNames {
  /** The slots of each server's tools. */
  readonly #slots = new Map<string, Set<number>>()
  /** The servers, by each word of their names. */
  readonly #named = new Map<string, Set<string>>()
  /** For each server, the number of tool names that contain each word. */
  readonly #nameWords = new Map<string, Map<string, number>>()

  /** Adds a tool of a server. @param name the terms of the tool's name */
  add (slot: number, server: string, name: readonly string[]): void {
    let counts = this.#nameWords.get(server)
    if (!counts) this.#nameWords.set(server, counts = new Map())
    for (const term of new Set(name)) counts.set(term, (counts.get(term) ?? 0) + 1)
    const isNew = !this.#slots.has(server)
    addTo(this.#slots, server, slot)
    if (isNew) for (const term of termsOf(server)) addTo(this.#named, term, server)
  }

  /** Whether most tool names of a server contain a term, so that the term does not distinguish its tools. */
  isUsual (term: string, server: string): boolean {
    const size = this.#slots.get(server)?.size ?? 0
    return size > 2 && (this.#nameWords.get(server)?.get(term) ?? 0) > size / 2
  }

  /**
   * Returns the slots of the tools of the servers that these terms name; none if there is only one server.
   * @param count returns the number of tools that contain a term; a term in many tools of other servers names none
   */
  namedBy (terms: Iterable<string>, count: (term: string) => number): Set<number> {
    const found = new Set<number>()
    if (this.#slots.size < 2) return found
    for (const term of terms) {
      const servers = [...this.#named.get(term) ?? []]
      if (servers.length === 0 || servers.length > maxNamesakes) continue
      const slots = servers.flatMap((server) => [...this.#slots.get(server) ?? []])
      if (count(term) - slots.length > Math.max(10, 2 * slots.length)) continue
      for (const slot of slots) found.add(slot)
    }
    return found
  }
}

const termsOf = (server: string): Set<string> => {
  const terms = wordsOf(server, 8).map(stemOf)
  return new Set([...terms, terms.join('')])
}
