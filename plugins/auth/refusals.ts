import fp from 'fastify-plugin'
import { BoundedMap } from '../limits/bounded-map.ts'
import { limits } from '../limits/index.ts'

declare module 'fastify' {
  interface FastifyInstance { refusals: Refusals }
}

/** What was refused: a password, a bearer key, an access token, or the secret of an OAuth client. */
export const credentialKinds = ['password', 'key', 'token', 'secret'] as const
export type CredentialKind = typeof credentialKinds[number]

const nouns: Readonly<Record<CredentialKind, string>> = {
  password: 'a wrong password',
  key: 'a bearer key that is not valid',
  token: 'an access token that is not valid',
  secret: 'a wrong client secret'
}

/**
 * Credentials that were refused: counted, and told in the log with the address that they came from. Of a flood, the log has the first lines
 * of each minute and the number of the others. Access tokens are not logged, since clients notice their end by that.
 */
export class Refusals {
  readonly counts: Record<CredentialKind, number> = { password: 0, key: 0, token: 0, secret: 0 }
  readonly #warn: (details: object, sentence: string) => void
  readonly #now: () => number
  /** When a lock-out that was told ends, in ms since the epoch, by address and name. */
  readonly #lockOuts = new BoundedMap<string, number>(limits.refusals.lockOuts)
  #minute = 0
  #told = 0
  #untold = 0

  constructor (warn: (details: object, sentence: string) => void, now: () => number = Date.now) {
    this.#warn = warn
    this.#now = now
  }

  /** @param name whose password or secret it was, as the caller wrote it */
  note (kind: CredentialKind, address: string, name?: string): void {
    this.counts[kind]++
    if (kind === 'token') return
    this.#tell({ address, ...named(name) }, `${address} sent ${nouns[kind]}${name === undefined ? '' : ` for ${quoted(name)}`}`)
  }

  /** Nothing is checked for this name from this address any more. @param seconds for how long */
  lockedOut (kind: CredentialKind, address: string, name: string, seconds: number): void {
    this.counts[kind]++
    const key = `${address}\n${name.slice(0, maxName)}`
    const now = this.#now()
    if ((this.#lockOuts.get(key) ?? 0) > now) return
    this.#lockOuts.set(key, now + seconds * 1_000)
    this.#tell({ address, ...named(name) }, `${address} is locked out of ${quoted(name)} for ${seconds} s: too many failures`)
  }

  #tell (details: object, sentence: string): void {
    const minute = Math.floor(this.#now() / 60_000)
    if (minute !== this.#minute) {
      if (this.#untold > 0) this.#warn({}, `${this.#untold} more credentials were refused within a minute`)
      this.#minute = minute
      this.#told = this.#untold = 0
    }
    if (this.#told++ < limits.refusals.linesPerMinute) this.#warn(details, sentence)
    else this.#untold++
  }
}

/** Max length of a caller's text in the log, in characters. */
const maxName = 64
const shortened = (name: string): string => name.slice(0, maxName).replace(/[\p{C}\p{Z}]/gu, (each) => each === ' ' ? each : '\ufffd')
const quoted = (name: string): string => JSON.stringify(shortened(name))
const named = (name: string | undefined): object => name === undefined ? {} : { name: shortened(name) }

/** `app.refusals`: which credentials were refused, for the log and the metrics. */
export default fp(async (app) => {
  app.decorate('refusals', new Refusals((details, sentence) => { app.log.warn(details, sentence) }))
}, { name: 'refusals' })
