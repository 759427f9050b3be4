import type { Snapshot } from '../../db/store.ts'
import { newNameProblem } from '../../schemas/names.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { groupNamed, takesPlace } from '../access/visibility.ts'
import { limits } from '../limits/index.ts'
import { defaultOwner } from '../users/username.ts'

/**
 * Whether a server may get a name that it did not have.
 * @param place the member that says it
 * @throws InvalidInput
 */
export function checkNewName (snapshot: Snapshot, principal: Principal, name: string, place: 'name' | 'newName'): void {
  const problem = newNameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"${place}": ${problem}`)
  if (snapshot.servers.has(name)) throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)} already`)
  if (!principal.isAdmin && groupNamed(snapshot, name)) {
    throw new errors.InvalidInput(`There is a group named ${JSON.stringify(name)}; only an admin may give a server its name`)
  }
}

/** What to know of a server whose name a group has, too; undefined: none has. */
export function sharesName (snapshot: Snapshot, name: string): string | undefined {
  const [group, server] = [groupNamed(snapshot, name), snapshot.servers.get(name)]
  if (!group || !server) return undefined
  const { owner = defaultOwner } = group
  return `There is a group named ${JSON.stringify(name)} too, of ${JSON.stringify(owner)}: routes with this name lead to the ${takesPlace(snapshot, group, server) ? 'group' : "server, since the group is no admin's"}`
}

/** Whether a user may have one more server. @param more how many it is about to get beside it @throws LimitReached */
export function checkRoom ({ servers }: Snapshot, { isAdmin, username }: Principal, more: number): void {
  if (isAdmin || username === undefined) return
  const own = [...servers.values()].filter(({ config }) => config.owner === username).length + more
  if (own >= limits.serversPerUser) throw new errors.LimitReached(`You have ${limits.serversPerUser} servers already: remove one first`)
}
