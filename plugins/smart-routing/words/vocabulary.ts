import { heaviest, type Analysis } from './analysis.ts'

/** Where a term occurs: slots of tools and weights, packed as `slot * (heaviest + 1) + weight`. */
export interface Entry {
  readonly term: string
  /** The word as it was first written. */
  readonly word: string
  places: number[]
}

export const slotOf = (place: number): number => Math.floor(place / (heaviest + 1))
export const weightOf = (place: number): number => place % (heaviest + 1)

/** The terms of all tools of an index. */
export class Vocabulary {
  readonly #entries = new Map<string, Entry>()
  /** Words by their length, for spelling mistakes. */
  readonly #byLength = new Map<number, Set<Entry>>()

  add (slot: number, { tokens, weights }: Analysis): void {
    for (const [i, { term, word }] of tokens.entries()) {
      let entry = this.#entries.get(term)
      if (!entry) this.#insert(entry = { term, word, places: [] })
      entry.places.push(slot * (heaviest + 1) + (weights[i] ?? 0))
    }
  }

  #insert (entry: Entry): void {
    this.#entries.set(entry.term, entry)
    const { length } = entry.word
    const words = this.#byLength.get(length)
    if (words) words.add(entry)
    else this.#byLength.set(length, new Set([entry]))
  }

  /** Removes tools: one pass over each of their terms, however many tools have it. @param slots and what was added for them */
  remove (slots: ReadonlyMap<number, Analysis>): void {
    const terms = new Set([...slots.values()].flatMap(({ tokens }) => tokens))
    for (const { term } of terms) {
      const entry = this.#entries.get(term)
      if (!entry) continue
      entry.places = entry.places.filter((place) => !slots.has(slotOf(place)))
      if (entry.places.length > 0) continue
      this.#entries.delete(term)
      this.#byLength.get(entry.word.length)?.delete(entry)
    }
  }

  get size (): number { return this.#entries.size }

  get (term: string): Entry | undefined { return this.#entries.get(term) }

  has (term: string): boolean { return this.#entries.has(term) }

  /** Words of a length. */
  ofLength (length: number): Iterable<Entry> { return this.#byLength.get(length) ?? [] }

  /** Words that begin so, the shortest first. @param max the most */
  beginning (start: string, max: number): Entry[] {
    const found: Entry[] = []
    for (let length = start.length + 1; length <= start.length + 8; length++) {
      for (const entry of this.#byLength.get(length) ?? []) {
        if (!entry.word.startsWith(start)) continue
        found.push(entry)
        if (found.length >= max) return found
      }
    }
    return found
  }
}
