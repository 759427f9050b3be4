import { buildConnector, Pool } from 'undici'
import { plainHost } from './addresses.ts'
import { Refused, type Policy } from './policy.ts'

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
 * A connector through an HTTP proxy. It opens a tunnel (CONNECT) for plain http, too, so that proxies do not buffer event streams.
 * The proxy resolves host names; addresses and names that are known without a look-up are checked here.
 * @param dial opens the sockets to the proxy
 * @param timeout for the tunnel, and for TLS through it, in ms
 */
export function tunnel (
  proxy: URL,
  dial: buildConnector.connector,
  policy: Policy,
  timeout: number
): { connect: buildConnector.connector; close: () => Promise<void> } {
  const pool = new Pool(proxy.origin, { connect: dial, headersTimeout: timeout })
  const secure = buildConnector({ timeout })
  const credentials =
    proxy.username === ''
      ? {}
      : { 'proxy-authorization': `Basic ${Buffer.from(`${decoded(proxy.username)}:${decoded(proxy.password)}`).toString('base64')}` }
  const connect: buildConnector.connector = (options, callback) => {
    const { hostname, protocol, port } = options
    const refusal = policy.refusal(hostname, true)
    if (refusal !== undefined) {
      process.nextTick(callback, new Refused(refusal), null)
      return
    }
    const target = `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port || (protocol === 'https:' ? '443' : '80')}`
    pool.connect({ path: target, headers: { host: target, ...credentials } }).then(
      ({ socket, statusCode }) => {
        if (statusCode !== 200) {
          socket.on('error', () => {}).destroy()
          callback(new Refused(`the proxy ${proxy.host} refuses a tunnel to ${target} (HTTP ${statusCode})`), null)
        } else if (protocol === 'https:') secure({ ...options, httpSocket: socket as never }, callback)
        else callback(null, socket as never)
      },
      (error: Error & { code?: string }) => {
        callback(
          error instanceof Refused ? error : new Refused(`cannot reach the proxy ${proxy.host}: ${error.code ?? error.message}`),
          null
        )
      }
    )
  }
  return {
    connect,
    close: async () => {
      await pool.destroy()
    }
  }
}

/** Percent-decoded credentials; taken literally when their percent-encoding is invalid. */
function decoded (text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
