import { LoopBudget } from '../../../../protocol/yield.ts'
import { maxWeight, type Analysis } from './analysis.ts'
import { letterBits, WordList, type ComparableWord } from './typos.ts'

/**
 * A term of the vocabulary. `word`: the first written form that was added. `places`: for each tool with the term, the
 * tool's slot and the term's weight, packed as `slot << bits | weight`.
 */
interface Entry extends ComparableWord { places: number[] }

const bits = Math.log2(maxWeight + 1)
/** Returns the tool's slot from a place, which packs a slot and a weight. */
export const toolSlotOf = (place: number): number => place >>> bits
/** Returns the term's weight from a place, in units of 1 / `weightUnit`. */
export const termWeightOf = (place: number): number => place & maxWeight

/** The terms of all tools of an index. */
export class Vocabulary {
  readonly #entries = new Map<string, Entry>()
  /** The entries, by the length and the first letter of their word, for finding similar words. */
  readonly #byLength = new Map<number, Map<number, WordList<Entry>>>()

  add (slot: number, { tokens, weights }: Analysis): void {
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i]
      if (!token) continue
      const { term, word } = token
      const place = slot << bits | (weights[i] ?? 0)
      const entry = this.#entries.get(term)
      if (entry) entry.places.push(place)
      else this.#insert({ term, word, bits: letterBits(word), places: [place] })
    }
  }

  #insert (entry: Entry): void {
    this.#entries.set(entry.term, entry)
    const { word } = entry
    let byLetter = this.#byLength.get(word.length)
    if (!byLetter) this.#byLength.set(word.length, byLetter = new Map())
    let words = byLetter.get(word.charCodeAt(0))
    if (!words) byLetter.set(word.charCodeAt(0), words = new WordList())
    words.add(entry)
  }

  /** Frees the spare memory of the arrays of places. */
  trim (): void {
    for (const entry of this.#entries.values()) if (entry.places.length > 1) entry.places = entry.places.slice()
  }

  /**
   * Removes tools. A term is processed once, however many of the removed tools contain it. Yields to the event loop.
   * @param slots the slots, with the analyses that were added for them
   * @param count the number of all slots
   */
  async remove (slots: ReadonlyMap<number, Analysis>, count: number): Promise<void> {
    const changed = new Set<Entry>()
    const budget = new LoopBudget()
    for (const { tokens } of slots.values()) {
      for (const { term } of tokens) {
        const entry = this.#entries.get(term)
        if (entry) changed.add(entry)
      }
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
    // The array covers all slots, since reads beyond its end are slow.
    const isRemoved = new Uint8Array(count)
    for (const slot of slots.keys()) isRemoved[slot] = 1
    const shrunk = new Set<WordList<Entry>>()
    for (const entry of changed) {
      if (budget.isSpent) await budget.yieldToEventLoop()
      entry.places = entry.places.filter((place) => isRemoved[toolSlotOf(place)] !== 1)
      if (entry.places.length > 0) continue
      this.#entries.delete(entry.term)
      const words = this.startingWith(entry.word.charCodeAt(0), entry.word.length)
      if (words) shrunk.add(words)
    }
    // Deleting the words one by one would take quadratic time.
    for (const words of shrunk) words.retain(({ places }) => places.length > 0)
  }

  get (term: string): Entry | undefined { return this.#entries.get(term) }

  has (term: string): boolean { return this.#entries.has(term) }

  /** Returns the words of a given length that begin with a letter. @param letter the character code of the letter */
  startingWith (letter: number, length: number): WordList<Entry> | undefined {
    return this.#byLength.get(length)?.get(letter)
  }

  /** Returns the words of a given length that do not begin with a letter. @param letter the code of the letter */
  notStartingWith (letter: number, length: number): Array<WordList<Entry>> {
    return [...this.#byLength.get(length) ?? []].filter(([other]) => other !== letter).map(([, words]) => words)
  }
}
