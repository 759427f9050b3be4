import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../../db/store.ts'
import type { Principal } from '../../settings/index.ts'
import { mayHaveSession } from '../social/settings.ts'
import type { SocialLogin } from '../social/social.ts'

/** A class of routes: a credential may be valid on one and not on another. `open`: credentials are optional. */
export type RouteClass = 'api' | 'mcp' | 'open'

/**
 * The parts of a request that may carry credentials. `socket`: where it came from; `ip`: the address of the client,
 * behind proxies too.
 */
export interface RequestCredentials {
  headers: IncomingHttpHeaders
  query: Readonly<Record<string, unknown>>
  socket?: { readonly remoteAddress?: string }
  readonly ip?: string
}

/** Undefined: not identified. A promise only where a step has to wait: most do not. */
export type Identified = Principal | undefined | Promise<Principal | undefined>

/**
 * One way to identify the caller. Returns undefined for a credential of another kind, an invalid one, or one that this
 * class of routes does not accept: the next step is then tried.
 * @throws StorageAway when the credential cannot be checked now
 */
export type AuthStep = (credentials: RequestCredentials, routes: RouteClass, snapshot: Snapshot) => Identified

/** The caller, as the first matching step identifies it. */
export function identify (
  chain: readonly AuthStep[], credentials: RequestCredentials, routes: RouteClass, snapshot: Snapshot
): Identified {
  let at = 0
  for (const step of chain) {
    at++
    const found = step(credentials, routes, snapshot)
    if (found instanceof Promise) {
      return found.then((principal) => principal ?? identify(chain.slice(at), credentials, routes, snapshot))
    }
    if (found) return found
  }
  return undefined
}

/**
 * Whether a request carries a text where this class of routes reads credentials.
 * @param keyHeader the header of bearer keys
 */
export function hasCredentials (
  { headers, query }: RequestCredentials, routes: RouteClass, keyHeader: string
): boolean {
  if (headers[keyHeader] !== undefined) return true
  if (routes === 'mcp') return false
  if (routes === 'api' && (query.token !== undefined || mayHaveSession(headers))) return true
  return headers.authorization !== undefined || headers['x-auth-token'] !== undefined
}

/** With `routing.skipAuth`, every caller of the management API is the guest, an admin. It does not affect MCP. */
export const guest: AuthStep = (_credentials, routes, snapshot) => routes === 'api' ? principalOf(snapshot) : undefined

const principalOf = ({ system }: Snapshot): Principal | undefined => system.routing?.skipAuth === true
  ? { key: 'guest', kind: 'guest', user: 'guest', username: 'guest', isAdmin: true, standing: principalOf }
  : undefined

/**
 * The session cookie of a social login, on the management API only. It acts as its user, who is read from the settings:
 * demotion, deletion and another password take effect at once.
 */
export const socialSession = (social: SocialLogin): AuthStep => ({ headers }, routes, snapshot) =>
  routes === 'api' ? social.identify(headers, snapshot) : undefined
