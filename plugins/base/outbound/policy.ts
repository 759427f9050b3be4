import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { kindOf, kindOfName, plainHost, type Kind } from './addresses.ts'

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
    return this.#names.has(name) ||
      this.#suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length)
  }
}

/** Whether an entry is a host name or `*.suffix`. URLs read a name whose last label is a number as an IPv4 address. */
const isHostName = (entry: string): boolean =>
  /^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(entry) &&
  !/(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$/i.test(entry)

/** The error for an address that may not be reached. Its message is for the person who configured the address. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly code = 'OUTBOUND_REFUSED'
}

/**
 * Decides which addresses may be reached: public addresses by all servers, local addresses by trusted servers, some by
 * none.
 */
export class Policy {
  readonly #allowed: Allowed

  constructor (allowed: Allowed) {
    this.#allowed = allowed
  }

  /**
   * The reason why a host may not be reached, as far as it is known without a DNS look-up; undefined when there is
   * none.
   */
  refusal (host: string, trusted: boolean): string | undefined {
    const plain = plainHost(host)
    if (isIP(plain) !== 0) return this.#judge(plain, undefined, trusted)
    const kind = kindOfName(plain)
    return kind && !this.#mayReach(kind, this.#allowed.name(plain), trusted) ? sentence(plain, kind, plain) : undefined
  }

  /** The addresses of a name that may be reached. @throws Refused when there are none */
  admit (name: string, addresses: readonly LookupAddress[], trusted: boolean): LookupAddress[] {
    const plain = plainHost(name)
    const admitted = addresses.filter(({ address }) => this.#judge(address, plain, trusted) === undefined)
    if (admitted.length > 0) return admitted
    const [first] = addresses
    throw new Refused(first ? this.#judge(first.address, plain, trusted) : `${plain} resolves to no address`)
  }

  /**
   * The reason why an address may not be reached.
   * @param name the host name that resolved to it; undefined for an address in the URL
   */
  #judge (address: string, name: string | undefined, trusted: boolean): string | undefined {
    if (this.#allowed.address(address)) return undefined
    const kind = kindOf(address)
    if (this.#mayReach(kind, name !== undefined && this.#allowed.name(name), trusted)) return undefined
    return sentence(name === undefined ? address : `${name} resolves to ${address},`, kind, address)
  }

  /**
   * A name in OUTBOUND_ALLOW admits local addresses only. The owner of the name could point it at a metadata service,
   * so that takes an entry with the address itself.
   */
  #mayReach ({ level }: Kind, named: boolean, trusted: boolean): boolean {
    return level === 'public' || (level === 'local' && (trusted || named))
  }
}

function sentence (subject: string, { level, words }: Kind, entry: string): string {
  const rule = level === 'never'
    ? `such addresses are never reached, unless OUTBOUND_ALLOW=${entry} names them`
    : `an address that no admin stored must be public. OUTBOUND_ALLOW=${entry} widens this`
  return `${subject}${subject.endsWith(',') ? '' : ' is'} ${words}; ${rule}`
}
