import type { Change, Snapshot } from '../../db/store.ts'
import { defaultOwner } from './username.ts'

/**
 * All that a user's removal changes: who gets the name later must inherit nothing (DECISIONS §2). Servers pass to `admin`, private
 * whatever they were; groups pass to `admin`; keys go, system keys in its name as well, since it knows their tokens.
 */
export function removalOf ({ servers, groups, keys }: Snapshot, username: string): Change[] {
  const changes: Change[] = [{ entity: 'users', key: username, value: undefined }]
  for (const key of keys.values()) if (key.owner === username) changes.push({ entity: 'bearerKeys', key: key.id, value: undefined })
  // What `admin` owns is nobody's in particular, and stays so without a user of that name.
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
