import { isDeepStrictEqual } from 'node:util'
import { entities, entityNames, entityFactsOf, type EntityName, type SnapshotMemberOf } from '../../db/entities.ts'
import type { Snapshot } from '../../db/store.ts'
import { listNames } from '../base/errors/index.ts'

interface Entry { readonly id: string, readonly name: string, readonly value: unknown }

/** Returns the entries of an entity, by id. `value` is the part of an entry that an edit can change. */
function entriesOf (entity: EntityName, snapshot: Snapshot): Map<string, Entry> {
  const { member, label, usage = '' } = entityFactsOf(entity)
  const items = [...snapshot[member as SnapshotMemberOf<EntityName>] as ReadonlyMap<string, Record<string, unknown>>]
  return new Map(items.map(([id, item]): [string, Entry] => {
    const { [usage]: _, ...others } = item
    return [
      id, { id, name: String(item[label]), value: entity === 'mcpServers' ? item.config : usage === '' ? item : others }
    ]
  }))
}

/**
 * Describes the differences between two snapshots as a clause for the log: `servers "a" (added), "b" (changed)`. It
 * contains names only, no values.
 * @returns undefined if there is no relevant difference
 */
export function describeEdit (former: Snapshot, next: Snapshot): string | undefined {
  const parts = entityNames.flatMap((entity) => {
    const [before, after] = [entriesOf(entity, former), entriesOf(entity, next)]
    const found: string[] = []
    for (const [id, { name, value }] of after) {
      const known = before.get(id)
      if (known === undefined) found.push(`${JSON.stringify(name)} (added)`)
      else if (known.value !== value && !isDeepStrictEqual(known.value, value)) {
        found.push(`${JSON.stringify(name)} (changed)`)
      }
    }
    for (const [id, { name }] of before) if (!after.has(id)) found.push(`${JSON.stringify(name)} (removed)`)
    return found.length === 0 ? [] : [`${entities[entity].member} ${listNames(found, String)}`]
  })
  if (former.system !== next.system && !isDeepStrictEqual(former.system, next.system)) {
    parts.push('the system configuration')
  }
  return parts.length === 0 ? undefined : parts.join('; ')
}
