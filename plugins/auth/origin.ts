import { isIPv4 } from 'node:net'
import { errors } from '../errors/list.ts'

/** What decides which `Host` and `Origin` are served. */
export interface OriginRules {
  /** Values of `Host` without a port, lower case; undefined: every one is served. */
  hosts: ReadonlySet<string> | undefined
  /** Origins beside the same origin. */
  origins: ReadonlySet<string>
}

export const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

const nameOf = (host: string): string => host.toLowerCase().replace(/:\d*$/, '')

const parsed = (baseUrl: string | undefined): URL | undefined => baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined

/**
 * Keeps pages out that were given a name of their own for us (DNS rebinding; MCP Transports, "Security Warning").
 * @param host what the client asked for: `Host`, or what a trusted proxy says it was
 * @throws ForeignHost
 */
export function checkHost ({ hosts }: OriginRules, host: string | undefined, baseUrl: string | undefined): void {
  if (hosts && !(host !== undefined && (hosts.has(nameOf(host)) || nameOf(host) === parsed(baseUrl)?.hostname))) throw new errors.ForeignHost()
}

/**
 * Keeps pages of other sites out (cross-site requests).
 * @param host as for `checkHost`; `protocol` likewise
 * @throws ForeignOrigin
 */
export function checkOrigin ({ origins }: OriginRules, host: string | undefined, origin: string | undefined, baseUrl: string | undefined, protocol = 'http'): void {
  if (origin === undefined || origins.has(origin) || origin === parsed(baseUrl)?.origin) return
  // We listen on plain HTTP: behind a proxy that ends TLS, the origin is install.baseUrl's, or what a trusted proxy says.
  if (origin.toLowerCase() !== `${protocol}://${host?.toLowerCase()}`) throw new errors.ForeignOrigin()
}

/** The rules from the environment: `Host` is checked when listening on loopback, or when ALLOWED_HOSTS names some. */
export function originRules (listenHost: string, allowedHosts: string, allowedOrigins: string): OriginRules {
  const list = (text: string): string[] => text.split(/[\s,]+/).filter((each) => each !== '')
  const hosts = list(allowedHosts).map(nameOf)
  const local = isLoopback(listenHost) ? ['localhost', '127.0.0.1', '[::1]', listenHost.toLowerCase()] : []
  return { hosts: hosts.length + local.length === 0 ? undefined : new Set([...hosts, ...local]), origins: new Set(list(allowedOrigins)) }
}
