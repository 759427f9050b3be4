import type { Exchange } from '../../protocol/exchange.ts'
import type { Catalogue, Item, ListKind } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import { isObject, memberOf, withMembers } from '../../protocol/json.ts'
import type { ClientCapabilities } from '../../protocol/capabilities.ts'
import {
  isItemEnabled, type ItemFilter, type ItemKind, overrideOf, selectsItem, type View, type VisibleServer
} from '../settings/index.ts'

/** A visible server with its provider and the provider's catalogue for the client, as far as they are known. */
export interface Section extends VisibleServer {
  readonly provider: Provider | undefined
  readonly catalogue: Catalogue | undefined
  /** What its view hides. */
  readonly filter?: ItemFilter | undefined
}

/** The target of an exposed name: the provider of the item, and the item's own name. */
export interface Target {
  readonly provider: string
  readonly key: string
  readonly item?: Item
  /**
   * For a presentation's tool that stands for another tool: calls that tool.
   * @param call runs `tools/call` for another exchange
   */
  readonly redirect?: (exchange: Exchange<View>, call: (exchange: Exchange<View>) => Promise<string>) => Promise<string>
}

/** An item as a section shows it. `description`: the admin's override, if any. */
export interface SectionItem {
  readonly text: string, readonly description: string | undefined, readonly enabled: boolean
}

/** Overrides and selections of resources also apply to resource templates. */
export const itemKindOf = (kind: ListKind): ItemKind => kind === 'resourceTemplates' ? 'resources' : kind

/**
 * An item as its section shows it; undefined when the group does not select it, or only an MCP App may use it. This is
 * the only place that applies overrides, selections and MCP Apps to items.
 * @param apps whether the client supports MCP Apps
 */
export function showItem (
  { server, member, filter }: Pick<Section, 'server' | 'member' | 'filter'>, kind: ListKind, item: Item, apps: boolean
): SectionItem | undefined {
  if (filter?.isHidden(server.name, kind, item) === true) return undefined
  const section = itemKindOf(kind)
  if (!selectsItem(member, section, item.key)) return undefined
  const override = overrideOf(server, section, item.key)
  const text = kind === 'tools' && !apps ? withoutApps(item.text) : item.text
  if (text === undefined) return undefined
  return { text, description: override?.description, enabled: isItemEnabled(override) }
}

/** The MCP Apps extension (SEP-1865). */
const appsExtension = 'io.modelcontextprotocol/ui'

/** Whether a client supports MCP Apps. */
export const showsApps = (client: ClientCapabilities): boolean =>
  isObject(client.extensions) && client.extensions[appsExtension] !== undefined

/**
 * Converts a tool for a client without MCP Apps: removes the metadata of its UI. Undefined for a tool that only an App
 * may call.
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
