import { createHash } from 'node:crypto'
import type { Change, Snapshot } from '../../../db/store.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { User } from '../../../schemas/settings.ts'
import { isInForce, isRestricted, type Principal, storersOf } from '../../settings/index.ts'
import { defaultOwner } from './rules.ts'

/**
 * A digest that changes with the password and with the account, so that a new user with the name of a deleted one has
 * another. It also changes when an account is restored from a backup: with its former password, it does not get the
 * credentials of that time back.
 */
export const markOf = ({ username, password, createdAt, restoredAt }: User): string =>
  digest([username, password, createdAt, ...(restoredAt === undefined ? [] : [restoredAt])])

/**
 * A mark that also changes when the user becomes an admin, or is one no more: what a client was allowed by an admin
 * ends with the admin's rights, also for a user who becomes an admin again, and what it was allowed by another user
 * does not grow with theirs.
 */
export const rightsMarkOf = (user: User): string =>
  user.isAdmin === true ? `${markOf(user)}+${user.demotedAt ?? ''}` : markOf(user)

/** Identifies an account, and never another one of the same name: `sub` in the terms of OpenID Connect. */
export const subjectOf = ({ username, createdAt }: User): string => digest(['sub', username, createdAt])

/** The names of accounts that are gone, or are other ones now. */
export function * goneAccounts (former: ReadonlyMap<string, User>, next: ReadonlyMap<string, User>): Generator<string> {
  if (former === next) return
  for (const [username, user] of former) {
    const later = next.get(username)
    if (!later || (later !== user && subjectOf(later) !== subjectOf(user))) yield username
  }
}

/**
 * The principal of somebody who has logged in as a user.
 * @param standing the same principal in a later snapshot; undefined when the login has ended
 */
export const principalOfUser = (user: User, standing: Principal['standing']): Principal => ({
  // Of the account: what belongs to a principal is not that of a later account of the same name.
  key: `user ${subjectOf(user)}`,
  kind: 'user',
  user: user.username,
  username: user.username,
  isAdmin: user.isAdmin === true,
  standing
})

const digest = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)

/** An account with its permissions, by which a client shows or hides parts of its interface. */
interface ShownAccount {
  username: string
  isAdmin: boolean
  permissions: { admin: boolean; servers: 'all' | 'visible'; users: boolean; system: boolean }
}

/** The account of a principal; one without a user is named `anonymous`. */
export function toAccount ({ username, isAdmin }: Pick<Principal, 'username' | 'isAdmin'>): ShownAccount {
  return {
    username: username ?? 'anonymous',
    isAdmin,
    permissions: { admin: isAdmin, servers: isAdmin ? 'all' : 'visible', users: isAdmin, system: isAdmin }
  }
}

/**
 * The changes that remove a user. A later user of the same name must inherit nothing: servers pass to `admin` and
 * become private, groups pass to `admin`, and keys are removed, also those that the user made for others or gave rights
 * to, since the user knows their tokens. A server that is not started since its owner may not store it (`problem`) is
 * disabled: `admin` may, and has not seen it.
 * @param sponsors those on whose rights the user is removed. They stand for the servers that pass to `admin` and are in
 * force; what the user stored for others, and what was not in force, waits for an admin who saves or enables it
 */
export function removalOf (snapshot: Snapshot, username: string, sponsors: readonly string[]): Change[] {
  const { servers, groups, keys } = snapshot
  const changes: Change[] = [{ entity: 'users', key: username, value: undefined }]
  for (const { id, owner, createdBy } of keys.values()) {
    if (owner !== username && createdBy !== username) continue
    changes.push({ entity: 'bearerKeys', key: id, value: undefined })
  }
  // `admin` is the default owner, also while no user has that name.
  if (username === defaultOwner) return changes
  for (const server of servers.values()) {
    const { name, config, problem } = server
    const isOwned = config.owner === username
    const isKept = isOwned && isInForce(snapshot, server)
    const value = withoutStorer(config, username, isKept ? sponsors : [`${username} (removed)`])
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

/** A config with others in the place of one of those who stored it. No user can have a name with a space. */
function withoutStorer (config: ServerConfig, username: string, others: readonly string[]): ServerConfig {
  const storers = storersOf(config)
  if (!storers.includes(username)) return config
  const { storedBy: _, ...rest } = config
  const storedBy = [...new Set(storers.flatMap((name) => name === username ? others : [name]))]
  return storedBy.length === 0 ? rest : { ...rest, storedBy }
}

/**
 * The changes that go with the end of an admin's rights: what the user owns and nobody is known to have stored, as
 * earlier versions left it, counts as stored by the user. Commands follow their owner anyway.
 */
export function demotionOf ({ servers }: Snapshot, username: string): Change[] {
  return [...servers.values()].flatMap(({ name, config }): Change[] => {
    const isUnattributed = config.storedBy === undefined && config.storedByUser !== true && !isRestricted(config)
    return isUnattributed && config.owner === username
      ? [{ entity: 'mcpServers', key: name, value: { ...config, storedBy: [username] } }]
      : []
  })
}
