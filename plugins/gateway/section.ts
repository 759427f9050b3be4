import type { Catalogue, Item, ListKind } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import { isEnabled, type ItemKind, overrideOf, selects, type VisibleServer } from '../settings/index.ts'
import { withoutApps } from './apps.ts'

/** One visible server with its provider, and the provider's catalogue for the client; undefined when there is none, or not known yet. */
export interface Section extends VisibleServer {
  readonly provider: Provider | undefined
  readonly catalogue: Catalogue | undefined
}

/** One item as a section shows it. `description`: the admin's override, if there is one. */
export interface SectionItem { readonly text: string, readonly description: string | undefined, readonly enabled: boolean }

/** Overrides and selections of resources also apply to resource templates. */
export const itemKindOf = (kind: ListKind): ItemKind => kind === 'resourceTemplates' ? 'resources' : kind

/**
 * An item as its section shows it; undefined when the group does not select it, or only an MCP App may use it. Overrides, selections and
 * MCP Apps are applied to items only here.
 * @param apps the client shows MCP Apps
 */
export function showItem ({ server, member }: VisibleServer, kind: ListKind, item: Item, apps: boolean): SectionItem | undefined {
  const section = itemKindOf(kind)
  if (!selects(member, section, item.key)) return undefined
  const override = overrideOf(server, section, item.key)
  const text = kind === 'tools' && !apps ? withoutApps(item.text) : item.text
  if (text === undefined) return undefined
  return { text, description: override?.description, enabled: isEnabled(override) }
}
