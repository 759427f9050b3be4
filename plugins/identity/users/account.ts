import { createHash } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Change, Snapshot } from '../../../db/store.ts'
import type { AccountRecord } from '../../../schemas/login.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { User } from '../../../schemas/settings.ts'
import {
  keepsStoredRights, isRestrictedConfig, type Principal, storersOf
} from '../../settings/index.ts'
import { defaultOwner } from './rules.ts'

/**
 * Returns the mark of an account: a digest that identifies it together with its current password. A new user with the
 * name of a deleted one has another mark, as does an account restored from a backup: credentials issued before do not
 * become valid again, even with the same password.
 */
export const accountMarkOf = ({ username, password, createdAt, restoredAt }: User): string =>
  digest([username, password, createdAt, ...(restoredAt === undefined ? [] : [restoredAt])])

/**
 * Returns the mark of an account together with its admin rights: it also changes when the user becomes an admin or
 * ceases to be one, and does not return to a former value. So an authorization that a user grants to a client ends when
 * the user gets or loses the admin rights, and stays invalid if that is undone.
 */
export const rightsMarkOf = (user: User): string =>
  `${accountMarkOf(user)}${user.isAdmin === true ? '+' : ''}${user.demotedAt ?? ''}`

/** Returns an id of an account that a later account of the same name does not have; the `sub` of OpenID Connect. */
export const accountSubjectOf = ({ username, createdAt }: User): string => digest(['sub', username, createdAt])

/** Yields the names of accounts that were removed, or replaced by another account of the same name. */
export function * removedAccountNames (
  former: ReadonlyMap<string, User>, next: ReadonlyMap<string, User>
): Generator<string> {
  if (former === next) return
  for (const [username, user] of former) {
    const later = next.get(username)
    if (!later || (later !== user && accountSubjectOf(later) !== accountSubjectOf(user))) yield username
  }
}

/**
 * Creates the principal of a user who has logged in.
 * @param inSnapshot returns the principal in later settings; undefined if the login has ended
 */
export const principalOfUser = (user: User, inSnapshot: Principal['inSnapshot']): Principal => ({
  // Derived from the account, so that a later account of the same name does not inherit sessions.
  key: `user ${accountSubjectOf(user)}`,
  kind: 'user',
  user: user.username,
  username: user.username,
  isAdmin: user.isAdmin === true,
  inSnapshot
})

const digest = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)

/**
 * Returns the account of a principal, with the permissions by which clients show or hide parts of their interface. A
 * principal without a user is named `anonymous`.
 */
export function toAccountRecord (
  { username, isAdmin }: Pick<Principal, 'username' | 'isAdmin'>
): Static<typeof AccountRecord> {
  return {
    username: username ?? 'anonymous',
    isAdmin,
    permissions: { admin: isAdmin, servers: isAdmin ? 'all' : 'visible', users: isAdmin, system: isAdmin }
  }
}

/**
 * Returns the changes that remove a user. A later user of the same name must inherit nothing: servers pass to `admin`
 * and become private, groups pass to `admin`, and servers are no longer shared with the user. The user is removed from
 * all teams and from the approvers of policies (`admin` replaces the last approver, since a policy without any asks the
 * caller). The user's keys are removed, as are keys that the user created for others or gave more rights to, since the
 * user knows their tokens. A server that is not started because its owner may not store it (`problem`) is disabled,
 * since it would start as soon as `admin` owns it.
 * @param sponsors the users on whose rights the removal depends. In `storedBy`, the sponsors replace the removed user
 *   for servers that pass to `admin`, if the users who stored these servers still have the required rights
 *   (`keepsStoredRights`). All other servers that the user stored wait until an admin saves or enables them
 */
