import { BlockList, isIP } from 'node:net'

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

/** The ranges that proxy-addr's names stand for. */
const namedRanges: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.1/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']
}

/**
 * Whether an address that connects is taken for a proxy, by TRUST_PROXY: `trustedProxies` for the first hop.
 * @throws Error naming the first entry that is invalid
 */
export function trustsPeer (text: string): (address: string) => boolean {
  const trusted = trustedProxies(text)
  if (typeof trusted === 'boolean') return () => trusted
  if (typeof trusted === 'function') return (address) => trusted(address, 0)
  const list = new BlockList()
  for (const range of trusted.flatMap((each) => namedRanges[each] ?? [each])) {
    const [address = '', prefix] = range.split('/')
    list.addSubnet(address, prefixLength(address, prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return (address) => {
    const plain = address.replace(/^::ffff:(?=[0-9.]+$)/i, '').replace(/%.*$/, '')
    return list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
  }
}

/** The length of a prefix that is given as such, as an IPv4 netmask, or not at all. */
function prefixLength (address: string, prefix: string | undefined): number {
  if (prefix === undefined) return isIP(address) === 4 ? 32 : 128
  if (isIP(prefix) !== 4) return Number(prefix)
  return prefix.split('.').map((each) => Number(each).toString(2)).join('').replaceAll('0', '').length
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
