import fp from 'fastify-plugin'
import { BoundedMap, LogLineLimiter } from '../../base/limits/index.ts'
import { canonicalUsername } from '../users/rules.ts'
import { identityLimits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyInstance { refusals: CredentialRefusals }
}

type CredentialKind = 'password' | 'key' | 'token' | 'secret'

const nouns: Readonly<Record<CredentialKind, string>> = {
  password: 'a wrong password',
  key: 'a bearer key that is not valid',
  token: 'an access token that is not valid',
  secret: 'a wrong client secret'
}

/**
 * Counts refused credentials, and logs them with the client address. In a flood, only the first lines of each minute
 * are logged, and the number of omitted lines. Refused access tokens are counted but not logged, since a refusal is how
 * clients learn that a token has expired.
 */
export class CredentialRefusals {
  readonly counts: Record<CredentialKind, number> = { password: 0, key: 0, token: 0, secret: 0 }
  readonly #warn: (details: object, sentence: string) => void
  readonly #isUser: (name: string) => boolean
  readonly #now: () => number
  /** The end of each logged lock-out in ms since 1970, by client address and name. */
  readonly #lockOuts = new BoundedMap<string, number>(identityLimits.refusals.lockOuts)
  readonly #lines: LogLineLimiter

  /** @param isUser whether a user of this name exists; other names are not logged, since they may be passwords */
  constructor (
    warn: (details: object, sentence: string) => void, isUser: (name: string) => boolean, now: () => number = Date.now
  ) {
    this.#warn = warn
    this.#isUser = isUser
    this.#now = now
    const { linesPerMinute: burst } = identityLimits.refusals
    this.#lines = new LogLineLimiter({ burst, perSecond: burst / 60 }, (omitted) => {
      warn({}, `${omitted} more credentials were refused within a minute`)
    }, now)
  }

  /**
   * Records the use of a stored bearer key that is not active.
   * @param name the name of the key
   * @param reason why the key is inactive
   */
  noteInactiveKey (address: string, { name, reason }: { name: string, reason: string }): void {
    this.counts.key++
    const key = JSON.stringify(name)
    this.#log({ address, key: name }, `${address} sent the bearer key ${key}, which is not valid: ${reason}`)
  }

  /** Records a refused credential. @param name the name of the user or client, as the caller sent it */
  note (kind: CredentialKind, address: string, name?: string): void {
    this.counts[kind]++
    if (kind === 'token') return
    const { details, words } = this.#loggableName(kind, name)
    this.#log({ address, ...details }, `${address} sent ${nouns[kind]}${words === '' ? '' : ` for ${words}`}`)
  }

  /**
   * Records an attempt that is refused without a check, since this address is locked out of this account or client.
   * Only the first attempt of a lock-out is logged.
   * @param seconds the time until the end of the lock-out
   */
  noteLockOut (kind: CredentialKind, address: string, name: string, seconds: number): void {
    this.counts[kind]++
    const key = `${address}\n${name.slice(0, maxNameLength)}`
    const now = this.#now()
    if ((this.#lockOuts.get(key) ?? 0) > now) return
    this.#lockOuts.set(key, now + seconds * 1_000)
    const { details, words } = this.#loggableName(kind, name)
    this.#log({ address, ...details }, `${address} is locked out of ${words} for ${seconds} s: too many failures`)
  }

  /** Returns a name in the form that may be logged: the name itself only if it is the name of an existing user. */
  #loggableName (kind: CredentialKind, name: string | undefined): { details: object, words: string } {
    if (name === undefined) return { details: {}, words: '' }
    if (kind === 'secret') return { details: {}, words: 'an OAuth client' }
    return this.#isUser(name)
      ? { details: { name }, words: JSON.stringify(name) }
      : { details: {}, words: 'a user that does not exist' }
  }

  #log (details: object, sentence: string): void {
    if (this.#lines.admit()) this.#warn(details, sentence)
  }
}

/** Max length of a name as part of a key of the lock-out map, in characters. */
const maxNameLength = 64

/** `app.refusals`: counts refused credentials for the log and the metrics. */
export default fp(async (app) => {
  const isUser = (name: string): boolean => app.settings.current.users.has(canonicalUsername(name))
  app.decorate('refusals', new CredentialRefusals((details, sentence) => { app.log.warn(details, sentence) }, isUser))
}, { name: 'refusals', dependencies: ['settings'] })
