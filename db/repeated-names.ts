import { isPlainObject } from '../schemas/unknown-members.ts'
import type { SettingsDocument } from './apply.ts'
import { endOfString } from './text-order.ts'

const repeatedNames = new WeakMap<object, readonly string[]>()

/**
 * Returns the server names that occur more than once in the text of the settings; only the last entry of a name has
 * effect.
 * @param servers the section `mcpServers`, the same object as when `rememberRepeatedNames` was called
 */
export const repeatedServerNames = (servers: object): readonly string[] => repeatedNames.get(servers) ?? []

/**
 * Finds the repeated server names in the JSON text of the settings, and records them for `repeatedServerNames`.
 * @param document the parsed text
 */
export function rememberRepeatedNames (text: string, document: SettingsDocument): void {
  const { mcpServers: servers } = document
  if (!isPlainObject(servers)) return
  const seen = new Map<string, number>()
  let [depth, section, start, end] = [0, '', 0, 0]
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') {
      start = at
      at = endOfString(text, at)
      end = at + 1
    } else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    else if (character === ':' && depth <= 2) {
      const name = JSON.parse(text.slice(start, end)) as string
      if (depth === 1) section = name
      else if (section === 'mcpServers') seen.set(name, (seen.get(name) ?? 0) + 1)
    }
  }
  const names = [...seen].filter(([, count]) => count > 1).map(([name]) => name)
  if (names.length > 0) repeatedNames.set(servers, names)
}
