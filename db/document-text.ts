import { isPlainObject } from '../schemas/unknown-members.ts'
import { orderedEntries } from './order.ts'

/**
 * The number of outer levels whose objects keep the recorded order of their members: the document, its sections, and
 * the entries of the sections.
 */
const orderedLevels = 3

/** Returns the text of a settings file: indented JSON, with the servers in the order of configuration. */
export const serializeSettings = (document: Readonly<object>): string => `${textOf(document, orderedLevels, '')}\n`

/**
 * Returns a value as JSON in which all lines but the first are indented. Objects in the first `levels` levels keep the
 * recorded order of their members (`orderedEntries`), where JSON.stringify would put names such as `7` first.
 */
function textOf (value: unknown, levels: number, indent: string): string {
  if (levels === 0 || !isPlainObject(value)) return JSON.stringify(value, null, 2).replaceAll('\n', `\n${indent}`)
  const inner = `${indent}  `
  const members = orderedEntries(value).filter(([, member]) => member !== undefined)
    .map(([name, member]) => `\n${inner}${JSON.stringify(name)}: ${textOf(member, levels - 1, inner)}`)
  return members.length === 0 ? '{}' : `{${members.join()}\n${indent}}`
}
