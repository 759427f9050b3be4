import { isIP } from 'node:net'
import { compile } from '@fastify/proxy-addr'
import { quotedValue } from '../../../schemas/read-env.ts'

/**
 * Converts TRUST_PROXY to Fastify's option `trustProxy`: all proxies, a number of hops, or addresses and ranges.
 * @throws Error with the first invalid entry
 */
export function parseTrustProxy (text: string): boolean | string[] | ((address: string, hop: number) => boolean) {
  if (text === '' || text === 'false') return false
  if (text === 'true') return true
  if (/^[0-9]+$/.test(text)) return (_address, hop) => hop < Number(text)
  const proxies = text.split(',').map((each) => each.trim())
  const wrong = proxies.find((each) => !isRange(each))
  if (wrong !== undefined) {
    throw new Error(
      `The environment variable TRUST_PROXY cannot have ${quotedValue(wrong)}: expected true, false, a number of ` +
      'proxies, or addresses and ranges such as "127.0.0.1", "10.0.0.0/8", "loopback".'
    )
  }
  return proxies
}

/**
 * Returns a function that tells from the remote address of a connection whether it comes from a trusted proxy.
 * @param text TRUST_PROXY
 * @throws Error with the first invalid entry
 */
export function createTrustedProxyCheck (text: string): (address: string) => boolean {
  const trusted = parseTrustProxy(text)
  if (typeof trusted === 'boolean') return () => trusted
  const isTrusted = typeof trusted === 'function' ? trusted : compile(trusted)
  return (address) => isTrusted(address, 0)
}

/**
 * Whether a text is `loopback`, `linklocal`, `uniquelocal`, or an address, optionally with a prefix length or netmask.
 */
function isRange (text: string): boolean {
  const [address = ''] = text.split('/')
  try {
    compile(text)
    return isIP(address) !== 0 || /^[a-z]+$/.test(address)
  } catch {
    return false
  }
}
