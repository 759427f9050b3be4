import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import { quotedValue } from '../../../schemas/read-env.ts'
import { isLoopback } from '../../base/config/index.ts'
import { errors } from '../../base/errors/index.ts'

/** The accepted values of `Host` and `Origin`. */
interface OriginRules {
  /** Accepted values of `Host`, lower case, without a port; undefined accepts all. */
  hosts: ReadonlySet<string> | undefined
  /** Accepted origins besides the gateway's own. */
  origins: ReadonlySet<string>
}

/** Returns a value of `Host` without its port, in lower case. */
const hostNameOf = (host: string): string => host.toLowerCase().replace(/:\d*$/, '')

const parseUrl = (baseUrl: string | undefined): URL | undefined =>
  baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined

/**
 * Whether a request to this host is served. Requests to other hosts are refused, since a page can make its own host
 * name resolve to this gateway (DNS rebinding; MCP Transports, "Security Warning").
 * @param host the value of `Host`, or the host forwarded by a trusted proxy
 * @param baseUrl the public address in the configuration, whose host is also served
 */
export function isServedHost ({ hosts }: OriginRules, host: string | undefined, baseUrl: string | undefined): boolean {
  if (!hosts) return true
  if (host === undefined) return false
  const name = hostNameOf(host)
  return hosts.has(name) || name === parseUrl(baseUrl)?.hostname
}

/**
 * Whether a request names only one host: it has at most one `Host` header, which equals the host of the request target
 * if that is an absolute URL (RFC 9112, section 3.2).
 */
export function hasSingleHost ({ url = '', headers: { host = '' }, rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts++
  }
  if (hosts > 1) return false
  // Almost all request targets are just a path; `*` occurs with OPTIONS.
  const [, authority] = url.startsWith('/') ? [] : /^https?:\/\/([^/?#]*)/i.exec(url) ?? []
  return authority === undefined || authority.toLowerCase() === host.toLowerCase()
}

/**
 * Refuses a request from a web page whose origin is neither the gateway's own nor listed in ALLOWED_ORIGINS.
 * @param host the value of `Host`, or the host forwarded by a trusted proxy
 * @param protocol the scheme of the request, or the scheme forwarded by a trusted proxy
 * @throws ForeignOrigin
 */
export function checkOrigin (
  { origins }: OriginRules,
  host: string | undefined,
  origin: string | undefined,
  baseUrl: string | undefined,
  protocol = 'http'
): void {
  if (origin === undefined || origins.has(origin) || origin === parseUrl(baseUrl)?.origin) return
  // The gateway listens on plain HTTP. Behind a proxy that terminates TLS, the gateway's own origin is the origin of
  // the base URL, or consists of the forwarded protocol and host. Browsers omit the default port.
  const own = host === undefined ? undefined : parseUrl(`${protocol}://${host}`)?.origin
  if (origin.toLowerCase() !== own) throw new errors.ForeignOrigin()
}

/**
 * Creates the rules from environment variables. `Host` is checked if the gateway listens on a loopback address, or if
 * ALLOWED_HOSTS is set.
 * @param listenHost the host on which the gateway listens, as configured
 * @param listenAddress the address that the host resolves to
 * @throws Error naming the first invalid entry
 */
export function readOriginRules (
  listenHost: string, allowedHosts: string, allowedOrigins: string, listenAddress = listenHost
): OriginRules {
  const list = (text: string): string[] => text.split(/[\s,]+/).filter((each) => each !== '')
  const hosts = list(allowedHosts).map(toHost)
  const local = isLoopback(listenAddress)
    ? ['localhost', '127.0.0.1', '[::1]', listenHost.toLowerCase(), toHost(listenAddress.replace(/%.*$/, ''))]
    : []
  return {
    hosts: hosts.length + local.length === 0 ? undefined : new Set([...hosts, ...local]),
    origins: new Set(list(allowedOrigins).map(toOrigin))
  }
}

/**
 * Converts an entry of ALLOWED_HOSTS, or an address, to the form that `hostNameOf` returns.
 * @throws Error for an invalid entry
 */
function toHost (text: string): string {
  const url = parseUrl(`http://${isIPv6(text) ? `[${text}]` : text}`)
  if (!url || /[/\\?#@*]/.test(text)) {
    throw new Error(
      `The environment variable ALLOWED_HOSTS cannot contain ${quotedValue(text)}: ` +
      'expected host names such as "hub.example.com", without "http://" and path.'
    )
  }
  return url.hostname
}

/**
 * Converts an entry of ALLOWED_ORIGINS to the form in which browsers send origins: lower case, no trailing slash, no
 * default port.
 * @throws Error if the entry is invalid
 */
function toOrigin (text: string): string {
  const origin = text.replace(/\/$/, '').toLowerCase()
  const url = parseUrl(origin)
  if (!url || !/^[a-z][a-z0-9+.-]*:\/\/[^/\\?#@*]+$/.test(origin)) {
    throw new Error(
      `The environment variable ALLOWED_ORIGINS cannot contain ${quotedValue(text)}: ` +
      'expected origins such as "https://app.example.com", without a path.'
    )
  }
  // Browser extensions and apps use other schemes, for which the `origin` of a `URL` is `null`.
  return url.origin === 'null' ? origin : url.origin
}
