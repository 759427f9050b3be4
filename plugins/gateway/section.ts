import type { Exchange } from '../../protocol/exchange.ts'
import { byListKind, type Catalogue, type Item, type ListKind } from '../../protocol/lists.ts'
import { memoized } from '../../protocol/memoized.ts'
import { skillFolder } from '../../protocol/skills.ts'
import type { Provider } from '../../protocol/provider.ts'
import { isObject, memberOf, withMembers } from '../../protocol/json.ts'
import type { ClientCapabilities } from '../../protocol/capabilities.ts'
import {
  isItemEnabled, type ItemFilter, type ItemKind, overrideOf, selectsItem, type View, type VisibleServer
} from '../settings/index.ts'

/** A visible server with its provider and that provider's catalogue for the client, if known. */
export interface ViewSection extends VisibleServer {
  readonly provider: Provider | undefined
  readonly catalogue: Catalogue | undefined
  /** The filter of the items that hooks hide from the view. */
  readonly filter?: ItemFilter | undefined
}

/** The item to which a name or URI in a view refers. `key`: its name or URI at the provider. */
export interface ItemTarget {
  readonly provider: string
  readonly key: string
  readonly item?: Item
  /** For a tool that calls another tool (`call_tool`): makes that call. @param call runs `tools/call` requests */
  readonly redirect?: (exchange: Exchange<View>, call: (exchange: Exchange<View>) => Promise<string>) => Promise<string>
}

/** An item as a section shows it. `description`: the override, if any; `enabled`: false if the item is disabled. */
export interface ShownItem {
  readonly text: string, readonly description: string | undefined, readonly enabled: boolean
}

/**
 * The kind of overrides and selections that apply to the items of a list: resource templates have the kind of
 * resources; event types have none.
 */
export function itemKindOfList (kind: ListKind): ItemKind | undefined {
  if (kind === 'events') return undefined
  return kind === 'resourceTemplates' ? 'resources' : kind
}

/**
 * Returns an item as a section shows it; undefined if hooks hide it, the group does not select it, or only an MCP App
 * may use it. A disabled item is returned with `enabled: false`.
 * @param supportsApps whether the client supports MCP Apps
 */
export function toShownItem (
  { server, member, filter }: Pick<ViewSection, 'server' | 'member' | 'filter'>,
  kind: ListKind,
  item: Item,
  supportsApps: boolean
): ShownItem | undefined {
  if (filter?.isHidden(server.name, kind, item) === true) return undefined
  const section = itemKindOfList(kind)
  if (section === undefined) return { text: item.text, description: undefined, enabled: true }
  if (!selectsItem(member, section, item.key)) return undefined
  const override = overrideOf(server, section, item.key)
  const text = kind === 'tools' && !supportsApps ? textWithoutApps(item) : item.text
  if (text === undefined) return undefined
  return { text, description: override?.description, enabled: isItemEnabled(override) }
}

/** Whether the group selects the item with this key, and the server's config does not disable the item. */
export const isSelectedAndEnabled = ({ server, member }: VisibleServer, kind: ItemKind, key: string): boolean =>
  selectsItem(member, kind, key) && isItemEnabled(overrideOf(server, kind, key))

/** Whether a section shows a resource. An enabled resource in the folder of a skill is shown if the skill is shown. */
export function showsResource (section: ViewSection, uri: string): boolean {
  const { server, catalogue } = section
  if (catalogue === undefined || catalogue.lists.skills.length === 0) {
    return isSelectedAndEnabled(section, 'resources', uri)
  }
  if (!isItemEnabled(overrideOf(server, 'resources', uri))) return false
  const skills = foldersAbove(uri).flatMap((folder) => skillFoldersOf(catalogue).get(folder) ?? [])
  return skills.length === 0
    ? isSelectedAndEnabled(section, 'resources', uri)
    : skills.some((skill) => isSelectedAndEnabled(section, 'skills', skill))
}

const skillFoldersOf = memoized(({ lists: { skills } }: Catalogue): ReadonlyMap<string, string> =>
  new Map(skills.map(({ key }) => [skillFolder(key) ?? key, key])))

/** Max folders of a URI that are checked. */
const maxFolders = 100

/** A URI's path, which may be a folder itself, and then the folders above it, innermost first; at most `maxFolders`. */
export function foldersAbove (uri: string): string[] {
  const path = uri.replace(/[?#].*$/s, '').replace(/\/$/, '')
  const found = [path]
  const root = path.indexOf('://') + 2
  for (let at = path.lastIndexOf('/'); at > root && found.length < maxFolders; at = path.lastIndexOf('/', at - 1)) {
    found.push(path.slice(0, at))
  }
  return found
}

/** Returns a provider's catalogue without the items that a filter hides. */
export function withoutHidden (catalogue: Catalogue, provider: string, { isHidden }: ItemFilter): Catalogue {
  const shown = (kind: ListKind): Item[] => catalogue.lists[kind].filter((item) => !isHidden(provider, kind, item))
  return { ...catalogue, lists: byListKind(shown) }
}

/** The MCP Apps extension (SEP-1865). */
const appsExtension = 'io.modelcontextprotocol/ui'

/** Whether a client declares the MCP Apps extension. */
export const supportsMcpApps = (client: ClientCapabilities): boolean =>
  isObject(client.extensions) && client.extensions[appsExtension] !== undefined

/** Removes the UI metadata from a tool, for a client without MCP Apps; undefined if only an App may call the tool. */
export function withoutMcpAppMetadata (text: string): string | undefined {
  if (!text.includes('"_meta"') || !text.includes('"ui')) return text
  const { _meta: meta } = JSON.parse(text) as { _meta?: unknown }
  if (!isObject(meta)) return text
  if (isObject(meta.ui) && Array.isArray(meta.ui.visibility) && !meta.ui.visibility.includes('model')) return undefined
  if (meta.ui === undefined && meta['ui/resourceUri'] === undefined) return text
  const rest = withMembers(memberOf(text, '_meta') ?? '{}', { ui: undefined, 'ui/resourceUri': undefined })
  return withMembers(text, { _meta: rest === '{}' ? undefined : rest })
}

/** Cached, since a list of thousands of tools is built again whenever one of its servers changes. */
const textWithoutApps = memoized(({ text }: Item) => withoutMcpAppMetadata(text))
