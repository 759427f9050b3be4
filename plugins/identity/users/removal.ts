import type { Change, Snapshot } from '../../../db/store.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { defaultOwner } from './username.ts'

/**
 * The changes that remove a user. A later user of the same name must inherit nothing (DECISIONS §2): servers pass to `admin` and become
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
