import { smallMemberOf } from '../../../protocol/json.ts'
import type { Catalogue, Item } from '../../../protocol/lists.ts'
import { isEnabled, overrideOf, selects } from '../../settings/index.ts'
import { type Section, showItem } from '../../gateway/index.ts'

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
  /** Whether a tool is selected, and enabled unless disabled ones are shown as well; its text is not looked at. */
  readonly mayShow?: (item: Item, disabled: boolean) => boolean
  /** Whether a tool has the operationId `<server>_<tool>`, which another server's might have as well; undefined: all have it. */
  readonly hasPlainId?: ((key: string) => boolean) | undefined
}

/** Max length of a server's own words about itself, in characters. */
const maxWords = 500

/** A server's own words about itself: the description or title in its `serverInfo`, or else the first paragraph of its instructions. */
function wordsOf ({ serverInfo, instructions }: Catalogue): string | undefined {
  const [description, title] = [smallMemberOf(serverInfo, 'description'), smallMemberOf(serverInfo, 'title')]
  const words = [description, title, instructions?.trimStart().slice(0, 4 * maxWords).split(/\n\s*\n/, 1)[0]]
    .find((each): each is string => typeof each === 'string' && each.trim() !== '')
    ?.trim()
  return words !== undefined && words.length > maxWords ? `${words.slice(0, maxWords).replace(/[\ud800-\udbff]$/, '')}…` : words
}

/** The servers of a view that can be called now, in the order of configuration. A server that starts on demand is one of them. */
export function collectServers (
  sections: readonly Section[],
  hasPlainId: (name: string, at: number) => ListedServer['hasPlainId'] = () => undefined
): ListedServer[] {
  const listed: ListedServer[] = []
  const names = new Set<string>()
  for (const [at, section] of sections.entries()) {
    const { server: { name, config }, provider, catalogue } = section
    if (!provider || !catalogue || provider.available === false || names.has(name)) continue
    names.add(name)
    listed.push({
      name,
      description: config.description ?? wordsOf(catalogue),
      status: provider.status ?? 'connected',
      catalogue: catalogue.id,
      items: catalogue.lists.tools,
      hasPlainId: hasPlainId(name, at),
      mayShow: (item, disabled) => {
        if (!selects(section.member, 'tools', item.key)) return false
        return disabled || isEnabled(overrideOf(section.server, 'tools', item.key))
      },
      toTool: (item) => {
        const shown = showItem(section, 'tools', item, false)
        return shown && { item, description: shown.description, enabled: shown.enabled }
      }
    })
  }
  return listed
}
