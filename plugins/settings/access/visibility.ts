import { isUsableServer, type Server, type Snapshot, type StoredGroup } from '../../../db/store.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import type { Env } from '../../../schemas/env.ts'
import type { DirectorySnapshot } from './directory.ts'
import { shareOf } from './teams.ts'
import type { KeyScope, Principal, ViewScope, View } from './view.ts'

/** The value of PUBLIC_TOOLS, which determines the servers that callers without credentials see. */
export type PublicToolsMode = Env['PUBLIC_TOOLS']

/** Whether a principal may see and call a server. This is the only place that decides it. */
export function canSee (
  snapshot: Snapshot, principal: Principal, { config }: Server, anonymous: PublicToolsMode
): boolean {
  const { isAdmin, username, team } = principal
  if (isAdmin) return true
  if (username === undefined && team === undefined) return isVisibleToAnybody(config, anonymous)
  return config.visibility === 'public' || (username !== undefined && config.owner === username) ||
    shareOf(snapshot, principal, config.sharedWithUsers) !== undefined
}

/** Whether callers without credentials may see and call a server. PUBLIC_TOOLS=off closes the open routes, not MCP. */
const isVisibleToAnybody = ({ visibility }: Server['config'], anonymous: PublicToolsMode): boolean =>
  anonymous === 'all' || visibility === 'public'

/** Whether an owner is an admin. A server without an owner belongs to `admin`. */
export const isAdminOwner = ({ users }: Snapshot, owner = 'admin'): boolean =>
  owner === 'admin' || users.get(owner)?.isAdmin === true

/**
 * Whether an open route shows a server: the servers that callers without credentials see, and those that the caller's
 * credential adds. A scoped key adds only servers that are in its scope and visible to its owner: a scope only narrows
 * what the owner sees.
 */
function isShownOnOpenRoute (
  snapshot: Snapshot, { principal, scope }: View, server: Server, anonymous: PublicToolsMode
): boolean {
  if (anonymous !== 'off' && isVisibleToAnybody(server.config, anonymous)) return true
  if (principal.kind === 'anonymous') return false
  return canSee(snapshot, principal, server, anonymous) &&
    (principal.keyScope === undefined || includesServer(principal.keyScope, scope, server.name))
}

/** Whether a view shows a configured server. */
const isShown = (snapshot: Snapshot, view: View, server: Server, anonymous: PublicToolsMode): boolean =>
  view.scope.open === true
    ? isShownOnOpenRoute(snapshot, view, server, anonymous)
    : canSee(snapshot, view.principal, server, anonymous)

/** Whether a principal may change, toggle and reload a server. */
export const canManage = (principal: Principal, { config }: Server): boolean =>
  principal.isAdmin || (principal.username !== undefined && config.owner === principal.username)

/**
 * A server or registered provider in a view. `label`: the name or alias that prefixes its items on merged routes, empty
 * for no prefix; `member`: the selection of its items.
 */
export interface VisibleServer {
  readonly server: Server, readonly label: string, readonly member: GroupMember, readonly isOwnedByAdmin: boolean
}

/**
 * The enabled servers that a view shows: servers of admins first, then those of users, each in the order of
 * configuration (on the routes of a group: in the order of its members); providers without a prefix come last. The
 * order decides which of two servers gets a contested name, so a user's server never takes a name from an admin's.
 */
export function visibleServers (snapshot: DirectorySnapshot, view: View, anonymous: PublicToolsMode): VisibleServer[] {
  const visible: VisibleServer[] = []
  for (const member of membersOf(snapshot, view.scope)) {
    const server = snapshot.servers.get(member.name)
    if (!server || !isUsableServer(server) || !isShown(snapshot, view, server, anonymous)) continue
    // Open routes address a tool by its server, and this provider is not a server.
    if (server.unprefixed === true && view.scope.open === true) continue
    const label = server.unprefixed === true ? '' : member.alias ?? member.name
    visible.push({ server, label, member, isOwnedByAdmin: isAdminOwner(snapshot, server.config.owner) })
  }
  // Registered providers already come after all servers, so only users' servers can be out of order.
  if (visible.every(({ isOwnedByAdmin: ofAdmin }) => ofAdmin)) return visible
  return [0, 1, 2].flatMap((rank) => visible.filter((each) => rankOf(each) === rank))
}

