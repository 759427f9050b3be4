import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import type { buildConnector as Connector } from 'undici'
import { Semaphore, baseLimits } from '../limits/index.ts'
import { plainHost } from './addresses.ts'
import { Refused, type Allowed, type Policy } from './policy.ts'
import { buildConnector, Pool } from './undici.ts'

/** Resolves a host name, with the signature of `dns.lookup` for all addresses. */
export type HostResolver = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void
) => void

/**
 * A connector that opens sockets only to addresses that the policy admits. It connects to the addresses that it
 * checked, so that DNS rebinding has no effect. `Host` and SNI keep the name.
 * @param timeout for DNS look-up, connection and TLS together, in ms
 */
export function guardedConnector (
  policy: Policy, trusted: boolean, resolve: HostResolver, timeout: number
): Connector.connector {
  const lookup: LookupFunction = (name, options, callback) => {
    resolve(name, { ...options, all: true } as LookupAllOptions, (error, addresses) => {
      if (error) { callback(error, []); return }
      try {
        const admitted = policy.admit(name, addresses, trusted)
        const [first] = admitted
        if (options.all === true) callback(null, admitted)
        else if (first) callback(null, first.address, first.family)
      } catch (refused) {
        callback(refused as Refused, [])
      }
    })
  }
  const dial = buildConnector({ timeout, lookup })
  return (options, callback) => {
    const refusal = policy.refusal(options.hostname, trusted)
    if (refusal === undefined) dial(options, callback)
    else process.nextTick(callback, new Refused(refusal), null)
  }
}

/**
 * The system's resolver, for servers of admins. It reads the hosts file, and holds a thread of the pool while it waits.
 */
export const systemResolver: HostResolver = lookup

const places = new Semaphore({ places: baseLimits.concurrentLookups, perOwner: baseLimits.lookupsPerUser })

/**
 * The resolver for servers that a user stored. It asks the name servers without holding a thread, so slow name servers
 * do not delay the look-ups of others; the names of one user are looked up one at a time. The system's resolver looks
 * up names in OUTBOUND_ALLOW.
 */
export function resolverFor (owner: string, allowed: Allowed): HostResolver {
  return (name, options, callback) => {
    if (allowed.name(name)) { systemResolver(name, options, callback); return }
    const begun = Date.now()
    void places.take(owner, false).then(async (release) => {
      try {
        // The connection has timed out meanwhile.
        if (Date.now() - begun >= baseLimits.connectTimeout) { callback(failure(name, 'ETIMEOUT'), []); return }
        callback(null, await lookUp(name, baseLimits.connectTimeout - (Date.now() - begun)))
      } catch (error) {
        callback(error as NodeJS.ErrnoException, [])
      } finally {
        release()
      }
    })
  }
}

/** @param timeout in ms @throws the error of the name server, ETIMEOUT, ENOTFOUND */
async function lookUp (name: string, timeout: number): Promise<LookupAddress[]> {
  const resolver = new Resolver({ timeout: 2_500, tries: 2 })
  const timer = setTimeout(() => { resolver.cancel() }, timeout).unref()
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  clearTimeout(timer)
  const found = [four, six].flatMap((outcome, at) =>
    outcome.status === 'fulfilled' ? outcome.value.map((address) => ({ address, family: at === 0 ? 4 : 6 })) : [])
  if (found.length > 0) return found
  const { code } = (four.status === 'rejected' ? four.reason : {}) as NodeJS.ErrnoException
  throw failure(name, code === undefined || code === 'ENODATA' ? 'ENOTFOUND' : code)
}

/** An error as `dns.lookup` gives it. */
function failure (name: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} cannot be resolved: ${code}`), { code, hostname: name })
}

/**
 * Whether a URL is reached without the proxy.
 * @param noProxy comma-separated: hosts, `.suffix` for a domain and its subdomains, `*` for all; each may have a port
 */
export function bypasses (noProxy: string | undefined, url: URL): boolean {
  const host = plainHost(url.hostname)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return (noProxy ?? '').split(',').map((each) => each.trim()).some((entry) => {
    const [, name = '', at] = /^(\[.*\]|[^:]*|.*:.*:.*)(?::([0-9]+))?$/.exec(entry) ?? []
    if (name === '' || (at !== undefined && at !== port)) return false
    const plain = plainHost(name)
    if (plain === '*' || host === plain) return true
    return plain.startsWith('.') && (host.endsWith(plain) || host === plain.slice(1))
  })
}

/**
 * A connector through an HTTP proxy. It opens a tunnel (CONNECT) for plain http, too, so that proxies do not buffer
 * event streams. The proxy resolves host names; addresses and names that are known without a look-up are checked here.
 * @param dial opens the sockets to the proxy
 * @param timeout for the tunnel, and for TLS through it, in ms
 */
export function tunnel (
  proxy: URL, dial: Connector.connector, policy: Policy, timeout: number
): { connect: Connector.connector, close: () => Promise<void> } {
  const pool = new Pool(proxy.origin, { connect: dial, headersTimeout: timeout })
  const secure = buildConnector({ timeout })
  const account = Buffer.from(`${decoded(proxy.username)}:${decoded(proxy.password)}`).toString('base64')
  const credentials = proxy.username === '' ? {} : { 'proxy-authorization': `Basic ${account}` }
  const connect: Connector.connector = (options, callback) => {
    const { hostname, protocol, port } = options
    const refusal = policy.refusal(hostname, true)
    if (refusal !== undefined) {
      process.nextTick(callback, new Refused(refusal), null)
      return
    }
    const target =
      `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port || (protocol === 'https:' ? '443' : '80')}`
    pool.connect({ path: target, headers: { host: target, ...credentials } }).then(
      ({ socket, statusCode }) => {
        if (statusCode !== 200) {
          socket.on('error', () => {}).destroy()
          callback(new Refused(`the proxy ${proxy.host} refuses a tunnel to ${target} (HTTP ${statusCode})`), null)
        } else if (protocol === 'https:') secure({ ...options, httpSocket: socket as never }, callback)
        else callback(null, socket as never)
      },
      (error: Error & { code?: string }) => {
        const isKnown = error instanceof Refused
        callback(isKnown
          ? error
          : new Refused(`cannot reach the proxy ${proxy.host}: ` +
          `${error.code ?? error.message}`), null)
      }
    )
  }
  return { connect, close: async () => { await pool.destroy() } }
}

/** Percent-decoded credentials; taken literally when their percent-encoding is invalid. */
function decoded (text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
