import type { Server, Snapshot } from '../../db/store.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { canManage, canSee } from '../access/visibility.ts'

/** A server that this principal may see. @throws NoSuch, also where there is one */
export function visible (snapshot: Snapshot, principal: Principal, name: string): Server {
  const server = snapshot.servers.get(name)
  if (!server || !canSee(snapshot, principal, server, 'public')) throw new errors.NoSuch('server')
  return server
}

/** A server that this principal may change. @throws NoSuch, Forbidden */
export function managed (snapshot: Snapshot, principal: Principal, name: string): Server {
  const server = visible(snapshot, principal, name)
  if (!canManage(principal, server)) throw new errors.Forbidden('Only its owner or an admin may change this server')
  return server
}

/**
 * @param usersMayRun ALLOW_USER_STDIO
 * @throws Forbidden when this principal may not have commands run, or calls described by an OpenAPI document made, for it
 */
export function mayRun (principal: Principal, { type, command }: ServerConfig, usersMayRun: boolean): void {
  if (principal.isAdmin || usersMayRun || (type !== 'openapi' && type !== 'stdio' && command === undefined)) return
  throw new errors.Forbidden('Only an admin may store servers that run a command or are of type "openapi" (ALLOW_USER_STDIO lifts this)')
}
