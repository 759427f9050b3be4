import { createHash } from 'node:crypto'
import { isObject } from '../../../../protocol/json.ts'
import { truncate } from '../../../../protocol/text.ts'
import type { ShownTool } from '../shown-tools.ts'
import { extensionsLimits } from '../../limits.ts'

/**
 * Returns the text to embed for a tool: name, server, title, description and the names of up to 50 parameters. The name
 * is the server's own, which does not depend on the route. A long text is truncated.
 */
export function textToEmbed ({ ownName, server, title, description, inputSchema }: ShownTool): string {
  const properties = isObject(inputSchema) && isObject(inputSchema.properties)
    ? Object.keys(inputSchema.properties).slice(0, 50)
    : []
  const lines = [
    `${ownName.replace(/[_-]+/g, ' ').replace(/([a-z])([A-Z])/g, '$1 $2')} (${server})`,
    title,
    description,
    properties.length > 0 ? `Parameters: ${properties.join(', ')}` : undefined
  ]
  return truncate(
    lines.filter((line) =>
      line !== undefined && line !== '').join('\n'), extensionsLimits.smartRouting.embeddings.textLength
  )
}

const ids = new WeakMap<ShownTool, string>()

/** Returns the id of a tool's vector: the hash of the embedded text. Tools with equal texts share a vector. */
export function vectorIdOf (tool: ShownTool): string {
  let id = ids.get(tool)
  if (id === undefined) ids.set(tool, id = createHash('sha256').update(textToEmbed(tool)).digest('hex'))
  return id
}

/** Returns the id of a tool's vector if it was computed before, otherwise undefined. */
export const knownVectorId = (tool: ShownTool): string | undefined => ids.get(tool)
