import { isIP } from 'node:net'

/** Names of address ranges that Fastify's proxy-addr knows. */
const rangeNames = new Set(['loopback', 'linklocal', 'uniquelocal'])

/**
 * Fastify's `trustProxy` option from TRUST_PROXY: all proxies, a number of hops, or a list of addresses and ranges.
 * @throws Error naming the first entry that is invalid
 */
export function trustedProxies (text: string): boolean | string[] | ((address: string, hop: number) => boolean) {
  if (text === '' || text === 'false') return false
  if (text === 'true') return true
  if (/^[0-9]+$/.test(text)) return (_address, hop) => hop < Number(text)
  const proxies = text.split(',').map((each) => each.trim())
  const wrong = proxies.find((each) => !rangeNames.has(each) && !isRange(each))
  if (wrong !== undefined) {
    throw new Error(
      `The environment variable TRUST_PROXY cannot have ${JSON.stringify(wrong)}: expected true, false, a number of proxies, ` +
      'or addresses and ranges as "127.0.0.1", "10.0.0.0/8", "loopback".'
    )
  }
  return proxies
}

/** Whether a text is an address, alone or with a prefix length or (IPv4) a netmask. */
function isRange (text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  if (prefix === undefined || (version === 4 && isMask(prefix))) return true
  return /^[1-9][0-9]{0,2}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128)
}

/** Whether a text is an IPv4 netmask: ones, then zeros. */
function isMask (text: string): boolean {
  if (isIP(text) !== 4) return false
  const bits = text.split('.').map((each) => Number(each).toString(2).padStart(8, '0'))
  return /^1+0*$/.test(bits.join(''))
}
