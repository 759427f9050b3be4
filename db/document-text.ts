import { isPlainObject } from '../schemas/unknown-members.ts'
import { orderedEntries } from './order.ts'

/** The number of levels whose member order is kept: `mcpServers` is at the second or third level. */
const orderedLevels = 3

/** The text of a settings file: indented JSON, with the servers in their order. */
export const documentText = (document: Readonly<object>): string => `${textOf(document, orderedLevels, '')}\n`

/** Indented JSON, whose first line is not indented. JSON.stringify alone would put members such as `7` first. */
function textOf (value: unknown, levels: number, indent: string): string {
  if (levels === 0 || !isPlainObject(value)) return JSON.stringify(value, null, 2).replaceAll('\n', `\n${indent}`)
  const inner = `${indent}  `
  const members = orderedEntries(value).filter(([, member]) => member !== undefined)
    .map(([name, member]) => `\n${inner}${JSON.stringify(name)}: ${textOf(member, levels - 1, inner)}`)
  return members.length === 0 ? '{}' : `{${members.join()}\n${indent}}`
}
