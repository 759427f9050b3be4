import { isObject, memberOf, withMembers } from '../../protocol/json.ts'
import type { ClientCapabilities } from '../../protocol/capabilities.ts'

/** The MCP Apps extension (SEP-1865). */
const extension = 'io.modelcontextprotocol/ui'

/** True for a client that shows MCP Apps. */
export const showsApps = (client: ClientCapabilities): boolean => isObject(client.extensions) && client.extensions[extension] !== undefined

/**
 * A tool for a client without MCP Apps: without the metadata that names its view. Undefined when it is hidden, since only an App may
 * call it.
 */
export function withoutApps (text: string): string | undefined {
  if (!text.includes('"_meta"') || !text.includes('"ui')) return text
  const { _meta: meta } = JSON.parse(text) as { _meta?: unknown }
  if (!isObject(meta)) return text
  if (isObject(meta.ui) && Array.isArray(meta.ui.visibility) && !meta.ui.visibility.includes('model')) return undefined
  if (meta.ui === undefined && meta['ui/resourceUri'] === undefined) return text
  const rest = withMembers(memberOf(text, '_meta') ?? '{}', { ui: undefined, 'ui/resourceUri': undefined })
  return withMembers(text, { _meta: rest === '{}' ? undefined : rest })
}