const rankOf = ({ server, isOwnedByAdmin: ofAdmin }: VisibleServer): number =>
  server.unprefixed === true ? 2 : ofAdmin ? 0 : 1

function membersOf (snapshot: DirectorySnapshot, scope: ViewScope): readonly GroupMember[] {
  if (scope.kind === 'server') return [{ name: scope.name }]
  const routed = snapshot.registered?.filter(({ memberIn }) => memberIn !== undefined) ?? []
  const own = scope.kind === 'group'
    ? groupMembersOf(snapshot, scope.id)
    : [...snapshot.servers.keys()]
        .flatMap((name) => routed.some((each) => each.name === name) ? [] : [{ name }])
  const added = routed.flatMap(({ memberIn }) => memberIn?.(snapshot, scope) ?? [])
  return added.length === 0 ? own : [...own, ...added]
}

const groupMembersOf = (snapshot: Snapshot, id: string): readonly GroupMember[] =>
  snapshot.groups.get(id)?.members ?? []

/**
 * Resolves the name in a route to a scope: a group by id, then a group by name, then a server.
 * @param byName whether groups are found by name, too
 * @returns undefined if there is no such group or server
 */
export function resolveRouteScope (snapshot: Snapshot, word: string, byName: boolean): ViewScope | undefined {
  const group = findGroup(snapshot, word, byName)
  const server = snapshot.servers.get(word)
  return group && (!server || group.id === word || hasPrecedence(snapshot, group, server))
    ? groupScope(group, word)
    : server && { kind: 'server', name: word }
}

/** Finds a group by its id or name, as the scope of a view. */
export function findGroupScope (snapshot: Snapshot, word: string, byName: boolean): ViewScope | undefined {
  const group = findGroup(snapshot, word, byName)
  return group && groupScope(group, word)
}

const groupScope = ({ id, name }: StoredGroup, word: string): ViewScope =>
  ({ kind: 'group', id, name, ...(word !== id && { byName: true }) })
const findGroup = (snapshot: Snapshot, word: string, byName: boolean): StoredGroup | undefined =>
  snapshot.groups.get(word) ?? (byName ? findGroupByName(snapshot, word) : undefined)

/**
 * Whether a group takes precedence over a server of the same name on routes. A non-admin's group does not take
 * precedence over another user's server, whichever is older: otherwise the group's owner would decide what agents get
 * under that server's name.
 */
export const hasPrecedence = (snapshot: Snapshot, { owner }: StoredGroup, { config }: Server): boolean =>
  isAdminOwner(snapshot, owner) || owner === config.owner

const groupsByName = memoized(({ groups }: Snapshot): ReadonlyMap<string, StoredGroup> =>
  new Map([...groups.values()].map((group) => [group.name, group])))

/** Finds a group by name. */
export const findGroupByName = (snapshot: Snapshot, name: string): StoredGroup | undefined =>
  groupsByName(snapshot).get(name)

/** Whether a scoped key may use a route. */
export function canUseRoute (snapshot: Snapshot, { keyScope: grant }: Principal, scope: ViewScope): boolean {
  if (grant === undefined) return true
  const byGroup = includesGroup(grant, scope)
  if (byGroup || grant.accessType === 'groups') return byGroup
  switch (scope.kind) {
    case 'global': return false
    case 'server': return grant.servers.includes(scope.name)
    case 'group': {
      const members = groupMembersOf(snapshot, scope.id)
      const granted = setsOf(grant).servers
      return members.length > 0 && members.every(({ name }) => granted.has(name))
    }
  }
}

interface KeyScopeSets { readonly groups: ReadonlySet<string>, readonly servers: ReadonlySet<string> }

/** The names in a grant as sets, since they are looked up for each of thousands of servers. */
const setsOf = memoized(({ groups, servers }: KeyScope): KeyScopeSets =>
  ({ groups: new Set(groups), servers: new Set(servers) }))

function includesGroup (grant: KeyScope, scope: ViewScope): boolean {
  if (grant.accessType === 'servers' || scope.kind !== 'group') return false
  const { groups } = setsOf(grant)
  return groups.has(scope.id) || groups.has(scope.name)
}

/** Whether a scoped key includes a server on an open route: it lists the server, or the route's group. */
const includesServer = (grant: KeyScope, scope: ViewScope, server: string): boolean =>
  includesGroup(grant, scope) || (grant.accessType !== 'groups' && setsOf(grant).servers.has(server))
