import type { Snapshot, NormalizedGroup } from '../../../db/store.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import { aliasProblem } from '../../../schemas/names.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import { countValues } from '../../base/body/index.ts'
import { errors, listNames, noSuchError } from '../../base/errors/index.ts'
import { canSee, type ItemKind, itemKinds, mapToOwnNames, type Principal } from '../../settings/index.ts'
import { managementLimits } from '../limits.ts'

/**
 * Converts names of merged routes in the selectors of a member, such as `<server>-<tool>`, to the items' own names.
 * Unknown names are kept.
 * @param catalogues the catalogues of the server, one for each class of clients
 */
export function withOwnItemNames (
  member: GroupMember, catalogues: ReadonlyArray<Pick<Catalogue, 'lists'>>, separator: string
): GroupMember {
  const next = { ...member }
  for (const kind of ['tools', 'prompts'] as const) {
    const selected = member[kind]
    const listed = new Set(catalogues.flatMap(({ lists }) => lists[kind].map(({ key }) => key)))
    if (!Array.isArray(selected) || listed.size === 0 || selected.every((name) => listed.has(name))) continue
    const own = new Map(
      [member.alias ?? member.name, member.name].flatMap((label) => [...mapToOwnNames(label, separator, listed)])
    )
    next[kind] = selected.map((name) => listed.has(name) ? name : own.get(name) ?? name)
  }
  return next
}

/**
 * Returns warnings about items that a member selects and its server does not list, one for each kind of item; none if
 * the catalogues of the server are unknown.
 * @param catalogues the catalogues of the server, one for each class of clients
 */
export function unlistedItemWarnings (
  member: GroupMember, catalogues: ReadonlyArray<Pick<Catalogue, 'lists'>>
): string[] {
  if (catalogues.length === 0) return []
  return itemKinds.flatMap((kind) => {
    const selected = member[kind] ?? 'all'
    // With resource templates, a selector may name resources that are not listed.
    const isOpen = kind === 'resources' && catalogues.some(({ lists }) => lists.resourceTemplates.length > 0)
    if (selected === 'all' || isOpen) return []
    const listed = new Set(catalogues.flatMap(({ lists }) => lists[kind].map(({ key }) => key)))
    const left = selected.filter((name) => !listed.has(name))
    if (left.length === 0) return []
    return [`The server ${JSON.stringify(member.name)} does not list the ${kind} ` +
      `${listNames(left)}: they become part of the group once it does`]
  })
}

/** Whether a principal may see a member; an admin also sees members whose server is no longer configured. */
function isVisibleMember (snapshot: Snapshot, principal: Principal, { name }: GroupMember): boolean {
  const server = snapshot.servers.get(name)
  return principal.isAdmin || (server !== undefined && canSee(snapshot, principal, server, 'public'))
}

export const visibleMembers = (snapshot: Snapshot, principal: Principal, group: NormalizedGroup): GroupMember[] =>
  group.members.filter((member) => isVisibleMember(snapshot, principal, member))

/**
 * A member with its selectors, which are `all` by default. `skills` is present only if it is a list, since not all API
 * clients know it.
 */
export type MemberConfig = GroupMember & Required<Pick<GroupMember, Exclude<ItemKind, 'skills'>>>

export const withDefaultSelectors = (
  { name, tools = 'all', prompts = 'all', resources = 'all', skills = 'all', alias }: GroupMember
): MemberConfig => ({
  name,
  tools,
  prompts,
  resources,
  ...(skills === 'all' ? {} : { skills }),
  ...(alias === undefined ? {} : { alias })
})

/** Converts a member to its plain name if it has neither selectors nor an alias. */
export function compactMember (member: GroupMember): string | GroupMember {
  const config = withDefaultSelectors(member)
  const isWhole = itemKinds.every((kind) => (config[kind] ?? 'all') === 'all')
  return isWhole && config.alias === undefined ? config.name : config
}

/** Checks that a server is a member of a group. @throws NoSuch if it is not, or if the principal may not see it */
export function assertVisibleMember (
  snapshot: Snapshot, principal: Principal, stored: readonly GroupMember[], name: string
): void {
  const member = stored.find((each) => each.name === name)
  if (!member || !isVisibleMember(snapshot, principal, member)) throw noSuchError('server in this group', name)
}

/**
 * Returns the members of a group after an update. Members that the principal cannot see, and so cannot send, are kept.
 * @param stored the members before the update
 * @param input the sent members
 * @throws the errors of `parseGroupMembers`
 */
export function updatedMembers (
  snapshot: Snapshot,
  principal: Principal,
  stored: readonly GroupMember[],
  input: Array<string | GroupMember>
): GroupMember[] {
  const next = parseGroupMembers(snapshot, principal, input, stored)
  stored.forEach((member, at) => {
    if (!isVisibleMember(snapshot, principal, member)) next.splice(at, 0, member)
  })
  return next
}

/** Returns a sent member with its skill selector: the stored one if none was sent. The default `all` is not stored. */
function withSkills ({ skills: sent, ...member }: GroupMember, former: GroupMember | undefined): GroupMember {
  const skills = sent === undefined || (sent === 'all' && former?.skills === undefined) ? former?.skills : sent
  return skills === undefined ? member : { ...member, skills }
}

/**
 * Converts sent members to objects. A stored member that is sent as a plain name stays unchanged; if it is sent as an
 * object without `skills`, its selector of skills stays unchanged.
 * @param stored the members before the update; none for a new group
 * @throws InvalidInput for a server that does not exist or is invisible to the principal, a duplicate, an invalid
 *   alias, or more values than a group may have
 */
export function parseGroupMembers (
  snapshot: Snapshot,
  principal: Principal,
  input: Array<string | GroupMember>,
  stored: readonly GroupMember[] = []
): GroupMember[] {
  if (countValues(input, managementLimits.groupValues) > managementLimits.groupValues) {
    throw new errors.InvalidInput(
      `"servers": a group may have at most ${managementLimits.groupValues} members and selected items in total`
    )
  }
  const seen = new Set<string>()
  const known = new Map(stored.map((member) => [member.name, member]))
  return input.map((each) => {
    const name = typeof each === 'string' ? each : each.name
    const former = known.get(name)
    // A client may read plain names and send them back. That must not widen a selection, so a plain name keeps
    // selectors and alias.
    const member = typeof each === 'string' ? former ?? { name } : withSkills(each, former)
    const server = snapshot.servers.get(name)
    // Admins see members whose server is no longer configured, and may include them again in an update.
    if (!(principal.isAdmin && former) && (!server || !canSee(snapshot, principal, server, 'public'))) {
      throw new errors.InvalidInput(`"servers": there is no server named ${JSON.stringify(member.name)}`)
    }
    if (seen.has(member.name)) {
      throw new errors.InvalidInput(`"servers": ${JSON.stringify(member.name)} is listed twice`)
    }
    seen.add(member.name)
    const problem = member.alias === undefined || member.alias === former?.alias
      ? undefined
      : aliasProblem(member.alias)
    if (problem !== undefined) {
      throw new errors.InvalidInput(`"servers": the alias of ${JSON.stringify(member.name)}: ${problem}`)
    }
    return member
  })
}
