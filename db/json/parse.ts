import { isPlainObject } from '../../schemas/unknown-members.ts'
import type { SettingsDocument } from '../apply.ts'
import { rememberOrder } from '../order.ts'
import { rememberRepeatedNames } from '../repeated-names.ts'
import { scanMembers } from '../text-order.ts'

/** The number of outer object levels whose member order is recorded: the document and its sections. */
const sectionLevels = 2

/**
 * Parses the bytes of a settings file, and records the order of its servers (`orderedEntries`) and repeated server
 * names (`repeatedServerNames`).
 * @throws Error with one sentence that names the path and contains no part of the content, which may be a secret
 */
export function parseSettings (bytes: Buffer, path: string): SettingsDocument {
  const invalid = (reason: string): Error =>
    new Error(
      `The settings file ${path} ${reason}. It was not changed: correct it, or move it away to start with an empty one.`
    )
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw invalid('is not UTF-8 text')
  }
  if (text.trim() === '') throw invalid('is empty')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalid(`is not valid JSON (${error instanceof Error ? describeSyntaxError(error.message, text) : ''})`)
  }
  if (!isPlainObject(value)) throw invalid('does not contain a JSON object')
  const { mcpServers: servers } = value
  const serverNames: string[] = []
  scanMembers(text, value, sectionLevels, (object, names) => {
    rememberOrder(object, names)
    if (object === servers) serverNames.push(...names)
  })
  if (isPlainObject(servers)) rememberRepeatedNames(servers, serverNames)
  return value
}

/**
 * Converts a message of JSON.parse: removes the excerpt of the text, which may contain a secret, and replaces the
 * position by line and column.
 */
export function describeSyntaxError (message: string, text: string): string {
  const plain =
    message.replace(/, (\.\.\.)?".*$/s, '').replace(/(?: in JSON|( after JSON)) at position ([0-9]+).*$/s, (
      _, after: string | undefined, position: string
    ) => {
      const before = text.slice(0, Number(position)).split('\n')
      return `${after ?? ''}, line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
    })
  return plain.replace(/\s+/g, ' ').slice(0, 120)
}
