import { isUsableServer, type Server, type Snapshot, type NormalizedGroup } from '../../../db/store.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import type { Env } from '../../../schemas/env.ts'
import type { SnapshotWithRegistered } from './directory.ts'
import { findSharedWithEntry } from './teams.ts'
import type { KeyScope, Principal, ViewScope, View } from './view.ts'

/** The value of PUBLIC_TOOLS, which determines the servers that callers without credentials see. */
export type PublicToolsMode = Env['PUBLIC_TOOLS']

/** Whether a principal may see and call a server. Open routes show further servers (`isShownOnOpenRoute`). */
export function canSee (
  snapshot: Snapshot, principal: Principal, { config }: Server, publicTools: PublicToolsMode
): boolean {
  const { isAdmin, username, team } = principal
  if (isAdmin) return true
  if (username === undefined && team === undefined) return isVisibleToAnybody(config, publicTools)
  return config.visibility === 'public' || (username !== undefined && config.owner === username) ||
    findSharedWithEntry(snapshot, principal, config.sharedWithUsers) !== undefined
}

/** Whether callers without credentials may see and call a server. PUBLIC_TOOLS=off closes the open routes, not MCP. */
const isVisibleToAnybody = ({ visibility }: Server['config'], publicTools: PublicToolsMode): boolean =>
  publicTools === 'all' || visibility === 'public'

/** Whether an owner is an admin. The owner `admin`, who owns everything without an owner, always counts as an admin. */
export const isAdminOwner = ({ users }: Snapshot, owner = 'admin'): boolean =>
  owner === 'admin' || users.get(owner)?.isAdmin === true

/**
 * Whether an open route shows a server. It shows the servers that callers without credentials see, and the servers that
 * the caller's credential adds. A scoped key adds only servers that are in its scope and visible to its owner: a scope
 * only narrows what the owner sees.
 */
function isShownOnOpenRoute (
  snapshot: Snapshot, { principal, scope }: View, server: Server, publicTools: PublicToolsMode
): boolean {
  if (publicTools !== 'off' && isVisibleToAnybody(server.config, publicTools)) return true
  if (principal.kind === 'anonymous') return false
  return canSee(snapshot, principal, server, publicTools) &&
    (principal.keyScope === undefined || includesServer(principal.keyScope, scope, server.name))
}

/** Whether a view shows a configured server. */
const isShown = (snapshot: Snapshot, view: View, server: Server, publicTools: PublicToolsMode): boolean =>
  view.scope.open === true
    ? isShownOnOpenRoute(snapshot, view, server, publicTools)
    : canSee(snapshot, view.principal, server, publicTools)

/** Whether a principal may change, enable, disable and reload a server. */
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
 * Returns the enabled servers that a view shows: servers of admins first, then those of users, each in the order of
 * configuration (on the routes of a group: in the order of its members); providers without a prefix come last. The
 * order decides which of two servers gets a contested name, so a user's server never takes a name from an admin's.
 */
export function visibleServers (
  snapshot: SnapshotWithRegistered, view: View, publicTools: PublicToolsMode
): VisibleServer[] {
  const visible: VisibleServer[] = []
  for (const member of membersOf(snapshot, view.scope)) {
    const server = snapshot.servers.get(member.name)
    if (!server || !isUsableServer(server) || !isShown(snapshot, view, server, publicTools)) continue
    // Open routes address a tool by its server, and this provider is not a server.
    if (server.unprefixed === true && view.scope.open === true) continue
    const label = server.unprefixed === true ? '' : member.alias ?? member.name
    visible.push({ server, label, member, isOwnedByAdmin: isAdminOwner(snapshot, server.config.owner) })
  }
  // Registered providers already come after all servers, so only users' servers can be out of order.
  if (visible.every(({ isOwnedByAdmin }) => isOwnedByAdmin)) return visible
  return [0, 1, 2].flatMap((rank) => visible.filter((each) => rankOf(each) === rank))
}

const rankOf = ({ server, isOwnedByAdmin }: VisibleServer): number =>
  server.unprefixed === true ? 2 : isOwnedByAdmin ? 0 : 1

function membersOf (snapshot: SnapshotWithRegistered, scope: ViewScope): readonly GroupMember[] {
  if (scope.kind === 'server') return [{ name: scope.name }]
  const routed = snapshot.registered?.filter(({ memberIn }) => memberIn !== undefined) ?? []
  const own = scope.kind === 'group'
    ? groupMembersOf(snapshot, scope.id)
    : [...snapshot.servers.keys()]
        .flatMap((name) => routed.some((each) => each.name === name) ? [] : [{ name }])
  const added = routed.flatMap(({ memberIn }) => memberIn?.(snapshot, scope) ?? [])
  return added.length === 0 ? own : [...own, ...added]
}

