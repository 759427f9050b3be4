import { createHash } from 'node:crypto'
import { isObject } from '../../../../protocol/json.ts'
import { truncate } from '../../../../protocol/text.ts'
import type { ShownTool } from '../search-tools.ts'
import { extensionsLimits } from '../../limits.ts'

/**
 * The text that is embedded for a tool: its own name, independent of renames on routes, server, title, description and
 * parameters.
 */
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
 * The id of a tool's vector: the hash of its embedded text. Equal texts share a vector; a changed text gets a new one.
 */
export function idOf (tool: ShownTool): string {
  let id = ids.get(tool)
  if (id === undefined) ids.set(tool, id = createHash('sha256').update(embeddedText(tool)).digest('hex'))
  return id
}

/** The cached id of a tool's vector; undefined if `idOf` has not computed it yet. */
export const knownId = (tool: ShownTool): string | undefined => ids.get(tool)
