import { isPlainObject } from '../../schemas/unknown-members.ts'
import type { SettingsDocument } from '../apply.ts'
import { entities, isListEntityName } from '../entities.ts'
import { orderedEntries, createOrderedObject } from '../order.ts'

const isSameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/**
 * Returns a newly read document in which objects of the former document replace all unchanged parts: entries of
 * sections, whole sections, or the whole document. Different objects then mean different content.
 */
export function shareUnchangedParts (former: SettingsDocument, next: SettingsDocument): SettingsDocument {
  const shared = Object.entries(next).map(([name, value]): [string, unknown] => {
    const before = Object.hasOwn(former, name) ? former[name] : undefined
    if (name === 'mcpServers' && isPlainObject(before) && isPlainObject(value)) {
      return [name, shareMembers(before, value)]
    }
    if (isListEntityName(name) && Array.isArray(before) && Array.isArray(value)) {
      return [name, shareList(before, value, entities[name].key)]
    }
    return [name, before !== undefined && isSameJson(before, value) ? before : value]
  })
  return isSameObject(former, shared) ? former : Object.fromEntries(shared)
}

function shareMembers (former: Record<string, unknown>, next: Record<string, unknown>): Record<string, unknown> {
  const entries = orderedEntries(next).map(([name, value]): [string, unknown] => [
    name,
    Object.hasOwn(former, name) && isSameJson(former[name], value) ? former[name] : value
  ])
  return isSameObject(former, entries) ? former : createOrderedObject(entries)
}

/** Whether an object has exactly these members, in this order, with identical values. */
function isSameObject (object: Readonly<Record<string, unknown>>, entries: ReadonlyArray<[string, unknown]>): boolean {
  const members = orderedEntries(object)
  return members.length === entries.length &&
    entries.every(([name, value], at) => name === members[at]?.[0] && value === members[at][1])
}

/** Does the same as `shareUnchangedParts`, but for a list. @param keyMember the member that identifies an entry */
function shareList (former: readonly unknown[], next: readonly unknown[], keyMember: string): readonly unknown[] {
  const byKey = new Map<unknown, unknown>()
  for (const entry of former) {
    if (isPlainObject(entry) && !byKey.has(entry[keyMember])) {
      byKey.set(entry[keyMember], entry)
    }
  }
  const entries = next.map((entry) => {
    const before = isPlainObject(entry) ? byKey.get(entry[keyMember]) : undefined
    return before !== undefined && isSameJson(before, entry) ? before : entry
  })
  const isSame = former.length === entries.length &&
    entries.every((entry, at) => entry === former[at] || isSameJson(entry, former[at]))
  return isSame ? former : entries
}
