/**
 * Splits a command line into words as a POSIX shell does: with quotes, backslashes and continued lines, but without
 * expansions.
 * @throws SyntaxError for an unterminated quote
 */
export function splitCommandLine (line: string): string[] {
  const words: string[] = []
  let word: string | undefined
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at)
    if (char === "'" || char === '"') {
      const end = endOfQuote(line, at)
      word = (word ?? '') + (char === "'"
        ? line.slice(at + 1, end)
        : line.slice(at + 1, end).replace(/\\(["\\$`])|\\\n/g, '$1'))
      at = end
    } else if (char === '\\' && at + 1 < line.length) {
      at++
      if (line.charAt(at) !== '\n') word = (word ?? '') + line.charAt(at)
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + char
  }
  return word === undefined ? words : [...words, word]
}

function endOfQuote (line: string, start: number): number {
  const quote = line.charAt(start)
  for (let at = start + 1; at < line.length; at++) {
    if (quote === '"' && line.charAt(at) === '\\') at++
    else if (line.charAt(at) === quote) return at
  }
  throw new SyntaxError(`the closing quote ${quote} is missing`)
}

/** Returns the lines of a text without prompts such as `$`, comments and empty lines. Continued lines are joined. */
export function commandLinesOf (text: string): string[] {
  return text.replace(/\\\r?\n/g, ' ').split(/\r?\n/)
    .map((line) => line.replace(/^\s*[$>%]\s+/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
}
