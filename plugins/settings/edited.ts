import { isDeepStrictEqual } from 'node:util'
import type { Snapshot } from '../../db/store.ts'

/** Max names of one section in a sentence; beyond: they are counted. */
const most = 10

interface Entry { readonly id: string, readonly name: string, readonly value: unknown }

/** The entries of each section, in the order in which a person reads of them. */
const sections: ReadonlyArray<readonly [name: string, entriesOf: (snapshot: Snapshot) => Entry[]]> = [
  ['servers', ({ servers }) => [...servers].map(([name, { config }]) => ({ id: name, name, value: config }))],
  ['groups', ({ groups }) => [...groups].map(([id, group]) => ({ id, name: group.name, value: group }))],
  ['users', ({ users }) => [...users].map(([name, user]) => ({ id: name, name, value: user }))],
  // When a key was used is no change of it.
  ['keys', ({ keys }) => [...keys].map(([id, { lastUsedAt: _, ...key }]) => ({ id, name: key.name, value: key }))],
  ['prompts', ({ prompts }) => [...prompts].map(([id, prompt]) => ({ id, name: prompt.name, value: prompt }))],
  ['resources', ({ resources }) => [...resources].map(([id, resource]) => ({ id, name: resource.uri, value: resource }))]
]

/**
 * What differs between two snapshots, as a clause for the log: `servers "a" (added), "b" (changed)`. It holds names only.
 * @returns undefined: nothing that counts
 */
export function describeEdit (former: Snapshot, next: Snapshot): string | undefined {
  const parts = sections.flatMap(([section, entriesOf]) => {
    const [before, after] = [byId(entriesOf(former)), byId(entriesOf(next))]
    const found: string[] = []
    for (const [id, { name, value }] of after) {
      const known = before.get(id)
      if (known === undefined) found.push(`${JSON.stringify(name)} (added)`)
      else if (known.value !== value && !isDeepStrictEqual(known.value, value)) found.push(`${JSON.stringify(name)} (changed)`)
    }
    for (const [id, { name }] of before) if (!after.has(id)) found.push(`${JSON.stringify(name)} (removed)`)
    if (found.length === 0) return []
    return [`${section} ${found.slice(0, most).join(', ')}${found.length > most ? ` and ${found.length - most} more` : ''}`]
  })
  if (former.system !== next.system && !isDeepStrictEqual(former.system, next.system)) parts.push('the system configuration')
  return parts.length === 0 ? undefined : parts.join('; ')
}

const byId = (entries: readonly Entry[]): Map<string, Entry> => new Map(entries.map((entry) => [entry.id, entry]))
