import type { Server, Snapshot } from '../../../db/store.ts'
import { type ServerConfig, typeOf } from '../../../schemas/server.ts'
import { isRestrictedType } from '../../../schemas/transports.ts'
import { isAdmins } from './visibility.ts'

/**
 * Whether a server runs a command, or is of a restricted type: only admins may store it, unless ALLOW_USER_STDIO lifts
 * this.
 */
export function isRestricted (config: Pick<ServerConfig, 'type' | 'command' | 'url'>): boolean {
  const type = typeOf(config)
  return config.command !== undefined || (type !== undefined && isRestrictedType(type))
}

const onlyAdmins =
  'is no admin, and only admins\' servers run commands or are of type "openapi" (ALLOW_USER_STDIO lifts this)'

/** The users who stored a config last. A stored config may have any value there. */
export const storersOf = ({ storedBy }: ServerConfig): string[] =>
  Array.isArray(storedBy) ? storedBy.filter((name) => typeof name === 'string') : []

/** The first of those who stored a config last that is no admin now. */
const formerAdmin = (snapshot: Snapshot, config: ServerConfig): string | undefined =>
  storersOf(config).find((name) => !isAdmins(snapshot, name))

/** Why a server is not started; undefined: it may be. */
function stopOf (snapshot: Snapshot, { config, problem }: Server): string | undefined {
  if (problem !== undefined || !isRestricted(config)) return undefined
  const { owner } = config
  if (!isAdmins(snapshot, owner)) return `its owner ${JSON.stringify(owner)} ${onlyAdmins}: make an admin its owner`
  const storer = formerAdmin(snapshot, config)
  if (storer === undefined) return undefined
  return `${JSON.stringify(storer)}, who stored it, ${onlyAdmins}: an admin has to look at it, and save or enable it`
}

const asUsers = new WeakMap<ServerConfig, ServerConfig>()

/**
 * A config with the rights of those who stored it as they are now: once one of them is no admin, all its values count
 * as a user's, so that no variable is filled in and addresses must be public. The stored config does not change: when
 * they have the rights again, so does the server.
 */
export function withPresentRights (snapshot: Snapshot, config: ServerConfig): ServerConfig {
  if (config.storedByUser === true || formerAdmin(snapshot, config) === undefined) return config
  const known = asUsers.get(config) ?? { ...config, storedByUser: true }
  asUsers.set(config, known)
  return known
}

/** Whether a server may be started, with the rights that it was stored with. */
export const isInForce = (snapshot: Snapshot, { config, problem }: Server): boolean =>
  problem === undefined && withPresentRights(snapshot, config) === config

/**
 * Makes a function that marks the servers that their owner, or a user who stored them last, may not store now: such a
 * server is kept, and neither started nor called. All who read the settings read them so; what was marked before stays
 * the same object.
 */
export function restrictServers (): (snapshot: Snapshot) => Snapshot {
  const marks = new WeakMap<Server, Server & { readonly problem: string }>()
  let last: {
    from: Pick<Snapshot, 'servers' | 'users'>, servers: Snapshot['servers'], problems: readonly string[]
  } | undefined
  const mark = (server: Server, problem: string): Server => {
    const former = marks.get(server)
    const marked = former?.problem === problem ? former : { ...server, problem }
    marks.set(server, marked)
    return marked
  }
  return (snapshot) => {
    if (last?.from.servers !== snapshot.servers || last.from.users !== snapshot.users) {
      const { servers, users } = snapshot
      const marked = new Map([...servers.values()].flatMap((server): Array<[string, Server]> => {
        const problem = stopOf(snapshot, server)
        return problem === undefined ? [] : [[server.name, mark(server, problem)]]
      }))
      last = {
        from: { servers, users },
        servers: marked.size === 0
          ? servers
          : new Map([...servers].map(([name, server]) => [name, marked.get(name) ?? server])),
        problems: [...marked.values()].map(({ name, problem }) => `server ${JSON.stringify(name)} is not connected: ` +
          `${problem}`)
      }
    }
    const { servers, problems } = last
    return problems.length === 0 ? snapshot : { ...snapshot, servers, problems: [...snapshot.problems, ...problems] }
  }
}
