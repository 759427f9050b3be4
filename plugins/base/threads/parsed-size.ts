/** Bytes per character that separates values, as measured for empty containers and for members with different names. */
const jsonCosts = { '{': 64, '[': 56, ',': 24, ':': 80 }
const yamlCosts = { '{': 200, '[': 200, ',': 200, ':': 200, '-': 200, '?': 200, '\n': 200 }

const tableOf = (costs: Readonly<Record<string, number>>): Uint8Array =>
  Uint8Array.from({ length: 128 }, (_, code) => costs[String.fromCharCode(code)] ?? 0)
const tables = { json: tableOf(jsonCosts), yaml: tableOf(yamlCosts) }

/** The most bytes per character of a text: a value has at least two characters in JSON (`{},`). */
const maxPerCharacter = { json: 40, yaml: 202 }

/**
 * Estimates the most memory that parsing a text takes, in bytes. A thread that runs out of memory within a single step,
 * such as `JSON.parse`, ends the whole process (a limitation of Node), so texts are checked before they are parsed.
 * @param enough a size; for a text that takes less in any case the result is 0, and counting stops above it
 */
export function parsedSizeOf (text: string, format: 'json' | 'yaml', enough: number): number {
  if (text.length * maxPerCharacter[format] <= enough) return 0
  const table = tables[format]
  let size = text.length * 2
  for (let at = 0; at < text.length && size <= enough; at++) size += table[text.charCodeAt(at)] ?? 0
  return size
}
