import type { Change, Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'

/**
 * What becomes of keys when servers or groups are removed: they list them no more. Whoever gives something new an old name must
 * not come into the reach of keys that were made for the old one.
 */
export function withoutNames ({ keys }: Snapshot, list: 'allowedServers' | 'allowedGroups', names: readonly string[]): Change[] {
  return [...keys.values()].flatMap((key): Change[] => {
    const listed = key[list]
    if (!listed?.some((name) => names.includes(name))) return []
    const value: BearerKey = { ...key, [list]: listed.filter((name) => !names.includes(name)) }
    return [{ entity: 'bearerKeys', key: key.id, value }]
  })
}
