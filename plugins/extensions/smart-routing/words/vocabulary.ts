import { LoopBudget } from '../../../../protocol/yield.ts'
import { maxWeight, type Analysis } from './analysis.ts'
import { letterBits, WordList, type ComparableWord } from './typos.ts'

/**
 * A written form of a term. `places`: for each tool with the term in this form, the tool's slot and the term's weight,
 * packed as `slot << bits | weight`. `next`: another form of the term.
 */
interface Form extends ComparableWord { places: number[], next: Form | undefined }

/** A term of the tools of one view. `word`: its form in the first tool. `places`: as in `Form`, with positions. */
export interface ShownTerm { readonly word: string, readonly places: readonly number[] }

/** The words of a given length and letter. */
export interface SimilarWords<Known extends ComparableWord> {
  /** Returns the words whose bit sets differ from `bits` in at most `maxBits` bits. */
  findSimilar: (bits: number, maxBits: number) => readonly Known[]
}

const bits = Math.log2(maxWeight + 1)
/** Returns the tool's slot or position from a place, which packs it and a weight. */
export const toolSlotOf = (place: number): number => place >>> bits
/** Returns the term's weight from a place, in units of 1 / `weightUnit`. */
export const termWeightOf = (place: number): number => place & maxWeight

/** Memory of a form without its places, and of a place, in bytes. */
const costs = { form: 240, place: 12 }

/** The terms of all tools of a `ToolStore`. */
export class Vocabulary {
  /** The first form of each term. */
  readonly #forms = new Map<string, Form>()
  /** The forms, by the length and the first letter of their word, for finding similar words. */
  readonly #byLength = new Map<number, Map<number, WordList<Form>>>()
  #size = 0

  /** The memory of the vocabulary, in bytes. */
  get size (): number { return this.#size }

  add (slot: number, { tokens, weights }: Analysis): void {
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i]
      if (!token) continue
      const { term, word } = token
      const place = slot << bits | (weights[i] ?? 0)
      let form = this.#forms.get(term)
      while (form && form.word !== word) form = form.next
      this.#size += costs.place
      if (form) form.places.push(place)
      else this.#insert({ term, word, bits: letterBits(word), places: [place], next: this.#forms.get(term) })
    }
  }

  #insert (form: Form): void {
    this.#size += costs.form
    const { term, word } = form
    this.#forms.set(term, form)
    let byLetter = this.#byLength.get(word.length)
    if (!byLetter) this.#byLength.set(word.length, byLetter = new Map())
    let words = byLetter.get(word.charCodeAt(0))
    if (!words) byLetter.set(word.charCodeAt(0), words = new WordList())
    words.add(form)
  }

  /** Frees the spare memory of the arrays of places. Yields to the event loop. */
  async trim (): Promise<void> {
    await this.#keepPlaces((places) => places.length > 1 ? places.slice() : places)
  }

  /** Removes tools. Yields to the event loop. @param isRemoved for each slot, 1 if its tool is removed */
  async remove (isRemoved: Uint8Array): Promise<void> {
    await this.#keepPlaces((places) => places.filter((place) => {
      const slot = toolSlotOf(place)
      return slot >= isRemoved.length || isRemoved[slot] === 0
    }))
  }

  async #keepPlaces (kept: (places: number[]) => number[]): Promise<void> {
    const budget = new LoopBudget()
    const shrunk = new Set<WordList<Form>>()
    for (const [term, first] of this.#forms) {
      let last: Form | undefined
      for (let form: Form | undefined = first; form; form = form.next) {
        const before = form.places.length
        form.places = kept(form.places)
        this.#size -= (before - form.places.length) * costs.place
        if (form.places.length > 0) {
          last = form
          continue
        }
        this.#size -= costs.form
        if (last) last.next = form.next
        else if (form.next) this.#forms.set(term, form.next)
        else this.#forms.delete(term)
        const words = this.#byLength.get(form.word.length)?.get(form.word.charCodeAt(0))
        if (words) shrunk.add(words)
      }
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
    // Deleting the words one by one would take quadratic time.
    for (const words of shrunk) {
      words.retain(({ places }) => places.length > 0)
      if (budget.isSpent) await budget.yieldToEventLoop()
    }
  }

  /** Returns the terms of some tools. @param ranks for each slot, 1 + the position of its tool; 0 if it is not shown */
  shownTo (ranks: Uint32Array): ShownVocabulary { return new ShownVocabulary(this.#forms, this.#byLength, ranks) }
}

/** The terms of the tools of one view, during one search. Tools outside the view have no influence. */
export class ShownVocabulary {
  readonly #forms: ReadonlyMap<string, Form>
  readonly #byLength: ReadonlyMap<number, ReadonlyMap<number, WordList<Form>>>
  readonly #ranks: Uint32Array
  readonly #found = new Map<string, ShownTerm | undefined>()

  constructor (
    forms: ReadonlyMap<string, Form>, byLength: ReadonlyMap<number, ReadonlyMap<number, WordList<Form>>>,
    ranks: Uint32Array
  ) {
    this.#forms = forms
    this.#byLength = byLength
    this.#ranks = ranks
  }

  get (term: string): ShownTerm | undefined {
    if (!this.#found.has(term)) this.#found.set(term, this.#find(term))
    return this.#found.get(term)
  }

  has (term: string): boolean { return this.get(term) !== undefined }

  #find (term: string): ShownTerm | undefined {
    const places: number[] = []
    let [word, first] = ['', Infinity]
    for (let form = this.#forms.get(term); form; form = form.next) {
      for (const place of form.places) {
        const rank = this.#rankOf(place)
        if (rank === 0) continue
        places.push((rank - 1) << bits | termWeightOf(place))
        if (rank < first) [word, first] = [form.word, rank]
      }
    }
    return places.length > 0 ? { word, places } : undefined
  }

  #rankOf (place: number): number {
    const slot = toolSlotOf(place)
    // Reads beyond the end of an array are slow.
    return slot < this.#ranks.length ? this.#ranks[slot] ?? 0 : 0
  }

  /** Returns the words of a given length that begin with a letter. @param letter the character code of the letter */
  startingWith (letter: number, length: number): SimilarWords<ComparableWord & ShownTerm> | undefined {
    const words = this.#byLength.get(length)?.get(letter)
    return words && this.#shown(words)
  }

  /** Returns the words of a given length that do not begin with a letter. @param letter the code of the letter */
  notStartingWith (letter: number, length: number): Array<SimilarWords<ComparableWord & ShownTerm>> {
    return [...this.#byLength.get(length) ?? []].filter(([other]) => other !== letter)
      .map(([, words]) => this.#shown(words))
  }

  #shown (words: WordList<Form>): SimilarWords<ComparableWord & ShownTerm> {
    return {
      findSimilar: (bits, maxBits) => words.findSimilar(bits, maxBits).flatMap(({ term, word, bits, places }) => {
        if (!places.some((place) => this.#rankOf(place) > 0)) return []
        const shown = this.get(term)
        return shown?.word === word ? [{ term, bits, ...shown }] : []
      })
    }
  }
}