/** Whether a view of a group shows one of its servers, enabled or not. Providers without a prefix do not count. */
export const showsGroup = (snapshot: SnapshotWithRegistered, view: View, publicTools: PublicToolsMode): boolean =>
  membersOf(snapshot, view.scope).some(({ name }) => {
    const server = snapshot.servers.get(name)
    return server !== undefined && server.unprefixed !== true && isShown(snapshot, view, server, publicTools)
  })

const groupMembersOf = (snapshot: Snapshot, id: string): readonly GroupMember[] =>
  snapshot.groups.get(id)?.members ?? []

/**
 * Resolves the id or name in a route to a scope: a group with that id; else a group with that name, unless a server
 * with that name takes precedence; else a server.
 * @param byName whether groups are found by name, too
 * @returns undefined if there is no such group or server
 */
export function resolveRouteScope (snapshot: Snapshot, idOrName: string, byName: boolean): ViewScope | undefined {
  const group = findGroup(snapshot, idOrName, byName)
  const server = snapshot.servers.get(idOrName)
  return group && (!server || group.id === idOrName || groupTakesPrecedence(snapshot, group, server))
    ? groupScope(group, idOrName)
    : server && { kind: 'server', name: idOrName }
}

/** Finds a group by its id or name, as the scope of a view. @param byName whether groups are found by name, too */
export function findGroupScope (snapshot: Snapshot, idOrName: string, byName: boolean): ViewScope | undefined {
  const group = findGroup(snapshot, idOrName, byName)
  return group && groupScope(group, idOrName)
}

const groupScope = ({ id, name }: NormalizedGroup, idOrName: string): ViewScope =>
  ({ kind: 'group', id, name, ...(idOrName !== id && { byName: true }) })
const findGroup = (snapshot: Snapshot, idOrName: string, byName: boolean): NormalizedGroup | undefined =>
  snapshot.groups.get(idOrName) ?? (byName ? findGroupByName(snapshot, idOrName) : undefined)

/**
 * Whether a group takes precedence over a server of the same name on routes. A non-admin's group does not take
 * precedence over another user's server, whichever is older: otherwise the group's owner could decide what agents get
 * under the server's name.
 */
export const groupTakesPrecedence = (snapshot: Snapshot, { owner }: NormalizedGroup, { config }: Server): boolean =>
  isAdminOwner(snapshot, owner) || owner === config.owner

const groupsByName = memoized(({ groups }: Snapshot): ReadonlyMap<string, NormalizedGroup> =>
  new Map([...groups.values()].map((group) => [group.name, group])))

/** Finds a group by name. */
export const findGroupByName = (snapshot: Snapshot, name: string): NormalizedGroup | undefined =>
  groupsByName(snapshot).get(name)

/** Whether a principal may use a route as far as the scope of its key is concerned; true without a scope. */
export function canUseRoute (snapshot: Snapshot, { keyScope }: Principal, scope: ViewScope): boolean {
  if (keyScope === undefined) return true
  const byGroup = includesGroup(keyScope, scope)
  if (byGroup || keyScope.accessType === 'groups') return byGroup
  switch (scope.kind) {
    case 'global': return false
    case 'server': return keyScope.servers.includes(scope.name)
    case 'group': {
      const members = groupMembersOf(snapshot, scope.id)
      const { servers } = setsOf(keyScope)
      return members.length > 0 && members.every(({ name }) => servers.has(name))
    }
  }
}

interface KeyScopeSets { readonly groups: ReadonlySet<string>, readonly servers: ReadonlySet<string> }

/** The names in the scope of a key as sets, since they are looked up for each of thousands of servers. */
const setsOf = memoized(({ groups, servers }: KeyScope): KeyScopeSets =>
  ({ groups: new Set(groups), servers: new Set(servers) }))

function includesGroup (keyScope: KeyScope, scope: ViewScope): boolean {
  if (keyScope.accessType === 'servers' || scope.kind !== 'group') return false
  const { groups } = setsOf(keyScope)
  return groups.has(scope.id) || groups.has(scope.name)
}

/** Whether a scoped key includes a server on an open route: it lists the server, or the route's group. */
const includesServer = (keyScope: KeyScope, scope: ViewScope, server: string): boolean =>
  includesGroup(keyScope, scope) || (keyScope.accessType !== 'groups' && setsOf(keyScope).servers.has(server))
