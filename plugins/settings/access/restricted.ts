import type { Server, Snapshot } from '../../../db/store.ts'
import { type ServerConfig, typeOf } from '../../../schemas/server.ts'
import { isRestrictedType } from '../../../schemas/transports.ts'
import { isAdmins } from './visibility.ts'

/** Whether a server runs a command, or is of a restricted type: only admins may store it, unless ALLOW_USER_STDIO lifts this. */
export function isRestricted (config: Pick<ServerConfig, 'type' | 'command' | 'url'>): boolean {
  const type = typeOf(config)
  return config.command !== undefined || (type !== undefined && isRestrictedType(type))
}

const unowned = (owner = ''): string =>
  `its owner ${JSON.stringify(owner)} is no admin, and only admins' servers run commands or are of type "openapi" ` +
  '(ALLOW_USER_STDIO lifts this): make an admin its owner'

const isStopped = (snapshot: Snapshot, { config, problem }: Server): boolean =>
  problem === undefined && isRestricted(config) && !isAdmins(snapshot, config.owner)

/**
 * Makes a function that marks the servers whose owners may not store them now: such a server is kept, and neither started nor called
 * (DECISIONS §5). Whoever reads the settings reads them so; what was marked before stays the same object.
 */
export function restrictServers (): (snapshot: Snapshot) => Snapshot {
  const marks = new WeakMap<Server, Server>()
  let last: { from: Pick<Snapshot, 'servers' | 'users'>, servers: Snapshot['servers'], problems: readonly string[] } | undefined
  const mark = (server: Server): Server => {
    const marked = marks.get(server) ?? { ...server, problem: unowned(server.config.owner) }
    marks.set(server, marked)
    return marked
  }
  return (snapshot) => {
    if (last?.from.servers !== snapshot.servers || last.from.users !== snapshot.users) {
      const { servers, users } = snapshot
      const stopped = [...servers.values()].filter((server) => isStopped(snapshot, server))
      const marked = new Map(stopped.map((server) => [server.name, mark(server)]))
      last = {
        from: { servers, users },
        servers: marked.size === 0 ? servers : new Map([...servers].map(([name, server]) => [name, marked.get(name) ?? server])),
        problems: [...marked.values()].map(({ name, problem }) => `server ${JSON.stringify(name)} is not connected: ${problem}`)
      }
    }
    const { servers, problems } = last
    return problems.length === 0 ? snapshot : { ...snapshot, servers, problems: [...snapshot.problems, ...problems] }
  }
}
