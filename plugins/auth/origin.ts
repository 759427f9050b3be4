import { isIPv4, isIPv6 } from 'node:net'
import { errors } from '../errors/list.ts'

/** What decides which `Host` and `Origin` are served. */
export interface OriginRules {
  /** Values of `Host` without a port, lower case; undefined: every one is served. */
  hosts: ReadonlySet<string> | undefined
  /** Origins beside the same origin. */
  origins: ReadonlySet<string>
}

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

const nameOf = (host: string): string => host.toLowerCase().replace(/:\d*$/, '')

const parsed = (baseUrl: string | undefined): URL | undefined =>
  baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined

/**
 * Keeps pages out that were given a name of their own for us (DNS rebinding; MCP Transports, "Security Warning").
 * @param host what the client asked for: `Host`, or what a trusted proxy says it was
 * @throws ForeignHost
 */
export function checkHost ({ hosts }: OriginRules, host: string | undefined, baseUrl: string | undefined): void {
  if (hosts && !(host !== undefined && (hosts.has(nameOf(host)) || nameOf(host) === parsed(baseUrl)?.hostname))) {
    throw new errors.ForeignHost()
  }
}

/**
 * Keeps pages of other sites out (cross-site requests).
 * @param host as for `checkHost`; `protocol` likewise
 * @throws ForeignOrigin
 */
export function checkOrigin (
  { origins }: OriginRules,
  host: string | undefined,
  origin: string | undefined,
  baseUrl: string | undefined,
  protocol = 'http'
): void {
  if (origin === undefined || origins.has(origin) || origin === parsed(baseUrl)?.origin) return
  // We listen on plain HTTP: behind a proxy that ends TLS, the origin is install.baseUrl's, or what a trusted proxy says.
  if (origin.toLowerCase() !== `${protocol}://${host?.toLowerCase()}`) throw new errors.ForeignOrigin()
}

/** The rules from the environment: `Host` is checked when listening on loopback, or when ALLOWED_HOSTS names some. @throws Error naming what is none */
export function originRules (listenHost: string, allowedHosts: string, allowedOrigins: string): OriginRules {
  const list = (text: string): string[] => text.split(/[\s,]+/).filter((each) => each !== '')
  const hosts = list(allowedHosts).map(toHost)
  const local = isLoopback(listenHost) ? ['localhost', '127.0.0.1', '[::1]', listenHost.toLowerCase()] : []
  return {
    hosts: hosts.length + local.length === 0 ? undefined : new Set([...hosts, ...local]),
    origins: new Set(list(allowedOrigins).map(toOrigin))
  }
}

/** An entry of ALLOWED_HOSTS as `nameOf` gives it of what browsers send. */
function toHost (text: string): string {
  const url = parsed(`http://${isIPv6(text) ? `[${text}]` : text}`)
  if (!url || /[/\\?#@*]/.test(text)) {
    throw new Error(
      `The environment variable ALLOWED_HOSTS cannot have ${JSON.stringify(text)}: expected names as "hub.example.com", without "http://" and path.`
    )
  }
  return url.hostname
}

/** An entry of ALLOWED_ORIGINS as browsers send it: in lower case, without a slash at the end, and without the usual port. */
function toOrigin (text: string): string {
  const origin = text.replace(/\/$/, '').toLowerCase()
  const url = parsed(origin)
  if (!url || !/^[a-z][a-z0-9+.-]*:\/\/[^/\\?#@*]+$/.test(origin)) {
    throw new Error(
      `The environment variable ALLOWED_ORIGINS cannot have ${JSON.stringify(text)}: expected origins as "https://app.example.com", without a path.`
    )
  }
  // Those of extensions and apps have schemes of their own.
  return url.origin === 'null' ? origin : url.origin
}
