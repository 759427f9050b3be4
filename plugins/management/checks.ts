import { foldUsername } from '../../db/invariants.ts'
import { jsonLength } from '../../db/json-size.ts'
import type { Server, Snapshot } from '../../db/store.ts'
import { memoized } from '../../protocol/memoized.ts'
import { looksLikeId, newNameProblem } from '../../schemas/names.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { errors, listNames, noSuchError } from '../base/errors/index.ts'
import { defaultOwner } from '../identity/index.ts'
import {
  canManage, canSee, findGroupByName, groupTakesPrecedence, isRestrictedConfig, type Principal, teamReference, teamsOf
} from '../settings/index.ts'
import { managementLimits } from './limits.ts'

/**
 * Checks a new name for a server or group.
 * @param place the member of the request that contains the name
 * @throws InvalidInput
 */
function checkName (name: string, place: string, noun: 'server' | 'group', isTaken: boolean): void {
  const problem = newNameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"${place}": ${problem}`)
  if (isTaken) throw new errors.InvalidInput(`There is already a ${noun} named ${JSON.stringify(name)}`)
  if (looksLikeId(name)) throw new errors.InvalidInput(`"${place}" must not look like an id`)
}

/**
 * Checks a new name for a server. A user without admin rights cannot use a name that differs from another server's only
 * by case, or that is the name of a group.
 * @param former the server's current name; undefined for a new server
 * @throws InvalidInput
 */
export function checkServerName (
  snapshot: Snapshot, principal: Principal, name: string, place: 'name' | 'newName', former?: string
): void {
  checkName(name, place, 'server', snapshot.servers.has(name))
  if (principal.isAdmin) return
  const folded = foldUsername(name)
  const others = (countByFoldedName(snapshot.servers).get(folded) ?? 0) -
    (former !== undefined && foldUsername(former) === folded ? 1 : 0)
  if (others > 0) {
    const sentence = `There is a server whose name differs from ${JSON.stringify(name)} only by case`
    throw new errors.InvalidInput(`${sentence}; only an admin may add such a name`)
  }
  if (findGroupByName(snapshot, name)) {
    throw new errors.InvalidInput(
      `There is a group named ${JSON.stringify(name)}; only an admin may give a server its name`
    )
  }
}

/** Returns why a principal may not add a server with this name, as a sentence; undefined if the name may be used. */
export function newServerNameProblem (snapshot: Snapshot, principal: Principal, name: string): string | undefined {
  try {
    checkServerName(snapshot, principal, name, 'name')
    return undefined
  } catch (error) {
    if (error instanceof errors.InvalidInput) return error.message.replace(/^"name":? /, '')
    throw error
  }
}

/** Checks a new name for a group. @param id the id of that group @throws InvalidInput */
export function checkGroupName (
  snapshot: Snapshot, principal: Principal, { id, name }: { id: string, name: string }
): void {
  const other = findGroupByName(snapshot, name) ?? snapshot.groups.get(name)
  checkName(name, 'name', 'group', other !== undefined && other.id !== id)
  if (snapshot.servers.has(name) && !principal.isAdmin) {
    throw new errors.InvalidInput(
      `There is a server named ${JSON.stringify(name)}; only an admin may give a group its name`
    )
  }
}

/** Returns the number of servers by folded name (`foldUsername`). */
const countByFoldedName = memoized((servers: Snapshot['servers']): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const name of servers.keys()) counts.set(foldUsername(name), (counts.get(foldUsername(name)) ?? 0) + 1)
  return counts
})

/** Returns a warning if a server and a group have the same name. @param about which of the two was stored */
export function sameNameWarnings (snapshot: Snapshot, name: string, about: 'server' | 'group'): string[] {
  const [group, server] = [findGroupByName(snapshot, name), snapshot.servers.get(name)]
  if (!group || !server) return []
  const target = groupTakesPrecedence(snapshot, group, server)
    ? 'group'
    : 'server, since the owner of the group is not an admin'
  const other = about === 'group' ? 'server' : 'group'
  const owner = about === 'group' ? '' : `, owned by ${JSON.stringify(group.owner ?? defaultOwner)}`
  return [`There is also a ${other} named ${JSON.stringify(name)}${owner}: routes with this name lead to the ${target}`]
}

/**
 * Returns warnings about the name of a stored server and the names in its `sharedWithUsers`, for a principal that
 * manages the server.
 */
export const nameAndSharingWarnings = (snapshot: Snapshot, principal: Principal, name: string): string[] =>
  [...sameNameWarnings(snapshot, name, 'server'), ...sharingWarnings(snapshot, principal, name)]

/**
 * Creates a function that checks whether an entry of `sharedWithUsers` is an existing user or team that the principal
 * may know: admins may know all, other users only themselves and their teams.
 */
function createSharingCheck (
  snapshot: Pick<Snapshot, 'teams' | 'users'>, principal: Principal
): (entry: string) => boolean {
  const { teams, users } = snapshot
  if (principal.isAdmin) return (entry) => entry.startsWith('@') ? teams.has(entry.slice(1)) : users.has(entry)
  const known = new Set([principal.username, ...teamsOf(snapshot, principal).map(teamReference)])
  return (entry) => known.has(entry)
}

/**
 * Returns a warning about users and teams in `sharedWithUsers` that do not exist. Only admins may learn which users
 * exist: others get the same sentence about all users and teams that they may not know.
 */
function sharingWarnings (snapshot: Snapshot, principal: Principal, name: string): string[] {
  const { sharedWithUsers = [] } = snapshot.servers.get(name)?.config ?? {}
  const isKnown = createSharingCheck(snapshot, principal)
  const unknown = sharedWithUsers.filter((each) => !isKnown(each))
  if (unknown.length === 0) return []
  const listed = listNames(unknown)
  return [principal.isAdmin
    ? `"sharedWithUsers": there is no ${listed} yet, so the entry has no effect`
    : `"sharedWithUsers": check the spelling of ${listed}: an unknown name is stored, but has no effect`]
}

/**
 * Checks that a user may own one more server or group. Admins have no limit.
 * @param added the number of further servers or groups that the same request adds
 * @throws ShareUsed
 */
export function checkServerOrGroupQuota (
  { servers, groups }: Snapshot, { isAdmin, username }: Principal, noun: 'server' | 'group', added = 0
): void {
  if (isAdmin || (noun === 'server' && username === undefined)) return
  const owned = noun === 'server' ? [...servers.values()].map(({ config }) => config) : [...groups.values()]
  const max = noun === 'server' ? managementLimits.serversPerUser : managementLimits.groupsPerUser
  if (owned.filter(({ owner }) => owner === username).length + added < max) return
  throw new errors.ShareUsed(`You already have ${max} ${noun}s: remove one first`)
}

/**
 * Checks that the configs of a user's servers stay within `configPerUser`. Admins have no limit.
 * @param name the server whose config is replaced or added
 * @throws ShareUsed
 */
export function checkConfigQuota (
  { servers }: Snapshot, { isAdmin, username }: Principal, name: string, config: object
): void {
  if (isAdmin || username === undefined) return
  let size = jsonLength(config)
  for (const other of servers.values()) {
    if (other.name !== name && other.config.owner === username) size += jsonLength(other.config)
  }
  if (size > managementLimits.configPerUser) {
    const sentence = `The configs of your servers would have more than ${managementLimits.configPerUser} characters ` +
      'in total: remove one first'
    throw new errors.ShareUsed(sentence)
  }
}

/** Returns a server. @throws NoSuch if it does not exist, or the principal may not see it */
export function requireVisibleServer (snapshot: Snapshot, principal: Principal, name: string): Server {
  const server = snapshot.servers.get(name)
  if (!server || !canSee(snapshot, principal, server, 'public')) throw noSuchError('server', name)
  return server
}

/** Returns a server. @throws NoSuch as `requireVisibleServer`; Forbidden if the principal may not change it */
export function requireManagedServer (snapshot: Snapshot, principal: Principal, name: string): Server {
  const server = requireVisibleServer(snapshot, principal, name)
  if (!canManage(principal, server)) throw new errors.Forbidden('Only its owner or an admin may change this server')
  return server
}

/**
 * Checks that a principal may store, connect, enable or disable a server with this config. Without ALLOW_USER_STDIO,
 * only admins may do so for servers that run a command or are of type `openapi`.
 * @param usersMayRun ALLOW_USER_STDIO
 * @throws Forbidden
 */
export function checkConfigAllowed (principal: Principal, config: ServerConfig, usersMayRun: boolean): void {
  if (principal.isAdmin || usersMayRun || !isRestrictedConfig(config)) return
  throw new errors.Forbidden(
    'Only an admin may store servers that run a command or are of type "openapi" (unless ALLOW_USER_STDIO is set)'
  )
}
