/**
 * Replaces comments and trailing commas in JSON by spaces, so that positions in parse errors stay correct. All other
 * text is unchanged, and so is everything after an unterminated string or comment. Takes linear time.
 */
export function jsoncToJson (text: string): string {
  const blanks: Array<readonly [from: number, to: number]> = []
  // The position of the last comma if only whitespace and comments have followed it so far, otherwise -1.
  let comma = -1
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char <= ' ') continue
    const comment = char === '/' ? endOfComment(text, at) : undefined
    if (comment !== undefined) {
      if (comment === -1) break
      blanks.push([at, comment])
      at = comment - 1
      continue
    }
    if ((char === '}' || char === ']') && comma !== -1) blanks.push([comma, comma + 1])
    comma = char === ',' ? at : -1
    if (char !== '"') continue
    at = endOfQuote(text, at)
    if (at === -1) break
  }
  let [result, copied] = ['', 0]
  for (const [from, to] of blanks.toSorted(([one], [other]) => one - other)) {
    result += text.slice(copied, from) + text.slice(from, to).replace(/[^\n]/g, ' ')
    copied = to
  }
  return result + text.slice(copied)
}

/**
 * Returns the end of the comment that begins with the slash at `start`; -1 if the comment is unterminated; undefined if
 * the slash does not begin a comment.
 */
function endOfComment (text: string, start: number): number | undefined {
  const next = text.charAt(start + 1)
  if (next !== '/' && next !== '*') return undefined
  const end = next === '/' ? text.indexOf('\n', start) : text.indexOf('*/', start + 2)
  if (next === '/') return end === -1 ? text.length : end
  return end === -1 ? -1 : end + 2
}

/** Returns the position of the closing quote of the string at `start`; -1 if the line or the text ends before it. */
function endOfQuote (text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') return at
    if (char === '\\') at++
    else if (char === '\n') return -1
  }
  return -1
}
