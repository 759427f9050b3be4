import { createHash } from 'node:crypto'
import type { Change, Snapshot } from '../../../db/store.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { User } from '../../../schemas/settings.ts'
import type { Principal } from '../../settings/index.ts'
import { defaultOwner } from './rules.ts'

/**
 * A digest that changes with the password and with the account, so that a new user with the name of a deleted one has another. It also
 * changes when an account is restored from a backup: with its former password, it does not get the credentials of that time back.
 */
export const markOf = ({ username, password, createdAt, restoredAt }: User): string =>
  digest([username, password, createdAt, ...(restoredAt === undefined ? [] : [restoredAt])])

/**
 * A mark that also changes when the user becomes an admin, or is one no more: what a client was allowed by an admin ends with the admin's
 * rights, and what it was allowed by another user does not grow with theirs.
 */
export const rightsMarkOf = (user: User): string => `${markOf(user)}${user.isAdmin === true ? '+' : ''}`

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
 * The changes that remove a user. A later user of the same name must inherit nothing: servers pass to `admin` and become
 * private, groups pass to `admin`, and keys are removed, system keys that the user owned or made included, since the user knows their
 * tokens. A server that is not started since its owner may not store it (`problem`) is disabled: `admin` may, and has not seen it.
 */
export function removalOf ({ servers, groups, keys }: Snapshot, username: string): Change[] {
  const changes: Change[] = [{ entity: 'users', key: username, value: undefined }]
  for (const { id, kind, owner, createdBy } of keys.values()) {
    if (owner !== username && (kind === 'user' || createdBy !== username)) continue
    changes.push({ entity: 'bearerKeys', key: id, value: undefined })
  }
  // `admin` is the default owner, also while no user has that name.
  if (username === defaultOwner) return changes
  for (const { name, config, problem } of servers.values()) {
    if (config.owner !== username) continue
    const value: ServerConfig = { ...config, owner: defaultOwner, visibility: 'private' }
    changes.push({ entity: 'mcpServers', key: name, value: problem === undefined ? value : { ...value, enabled: false } })
  }
  for (const { members, ...group } of groups.values()) {
    if (group.owner === username) {
      changes.push({ entity: 'groups', key: group.id, value: { ...group, owner: defaultOwner, servers: [...members] } })
    }
  }
  return changes
}
