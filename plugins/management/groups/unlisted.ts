import type { Catalogue } from '../../../protocol/lists.ts'
import type { GroupMember } from '../../../schemas/settings.ts'

/** Max names in one sentence; beyond: they are counted. */
const most = 10

/**
 * A sentence for each kind of items of which a member selects some that its server does not list. Nothing is said of a server whose lists
 * are not known.
 * @param catalogues what the server lists, to all classes of clients
 */
export function unlistedIn (member: GroupMember, catalogues: ReadonlyArray<Pick<Catalogue, 'lists'>>): string[] {
  if (catalogues.length === 0) return []
  return (['tools', 'prompts', 'resources'] as const).flatMap((kind) => {
    const selected = member[kind] ?? 'all'
    // What a template stands for may be selected, too.
    const isOpen = kind === 'resources' && catalogues.some(({ lists }) => lists.resourceTemplates.length > 0)
    if (selected === 'all' || isOpen) return []
    const listed = new Set(catalogues.flatMap(({ lists }) => lists[kind].map(({ key }) => key)))
    const left = selected.filter((name) => !listed.has(name))
    if (left.length === 0) return []
    const shown = left.slice(0, most).map((name) => JSON.stringify(name)).join(', ')
    const names = `${shown}${left.length > most ? ` and ${left.length - most} more` : ''}`
    return [`The server ${JSON.stringify(member.name)} lists no ${kind} ${names}: they belong to the group once it does`]
  })
}
