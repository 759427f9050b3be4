/** Max length of a piece that is compared at once, in characters: a long secret is searched for in pieces of this length. */
const pieceLength = 1_024

/** A range of a text, `text.slice(start, end)`, in which secrets were found. */
interface Found { start: number, end: number }

/**
 * Finds secrets in texts, in one pass whatever their number: an upstream's error or a child's line is searched for all values of a config.
 * The secrets are sorted, so that the longest one at a place is found by a binary search, and a table of their first three characters
 * keeps the search from most places.
 */
export class SecretScanner {
  readonly #sorted: readonly string[]
  /** For each secret, the index of the longest other one that it begins with; -1: there is none. */
  readonly #shorter: Int32Array
  /** 1 at the hash of the first three characters of each secret. Its length is a power of two. */
  readonly #begins: Uint8Array
  readonly #longest: number

  /** @param secrets each of three characters or more */
  constructor (secrets: Iterable<string>) {
    const sorted = [...new Set([...secrets].flatMap(piecesOf))].sort()
    this.#sorted = sorted
    this.#longest = sorted.reduce((most, { length }) => Math.max(most, length), 0)
    this.#begins = new Uint8Array(2 ** Math.ceil(Math.log2(8 * sorted.length + 1)))
    this.#shorter = new Int32Array(sorted.length)
    for (const [at, secret] of sorted.entries()) {
      this.#begins[this.#hashAt(secret, 0)] = 1
      // What a secret begins with is sorted before it: it is the former one, or one that this begins with, too.
      let other = at - 1
      while (other !== -1 && !secret.startsWith(sorted[other] ?? '')) other = this.#shorter[other] ?? -1
      this.#shorter[at] = other
    }
  }

  /** The ranges of a text that secrets cover, in order. Secrets that overlap or follow one another make one range. */
  search (text: string): Found[] {
    const found: Found[] = []
    if (this.#sorted.length === 0) return found
    for (let start = 0; start < text.length - 2; start++) {
      if (this.#begins[this.#hashAt(text, start)] !== 1) continue
      const length = this.#longestAt(text, start)
      if (length === 0) continue
      const end = start + length
      const last = found.at(-1)
      if (last === undefined || start > last.end) found.push({ start, end })
      else if (end > last.end) last.end = end
    }
    return found
  }

  /** The length of the longest secret at a place of a text; 0: there is none. */
  #longestAt (text: string, start: number): number {
    const here = text.slice(start, start + this.#longest)
    let from = 0
    let to = this.#sorted.length
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#sorted[middle] ?? '') <= here) from = middle + 1
      else to = middle
    }
    let at = from - 1
    while (at !== -1 && !here.startsWith(this.#sorted[at] ?? '')) at = this.#shorter[at] ?? -1
    return at === -1 ? 0 : this.#sorted[at]?.length ?? 0
  }

  #hashAt (text: string, at: number): number {
    const mixed = (text.charCodeAt(at) * 0x9e5b) ^ (text.charCodeAt(at + 1) * 0x2f1d) ^ (text.charCodeAt(at + 2) * 0x71)
    return mixed & (this.#begins.length - 1)
  }
}

/** A secret in pieces that cover it; only the last two may overlap. A text that has a part of a long secret hides that part, too. */
function piecesOf (secret: string): string[] {
  if (secret.length <= pieceLength) return [secret]
  const pieces: string[] = []
  for (let at = 0; at + pieceLength < secret.length; at += pieceLength) pieces.push(secret.slice(at, at + pieceLength))
  return [...pieces, secret.slice(-pieceLength)]
}
