import type { Snapshot } from '../../../db/store.ts'
import { keepsStoredRights, type Principal, responsibleUsersOf, type Settings } from '../../settings/index.ts'
import { keyInactivityReason } from '../keys/rights.ts'
import { changesForDemotion, changesForRemoval } from './account.ts'
import { requireUser } from './look-up.ts'

/** The names of the keys, servers and groups that are affected when a user is removed or ceases to be an admin. */
interface AccountConsequences {
  readonly removedKeys: readonly string[]
  /** Keys that stay but become inactive. */
  readonly inactiveKeys: readonly string[]
  /** Servers that pass to `admin`. */
  readonly passedServers: readonly string[]
  /** Groups that pass to `admin`. */
  readonly passedGroups: readonly string[]
  /** Servers that are no longer started. */
  readonly stoppedServers: readonly string[]
  /** Servers that continue without admin rights: variables are not expanded, and addresses must be public. */
  readonly restrictedServers: readonly string[]
}

/**
 * Determines the consequences of a change of an account by applying the change to a copy of the settings.
 * @param by the admin who would make the change
 * @param name the username
 * @throws NoSuch
 */
export function consequencesOf (
  settings: Settings, by: Principal, name: string, change: 'removal' | 'demotion'
): AccountConsequences {
  const now = settings.current
  const user = requireUser(now, name)
  const { username } = user
  const changes = change === 'removal'
    ? changesForRemoval(now, username, responsibleUsersOf(now.users, by))
    : changesForDemotion(now, username)
  const [servers, keys, users] = [new Map(now.servers), new Map(now.keys), new Map(now.users)]
  if (change === 'removal') users.delete(username)
  else users.set(username, { ...user, isAdmin: false })
  const passedGroups: string[] = []
  for (const each of changes) {
    if (each.entity === 'bearerKeys') keys.delete(each.key)
    if (each.entity === 'groups') passedGroups.push(now.groups.get(each.key)?.name ?? each.key)
    const server = each.entity === 'mcpServers' ? servers.get(each.key) : undefined
    if (each.entity === 'mcpServers' && server && each.value) servers.set(each.key, { ...server, config: each.value })
  }
  const next = settings.preview({ servers, keys, users })
  return {
    removedKeys: [...now.keys.values()].filter(({ id }) => !next.keys.has(id)).map((key) => key.name),
    inactiveKeys: [...next.keys.values()]
      .filter((key) => keyInactivityReason(key, now) === undefined && keyInactivityReason(key, next) !== undefined)
      .map((key) => key.name),
    passedServers: serversWhere(now, next, (before, after) => before.config.owner !== after.config.owner),
    passedGroups,
    stoppedServers: serversWhere(now, next, (before, after) => isStarted(before) && !isStarted(after)),
    restrictedServers: serversWhere(now, next, (before, after) =>
      isStarted(after) && keepsStoredRights(now, before) && !keepsStoredRights(next, after))
  }
}

type StoredServer = Snapshot['servers'] extends ReadonlyMap<string, infer Each> ? Each : never

const isStarted = ({ config, problem }: StoredServer): boolean => problem === undefined && config.enabled !== false

const serversWhere = (
  now: Snapshot, next: Snapshot, isConcerned: (before: StoredServer, after: StoredServer) => boolean
): string[] => [...now.servers.values()].filter((before) => {
  const after = next.servers.get(before.name)
  return after !== undefined && isConcerned(before, after)
}).map(({ name }) => name)
