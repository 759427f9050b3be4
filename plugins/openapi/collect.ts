import type { Item } from '../../protocol/lists.ts'
import { showItem, type Section } from '../gateway/section.ts'

/** One tool as a view shows it. `description`: the override, where an admin gave one. */
export interface ListedTool { readonly item: Item, readonly description: string | undefined, readonly enabled: boolean }

/** One connected server behind a view, with its tools in the order it lists them. */
export interface ListedServer {
  readonly name: string
  readonly description: string | undefined
  readonly status: string
  /** The id of its catalogue. */
  readonly catalogue: number
  readonly items: readonly Item[]
  /** A tool as the view shows it; undefined: it does not. */
  readonly toTool: (item: Item) => ListedTool | undefined
}

/** The servers of a view that can be called now, in the order of configuration. A server that starts on demand is one of them. */
export function collect (sections: readonly Section[]): ListedServer[] {
  const listed: ListedServer[] = []
  const names = new Set<string>()
  for (const section of sections) {
    const { server: { name, config }, provider, catalogue } = section
    if (!provider || !catalogue || provider.available === false || names.has(name)) continue
    names.add(name)
    listed.push({
      name,
      description: config.description,
      status: provider.status ?? 'connected',
      catalogue: catalogue.id,
      items: catalogue.lists.tools,
      toTool: (item) => {
        const shown = showItem(section, 'tools', item, false)
        return shown && { item, description: shown.description, enabled: shown.enabled }
      }
    })
  }
  return listed
}
