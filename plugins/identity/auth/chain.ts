import type { IncomingHttpHeaders } from 'node:http'
import type { Snapshot } from '../../../db/store.ts'
import type { Principal } from '../../settings/index.ts'
import { mayHaveSessionCookie } from '../social/settings.ts'
import type { SocialLogin } from '../social/social.ts'

/** The classes of routes, which accept different credentials. On `open` routes, credentials are optional. */
export type RouteClass = 'api' | 'mcp' | 'open'

/** The parts of a request that may carry credentials. `ip`: the client's address, also behind trusted proxies. */
export interface RequestCredentials {
  headers: IncomingHttpHeaders
  query: Readonly<Record<string, unknown>>
  socket?: { readonly remoteAddress?: string }
  readonly ip?: string
}

/** Returns the token in a header of the form `Bearer <token>`; undefined for another form, or without a header. */
export const bearerTokenIn = (header: string | undefined): string | undefined =>
  header === undefined ? undefined : /^bearer +(.+)$/i.exec(header)?.[1]?.trim()

/** The result of an identification: the caller's principal, or undefined. It is a promise only if a step must wait. */
export type IdentifyResult = Principal | undefined | Promise<Principal | undefined>

/**
 * One way to identify the caller. It returns undefined for a credential of another kind, an invalid one, or one that
 * this class of routes does not accept; the next step is then tried.
 * @throws StorageAway, StorageError if the credential cannot be checked now
 */
export type AuthStep = (credentials: RequestCredentials, routes: RouteClass, snapshot: Snapshot) => IdentifyResult

/** Returns the caller's principal from the first step that identifies one. */
export function identifyCaller (
  chain: readonly AuthStep[], credentials: RequestCredentials, routes: RouteClass, snapshot: Snapshot
): IdentifyResult {
  let at = 0
  for (const step of chain) {
    at++
    const found = step(credentials, routes, snapshot)
    if (found instanceof Promise) {
      return found.then((principal) => principal ?? identifyCaller(chain.slice(at), credentials, routes, snapshot))
    }
    if (found) return found
  }
  return undefined
}

/**
 * Whether a request has a header, a query parameter or a cookie in which routes of this class accept credentials.
 * @param keyHeader the header of bearer keys, in lower case
 */
export function hasCredentials (
  { headers, query }: RequestCredentials, routes: RouteClass, keyHeader: string
): boolean {
  if (headers[keyHeader] !== undefined) return true
  if (routes === 'mcp') return bearerTokenIn(headers.authorization) !== undefined
  if (routes === 'api' && (query.token !== undefined || mayHaveSessionCookie(headers))) return true
  return headers.authorization !== undefined || headers['x-auth-token'] !== undefined
}

/**
 * The last step of the chain: if `routing.skipAuth` is on, it identifies each remaining caller of the management API as
 * the guest, who is an admin. Other routes are not affected.
 */
export const guestStep: AuthStep = (_credentials, routes, snapshot) => routes === 'api' ? guestOf(snapshot) : undefined

const guestOf = ({ system }: Snapshot): Principal | undefined => system.routing?.skipAuth === true
  ? { key: 'guest', kind: 'guest', user: 'guest', username: 'guest', isAdmin: true, inSnapshot: guestOf }
  : undefined

/**
 * Authenticates requests to the management API by the session cookie of a social login. The user is read from the
 * current settings, so a demotion, a deletion or a new password takes effect at once.
 */
export const socialSessionStep = (social: SocialLogin): AuthStep => ({ headers }, routes, snapshot) =>
  routes === 'api' ? social.identify(headers, snapshot) : undefined
