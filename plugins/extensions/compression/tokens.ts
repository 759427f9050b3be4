/**
 * Counts the tokens of a text (o200k, the encoding of current models), up to a maximum.
 * @param max the count may stop as soon as it exceeds this
 */
export type CountTokens = (text: string, max?: number) => number

/** Longest text that is handed to the tokenizer at once, in characters: its time grows with the square of a run without a boundary. */
const longestPiece = 512

/**
 * Characters after which the tokenizer forgets the words that it has seen. Its own bound, 100,000 words, makes it slow beyond it: each
 * further word removes the oldest from a Map, which looks for it behind all that were removed before.
 */
const remembered = 1024 * 1024

/**
 * Loads the tokenizer: 0.2 s and 65 MB, which is why only the worker thread calls this.
 * The text is counted in pieces that end where the encoding splits words anyway. A longer run is cut, which may count some tokens more:
 * `isCutInRuns` tells.
 */
export async function loadTokenCounter (): Promise<CountTokens> {
  const { countTokens, setMergeCacheSize, clearMergeCache } = await import('gpt-tokenizer/encoding/o200k_base')
  setMergeCacheSize(Infinity)
  let seen = 0
  // Special tokens in a result are text like any other.
  const options = { disallowedSpecial: new Set<string>() }
  return (text, max = Infinity) => {
    let tokens = 0
    for (let from = 0; from < text.length && tokens <= max;) {
      const { end } = pieceFrom(text, from)
      seen += end - from
      if (seen > remembered) {
        clearMergeCache()
        seen = 0
      }
      tokens += countTokens(text.slice(from, end), options)
      from = end
    }
    return tokens
  }
}

/** Whether a text has runs so long that its count may be too high. */
export function isCutInRuns (text: string): boolean {
  for (let from = 0; from < text.length;) {
    const { end, isRun } = pieceFrom(text, from)
    if (isRun) return true
    from = end
  }
  return false
}

/** Where a piece ends: where a word does, else at the longest length, within a run. */
function pieceFrom (text: string, from: number): { end: number, isRun: boolean } {
  const longest = from + longestPiece
  if (longest >= text.length) return { end: text.length, isRun: false }
  for (let at = longest; at > from + longestPiece / 2; at--) {
    if (isWordEnd(text.charCodeAt(at - 1), text.charCodeAt(at))) return { end: at, isRun: false }
  }
  const code = text.charCodeAt(longest)
  return { end: code >= 0xdc00 && code <= 0xdfff ? longest - 1 : longest, isRun: true }
}

const kinds = { other: 0, digit: 1, letter: 2 }

/** Digits and Latin letters; all beyond ASCII counts as `other`, since marks may belong to what stands before them. */
function kindOf (code: number): number {
  if (code >= 0x30 && code <= 0x39) return kinds.digit
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x7a ? kinds.letter : kinds.other
}

/** Whether the encoding splits between two characters whatever stands around them. */
function isWordEnd (before: number, after: number): boolean {
  // A space begins the next word.
  if (after === 0x20) return before > 0x20
  const [one, other] = [kindOf(before), kindOf(after)]
  if (one === kinds.other) return before === 0x0a && other !== kinds.other
  if (other === kinds.other) return after < 0x80 && after !== 0x27
  return one !== other
}
