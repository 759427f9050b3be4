import type { Server, Snapshot } from '../../../db/store.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { type ServerConfig, serverTypeOf } from '../../../schemas/server.ts'
import { isRestrictedType } from '../../../schemas/transports.ts'
import { isAdminOwner } from './visibility.ts'

/**
 * Whether a config runs a command or has a restricted type: only admins may store it, unless ALLOW_USER_STDIO is set.
 */
export function isRestrictedConfig (config: Pick<ServerConfig, 'type' | 'command' | 'url'>): boolean {
  const type = serverTypeOf(config)
  return config.command !== undefined || (type !== undefined && isRestrictedType(type))
}

const adminsOnlyClause =
  'is not an admin, and only admins\' servers may run commands or have type "openapi" (unless ALLOW_USER_STDIO is set)'

/** Returns the users in a config's `storedBy`, which is not validated and may have any type. */
export const storersOf = ({ storedBy }: ServerConfig): string[] =>
  Array.isArray(storedBy) ? storedBy.filter((name) => typeof name === 'string') : []

/** Returns the first user in a config's `storedBy` who is not an admin now; undefined if all are admins. */
const formerAdmin = (snapshot: Snapshot, config: ServerConfig): string | undefined =>
  storersOf(config).find((name) => !isAdminOwner(snapshot, name))

/** Returns why a server may not be started: its owner, or a user who stored it, lacks rights. Undefined if it may. */
function startProblemOf (snapshot: Snapshot, { config, problem }: Server): string | undefined {
  if (problem !== undefined || !isRestrictedConfig(config)) return undefined
  const { owner } = config
  if (!isAdminOwner(snapshot, owner)) {
    return `its owner ${JSON.stringify(owner)} ${adminsOnlyClause}: make an admin its owner`
  }
  const storer = formerAdmin(snapshot, config)
  if (storer === undefined) return undefined
  return `${JSON.stringify(storer)}, who stored it, ${adminsOnlyClause}: an admin must review it, and save or enable it`
}

/** Creates the sentence about a server that is not started, for a snapshot's `problems`. */
export const notConnectedSentence = (name: string, problem: string): string =>
  `server ${JSON.stringify(name)} is not connected: ${problem}`

const withUserRights = memoized((config: ServerConfig): ServerConfig => ({ ...config, storedByUser: true }))

/**
 * Applies the current rights of the users in a config's `storedBy`: if one of them is no longer an admin, all values of
 * the config are treated as written by a user without admin rights, so that variables are not expanded and addresses
 * must be public. The stored config does not change, so the server regains its rights when these users do.
 */
export function withCurrentRights (snapshot: Snapshot, config: ServerConfig): ServerConfig {
  return config.storedByUser === true || formerAdmin(snapshot, config) === undefined ? config : withUserRights(config)
}

/** Whether a server has all rights that it was stored with. */
export const keepsStoredRights = (snapshot: Snapshot, { config, problem }: Server): boolean =>
  problem === undefined && withCurrentRights(snapshot, config) === config

/**
 * Creates a function that marks restricted servers whose owner, or one of the users in `storedBy`, is no longer an
 * admin. A marked server stays in the settings, but is neither started nor called. The function is applied to every
 * snapshot that is read; a server that has not changed since the last call stays the same object.
 */
export function createRestrictedServerMarker (): (snapshot: Snapshot) => Snapshot {
  type Marked = Server & { readonly problem: string }
  const marks = new WeakMap<Server, Marked>()
  let last: {
    from: Pick<Snapshot, 'servers' | 'users'>, servers: Snapshot['servers'], problems: readonly string[]
  } | undefined
  const mark = (server: Server, problem: string): Marked => {
    const former = marks.get(server)
    const marked = former?.problem === problem ? former : { ...server, problem }
    marks.set(server, marked)
    return marked
  }
  return (snapshot) => {
    if (last?.from.servers !== snapshot.servers || last.from.users !== snapshot.users) {
      const { servers, users } = snapshot
      const marked = new Map([...servers.values()].flatMap((server): Array<[string, Marked]> => {
        const problem = startProblemOf(snapshot, server)
        return problem === undefined ? [] : [[server.name, mark(server, problem)]]
      }))
      last = {
        from: { servers, users },
        servers: marked.size === 0
          ? servers
          : new Map([...servers].map(([name, server]) => [name, marked.get(name) ?? server])),
        problems: [...marked.values()].map(({ name, problem }) => notConnectedSentence(name, problem))
      }
    }
    const { servers, problems } = last
    return problems.length === 0 ? snapshot : { ...snapshot, servers, problems: [...snapshot.problems, ...problems] }
  }
}
