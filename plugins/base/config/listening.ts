import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import type { Env } from '../../../schemas/env.ts'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** Whether a host is `localhost` or a loopback address, in any notation. An IPv6 address may be in brackets. */
export function isLoopback (host: string): boolean {
  const plain = host.replace(/^\[(.*)\]$/, '$1')
  const version = isIP(plain)
  return version === 0 ? plain.toLowerCase() === 'localhost' : loopback.check(plain, version === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Returns the address that a server with this host listens on, as `listen` resolves it; the host itself if it is
 * `localhost`, for which Fastify listens on both loopback addresses, or if it cannot be resolved.
 */
export async function resolveListenHost (host: string): Promise<string> {
  if (host === 'localhost') return host
  return await lookup(host).then(({ address }) => address, () => host)
}

/**
 * Returns the URL at which this machine reaches a gateway over loopback; undefined if the gateway does not listen
 * there.
 * @param base the URL that the gateway listens on
 */
export function loopbackUrl (base: string): string | undefined {
  const url = new URL(base)
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1'
  return isLoopback(url.hostname) ? url.href.replace(/\/$/, '') : undefined
}

/** Converts an error of `listen` to one whose message says what to change; returns any other error unchanged. */
export function explainListenError (error: unknown, { HOST: host, PORT: port }: Pick<Env, 'HOST' | 'PORT'>): unknown {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return new Error(
        `Port ${port} on ${host} is already in use. Stop the program that uses it, or choose another port with PORT.`
      )
    case 'EACCES':
      return new Error(`This user may not listen on port ${port}. Choose one above 1023 with PORT.`)
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new Error(
        `HOST cannot be ${JSON.stringify(host)}: this machine does not have this address. ` +
        '127.0.0.1 is for this machine only, 0.0.0.0 for all networks.'
      )
    default:
      return error
  }
}
