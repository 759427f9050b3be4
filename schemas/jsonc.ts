/**
 * Replaces comments and trailing commas in JSON by spaces, so that positions in parse errors stay correct. Other text
 * is unchanged.
 */
export function jsoncToJson (text: string): string {
  const blank = (part: string): string => part.replace(/[^\n]/g, ' ')
  return text
    .replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g, (part) => part.startsWith('"') ? part : blank(part))
    .replace(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g, (part) => part === ',' ? ' ' : part)
}
