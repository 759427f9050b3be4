/**
 * Counts the tokens of a text (o200k, the encoding of current models), up to a maximum.
 * @param max the count may stop as soon as it exceeds this
 */
export type CountTokens = (text: string, max?: number) => number

/** Longest text that is handed to the tokenizer at once, in characters: its time grows with the square of a run without a boundary. */
const longestPiece = 512

/**
 * Loads the tokenizer: 0.2 s and 65 MB, which is why only the worker thread calls this.
 * The text is counted in pieces that end where the encoding splits words anyway; a longer run is cut, which counts at most one token more.
 */
export async function loadTokenCounter (): Promise<CountTokens> {
  const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base')
  // Special tokens in a result are text like any other.
  const options = { disallowedSpecial: new Set<string>() }
  return (text, max = Infinity) => {
    let tokens = 0
    for (let from = 0; from < text.length && tokens <= max;) {
      const end = pieceEnd(text, from)
      tokens += countTokens(text.slice(from, end), options)
      from = end
    }
    return tokens
  }
}

/** Where the piece that begins at `from` ends: before a space that follows a word, else at the longest length. */
function pieceEnd (text: string, from: number): number {
  const longest = from + longestPiece
  if (longest >= text.length) return text.length
  for (let at = longest; at > from + longestPiece / 2; at--) {
    if (text.charCodeAt(at) === 0x20 && text.charCodeAt(at - 1) > 0x20) return at
  }
  const code = text.charCodeAt(longest)
  return code >= 0xdc00 && code <= 0xdfff ? longest - 1 : longest
}
