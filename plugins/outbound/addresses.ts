import ipaddr from 'ipaddr.js'

/**
 * Who may have an address reached: `public` anybody · `local` only who is trusted: loopback, private and reserved ones ·
 * `never` nobody: link-local ones, and where a cloud hands a machine its credentials.
 */
export interface Kind { readonly level: 'public' | 'local' | 'never', readonly words: string }

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

/** Where clouds answer beside link-local addresses: Alibaba, Azure, Oracle; AWS (instances, pods) and Google over IPv6. */
const metadataAddresses = new Set(['100.100.100.200', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'])
const metadataNames = new Set(['metadata.google.internal', 'metadata.goog', 'metadata', 'instance-data', 'instance-data.ec2.internal'])
const metadata: Kind = { level: 'never', words: 'an address of a cloud\'s metadata service' }

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
const wellKnownNat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/** What an IP address in any spelling is. One that carries an IPv4 address is judged by that, too. */
export function kindOf (address: string): Kind {
  if (!ipaddr.isValid(address)) return { level: 'never', words: 'no address that can be read' }
  const ip = ipaddr.parse(address)
  if (ip instanceof ipaddr.IPv6) return kindOf6(ip)
  const range = ip.range()
  if (metadataAddresses.has(ip.toString())) return metadata
  return { level: range === 'linkLocal' ? 'never' : range === 'unicast' ? 'public' : 'local', words: words[range] ?? 'a reserved address' }
}

function kindOf6 (ip: ipaddr.IPv6): Kind {
  const range: string = ip.range()
  const inner = carried(ip, range).map(({ octets }) => kindOf(octets.join('.')))
  const worst = inner.find(({ level }) => level === 'never') ?? inner.find(({ level }) => level === 'local') ?? inner[0]
  if (worst?.level === 'never') return worst
  if (range === 'linkLocal') return { level: 'never', words: 'a link-local address' }
  // The zone says by which interface, not where to.
  if (metadataAddresses.has(new ipaddr.IPv6(ip.parts).toString())) return metadata
  if (worst && (range === 'ipv4Mapped' || range === 'rfc6145' || range === '6to4' || ip.match(wellKnownNat64))) return worst
  if (worst?.level === 'local') return worst
  const isPublic = range === 'unicast' && ip.match(globalUnicast)
  return {
    level: isPublic ? 'public' : 'local',
    words: range === 'unicast' && !isPublic ? 'a reserved address' : (words[range] ?? 'a reserved address')
  }
}

/** The IPv4 addresses that an IPv6 address leads to, or may. */
function carried (ip: ipaddr.IPv6, range: string): ipaddr.IPv4[] {
  const bytes = ip.toByteArray()
  // RFC 6052: the octet at 8 is skipped.
  const from = (at: number): ipaddr.IPv4 =>
    new ipaddr.IPv4([...bytes.slice(at, at + 5)].filter((_byte, offset) => at > 8 || at + offset !== 8).slice(0, 4))
  switch (range) {
    case 'ipv4Mapped': case 'rfc6145': return [from(12)]
    case '6to4': return [new ipaddr.IPv4(bytes.slice(2, 6))]
    case 'teredo': return [new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff))]
    // 64:ff9b:1::/48 is cut up as its network likes.
    case 'rfc6052': return ip.match(wellKnownNat64) ? [from(12)] : [from(6), from(7), from(9), from(12)]
    // The "IPv4-compatible" form, ::a.b.c.d
    case 'unicast': return bytes.slice(0, 12).every((byte) => byte === 0) ? [from(12)] : []
    default: return []
  }
}

/** What a name is that needs no looking up; undefined: it must be looked up. */
export function kindOfName (name: string): Kind | undefined {
  if (metadataNames.has(name)) return { level: 'never', words: 'the name of a cloud\'s metadata service' }
  return name === 'localhost' || name.endsWith('.localhost') ? { level: 'local', words: 'this machine itself' } : undefined
}

/** A host of a URL, as names are compared: no brackets, no final dot, lower case. */
export const plainHost = (host: string): string => host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '').toLowerCase()
