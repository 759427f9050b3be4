/**
 * Parses JSON as editors write their settings: with comments, and commas before a closing bracket. Their places become spaces, so that
 * positions in errors stay right.
 * @throws SyntaxError
 */
export function parseJsonc (text: string): unknown {
  const blank = (part: string): string => part.replace(/[^\n]/g, ' ')
  const withoutComments = text.replace(/^\uFEFF/, '')
    .replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g, (part) => part.startsWith('"') ? part : blank(part))
  return JSON.parse(withoutComments.replace(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g, (part) => part === ',' ? ' ' : part))
}
