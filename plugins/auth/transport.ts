import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../gateway/view.ts'
import type { Keys } from '../keys/keys.ts'

/** One way to know who is asking: an identity, or undefined for "not mine". */
export type Step = (headers: IncomingHttpHeaders, snapshot: Snapshot) => Principal | undefined

/** A bearer key in the header that carries them on MCP routes, with or without `Bearer `. */
export const bearerKey = (keys: Keys): Step => (headers, snapshot) => {
  const header = headers[(snapshot.system.routing?.bearerAuthHeaderName ?? 'Authorization').toLowerCase()]
  if (typeof header !== 'string') return undefined
  const key = keys.find(/^bearer +(.+)$/i.exec(header)?.[1]?.trim() ?? header.trim())
  return key && principalOf(key, snapshot)
}

const principals = new WeakMap<Snapshot, Map<BearerKey, Principal | undefined>>()

/** Who a key speaks for, worked out once for each snapshot: views are kept by it. */
function principalOf (key: BearerKey, snapshot: Snapshot): Principal | undefined {
  let known = principals.get(snapshot)
  if (!known) principals.set(snapshot, known = new Map())
  if (!known.has(key)) known.set(key, toPrincipal(key, snapshot))
  return known.get(key)
}

/** A user key without its owner speaks for nobody. */
function toPrincipal (key: BearerKey, snapshot: Snapshot): Principal | undefined {
  const principal = `${keyPrefix}${key.id}`
  if (key.kind === 'user') {
    const owner = key.owner === undefined ? undefined : snapshot.users.get(key.owner)
    return owner && { key: principal, kind: 'user-key', user: owner.username, username: owner.username, isAdmin: owner.isAdmin === true }
  }
  const { accessType = 'all' } = key
  const grant = accessType === 'all' ? undefined : { accessType, groups: key.allowedGroups ?? [], servers: key.allowedServers ?? [] }
  return { key: principal, kind: 'system-key', user: key.owner ?? principal, isAdmin: true, grant }
}

/** What became of a principal since it was authenticated: the same as it is now, or nothing. */
export function standing (principal: Principal, snapshot: Snapshot): Principal | undefined {
  if (principal.kind === 'anonymous') return snapshot.system.routing?.enableBearerAuth === false ? anonymous : undefined
  const key = snapshot.keys.get(principal.key.slice(keyPrefix.length))
  return key && key.enabled !== false ? principalOf(key, snapshot) : undefined
}

const keyPrefix = 'key '

const anonymous: Principal = { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }

/**
 * Who is asking on an MCP route: the first step that knows (DECISIONS §3); nobody, where bearer auth is off.
 * @throws Unauthorized
 */
export function authenticateTransport (steps: readonly Step[], headers: IncomingHttpHeaders, snapshot: Snapshot): Principal {
  for (const step of steps) {
    const principal = step(headers, snapshot)
    if (principal) return principal
  }
  if (snapshot.system.routing?.enableBearerAuth === false) return anonymous
  const name = snapshot.system.routing?.bearerAuthHeaderName ?? 'Authorization'
  throw new errors.Unauthorized(headers[name.toLowerCase()] === undefined ? `A bearer key is required in the ${name} header` : 'The bearer key is not valid')
}
