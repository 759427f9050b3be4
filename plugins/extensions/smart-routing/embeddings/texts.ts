import { createHash } from 'node:crypto'
import { isObject } from '../../../../protocol/json.ts'
import { truncate } from '../../../../protocol/text.ts'
import type { ShownTool } from '../search-tools.ts'
import { extensionsLimits } from '../../limits.ts'

/** The text of a tool that is embedded: its own name, whatever names routes give it, and what it says of itself. */
export function embeddedText ({ ownName, server, title, description, inputSchema }: ShownTool): string {
  const properties = isObject(inputSchema) &&
    isObject(inputSchema.properties)
    ? Object.keys(inputSchema.properties).slice(0, 50)
    : []
  const lines = [
    `${ownName.replace(/[_-]+/g, ' ').replace(/([a-z])([A-Z])/g, '$1 $2')} (${server})`,
    title,
    description,
    properties.length > 0 ? `Parameters: ${properties.join(', ')}` : undefined
  ]
  return truncate(
    lines.filter((line) => line !== undefined && line !== '').join('\n'), extensionsLimits.smartRouting.embeddings.text
  )
}

const ids = new WeakMap<ShownTool, string>()

/**
 * The id of a tool's vector: a hash of the embedded text. So equal texts are embedded once, and another text is another
 * vector.
 */
export function idOf (tool: ShownTool): string {
  let id = ids.get(tool)
  if (id === undefined) ids.set(tool, id = createHash('sha256').update(embeddedText(tool)).digest('hex'))
  return id
}

/** The same, if it is known already. */
export const knownId = (tool: ShownTool): string | undefined => ids.get(tool)
