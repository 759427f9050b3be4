import type { Change, Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'
import { withoutToken } from '../settings/hashed-key.ts'

/** What a key lists that it may reach. */
type List = 'allowedServers' | 'allowedGroups'

/**
 * What becomes of keys when servers or groups are removed: they list them no more. Whoever gives something new an old name must
 * not come into the reach of keys that were made for the old one.
 */
export const withoutNames = (snapshot: Snapshot, list: List, names: readonly string[]): Change[] =>
  relisted(snapshot, list, names, (listed) => listed.filter((name) => !names.includes(name)))

/** What becomes of keys when a group gets another name: they go with it, for the same reason. */
export const withNewName = (snapshot: Snapshot, list: List, name: string, newName: string): Change[] =>
  relisted(snapshot, list, [name], (listed) => [...new Set(listed.map((each) => each === name ? newName : each))])

/** The keys that list one of these names, changed. */
function relisted ({ keys }: Snapshot, list: List, names: readonly string[], change: (listed: readonly string[]) => string[]): Change[] {
  return [...keys.values()].flatMap((key): Change[] => {
    const listed = key[list]
    if (!listed?.some((name) => names.includes(name))) return []
    const value: BearerKey = { ...withoutToken(key), [list]: change(listed) }
    return [{ entity: 'bearerKeys', key: key.id, value }]
  })
}
