import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { kindOf, kindOfName, plainHost, type Kind } from './addresses.ts'
import type { Allowed } from './allowed.ts'

/** An address that may not be reached; the message is for who configured it. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly code = 'OUTBOUND_REFUSED'
}

/** Which addresses may be reached: public ones for everybody, others for who is trusted, some for nobody (DECISIONS §15). */
export class Policy {
  readonly #allowed: Allowed

  constructor (allowed: Allowed) {
    this.#allowed = allowed
  }

  /** Why a host may not be reached, as far as can be told without looking it up; undefined: nothing is against it. */
  refusal (host: string, trusted: boolean): string | undefined {
    const plain = plainHost(host)
    if (isIP(plain) !== 0) return this.#judge(plain, undefined, trusted)
    const kind = kindOfName(plain)
    return kind && !this.#mayReach(kind, this.#allowed.name(plain), trusted) ? sentence(plain, kind, plain) : undefined
  }

  /**
   * Those of a name's addresses that may be reached.
   * @throws Refused when none may
   */
  admit (name: string, addresses: readonly LookupAddress[], trusted: boolean): LookupAddress[] {
    const plain = plainHost(name)
    const admitted = addresses.filter(({ address }) => this.#judge(address, plain, trusted) === undefined)
    const [first] = addresses
    if (admitted.length === 0) throw new Refused(first ? this.#judge(first.address, plain, trusted) : `${plain} resolves to no address`)
    return admitted
  }

  #judge (address: string, name: string | undefined, trusted: boolean): string | undefined {
    if (this.#allowed.address(address)) return undefined
    const kind = kindOf(address)
    if (this.#mayReach(kind, name !== undefined && this.#allowed.name(name), trusted)) return undefined
    return sentence(name === undefined ? address : `${name} resolves to ${address},`, kind, address)
  }

  /** A name in OUTBOUND_ALLOW stands for a host of ours. Whoever keeps the name could point it at metadata: that takes the address itself. */
  #mayReach ({ level }: Kind, named: boolean, trusted: boolean): boolean {
    return level === 'public' || (level === 'local' && (trusted || named))
  }
}

const sentence = (subject: string, { level, words }: Kind, entry: string): string =>
  `${subject}${subject.endsWith(',') ? '' : ' is'} ${words}; ${level === 'never' ? 'such addresses are never reached' : 'an address stored by a non-admin must be public'}. OUTBOUND_ALLOW=${entry} widens this`
