import type { Snapshot } from '../../../db/store.ts'
import { looksLikeId, newNameProblem } from '../../../schemas/names.ts'
import type { Group } from '../../../schemas/settings.ts'
import { groupNamed, type Principal, takesPlace } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import { limits } from '../../base/limits/index.ts'

/** @throws ShareUsed when the principal has as many groups as a user may have */
export function checkGroupCount ({ groups }: Snapshot, { isAdmin, username }: Principal): void {
  if (isAdmin) return
  const own = [...groups.values()].filter(({ owner }) => owner === username).length
  if (own >= limits.groupsPerUser) throw new errors.ShareUsed(`You have ${limits.groupsPerUser} groups already: remove one first`)
}

/** @throws InvalidInput for a name that is invalid, taken, or looks like an id */
export function checkName (snapshot: Snapshot, principal: Principal, { id, name }: Group): void {
  const problem = newNameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"name": ${problem}`)
  const other = groupNamed(snapshot, name) ?? snapshot.groups.get(name)
  if (other && other.id !== id) throw new errors.InvalidInput(`There is a group named ${JSON.stringify(name)} already`)
  if (looksLikeId(name)) {
    throw new errors.InvalidInput('"name" must not look like an id')
  }
  if (snapshot.servers.has(name) && !principal.isAdmin) {
    throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)}; only an admin may give a group its name`)
  }
}

/** The warning for a group that shares its name with a server. */
export function serverNameWarnings (snapshot: Snapshot, name: string): string[] {
  const [group, server] = [groupNamed(snapshot, name), snapshot.servers.get(name)]
  if (!group || !server) return []
  const target = takesPlace(snapshot, group, server) ? 'group' : 'server, since the owner of the group is not an admin'
  return [`There is a server named ${JSON.stringify(name)} too: routes with this name lead to the ${target}`]
}
