import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { kindOf, kindOfName, plainHost, type Kind } from './addresses.ts'
import type { Allowed } from './allowed.ts'

/** The error for an address that may not be reached. Its message is for the person who configured the address. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly code = 'OUTBOUND_REFUSED'
}

/** Decides which addresses may be reached: public ones by all servers, local ones by trusted servers, some by none (DECISIONS §15). */
export class Policy {
  readonly #allowed: Allowed

  constructor (allowed: Allowed) {
    this.#allowed = allowed
  }

  /** The reason why a host may not be reached, as far as it is known without a DNS look-up; undefined when there is none. */
  refusal (host: string, trusted: boolean): string | undefined {
    const plain = plainHost(host)
    if (isIP(plain) !== 0) return this.#judge(plain, undefined, trusted)
    const kind = kindOfName(plain)
    return kind && !this.#mayReach(kind, this.#allowed.name(plain), trusted) ? sentence(plain, kind, plain) : undefined
  }

  /** Those of a name's addresses that may be reached. @throws Refused when there are none */
  admit (name: string, addresses: readonly LookupAddress[], trusted: boolean): LookupAddress[] {
    const plain = plainHost(name)
    const admitted = addresses.filter(({ address }) => this.#judge(address, plain, trusted) === undefined)
    if (admitted.length > 0) return admitted
    const [first] = addresses
    throw new Refused(first ? this.#judge(first.address, plain, trusted) : `${plain} resolves to no address`)
  }

  /** The reason why an address may not be reached. @param name the host name that resolved to it; undefined for an address in the URL */
  #judge (address: string, name: string | undefined, trusted: boolean): string | undefined {
    if (this.#allowed.address(address)) return undefined
    const kind = kindOf(address)
    if (this.#mayReach(kind, name !== undefined && this.#allowed.name(name), trusted)) return undefined
    return sentence(name === undefined ? address : `${name} resolves to ${address},`, kind, address)
  }

  /**
   * A name in OUTBOUND_ALLOW admits local addresses only. The owner of the name could point it at a metadata service, so that takes an
   * entry with the address itself.
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
