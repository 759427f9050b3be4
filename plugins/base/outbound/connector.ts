import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import type { buildConnector as Connector } from 'undici'
import { percentDecode } from '../../../protocol/text.ts'
import { Semaphore, baseLimits } from '../limits/index.ts'
import { normalizeHost } from './addresses.ts'
import { OutboundRefused, type OutboundAllowlist, type OutboundPolicy } from './policy.ts'
import { buildConnector, Pool } from './undici.ts'

/** Resolves a host name; has the signature of `dns.lookup` with `all: true`. */
export type HostResolver = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void
) => void

/**
 * Creates a connector that opens sockets only to addresses admitted by the policy. It connects to the very addresses
 * that were checked, so DNS rebinding has no effect. `Host` and SNI contain the host name.
 * @param trusted whether the server's addresses were stored by an admin or are from the settings file, so that local
 * ones are admitted
 * @param timeout max time for DNS look-up, connection and TLS handshake together, in ms
 */
export function guardedConnector (
  policy: OutboundPolicy, trusted: boolean, resolve: HostResolver, timeout: number
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
        callback(refused as OutboundRefused, [])
      }
    })
  }
  const dial = buildConnector({ timeout, lookup })
  return (options, callback) => {
    const refusal = policy.refusalReason(options.hostname, trusted)
    if (refusal === undefined) dial(options, callback)
    else process.nextTick(callback, new OutboundRefused(refusal), null)
  }
}

/** The operating system's resolver, for servers of admins. Each look-up occupies a thread of libuv's pool. */
export const systemResolver: HostResolver = lookup

const lookupSlots = new Semaphore({ places: baseLimits.concurrentLookups, perOwner: baseLimits.lookupsPerUser })

/**
 * Creates the resolver for servers that a user stored. It queries DNS without a thread of libuv's pool, so slow name
 * servers do not delay other work; at most `baseLimits.lookupsPerUser` look-ups of a user run at the same time. Names
 * in OUTBOUND_ALLOW are resolved by `systemResolver`, which also reads the hosts file.
 */
export function createUserResolver (owner: string, allowed: OutboundAllowlist): HostResolver {
  return (name, options, callback) => {
    if (allowed.hasName(name)) { systemResolver(name, options, callback); return }
    const startedAt = Date.now()
    void lookupSlots.take(owner, false).then(async (release) => {
      try {
        // The connection timed out while the look-up waited.
        if (Date.now() - startedAt >= baseLimits.connectTimeout) { callback(lookupError(name, 'ETIMEOUT'), []); return }
        callback(null, await lookUp(name, baseLimits.connectTimeout - (Date.now() - startedAt)))
      } catch (error) {
        callback(error as NodeJS.ErrnoException, [])
      } finally {
        release()
      }
    })
  }
}

/** Queries A and AAAA records. @param timeout the max time, in ms @throws Error with a DNS code such as ENOTFOUND */
async function lookUp (name: string, timeout: number): Promise<LookupAddress[]> {
  const resolver = new Resolver({ timeout: 2_500, tries: 2 })
  const timer = setTimeout(() => { resolver.cancel() }, timeout).unref()
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  clearTimeout(timer)
  const found = [four, six].flatMap((outcome, at) =>
    outcome.status === 'fulfilled' ? outcome.value.map((address) => ({ address, family: at === 0 ? 4 : 6 })) : [])
  if (found.length > 0) return found
  const { code } = (four.status === 'rejected' ? four.reason : {}) as NodeJS.ErrnoException
  throw lookupError(name, code === undefined || code === 'ENODATA' ? 'ENOTFOUND' : code)
}

/** Creates an error like those of `dns.lookup`. */
function lookupError (name: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} cannot be resolved: ${code}`), { code, hostname: name })
}

/**
 * Whether requests to a URL bypass the proxy.
 * @param noProxy comma-separated entries: a host, `.suffix` for a domain and its subdomains, or `*` for all hosts; each
 * may have a port
 */
export function bypassesProxy (noProxy: string | undefined, url: URL): boolean {
  const host = normalizeHost(url.hostname)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return (noProxy ?? '').split(',').map((each) => each.trim()).some((entry) => {
    const [, name = '', at] = /^(\[.*\]|[^:]*|.*:.*:.*)(?::([0-9]+))?$/.exec(entry) ?? []
    if (name === '' || (at !== undefined && at !== port)) return false
    const plain = normalizeHost(name)
    if (plain === '*' || host === plain) return true
    return plain.startsWith('.') && (host.endsWith(plain) || host === plain.slice(1))
  })
}

/**
 * Creates a connector that opens tunnels through an HTTP proxy (CONNECT), for plain http as well: otherwise the proxy
 * could buffer event streams. The proxy resolves host names, so the policy checks only IP addresses and well-known
 * names.
 * @param dial opens the sockets to the proxy
 * @param timeout max time to open a tunnel, and max time for the TLS handshake through it, in ms
 */
export function tunnelConnector (
  proxy: URL, dial: Connector.connector, policy: OutboundPolicy, timeout: number
): { connect: Connector.connector, close: () => Promise<void> } {
  const pool = new Pool(proxy.origin, { connect: dial, headersTimeout: timeout })
  const secure = buildConnector({ timeout })
  const account = Buffer.from(
    `${decodeCredential(proxy.username)}:${decodeCredential(proxy.password)}`
  ).toString('base64')
  const credentials = proxy.username === '' ? {} : { 'proxy-authorization': `Basic ${account}` }
  const connect: Connector.connector = (options, callback) => {
    const { hostname, protocol, port } = options
    const refusal = policy.refusalReason(hostname, true)
    if (refusal !== undefined) {
      process.nextTick(callback, new OutboundRefused(refusal), null)
      return
    }
    const target =
      `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port || (protocol === 'https:' ? '443' : '80')}`
    pool.connect({ path: target, headers: { host: target, ...credentials } }).then(
      ({ socket, statusCode }) => {
        if (statusCode !== 200) {
          socket.on('error', () => {}).destroy()
          callback(
            new OutboundRefused(`the proxy ${proxy.host} refused a tunnel to ${target} (HTTP ${statusCode})`), null
          )
        } else if (protocol === 'https:') secure({ ...options, httpSocket: socket as never }, callback)
        else callback(null, socket as never)
      },
      (error: Error & { code?: string }) => {
        const isRefusal = error instanceof OutboundRefused
        callback(isRefusal
          ? error
          : new OutboundRefused(`cannot reach the proxy ${proxy.host}: ${error.code ?? error.message}`), null)
      }
    )
  }
  return { connect, close: async () => { await pool.destroy() } }
}

/** Percent-decodes a credential; an invalid encoding is taken literally. */
const decodeCredential = (text: string): string => percentDecode(text) ?? text
