import type { Change, Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { withHashedToken } from '../../settings/index.ts'

/** The members of a key that list the servers and groups in its scope. */
type ScopeList = 'allowedServers' | 'allowedGroups'

/**
 * Returns the changes that remove deleted servers or groups from the scopes of keys. Otherwise a key would give access
 * to a new server or group of the same name.
 */
export const changesForKeyScopeRemoval = (snapshot: Snapshot, list: ScopeList, names: readonly string[]): Change[] =>
  mapKeyScopes(snapshot, list, names, (listed) => listed.filter((name) => !names.includes(name)))

/**
 * Returns the changes that rename a server or group in the scopes of keys. Otherwise keys would give access to a server
 * or group created later with the former name.
 */
export const changesForKeyScopeRename = (
  snapshot: Snapshot, list: ScopeList, name: string, newName: string
): Change[] =>
  mapKeyScopes(snapshot, list, [name], (listed) => [...new Set(listed.map((each) => each === name ? newName : each))])

/** Returns the changes that apply `change` to the list of each key whose list contains one of the names. */
function mapKeyScopes (
  { keys }: Snapshot, list: ScopeList, names: readonly string[], change: (listed: readonly string[]) => string[]
): Change[] {
  return [...keys.values()].flatMap((key): Change[] => {
    const listed = key[list]
    if (!listed?.some((name) => names.includes(name))) return []
    const value: BearerKey = { ...withHashedToken(key), [list]: change(listed) }
    return [{ entity: 'bearerKeys', key: key.id, value }]
  })
}
