import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { quotedValue } from '../../../schemas/read-env.ts'
import { classifyAddress, classifyHostName, normalizeHost, type AddressClass } from './addresses.ts'

/** The addresses and hosts in OUTBOUND_ALLOW, which may be contacted even if the policy would forbid it. */
export class OutboundAllowlist {
  readonly #ranges: Array<[ipaddr.IPv4 | ipaddr.IPv6, number]> = []
  readonly #names = new Set<string>()
  readonly #suffixes: string[] = []

  /**
   * @param text comma-separated: addresses, CIDR ranges, host names, and `*.suffix` for all hosts below a domain
   * @throws Error with the first invalid entry
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
        if (entry.startsWith('*')) this.#suffixes.push(normalizeHost(entry.slice(1)))
        else this.#names.add(normalizeHost(entry))
      } else {
        throw new Error(
          `The environment variable OUTBOUND_ALLOW cannot contain ${quotedValue(entry)}: ` +
          'each entry is an address, a range like 10.0.0.0/8, a host name, or *.suffix, separated by commas.'
        )
      }
    }
  }

  /** Whether an IP address, in any notation, is among the addresses and ranges. */
  hasAddress (address: string): boolean {
    if (this.#ranges.length === 0 || !ipaddr.isValid(address)) return false
    const ip = ipaddr.process(address)
    return this.#ranges.some(([base, bits]) => base.kind() === ip.kind() && ip.match(base, bits))
  }

  /** Whether a host name is among the names, or below a suffix. @param name a result of `normalizeHost` */
  hasName (name: string): boolean {
    return this.#names.has(name) ||
      this.#suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length)
  }
}

/**
 * Whether an entry is a host name or `*.suffix`. A name whose last label is a number does not count, since URLs parse
 * it as an IPv4 address.
 */
const isHostName = (entry: string): boolean =>
  /^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(entry) &&
  !/(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$/i.test(entry)

/** Thrown for an address that must not be contacted. The message is for the person who configured it. */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused'
  readonly code = 'OUTBOUND_REFUSED'
}

/** Decides which addresses servers may have: public ones are for all servers, local ones for trusted servers only. */
export class OutboundPolicy {
  readonly #allowed: OutboundAllowlist

  constructor (allowed: OutboundAllowlist) {
    this.#allowed = allowed
  }

  /** Returns the reason why a host must not be contacted, if one is known without DNS; otherwise undefined. */
  refusalReason (host: string, trusted: boolean): string | undefined {
    const plain = normalizeHost(host)
    if (isIP(plain) !== 0) return this.#judge(plain, undefined, trusted)
    const kind = classifyHostName(plain)
    return kind && !this.#mayReach(kind, this.#allowed.hasName(plain), trusted)
      ? refusalSentence(plain, kind, plain)
      : undefined
  }

  /** Returns those of a host's addresses that may be contacted. @throws OutboundRefused if there are none */
  admit (name: string, addresses: readonly LookupAddress[], trusted: boolean): LookupAddress[] {
    const plain = normalizeHost(name)
    const admitted = addresses.filter(({ address }) => this.#judge(address, plain, trusted) === undefined)
    if (admitted.length > 0) return admitted
    const [first] = addresses
    throw new OutboundRefused(first ? this.#judge(first.address, plain, trusted) : `${plain} resolves to no address`)
  }

  /**
   * Returns the reason why an address must not be contacted; undefined if there is none.
   * @param name the host name that resolved to the address; undefined if the URL itself contains the address
   */
  #judge (address: string, name: string | undefined, trusted: boolean): string | undefined {
    if (this.#allowed.hasAddress(address)) return undefined
    const kind = classifyAddress(address)
    if (this.#mayReach(kind, name !== undefined && this.#allowed.hasName(name), trusted)) return undefined
    return refusalSentence(name === undefined ? address : `${name} resolves to ${address},`, kind, address)
  }

  /**
   * Whether an address may be contacted. A name in OUTBOUND_ALLOW does not admit addresses of the level `never`, which
   * need entries of their own: the owner of the name could let it resolve to a metadata service.
   * @param isNamed whether OUTBOUND_ALLOW contains the host name
   */
  #mayReach ({ level }: AddressClass, isNamed: boolean, trusted: boolean): boolean {
    return level === 'public' || (level === 'local' && (trusted || isNamed))
  }
}

function refusalSentence (subject: string, { level, words }: AddressClass, entry: string): string {
  const rule = level === 'never'
    ? `the gateway connects to such addresses only if OUTBOUND_ALLOW contains ${entry}`
    : `an address that was not stored by an admin must be public. OUTBOUND_ALLOW=${entry} allows this one`
  return `${subject}${subject.endsWith(',') ? '' : ' is'} ${words}; ${rule}`
}
