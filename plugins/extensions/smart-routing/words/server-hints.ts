import type { Concept } from './concepts.ts'
import { stemOf } from './stem.ts'
import { wordsOf } from './tokens.ts'
import { tuning } from './tuning.ts'
import { slotOf, type Vocabulary } from './vocabulary.ts'

/** A word identifies servers by name only if at most this many servers have it in their names. */
const namesakes = 3
/**
 * A word is an alias of a server if at least `tools` of its tools and the part `within` of them have the word, and they
 * are at least the part `share` of all tools with it.
 */
const alias = { within: 0.5, share: 0.75, tools: 3 }

/**
 * Finds the servers that a query mentions: by their names, or by words that are frequent in one server and rare
 * elsewhere.
 */
export class ServerHints {
  readonly #slots = new Map<string, Set<number>>()
  readonly #serverOf: Array<string | undefined> = []
  /** The servers by each word of their names. */
  readonly #named = new Map<string, Set<string>>()

  /** For each server, the number of tool names that contain each word. */
  readonly #nameWords = new Map<string, Map<string, number>>()

  /** Whether most tool names of a server contain a word, which then distinguishes nothing. */
  isUsual (term: string, server: string): boolean {
    const size = this.#slots.get(server)?.size ?? 0
    return size > 2 && (this.#nameWords.get(server)?.get(term) ?? 0) > size / 2
  }

  #countNames (server: string, name: readonly string[], by: number): void {
    let counts = this.#nameWords.get(server)
    if (!counts) this.#nameWords.set(server, counts = new Map())
    for (const term of new Set(name)) {
      const count = (counts.get(term) ?? 0) + by
      if (count > 0) counts.set(term, count)
      else counts.delete(term)
    }
    if (counts.size === 0) this.#nameWords.delete(server)
  }

  add (slot: number, server: string, name: readonly string[]): void {
    this.#countNames(server, name, 1)
    const slots = this.#slots.get(server)
    this.#serverOf[slot] = server
    if (slots) {
      slots.add(slot)
      return
    }
    this.#slots.set(server, new Set([slot]))
    for (const term of termsOf(server)) {
      const servers = this.#named.get(term)
      if (servers) servers.add(server)
      else this.#named.set(term, new Set([server]))
    }
  }

  remove (slot: number, server: string, name: readonly string[]): void {
    this.#countNames(server, name, -1)
    const slots = this.#slots.get(server)
    this.#serverOf[slot] = undefined
    slots?.delete(slot)
    if (slots?.size !== 0) return
    this.#slots.delete(server)
    for (const term of termsOf(server)) {
      const servers = this.#named.get(term)
      servers?.delete(server)
      if (servers?.size === 0) this.#named.delete(term)
    }
  }

  /** The factor for each tool of the servers that a query mentions, by slot. */
  * factors (concepts: readonly Concept[], vocabulary: Vocabulary): Iterable<[slot: number, factor: number]> {
    if (this.#slots.size < 2) return
    const servers = new Set<string>()
    const largest = Math.max(...[...this.#slots.values()].map(({ size }) => size))
    for (const { variants, weight } of concepts) {
      if (weight < 0.5) continue
      for (const variant of variants) {
        if (variant.weight >= 0.8) {
          for (const server of this.#namedBy(variant.term, vocabulary, largest)) servers.add(server)
        }
      }
    }
    for (const server of servers) for (const slot of this.#slots.get(server) ?? []) yield [slot, tuning.server]
  }

  #namedBy (term: string, vocabulary: Vocabulary, largest: number): string[] {
    const places = vocabulary.get(term)?.places ?? []
    if (places.length > 2 * namesakes * Math.max(largest, 5)) return []
    const counts = new Map<string, number>()
    for (const place of places) {
      const server = this.#serverOf[slotOf(place)]
      if (server !== undefined) counts.set(server, (counts.get(server) ?? 0) + 1)
    }
    const named = this.#named.get(term)
    const inside = [...named ?? []].reduce((sum, server) => sum + (counts.get(server) ?? 0), 0)
    if (named && named.size <= namesakes && places.length - inside <= Math.max(10, 2 * inside)) return [...named]
    return [...counts].filter(([server, count]) => {
      const size = this.#slots.get(server)?.size ?? 0
      return count >= alias.tools && count >= alias.within * size && count >= alias.share * places.length
    }).map(([server]) => server)
  }
}

const termsOf = (server: string): Set<string> => {
  const terms = wordsOf(server, 8).map(stemOf)
  return new Set([...terms, terms.join('')])
}
