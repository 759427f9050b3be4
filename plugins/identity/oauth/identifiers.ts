import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Snapshot } from '../../../db/store.ts'
import type { User } from '../../../schemas/settings.ts'
import { configuredBaseUrl, listeningOrigin } from '../../settings/index.ts'
import { rightsMarkOf } from '../users/account.ts'

type IsProxy = (address: string) => boolean

/** The host names of the loopback interface. */
const loopbackNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Returns the issuer identifier (RFC 8414): the configured public base, otherwise the address on which the gateway
 * listens. A forwarded host is used only if a proxy listed in TRUST_PROXY sent the request, since any caller can set
 * the header.
 * @param isProxy whether a peer address is that of a trusted proxy
 */
export function issuerOf (app: FastifyInstance, request: FastifyRequest, isProxy: IsProxy): string {
  return configuredBaseUrl(app.settings.current.system, app.config) ??
    `${forwardedOrigin(request, isProxy) ?? ownOrigin(listeningOrigin(app), request)}${app.config.basePath}`
}

/** Returns the path of an issuer, without a trailing slash. */
export const issuerPath = (issuer: string): string => new URL(issuer).pathname.replace(/\/$/, '')

/**
 * Returns the origin on which the gateway listens, with the loopback host name from the request, if it has one: a
 * client compares the resource with the address it was given (RFC 9728, section 3.3), which may contain `localhost` or
 * `127.0.0.1`. Other host names in the request are ignored.
 */
function ownOrigin (listening: string, { headers: { host = '' } }: FastifyRequest): string {
  const [own, requestedOrigin] = [new URL(listening), `http://${host}`]
  if (!loopbackNames.has(own.hostname) || !URL.canParse(requestedOrigin)) return listening
  const { hostname, port, origin } = new URL(requestedOrigin)
  return loopbackNames.has(hostname) && port === own.port ? origin : listening
}

function forwardedOrigin ({ headers, host, protocol, socket }: FastifyRequest, isProxy: IsProxy): string | undefined {
  if (headers['x-forwarded-host'] === undefined || !isProxy(socket.remoteAddress ?? '')) return undefined
  return URL.canParse(`${protocol}://${host}`) ? new URL(`${protocol}://${host}`).origin : undefined
}

/**
 * Matches paths below the issuer that are protected resources: the gateway as a whole (`''`), MCP routes, SSE routes,
 * and the management API.
 */
const resourcePaths = /^(?:\/(?:[^/]+\/)?(?:mcp|sse)(?:\/[^?#]*)?|\/api)?$/

/**
 * Matches characters and dot segments that `URL` normalizes: the user could consent to a resource other than the one
 * used.
 */
const ambiguousPath = /[\\\s]|\/(?:\.|%2e){1,2}(?=\/|$)/i

const withoutTrailingSlashes = (uri: string): string => uri.replace(/\/+$/, '')

/**
 * Returns the path of a resource below the issuer, `''` for the gateway; undefined if it is not a resource of it (RFC
 * 8707).
 */
export function resourcePath (issuer: string, uri: string): string | undefined {
  if (ambiguousPath.test(uri) || !URL.canParse(uri)) return undefined
  const address = withoutTrailingSlashes(new URL(uri).href)
  if (address !== issuer && !address.startsWith(`${issuer}/`)) return undefined
  const path = address.slice(issuer.length)
  return resourcePaths.test(path) ? path : undefined
}

/**
 * Returns the path of a resource below the issuer, for metadata. It keeps a trailing slash of the client's URI, since
 * the client compares the two (RFC 9728, section 3.3).
 */
export function resourcePathAsSent (issuer: string, uri: string): string | undefined {
  const path = resourcePath(issuer, uri)
  return path !== undefined && path !== '' && uri.endsWith('/') ? `${path}/` : path
}

/**
 * An account with its current password and admin rights, which `mark` is a hash of. Tokens and consents are issued for
 * it: they end when the account is removed, or its password or rights change.
 */
export interface AccountVersion { readonly username: string, readonly mark: string }

/** Returns the current version of an account. */
export const accountVersionOf = (user: User): AccountVersion => ({ username: user.username, mark: rightsMarkOf(user) })

/** Returns the user of an account version, if the account is still in that state. */
export function userOfVersion ({ users }: Snapshot, { username, mark }: AccountVersion): User | undefined {
  const user = users.get(username)
  return user && rightsMarkOf(user) === mark ? user : undefined
}

/** Returns an account version as one string, which is the `accountId` of oidc-provider. */
export const toAccountId = ({ username, mark }: AccountVersion): string => `${mark} ${username}`

/** Parses the result of `toAccountId`. */
export function parseAccountId (text: string): AccountVersion {
  const end = text.indexOf(' ')
  return { mark: text.slice(0, end), username: text.slice(end + 1) }
}