export function changesForRemoval (snapshot: Snapshot, username: string, sponsors: readonly string[]): Change[] {
  const { servers, groups, keys, teams, policies } = snapshot
  const changes: Change[] = [{ entity: 'users', key: username, value: undefined }]
  for (const { id, owner, createdBy } of keys.values()) {
    if (owner !== username && createdBy !== username) continue
    changes.push({ entity: 'bearerKeys', key: id, value: undefined })
  }
  for (const team of teams.values()) {
    if (team.members?.includes(username) !== true) continue
    const members = team.members.filter((name) => name !== username)
    changes.push({ entity: 'teams', key: team.name, value: { ...team, members } })
  }
  for (const policy of policies.values()) {
    if (policy.approvers?.includes(username) !== true) continue
    const others = policy.approvers.filter((name) => name !== username)
    const approvers = others.length === 0 ? [defaultOwner] : others
    changes.push({ entity: 'policies', key: policy.id, value: { ...policy, approvers } })
  }
  // `admin` is the default owner, even if no user has that name.
  if (username === defaultOwner) return [...changes, ...changesForUnsharingWith(snapshot, username)]
  for (const server of servers.values()) {
    const { name, config, problem } = server
    const isOwned = config.owner === username
    const isKept = isOwned && keepsStoredRights(snapshot, server)
    const unshared = withoutShare(config, username)
    const value = replaceStorer(unshared, username, isKept ? sponsors : removedStorersOf(username))
    if (!isOwned && value === config) continue
    const passed: ServerConfig = isOwned ? { ...value, owner: defaultOwner, visibility: 'private' } : value
    changes.push({
      entity: 'mcpServers',
      key: name,
      value: isOwned && problem !== undefined ? { ...passed, enabled: false } : passed
    })
  }
  for (const { members, ...group } of groups.values()) {
    if (group.owner === username) {
      changes.push({ entity: 'groups', key: group.id, value: { ...group, owner: defaultOwner, servers: [...members] } })
    }
  }
  return changes
}

/**
 * Returns the changes by which a new user gets nothing of what a user of the same name has left, whose entry was
 * removed from the settings file by hand: keys are removed, servers and groups pass to `admin`, and servers that the
 * former user stored wait until an admin saves or enables them. Shares and memberships stay, since an admin can give
 * them to a user who does not exist yet. The user `admin` owns everything without an owner.
 */
export function changesForNewUser (snapshot: Snapshot, username: string): Change[] {
  if (username === defaultOwner) return []
  return changesForRemoval(snapshot, username, []).flatMap((change): Change[] => {
    if (change.entity === 'bearerKeys' || change.entity === 'groups') return [change]
    if (change.entity !== 'mcpServers') return []
    const config = snapshot.servers.get(change.key)?.config
    if (config === undefined || config.owner === username) return [change]
    const value = replaceStorer(config, username, removedStorersOf(username))
    return value === config ? [] : [{ ...change, value }]
  })
}

/** Returns a server's config without a user or team in `sharedWithUsers`; the same object if it is not listed there. */
function withoutShare (config: ServerConfig, name: string): ServerConfig {
  const { sharedWithUsers } = config
  return sharedWithUsers?.includes(name) === true
    ? { ...config, sharedWithUsers: sharedWithUsers.filter((each) => each !== name) }
    : config
}

/**
 * Returns the changes that remove a user or team from the `sharedWithUsers` of all servers. Otherwise a later user or
 * team of the same name could use these servers.
 * @param name the entry in `sharedWithUsers`
 */
export const changesForUnsharingWith = ({ servers }: Snapshot, name: string): Change[] =>
  [...servers.values()].flatMap((server): Change[] => {
    const value = withoutShare(server.config, name)
    return value === server.config ? [] : [{ entity: 'mcpServers', key: server.name, value }]
  })

/** Returns what replaces a removed user in `storedBy`: a name with a space, which no user can have. */
const removedStorersOf = (username: string): string[] => [`${username} (removed)`]

/**
 * Replaces a user in the list of the users who stored a config (`storedBy`).
 * @param others the names that replace the user
 */
function replaceStorer (config: ServerConfig, username: string, others: readonly string[]): ServerConfig {
  const storers = storersOf(config)
  if (!storers.includes(username)) return config
  const { storedBy: _, ...rest } = config
  const storedBy = [...new Set(storers.flatMap((name) => name === username ? others : [name]))]
  return storedBy.length === 0 ? rest : { ...rest, storedBy }
}

/**
 * Returns the changes for a user who ceases to be an admin. Configs that an earlier version stored do not say who
 * stored them. If the user owns a config of this kind, the user is recorded in its `storedBy`. Restricted configs need
 * no record, since the rights of their owners decide.
 */
export function changesForDemotion ({ servers }: Snapshot, username: string): Change[] {
  return [...servers.values()].flatMap(({ name, config }): Change[] => {
    const isUnattributed = config.storedBy === undefined && config.storedByUser !== true && !isRestrictedConfig(config)
    return isUnattributed && config.owner === username
      ? [{ entity: 'mcpServers', key: name, value: { ...config, storedBy: [username] } }]
      : []
  })
}
