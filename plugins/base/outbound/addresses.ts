import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The class of an IP address or a host name. */
export interface AddressClass {
  /**
   * Which servers may have an address of the class, unless OUTBOUND_ALLOW contains the address. `public`: all. `local`
   * (loopback, private and reserved addresses): only servers stored by an admin or in the settings file. `never`
   * (link-local addresses and cloud metadata services, which hand out credentials): none.
   */
  readonly level: 'public' | 'local' | 'never'
  /** The class in words, for an error, such as `a private address`. */
  readonly words: string
}

/** The address ranges of ipaddr.js in words, by name of the range. */
const words: Readonly<Record<string, string>> = {
  unicast: 'a public address',
  loopback: 'a loopback address',
  private: 'a private address',
  uniqueLocal: 'a private address',
  deprecatedSiteLocal: 'a private address',
  linkLocal: 'a link-local address',
  carrierGradeNat: 'an address shared behind a provider\'s NAT',
  unspecified: 'an unspecified address',
  multicast: 'a multicast address',
  broadcast: 'a broadcast address'
}

/** Metadata services outside link-local ranges: Alibaba, Azure, Oracle; AWS (instances, pods) and Google over IPv6. */
const metadataAddresses =
  new Set(['100.100.100.200', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'])
const metadataNames =
  new Set(['metadata.google.internal', 'metadata.goog', 'metadata', 'instance-data', 'instance-data.ec2.internal'])
const metadata: AddressClass = { level: 'never', words: 'an address of a cloud\'s metadata service' }

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
const wellKnownNat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/**
 * Classifies an IP address in any notation. If an IPv6 address contains IPv4 addresses, the strictest class applies. An
 * invalid address has the level `never`.
 */
export function classifyAddress (address: string): AddressClass {
  if (!ipaddr.isValid(address)) return { level: 'never', words: 'not a valid address' }
  const ip = ipaddr.parse(address)
  if (ip instanceof ipaddr.IPv6) return classifyIPv6(ip)
  const range = ip.range()
  if (metadataAddresses.has(ip.toString())) return metadata
  return { level: levelOf(range), words: words[range] ?? 'a reserved address' }
}

function levelOf (range: string): AddressClass['level'] {
  if (range === 'linkLocal') return 'never'
  return range === 'unicast' ? 'public' : 'local'
}

function classifyIPv6 (ip: ipaddr.IPv6): AddressClass {
  const range: string = ip.range()
  const inner = embeddedIPv4(ip, range).map(({ octets }) => classifyAddress(octets.join('.')))
  const worst = inner.find(({ level }) => level === 'never') ?? inner.find(({ level }) => level === 'local') ?? inner[0]
  if (worst?.level === 'never') return worst
  if (range === 'linkLocal') return { level: 'never', words: 'a link-local address' }
  // Compared without the zone, which names an interface of this machine, not the destination.
  if (metadataAddresses.has(new ipaddr.IPv6(ip.parts).toString())) return metadata
  const isOnlyIPv4 = range === 'ipv4Mapped' || range === 'rfc6145' || range === '6to4' || ip.match(wellKnownNat64)
  if (worst && isOnlyIPv4) return worst
  if (worst?.level === 'local') return worst
  if (range !== 'unicast') return { level: 'local', words: words[range] ?? 'a reserved address' }
  return ip.match(globalUnicast)
    ? { level: 'public', words: 'a public address' }
    : { level: 'local', words: 'a reserved address' }
}

/** Returns the IPv4 addresses that packets to an IPv6 address may reach. */
function embeddedIPv4 (ip: ipaddr.IPv6, range: string): ipaddr.IPv4[] {
  const bytes = ip.toByteArray()
  // RFC 6052 §2.2: the octet at index 8 is not part of the IPv4 address.
  const from = (at: number): ipaddr.IPv4 =>
    new ipaddr.IPv4([...bytes.slice(at, at + 5)].filter((_byte, offset) => at > 8 || at + offset !== 8).slice(0, 4))
  switch (range) {
    case 'ipv4Mapped': case 'rfc6145': return [from(12)]
    case '6to4': return [new ipaddr.IPv4(bytes.slice(2, 6))]
    case 'teredo': return [new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff))]
    // 64:ff9b:1::/48 (RFC 8215): the network operator chooses the prefix length.
    case 'rfc6052': return ip.match(wellKnownNat64) ? [from(12)] : [from(6), from(7), from(9), from(12)]
    // The deprecated IPv4-compatible form, ::a.b.c.d (RFC 4291 §2.5.5.1).
    case 'unicast': return bytes.slice(0, 12).every((byte) => byte === 0) ? [from(12)] : []
    default: return []
  }
}

/**
 * Returns the usual notation of a client's IP address (RFC 5952), without the port that some proxies add, and the IPv4
 * address in place of an IPv4-mapped one. A text that is no address is returned unchanged.
 */
export function canonicalAddress (text: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? []
  const address = bracketed ?? dotted ?? text
  return isIP(address) === 0 ? text : ipaddr.process(address).toString()
}

/** Returns the class of a host name if it is known without DNS; otherwise undefined. @param name a normalized name */
export function classifyHostName (name: string): AddressClass | undefined {
  if (metadataNames.has(name)) return { level: 'never', words: 'the name of a cloud\'s metadata service' }
  return name === 'localhost' || name.endsWith('.localhost')
    ? { level: 'local', words: 'this machine itself' }
    : undefined
}

/** Normalizes the host of a URL for comparison: no brackets, no trailing dot, lower case. */
export const normalizeHost = (host: string): string => host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '').toLowerCase()
