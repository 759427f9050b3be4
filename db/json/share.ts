import { isObject, keyMembers, type Document } from '../apply.ts'

const sameText = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/**
 * A document as it was read anew, with the former one's objects in all places where the two say the same: entries of the
 * sections, whole sections, the whole document. What is still the same object has not changed.
 */
export function share (former: Document, next: Document): Document {
  const shared = Object.entries(next).map(([name, value]): [string, unknown] => {
    const before = Object.hasOwn(former, name) ? former[name] : undefined
    if (name === 'mcpServers' && isObject(before) && isObject(value)) return [name, shareMembers(before, value)]
    if (Object.hasOwn(keyMembers, name) && Array.isArray(before) && Array.isArray(value)) {
      return [name, shareList(before, value, keyMembers[name as keyof typeof keyMembers])]
    }
    return [name, before !== undefined && sameText(before, value) ? before : value]
  })
  const names = Object.keys(former)
  const same = names.length === shared.length && shared.every(([name, value], at) => name === names[at] && value === former[name])
  return same ? former : Object.fromEntries(shared)
}

function shareMembers (former: Record<string, unknown>, next: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(former)
  const entries = Object.entries(next).map(([name, value]): [string, unknown] => [
    name,
    Object.hasOwn(former, name) && sameText(former[name], value) ? former[name] : value
  ])
  const same = names.length === entries.length && entries.every(([name, value], at) => name === names[at] && value === former[name])
  return same ? former : Object.fromEntries(entries)
}

function shareList (former: readonly unknown[], next: readonly unknown[], member: string): readonly unknown[] {
  const byKey = new Map<unknown, unknown>()
  for (const entry of former) if (isObject(entry) && !byKey.has(entry[member])) byKey.set(entry[member], entry)
  const entries = next.map((entry) => {
    const before = isObject(entry) ? byKey.get(entry[member]) : undefined
    return before !== undefined && sameText(before, entry) ? before : entry
  })
  return former.length === entries.length && entries.every((entry, at) => entry === former[at] || sameText(entry, former[at]))
    ? former
    : entries
}
