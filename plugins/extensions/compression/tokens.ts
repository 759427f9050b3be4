/**
 * Counts the tokens of a text in the encoding o200k.
 * @param max counting may stop once the count exceeds this number
 */
export type CountTokens = (text: string, max?: number) => number

/**
 * Max length of a text for one call of the tokenizer, in characters. For a text without word boundaries, the time of
 * the tokenizer grows quadratically.
 */
const longestPiece = 512

/** Number of counted characters after which the tokenizer's cache is cleared. Evicting single words would be slow. */
const cacheClearInterval = 1024 * 1024

/**
 * Loads the tokenizer. This takes 0.2 s and 65 MB, so it is done in worker threads only. The returned function counts a
 * text in pieces that end at word boundaries of the encoding. A long run without such a boundary is split, which may
 * add some tokens to the count (see `mayOvercountTokens`).
 */
export async function loadTokenCounter (): Promise<CountTokens> {
  const { countTokens, setMergeCacheSize, clearMergeCache } = await import('gpt-tokenizer/encoding/o200k_base')
  setMergeCacheSize(Infinity)
  let seen = 0
  // Special tokens in a result are treated as plain text.
  const options = { disallowedSpecial: new Set<string>() }
  return (text, max = Infinity) => {
    let tokens = 0
    for (let from = 0; from < text.length && tokens <= max;) {
      const { end } = pieceFrom(text, from)
      seen += end - from
      if (seen > cacheClearInterval) {
        clearMergeCache()
        seen = 0
      }
      tokens += countTokens(text.slice(from, end), options)
      from = end
    }
    return tokens
  }
}

/** Whether a text is split within a long run without word boundaries, so that its token count may be too high. */
export function mayOvercountTokens (text: string): boolean {
  for (let from = 0; from < text.length;) {
    const { end, isRun } = pieceFrom(text, from)
    if (isRun) return true
    from = end
  }
  return false
}

/** Returns the end of the next piece: a word boundary, or, if there is none nearby (`isRun`), the max length. */
function pieceFrom (text: string, from: number): { end: number, isRun: boolean } {
  const maxEnd = from + longestPiece
  if (maxEnd >= text.length) return { end: text.length, isRun: false }
  for (let at = maxEnd; at > from + longestPiece / 2; at--) {
    if (isWordEnd(text.charCodeAt(at - 1), text.charCodeAt(at))) return { end: at, isRun: false }
  }
  const code = text.charCodeAt(maxEnd)
  return { end: code >= 0xdc00 && code <= 0xdfff ? maxEnd - 1 : maxEnd, isRun: true }
}

const kinds = { other: 0, digit: 1, letter: 2 }

/** Returns the kind of a character. Non-ASCII characters are `other`, since they may combine with the previous one. */
function kindOf (code: number): number {
  if (code >= 0x30 && code <= 0x39) return kinds.digit
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x7a ? kinds.letter : kinds.other
}

/** Whether the encoding always splits a text between two adjacent characters, given by their codes. */
function isWordEnd (before: number, after: number): boolean {
  // A space belongs to the next word.
  if (after === 0x20) return before > 0x20
  const [one, other] = [kindOf(before), kindOf(after)]
  if (one === kinds.other) return before === 0x0a && other !== kinds.other
  if (other === kinds.other) return after < 0x80 && after !== 0x27
  return one !== other
}
