import type { Catalogue } from '../../../protocol/lists.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import { ownNames } from '../../settings/index.ts'

/**
 * A member whose selectors have the items' own names, also where it was sent with names of merged routes.
 * @param catalogues what the server lists, to all classes of clients; names that it does not list stay
 */
export function withOwnNames (
  member: GroupMember, catalogues: ReadonlyArray<Pick<Catalogue, 'lists'>>, separator: string
): GroupMember {
  const next = { ...member }
  for (const kind of ['tools', 'prompts'] as const) {
    const selected = member[kind]
    const listed = new Set(catalogues.flatMap(({ lists }) => lists[kind].map(({ key }) => key)))
    if (!Array.isArray(selected) || listed.size === 0 || selected.every((name) => listed.has(name))) continue
    const own = new Map([member.alias ?? member.name, member.name].flatMap((label) => [...ownNames(label, separator, listed)]))
    next[kind] = selected.map((name) => listed.has(name) ? name : own.get(name) ?? name)
  }
  return next
}

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
