/** Bytes of memory per delimiter, measured with empty arrays and objects, and with members of different names. */
const jsonCosts = { '{': 64, '[': 56, ',': 24, ':': 80 }
const yamlCosts = { '{': 200, '[': 200, ',': 200, ':': 200, '-': 200, '?': 200, '\n': 200 }

const tableOf = (costs: Readonly<Record<string, number>>): Uint8Array =>
  Uint8Array.from({ length: 128 }, (_, code) => costs[String.fromCharCode(code)] ?? 0)
const tables = { json: tableOf(jsonCosts), yaml: tableOf(yamlCosts) }

/** Max bytes of memory per character of a text. In JSON, a value takes at least two characters. */
const maxPerCharacter = { json: 40, yaml: 202 }

/**
 * Estimates the max memory that parsing a text takes, in bytes. Texts are checked before a worker thread parses them:
 * if a thread runs out of memory within a single operation, such as `JSON.parse`, Node ends the whole process.
 * @param threshold a size, in bytes: the result is 0 for a text that certainly takes less, and counting stops above it;
 * by default, the whole text is counted
 */
export function parsedSizeOf (text: string, format: 'json' | 'yaml', threshold?: number): number {
  if (threshold !== undefined && text.length * maxPerCharacter[format] <= threshold) return 0
  const table = tables[format]
  let size = text.length * 2
  for (let at = 0; at < text.length && size <= (threshold ?? Infinity); at++) size += table[text.charCodeAt(at)] ?? 0
  return size
}
