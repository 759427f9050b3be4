import type { Server, Snapshot } from '../../../db/store.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { errors, noSuch } from '../../base/errors/index.ts'
import { canManage, canSee, isRestricted, type Principal } from '../../settings/index.ts'

/** A server that the principal may see. @throws NoSuch, also for an existing server that it may not see */
export function visible (snapshot: Snapshot, principal: Principal, name: string): Server {
  const server = snapshot.servers.get(name)
  if (!server || !canSee(principal, server, 'public')) throw noSuch('server', name)
  return server
}

/** A server that the principal may change. @throws NoSuch, Forbidden */
export function managed (snapshot: Snapshot, principal: Principal, name: string): Server {
  const server = visible(snapshot, principal, name)
  if (!canManage(principal, server)) throw new errors.Forbidden('Only its owner or an admin may change this server')
  return server
}

/**
 * Checks that a principal may store or connect a server of this type: only admins may do so for servers that run a command, or are of type
 * `openapi`, unless ALLOW_USER_STDIO lifts this.
 * @param usersMayRun ALLOW_USER_STDIO
 * @throws Forbidden
 */
export function checkMayRun (principal: Principal, config: ServerConfig, usersMayRun: boolean): void {
  if (principal.isAdmin || usersMayRun || !isRestricted(config)) return
  throw new errors.Forbidden('Only an admin may store servers that run a command or are of type "openapi" (ALLOW_USER_STDIO lifts this)')
}
