import { parseSmallMember } from '../../../protocol/json.ts'
import type { Catalogue, Item } from '../../../protocol/lists.ts'
import { type ViewSection, toShownItem } from '../../gateway/index.ts'

/** A tool as a view shows it. `description`: the admin's replacement for the tool's own description, if any. */
interface ListedTool { readonly item: Item, readonly description: string | undefined, readonly enabled: boolean }

/** A server in a view that can be called, with its tools in listed order. */
export interface ListedServer {
  readonly name: string
  readonly description: string | undefined
  readonly status: string
  readonly items: readonly Item[]
  /** Returns a tool as the view shows it; undefined if the view does not show it. */
  readonly toTool: (item: Item) => ListedTool | undefined
  /**
   * Whether the tool with this name has the plain operationId `<server>_<tool>`. Undefined if no tool of another server
   * can have the same plain operationId as a tool of this server.
   */
  readonly hasPlainId?: ((key: string) => boolean) | undefined
}

/** Max length of a server's own description, in characters. */
const maxDescription = 500

/**
 * Returns a server's own description: the description or title in `serverInfo`, or the first paragraph of its
 * instructions.
 */
function ownDescription ({ serverInfo, instructions }: Catalogue): string | undefined {
  const [description, title] = [parseSmallMember(serverInfo, 'description'), parseSmallMember(serverInfo, 'title')]
  const words = [description, title, instructions?.trimStart().slice(0, 4 * maxDescription).split(/\n\s*\n/, 1)[0]]
    .find((each): each is string => typeof each === 'string' && each.trim() !== '')
    ?.trim()
  return words !== undefined && words.length > maxDescription
    ? `${words.slice(0, maxDescription).replace(/[\ud800-\udbff]$/, '')}…`
    : words
}

/**
 * Returns the servers of a view that can currently be called, including servers that start on demand, in configured
 * order.
 * @param hasPlainId returns the value of `ListedServer.hasPlainId` for a server; `at`: the server's index in `sections`
 */
export function collectServers (
  sections: readonly ViewSection[],
  hasPlainId: (name: string, at: number) => ListedServer['hasPlainId'] = () => undefined
): ListedServer[] {
  const listed: ListedServer[] = []
  const names = new Set<string>()
  for (const [at, section] of sections.entries()) {
    const { server: { name, config }, provider, catalogue } = section
    if (!provider || !catalogue || provider.isAvailable === false || names.has(name)) continue
    names.add(name)
    listed.push({
      name,
      description: config.description ?? ownDescription(catalogue),
      status: provider.status ?? 'connected',
      items: catalogue.lists.tools,
      hasPlainId: hasPlainId(name, at),
      toTool: (item) => {
        const shown = toShownItem(section, 'tools', item, false)
        return shown && { item, description: shown.description, enabled: shown.enabled }
      }
    })
  }
  return listed
}
