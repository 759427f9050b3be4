import type { Change, Snapshot } from '../../../db/store.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { isInForce, isRestricted, storersOf } from '../../settings/index.ts'
import { defaultOwner } from './username.ts'

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
