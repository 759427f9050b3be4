import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Snapshot } from '../../../db/store.ts'
import type { User } from '../../../schemas/settings.ts'
import { configuredBase, listeningOrigin } from '../../settings/index.ts'
import { rightsMarkOf } from '../users/account.ts'

type IsProxy = (address: string) => boolean

/** The names that this computer has for itself. */
const ownNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * The issuer identifier (RFC 8414): the public base as configured, else the address on which the gateway listens. A
 * forwarded host counts only where a proxy that TRUST_PROXY names has sent the request, since a header is what a caller
 * can set.
 * @param isProxy whether an address that connects is that of such a proxy
 */
export function issuerOf (app: FastifyInstance, request: FastifyRequest, isProxy: IsProxy): string {
  return configuredBase(app.settings.current.system, app.config) ??
    `${forwardedOrigin(request, isProxy) ?? ownOrigin(listeningOrigin(app), request)}${app.config.basePath}`
}

/** The path of an issuer, without a slash at the end. */
export const issuerPath = (issuer: string): string => new URL(issuer).pathname.replace(/\/$/, '')

/**
 * The address on which the gateway listens, under that of the computer's own names which the caller uses: a client
 * compares the resource with the address that it was given (RFC 9728, section 3.3), and that may be `localhost` or
 * `127.0.0.1`. No other name counts.
 */
function ownOrigin (listening: string, { headers: { host = '' } }: FastifyRequest): string {
  const [own, asked] = [new URL(listening), `http://${host}`]
  if (!ownNames.has(own.hostname) || !URL.canParse(asked)) return listening
  const { hostname, port, origin } = new URL(asked)
  return ownNames.has(hostname) && port === own.port ? origin : listening
}

function forwardedOrigin ({ headers, host, protocol, socket }: FastifyRequest, isProxy: IsProxy): string | undefined {
  if (headers['x-forwarded-host'] === undefined || !isProxy(socket.remoteAddress ?? '')) return undefined
  return URL.canParse(`${protocol}://${host}`) ? new URL(`${protocol}://${host}`).origin : undefined
}

/** Paths below the issuer that are protected resources: the MCP routes, the SSE routes, and the management API. */
const paths = /^(?:\/(?:[^/]+\/)?(?:mcp|sse)(?:\/[^?#]*)?|\/api)?$/

/**
 * Characters and dot segments that `URL` would write otherwise, so that a user allowed another resource than the token
 * gets.
 */
const ambiguous = /[\\\s]|\/(?:\.|%2e){1,2}(?=\/|$)/i

/** An address without a slash at the end. */
const trimmed = (uri: string): string => uri.replace(/\/+$/, '')

/**
 * The path of a resource of this gateway below the issuer, `''` for all of it; undefined: it is not ours (RFC 8707).
 */
export function resourcePath (issuer: string, uri: string): string | undefined {
  if (ambiguous.test(uri) || !URL.canParse(uri)) return undefined
  const address = trimmed(new URL(uri).href)
  if (address !== issuer && !address.startsWith(`${issuer}/`)) return undefined
  const path = address.slice(issuer.length)
  return paths.test(path) ? path : undefined
}

/**
 * The same as it is named in metadata: with a slash at its end where its client uses one, which compares the two (RFC
 * 9728, section 3.3).
 */
export function resourceName (issuer: string, uri: string): string | undefined {
  const path = resourcePath(issuer, uri)
  return path !== undefined && path !== '' && uri.endsWith('/') ? `${path}/` : path
}

/**
 * A user at the time of a login: the name and the mark of the account. It becomes invalid once the account has another
 * password or other rights, or was removed, so that nothing that was issued for it is of use then.
 */
export interface MarkedAccount { readonly username: string, readonly mark: string }

export const accountOf = (user: User): MarkedAccount => ({ username: user.username, mark: rightsMarkOf(user) })

/** The user of an account, if the account still stands. */
export function accountUser ({ users }: Snapshot, { username, mark }: MarkedAccount): User | undefined {
  const user = users.get(username)
  return user && rightsMarkOf(user) === mark ? user : undefined
}

/** An account as one text, for the library's `accountId`. */
export const accountId = ({ username, mark }: MarkedAccount): string => `${mark} ${username}`

export function parseAccountId (text: string): MarkedAccount {
  const end = text.indexOf(' ')
  return { mark: text.slice(0, end), username: text.slice(end + 1) }
}
