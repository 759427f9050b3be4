import type { FastifyRequest } from 'fastify'
import { errors } from '../../base/errors/index.ts'
import type { Effect } from '../../base/scopes/index.ts'
import { mayRun, mcpScope, type Principal } from '../../settings/index.ts'

/** The scope that a route of the management API needs, by its effect (DECISIONS §3); reading needs none. */
const scopeOf = { read: undefined, run: 'mcp', change: 'manage' } as const

/** Checks what an access token may do on the management API. Other credentials have no scopes. @throws InsufficientScope */
export function checkScopes ({ scopes }: Principal, effect: Effect = 'change'): void {
  const needed = scopeOf[effect]
  if (scopes !== undefined && needed !== undefined && !scopes.includes(needed)) throw new errors.InsufficientScope(needed)
}

/** What the holder of a token for another resource is told. */
export const otherResource = 'The access token is for another resource'

/**
 * Checks what an access token may do on the MCP routes. Other credentials have neither scopes nor an audience.
 * @throws InsufficientScope · Unauthorized when it is for another resource (RFC 8707)
 */
export function checkToken (principal: Principal, { url, routeOptions }: FastifyRequest, basePath: string): void {
  const { scopes, audience } = principal
  if (scopes === undefined) return
  if (!mayRun(principal)) throw new errors.InsufficientScope(mcpScope)
  // A message of the SSE transport belongs to a stream that was opened with this token's audience.
  if (audience === undefined || audience === basePath || routeOptions.url === `${basePath}/messages`) return
  const path = pathOf(url)
  if (covers(audience, path) || covers(withoutAlias(audience, basePath), withoutAlias(path, basePath))) return
  throw new errors.Unauthorized(otherResource)
}

/**
 * Whether a credential is for the gateway as a whole, as the management API and tools over plain HTTP need it: an access token without a
 * resource, or for the gateway's address, its `/mcp` or its `/api` (RFC 8707). A token for one server or group is not.
 */
export const isForAll = ({ audience }: Principal, basePath: string): boolean =>
  audience === undefined || [basePath, `${basePath}/mcp`, `${basePath}/api`].includes(audience)

/** The path of a request, without a query and a slash at the end. */
const pathOf = (url: string): string => (url.split('?', 1)[0] ?? '').replace(/\/+$/, '')

const covers = (audience: string, path: string): boolean => path === audience || path.startsWith(`${audience}/`)

/** A path of an MCP route, the aliases below `/api` by the names of the routes that they stand for. */
const withoutAlias = (path: string, basePath: string): string =>
  `${basePath}${path.slice(basePath.length).replace(/^\/api\/mcp(?:\/group)?(?=\/|$)/, '/mcp')}`
