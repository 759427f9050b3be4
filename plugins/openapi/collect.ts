import type { Snapshot } from '../../db/store.ts'
import { withoutApps } from '../gateway/apps.ts'
import type { View } from '../access/view.ts'
import { reach, type PublicReach } from '../access/visibility.ts'
import type { Item } from '../upstream/catalogues/catalogue.ts'
import type { Upstream } from '../upstream/upstream.ts'

/** One tool that a view lists, and the description that an admin gave it. */
export interface ListedTool { readonly item: Item, readonly description: string | undefined, readonly enabled: boolean }

/** One connected server behind a view, with its tools in the order it lists them. */
export interface ListedServer {
  readonly name: string
  readonly description: string | undefined
  /** Unlike any other catalogue's. */ readonly catalogue: number
  readonly items: readonly Item[]
  /** Undefined: the view does not list it. */ readonly toTool: (item: Item) => ListedTool | undefined
}

/** The connected servers behind a view, in the order of configuration. One that starts on demand counts: a call starts it. */
export function collect (
  snapshot: Snapshot,
  view: View,
  anonymous: PublicReach,
  upstreamOf: (name: string) => Upstream | undefined
): ListedServer[] {
  const listed: ListedServer[] = []
  const names = new Set<string>()
  for (const {
    server: { name, config },
    member
  } of reach(snapshot, view, anonymous)) {
    const upstream = upstreamOf(name)
    const catalogue = upstream?.listed
    if (!upstream || !catalogue || names.has(name) || !isThere(upstream)) continue
    names.add(name)
    const { tools: selector = 'all' } = member
    const selected = selector === 'all' ? undefined : new Set(selector)
    const toTool = (item: Item): ListedTool | undefined => {
      if (selected?.has(item.key) === false || withoutApps(item.text) === undefined) return undefined
      const override = config.tools !== undefined && Object.hasOwn(config.tools, item.key) ? config.tools[item.key] : undefined
      return { item, description: override?.description, enabled: override?.enabled !== false }
    }
    listed.push({ name, description: config.description, catalogue: catalogue.id, items: catalogue.lists.tools, toTool })
  }
  return listed
}

const isThere = ({ status, error, config }: Upstream): boolean =>
  status === 'connected' || (status === 'disconnected' && error === null && config.startOnDemand === true)
