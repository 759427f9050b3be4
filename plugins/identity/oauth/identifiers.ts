import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Snapshot } from '../../../db/store.ts'
import type { User } from '../../../schemas/settings.ts'
import { configuredBaseUrl, listeningOrigin } from '../../settings/index.ts'
import { rightsMarkOf } from '../users/account.ts'

type IsProxy = (address: string) => boolean

/** The host names of the loopback interface. */
const loopbackNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Returns the issuer identifier (RFC 8414): the configured base URL; otherwise the address in the forwarding headers,
 * if a proxy listed in TRUST_PROXY sent the request, since any caller can set the headers; otherwise the address on
 * which the gateway listens.
 * @param isProxy whether an IP address belongs to a trusted proxy
 */
export function issuerOf (app: FastifyInstance, request: FastifyRequest, isProxy: IsProxy): string {
  return configuredBaseUrl(app.settings.current.system, app.config) ??
    `${forwardedOrigin(request, isProxy) ?? ownOrigin(listeningOrigin(app), request)}${app.config.basePath}`
}

/** Returns the path of an issuer, without a trailing slash. */
export const issuerPath = (issuer: string): string => new URL(issuer).pathname.replace(/\/$/, '')

/**
 * Returns the origin on which the gateway listens. If the gateway listens on the loopback interface, the host may be
 * replaced by another loopback name in the request, such as `localhost` for `127.0.0.1`: a client compares the resource
 * in the metadata with the address that it uses (RFC 9728, section 3.3). Other host names in the request are ignored.
 */
function ownOrigin (listening: string, { headers: { host = '' } }: FastifyRequest): string {
  const [own, requestedOrigin] = [new URL(listening), `http://${host}`]
  if (!loopbackNames.has(own.hostname) || !URL.canParse(requestedOrigin)) return listening
  const { hostname, port, origin } = new URL(requestedOrigin)
  return loopbackNames.has(hostname) && port === own.port ? origin : listening
}

function forwardedOrigin ({ headers, host, protocol, socket }: FastifyRequest, isProxy: IsProxy): string | undefined {
  if (headers['x-forwarded-host'] === undefined || !isProxy(socket.remoteAddress ?? '')) return undefined
  const isHttp = /^https?$/i.test(protocol) && URL.canParse(`${protocol}://${host}`)
  return isHttp ? new URL(`${protocol}://${host}`).origin : undefined
}

/**
 * Matches paths below the issuer that are protected resources: the gateway as a whole (`''`), MCP routes, SSE routes,
 * and the management API.
 */
const resourcePaths = /^(?:\/(?:[^/]+\/)?(?:mcp|sse)(?:\/[^?#]*)?|\/api)?$/

/**
 * Matches characters and dot segments that `URL` normalizes: with them, the user could consent to one resource while
 * the client uses another.
 */
const ambiguousPath = /[\\\s]|\/(?:\.|%2e){1,2}(?=\/|$)/i

const withoutTrailingSlashes = (uri: string): string => uri.replace(/\/+$/, '')

/**
 * Returns the path of a protected resource (RFC 8707) below the issuer, `''` for the whole gateway; undefined if the
 * URI is not a resource of this gateway.
 */
export function resourcePath (issuer: string, uri: string): string | undefined {
  if (ambiguousPath.test(uri) || !URL.canParse(uri)) return undefined
  const address = withoutTrailingSlashes(new URL(uri).href)
  if (address !== issuer && !address.startsWith(`${issuer}/`)) return undefined
  const path = address.slice(issuer.length)
  return resourcePaths.test(path) ? path : undefined
}

/**
 * Returns the result of `resourcePath` for use in metadata: a path other than `''` keeps the trailing slash of the
 * client's URI, since the client compares its URI with the URI in the metadata (RFC 9728, section 3.3).
 */
export function resourcePathAsSent (issuer: string, uri: string): string | undefined {
  const path = resourcePath(issuer, uri)
  return path !== undefined && path !== '' && uri.endsWith('/') ? `${path}/` : path
}

/**
 * A state of an account: `mark` is a hash that changes with the password and the admin rights. Tokens and consents are
 * issued for one state: they become invalid when the account is removed, or its password or admin rights change.
 */
export interface AccountVersion { readonly username: string, readonly mark: string }

/** Returns the current version of an account. */
export const accountVersionOf = (user: User): AccountVersion => ({ username: user.username, mark: rightsMarkOf(user) })

/** Returns the user of an account version; undefined if the account no longer exists, or has another version now. */
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
