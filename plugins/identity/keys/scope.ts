import type { Change, Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { withoutToken } from '../../settings/index.ts'

/** The members of a key that list its scope. */
type List = 'allowedServers' | 'allowedGroups'

/**
 * The changes to keys when servers or groups are removed: the names leave their scopes. A key made for a removed server or group must
 * not open a new one of the same name.
 */
export const withoutNames = (snapshot: Snapshot, list: List, names: readonly string[]): Change[] =>
  relisted(snapshot, list, names, (listed) => listed.filter((name) => !names.includes(name)))

/** The changes to keys when a group is renamed: their scopes take the new name, for the same reason. */
export const withNewName = (snapshot: Snapshot, list: List, name: string, newName: string): Change[] =>
  relisted(snapshot, list, [name], (listed) => [...new Set(listed.map((each) => each === name ? newName : each))])

/** Changes the lists of those keys that list one of the names. */
function relisted ({ keys }: Snapshot, list: List, names: readonly string[], change: (listed: readonly string[]) => string[]): Change[] {
  return [...keys.values()].flatMap((key): Change[] => {
    const listed = key[list]
    if (!listed?.some((name) => names.includes(name))) return []
    const value: BearerKey = { ...withoutToken(key), [list]: change(listed) }
    return [{ entity: 'bearerKeys', key: key.id, value }]
  })
}
