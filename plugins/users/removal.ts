import type { Change, Snapshot } from '../../db/store.ts'
import { defaultOwner } from './username.ts'

/**
 * The changes that remove a user. A later user of the same name must inherit nothing (DECISIONS §2): servers pass to `admin` and become
 * private, groups pass to `admin`, and keys are removed, system keys that the user owned included, since the user knows their tokens.
 */
export function removalOf ({ servers, groups, keys }: Snapshot, username: string): Change[] {
  const changes: Change[] = [{ entity: 'users', key: username, value: undefined }]
  for (const key of keys.values()) if (key.owner === username) changes.push({ entity: 'bearerKeys', key: key.id, value: undefined })
  // `admin` is the default owner, also while no user has that name.
  if (username === defaultOwner) return changes
  for (const { name, config } of servers.values()) {
    if (config.owner !== username) continue
    const { visibilityDefaulted: _, ...rest } = config
    changes.push({ entity: 'mcpServers', key: name, value: { ...rest, owner: defaultOwner, visibility: 'private' } })
  }
  for (const { members, ...group } of groups.values()) {
    if (group.owner === username) {
      changes.push({ entity: 'groups', key: group.id, value: { ...group, owner: defaultOwner, servers: [...members] } })
    }
  }
  return changes
}
