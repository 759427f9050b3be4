import { ownNames } from '../../settings/index.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { GroupMember } from '../../../schemas/settings.ts'

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
