import type { Snapshot } from '../../db/store.ts'

/** Returns a clause for each reference in a group or a key to a server or group that does not exist. */
export function danglingReferenceWarnings (
  { servers, groups, keys }: Pick<Snapshot, 'servers' | 'groups' | 'keys'>
): string[] {
  const quote = (name: string): string => JSON.stringify(name)
  const groupNames = new Set([...groups.values()].map(({ name }) => name))
  const isGroup = (name: string): boolean => groups.has(name) || groupNames.has(name)
  const warningsOf = (
    place: string, noun: string, names: readonly string[], exists: (name: string) => boolean
  ): string[] =>
    names.filter((name) => !exists(name)).map((name) => `${place} a ${noun} ${quote(name)}, which does not exist`)
  const ofGroups = [...groups.values()].flatMap(({ name, members }) =>
    warningsOf(
      `group ${quote(name)} contains`, 'server', members.map((member) => member.name), (each) => servers.has(each)
    ))
  const ofKeys = [...keys.values()].flatMap(({ name, allowedGroups = [], allowedServers = [] }) => [
    ...warningsOf(`key ${quote(name)} allows`, 'group', allowedGroups, isGroup),
    ...warningsOf(`key ${quote(name)} allows`, 'server', allowedServers, (each) => servers.has(each))
  ])
  return [...ofGroups, ...ofKeys]
}
