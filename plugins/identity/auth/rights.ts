import type { Snapshot } from '../../../db/store.ts'
import { ownCredentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import type { FastifyRequest } from 'fastify'
import { errors } from '../../base/errors/index.ts'
import { canonicalUsername } from '../users/rules.ts'
import type { RouteEffect } from '../../base/scopes/index.ts'
import { bearerKeyHeaderName, canUseMcp, mcpScope, type Principal } from '../../settings/index.ts'

/** The scope that a route of the management API requires, by its effect; reading requires none. */
const requiredScopes = { read: undefined, run: 'mcp', change: 'manage' } as const

/**
 * Checks that the scopes of an access token allow the effect of a management route. Other credentials have no scopes,
 * and pass.
 * @throws InsufficientScope
 */
export function checkScopes ({ scopes }: Principal, effect: RouteEffect = 'change'): void {
  const needed = requiredScopes[effect]
  if (scopes !== undefined && needed !== undefined && !scopes.includes(needed)) {
    throw new errors.InsufficientScope(needed)
  }
}

/** The error message for an access token that was issued for another resource. */
export const otherResourceMessage = 'The access token is for another resource'

/**
 * Checks that an access token may be used on an MCP route, by its scopes and audience; other credentials have neither.
 * @throws InsufficientScope; Unauthorized if the token is for another resource (RFC 8707)
 */
export function assertTokenAllowsMcpRoute (
  principal: Principal, { url, routeOptions }: FastifyRequest, basePath: string
): void {
  const { scopes, audience } = principal
  if (scopes === undefined) return
  if (!canUseMcp(principal)) throw new errors.InsufficientScope(mcpScope)
  // A POST of the SSE transport belongs to a stream, whose audience was checked when a token of this family opened it.
  if (audience === undefined || audience === basePath || routeOptions.url === `${basePath}/messages`) return
  const path = pathOf(url)
  const plainAudience = withoutApiAlias(audience, basePath)
  if (covers(plainAudience, withoutApiAlias(path, basePath))) return
  // A token for all of `/api` is also for the MCP routes below it.
  if (plainAudience === audience && covers(audience, path)) return
  throw new errors.Unauthorized(otherResourceMessage)
}

/**
 * Whether a credential is valid for the gateway as a whole, as the management API and tools over plain HTTP require. An
 * access token is valid if its resource is the gateway's address, or `/mcp` or `/api` below it (RFC 8707); other
 * credentials are always valid.
 */
export const isForWholeGateway = ({ audience }: Principal, basePath: string): boolean =>
  audience === undefined || [basePath, `${basePath}/mcp`, `${basePath}/api`].includes(audience)

/** Returns the path of a request without its query and trailing slashes. */
const pathOf = (url: string): string => (url.split('?', 1)[0] ?? '').replace(/\/+$/, '')

const covers = (audience: string, path: string): boolean => path === audience || path.startsWith(`${audience}/`)

/** Returns the path of an MCP route, with an alias below `/api` replaced by the path that the alias stands for. */
const withoutApiAlias = (path: string, basePath: string): string =>
  `${basePath}${path.slice(basePath.length).replace(/^\/api\/mcp(?:\/group(?=\/))?(?=\/|$)/, '/mcp')}`

/** Returns a sentence that tells an unidentified caller of an MCP route which credential is missing or wrong. */
export function credentialProblem (headers: FastifyRequest['headers'], snapshot: Snapshot): string {
  const { routing, oauthServer } = snapshot.system
  const takesTokens = oauthServer?.enabled === true
  const name = routing?.bearerAuthHeaderName ?? 'Authorization'
  const header = headers[bearerKeyHeaderName(snapshot)] ?? (takesTokens ? headers.authorization : undefined)
  if (header !== undefined) {
    const isKey = !takesTokens || String(header).includes(ownCredentialPrefixes.key)
    return isKey ? 'The bearer key is not valid' : 'The access token or bearer key is not valid'
  }
  if (!takesTokens) return `A bearer key is required in the ${name} header`
  return bearerKeyHeaderName(snapshot) === 'authorization'
    ? 'An access token or a bearer key is required in the Authorization header'
    : `An access token is required in the Authorization header, or a bearer key in the ${name} header`
}

/**
 * Whether a principal may use the routes of a user (`/:user/…`). An unscoped system key may use the routes of all
 * users; other principals may use only their own.
 * @param named the user in the path
 */
export const canUseRoutesOf = ({ kind, username, keyScope }: Principal, named: string): boolean =>
  kind === 'system-key' ? keyScope === undefined : username === named || username === canonicalUsername(named)
