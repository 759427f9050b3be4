/** A word that a misspelled word can be compared with. `bits`: its letters as a bit set. */
export interface ComparableWord { readonly word: string, readonly term: string, readonly bits: number }

/** Returns the max number of mistakes that are corrected in a word of a given length. */
export const maxMistakes = (length: number): number => length < 4 ? 0 : length < 8 ? 1 : 2

/** Returns the edit distance of two words with transpositions (optimal string alignment), at most `maxDistance + 1`. */
export function editDistance (a: string, b: string, maxDistance: number): number {
  if (Math.abs(a.length - b.length) > maxDistance || b.length >= rowLength) return maxDistance + 1
  let [before, last, row] = rows
  for (let j = 0; j <= b.length; j++) last[j] = j
  for (let i = 1; i <= a.length; i++) {
    row[0] = i
    let least = i
    const letter = a.charCodeAt(i - 1)
    for (let j = 1; j <= b.length; j++) {
      const other = b.charCodeAt(j - 1)
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (letter === other ? 0 : 1))
      const isSwap = i > 1 && j > 1 && letter === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === other
      if (isSwap) cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      row[j] = cost
      if (cost < least) least = cost
    }
    if (least > maxDistance) return maxDistance + 1
    ;[before, last, row] = [last, row, before]
  }
  return last[b.length] ?? 0
}

/** Length of the reused rows of the distance matrix; a longer word counts as too different. */
const rowLength = 64
const rows: [
  Uint8Array, Uint8Array, Uint8Array
] = [new Uint8Array(rowLength), new Uint8Array(rowLength), new Uint8Array(rowLength)]

/** Returns the set of a word's letters as 32 bits. Words that differ in few letters differ in few bits. */
export function letterBits (word: string): number {
  let bits = 0
  for (let i = 0; i < word.length; i++) bits |= 1 << (word.charCodeAt(i) % 32)
  return bits
}

/** Returns the number of bits in which two values differ. */
function countDifferentBits (a: number, b: number): number {
  let bits = a ^ b
  bits -= bits >>> 1 & 0x55555555
  bits = (bits & 0x33333333) + (bits >>> 2 & 0x33333333)
  return Math.imul(bits + (bits >>> 4) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** A list of words with an array of their bit sets. Comparing bit sets first makes a search ten times as fast. */
export class WordList<Entry extends ComparableWord = ComparableWord> {
  #words: Entry[] = []
  #bits: number[] = []

  add (word: Entry): void {
    this.#words.push(word)
    this.#bits.push(word.bits)
  }

  /** Deletes all words but those for which `isKept` returns true. */
  retain (isKept: (word: Entry) => boolean): void {
    this.#words = this.#words.filter(isKept)
    this.#bits = this.#words.map(({ bits }) => bits)
  }

  [Symbol.iterator] (): Iterator<Entry> { return this.#words[Symbol.iterator]() }

  /**
   * Returns the words whose bit sets differ from `bits` in at most `maxBits` bits.
   * @param bits the `letterBits` of a word
   */
  findSimilar (bits: number, maxBits: number): Entry[] {
    const found: Entry[] = []
    for (let i = 0; i < this.#bits.length; i++) {
      if (countDifferentBits(this.#bits[i] ?? 0, bits) > maxBits) continue
      const word = this.#words[i]
      if (word) found.push(word)
    }
    return found
  }
}
