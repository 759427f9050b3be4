import { foldName } from '../../../db/invariants.ts'
import { jsonSize } from '../../../db/json-size.ts'
import type { Snapshot } from '../../../db/store.ts'
import { looksLikeId, newNameProblem } from '../../../schemas/names.ts'
import { errors } from '../../base/errors/index.ts'
import { groupNamed, type Principal, takesPlace } from '../../settings/index.ts'
import { limits } from '../../base/limits/index.ts'
import { defaultOwner } from '../../identity/index.ts'

/** How many servers have a name, by the name without its case. Kept with the servers, since an import checks many names. */
const foldedNames = new WeakMap<Snapshot['servers'], Map<string, number>>()

function countFolded ({ servers }: Snapshot, folded: string): number {
  let counts = foldedNames.get(servers)
  if (!counts) {
    counts = new Map()
    for (const name of servers.keys()) {
      const each = foldName(name)
      counts.set(each, (counts.get(each) ?? 0) + 1)
    }
    foldedNames.set(servers, counts)
  }
  return counts.get(folded) ?? 0
}

/**
 * Checks a name that a server is about to get. That of a user's must not be taken for another: neither by its case nor for an id.
 * @param place the member of the request that holds it
 * @param former the server's name until now, if it has one
 * @throws InvalidInput
 */
export function checkNewName (
  snapshot: Snapshot,
  principal: Principal,
  name: string,
  place: 'name' | 'newName',
  former?: string
): void {
  const problem = newNameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"${place}": ${problem}`)
  if (snapshot.servers.has(name)) throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)} already`)
  if (looksLikeId(name)) throw new errors.InvalidInput(`"${place}" must not look like an id`)
  if (principal.isAdmin) return
  const folded = foldName(name)
  const others = countFolded(snapshot, folded) - (former !== undefined && foldName(former) === folded ? 1 : 0)
  if (others > 0) {
    const sentence = `There is a server whose name differs from ${JSON.stringify(name)} only by case`
    throw new errors.InvalidInput(`${sentence}; only an admin may add such a name`)
  }
  if (groupNamed(snapshot, name)) {
    throw new errors.InvalidInput(`There is a group named ${JSON.stringify(name)}; only an admin may give a server its name`)
  }
}

/** The warning for a server that shares its name with a group; undefined when it does not. */
export function groupNameWarning (snapshot: Snapshot, name: string): string | undefined {
  const [group, server] = [groupNamed(snapshot, name), snapshot.servers.get(name)]
  if (!group || !server) return undefined
  const { owner = defaultOwner } = group
  const target = takesPlace(snapshot, group, server) ? 'group' : 'server, since the owner of the group is not an admin'
  const sentence = `There is a group named ${JSON.stringify(name)} too, owned by ${JSON.stringify(owner)}`
  return `${sentence}: routes with this name lead to the ${target}`
}

/**
 * Checks that a principal may store a config of this size beside those of the other servers that it owns.
 * @throws ShareUsed
 */
export function checkConfigRoom ({ servers }: Snapshot, { isAdmin, username }: Principal, name: string, config: object): void {
  if (isAdmin || username === undefined) return
  let size = jsonSize(config)
  for (const other of servers.values()) {
    if (other.name !== name && other.config.owner === username) size += jsonSize(other.config)
  }
  if (size > limits.configPerUser) {
    const sentence = `The configs of your servers would be larger than ${limits.configPerUser} characters together: remove one first`
    throw new errors.ShareUsed(sentence)
  }
}

/**
 * Checks that a principal may have one more server.
 * @param added how many others the same request adds
 * @throws ShareUsed
 */
export function checkServerCount ({ servers }: Snapshot, { isAdmin, username }: Principal, added: number): void {
  if (isAdmin || username === undefined) return
  const own = [...servers.values()].filter(({ config }) => config.owner === username).length + added
  if (own >= limits.serversPerUser) throw new errors.ShareUsed(`You have ${limits.serversPerUser} servers already: remove one first`)
}
