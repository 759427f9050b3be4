import ipaddr from 'ipaddr.js'
import { plainHost } from './addresses.ts'

/** The exceptions of OUTBOUND_ALLOW: addresses and hosts that may be reached although the policy forbids them. */
export class Allowed {
  readonly #ranges: Array<[ipaddr.IPv4 | ipaddr.IPv6, number]> = []
  readonly #names = new Set<string>()
  readonly #suffixes: string[] = []

  /**
   * @param text comma-separated: addresses, CIDR ranges, host names, and `*.suffix` for all hosts below one
   * @throws Error naming the first entry that is invalid
   */
  constructor (text: string) {
    for (const entry of text.split(',').map((each) => each.trim()).filter((each) => each !== '')) {
      const bare = entry.replace(/^\[(.*)\]$/, '$1')
      if (ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare)) {
        const ip = ipaddr.process(bare)
        this.#ranges.push([ip, ip.kind() === 'ipv4' ? 32 : 128])
      } else if (ipaddr.IPv4.isValidCIDRFourPartDecimal(bare) || ipaddr.IPv6.isValidCIDR(bare)) {
        this.#ranges.push(ipaddr.parseCIDR(bare))
      } else if (isHostName(entry)) {
        if (entry.startsWith('*')) this.#suffixes.push(plainHost(entry.slice(1)))
        else this.#names.add(plainHost(entry))
      } else {
        throw new Error(
          `The environment variable OUTBOUND_ALLOW cannot hold ${JSON.stringify(entry)}: ` +
          'each entry is an address, a range like 10.0.0.0/8, a host name, or *.suffix, separated by commas.'
        )
      }
    }
  }

  /** Whether an IP address, in any spelling, is among the addresses and ranges. */
  address (address: string): boolean {
    if (this.#ranges.length === 0 || !ipaddr.isValid(address)) return false
    const ip = ipaddr.process(address)
    return this.#ranges.some(([base, bits]) => base.kind() === ip.kind() && ip.match(base, bits))
  }

  /** Whether a host name is among the names, or below a suffix. @param name as `plainHost` returns it */
  name (name: string): boolean {
    return this.#names.has(name) || this.#suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length)
  }
}

/** Whether an entry is a host name or `*.suffix`. URLs read a name whose last label is a number as an IPv4 address. */
const isHostName = (entry: string): boolean =>
  /^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(entry) &&
  !/(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$/i.test(entry)
