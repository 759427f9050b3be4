/**
 * JSON with comments and trailing commas as JSON: they become spaces, so that positions in errors stay right.
 * Other text stays as it is.
 */
export function toJson (text: string): string {
  const blank = (part: string): string => part.replace(/[^\n]/g, ' ')
  return text
    .replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g, (part) => part.startsWith('"') ? part : blank(part))
    .replace(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g, (part) => part === ',' ? ' ' : part)
}
