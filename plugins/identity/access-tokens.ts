import { EventEmitter } from 'node:events'
import fp from 'fastify-plugin'
import type { Clients } from '../../db/ports/clients.ts'
import type { Revocation, StoredToken, Tokens } from '../../db/ports/tokens.ts'
import { credentialPrefixes } from '../../schemas/credential-prefixes.ts'
import { BoundedMap, ownerOfAddress, Semaphore } from '../base/limits/index.ts'
import { sha256 } from '../base/secrets/index.ts'
import { identityLimits } from './limits.ts'

/** Time for which a found token is used without asking the storage, in ms. */
const fresh = 2_000
/** Time for which it is used while the storage is asked, in ms: the bound for a revocation on another replica. */
const usable = 4_000
/** Interval at which ended authorizations are looked for, in ms. */
const sweepInterval = 2_000
/**
 * Time for which an authorization whose access token has expired is remembered, in ms: as long as a session waits for
 * its client.
 */
const remembered = identityLimits.sessionIdle
/** How far back revocations of other replicas are looked for, in ms. */
const lookBack = 30_000

/**
 * A token of the authorization server: 256 random bits in base64url, and its prefix, which earlier versions did not
 * write.
 */
const shape = new RegExp(`^(?:${credentialPrefixes.token})?[\\w-]{43}$`)

/** A token that the storage knew, and when. */
interface Known {
  readonly token: StoredToken, readonly at: number, reading: Promise<StoredToken | undefined> | undefined
}

/** The newest known token of an authorization. */
interface Authorization { readonly token: StoredToken, isExpired: boolean }

/**
 * Access tokens of the authorization server, from a cache. Emits `ended` with the family of tokens that were revoked:
 * its sessions and calls end. A revocation made here counts at once, one made on another replica within 5 s. Emits
 * `expired` with a family whose access token has expired: its client may have a refresh token, and most clients use
 * that only when they are refused.
 */
export class AccessTokens extends EventEmitter<{ ended: [family: string], expired: [family: string] }> {
  readonly #tokens: Tokens
  readonly #clients: Pick<Clients, 'find'>
  readonly #known = new BoundedMap<string, Known>(identityLimits.accessTokens)
  readonly #authorizations = new BoundedMap<string, Authorization>(identityLimits.accessTokens)
  /** Look-ups of tokens that were not found lately, which anybody can send: addresses take turns. */
  readonly #lookUps = new Semaphore({ places: identityLimits.tokenLookUps.places })
  /** Counts revocations: what was read before one says nothing after it. */
  #revocations = 0
  readonly #sweeper: NodeJS.Timeout

  constructor (tokens: Tokens, clients: Pick<Clients, 'find'>) {
    super()
    this.#tokens = tokens
    this.#clients = clients
    this.#sweeper = setInterval(() => { void this.#sweep() }, sweepInterval).unref()
  }

  /**
   * Finds a valid access token. Synchronous where it was found a moment ago, since this is the path of every call.
   * @param address of who sent it
   * @returns undefined: this is no access token, or it is not valid
   * @throws StorageError
   */
  find (text: string, address = ''): StoredToken | undefined | Promise<StoredToken | undefined> {
    if (!shape.test(text)) return undefined
    const hash = sha256(text)
    const known = this.#known.get(hash)
    const age = known ? Date.now() - known.at : Infinity
    if (!known) return this.#lookUp(hash, ownerOfAddress(address))
    if (age >= usable) return this.#readOnce(hash, known)
    if (age >= fresh) this.#readOnce(hash, known).catch(() => {})
    return known.token.expiresAt > Date.now() ? known.token : undefined
  }

  /** Revokes tokens, and ends their sessions and calls. @throws StorageError */
  async revoke (target: Revocation): Promise<void> {
    await this.#tokens.revoke(target)
    this.#revocations++
    const families = new Set<string>()
    for (const { token } of this.#known.values()) if (isTarget(token, target)) families.add(token.family)
    for (const { token } of this.#authorizations.values()) if (isTarget(token, target)) families.add(token.family)
    for (const family of families) this.#end(family)
  }

  /** Ends the sessions and calls of families that the storage has revoked by itself. */
  async endRevoked (): Promise<void> {
    this.#revocations++
    await this.#sweep()
  }

  /** Ends the sessions and calls of a family. */
  #end (family: string): void {
    for (const [hash, { token }] of this.#known) if (token.family === family) this.#known.delete(hash)
    this.#authorizations.delete(family)
    this.emit('ended', family)
  }

  close (): void { clearInterval(this.#sweeper) }

  async #readOnce (hash: string, known: Known): Promise<StoredToken | undefined> {
    known.reading ??= this.#ask(hash).finally(() => { known.reading = undefined })
    return await known.reading
  }

  async #lookUp (hash: string, owner: string): Promise<StoredToken | undefined> {
    const leave = await this.#lookUps.take(owner)
    try {
      return await this.#ask(hash)
    } finally {
      leave()
    }
  }

  /** Asks the storage, again where a token was revoked meanwhile. @throws StorageError */
  async #ask (hash: string): Promise<StoredToken | undefined> {
    for (;;) {
      const [at, revocations] = [Date.now(), this.#revocations]
      const token = await this.#read(hash)
      if (revocations !== this.#revocations) continue
      if (token === undefined) this.#known.delete(hash)
      else this.#remember(hash, token, at)
      return token
    }
  }

  /**
   * A client that was removed by an edit of the settings file has left its tokens. One with an address for its id is
   * stored nowhere.
   */
  async #read (hash: string): Promise<StoredToken | undefined> {
    const token = await this.#tokens.find(hash)
    if (token?.kind !== 'access') return undefined
    return token.clientId.startsWith('https://') || await this.#clients.find(token.clientId) ? token : undefined
  }

  #remember (hash: string, token: StoredToken, at: number): void {
    this.#known.setNewest(hash, { token, at, reading: undefined })
    const former = this.#authorizations.get(token.family)
    if (former && former.token.expiresAt > token.expiresAt) return
    this.#authorizations.setNewest(token.family, { token, isExpired: false })
  }

  /** Ends the sessions and calls of tokens that have expired, or were revoked on another replica. */
  async #sweep (): Promise<void> {
    const now = Date.now()
    for (const [family, authorization] of this.#authorizations) {
      const { token: { expiresAt }, isExpired } = authorization
      if (expiresAt + remembered <= now) this.#end(family)
      else if (expiresAt <= now && !isExpired) {
        authorization.isExpired = true
        this.emit('expired', family)
      }
    }
    if (this.#authorizations.size === 0) return
    // While the storage is away, nothing is known to have ended.
    const revoked = await this.#tokens.revokedWithin(lookBack).catch(() => [])
    for (const family of revoked) if (this.#authorizations.has(family)) this.#end(family)
  }
}

/** Whether a revocation includes a token. */
function isTarget (token: StoredToken, target: Revocation): boolean {
  if ('hash' in target) return token.hash === target.hash
  if ('family' in target) return token.family === target.family
  if ('mark' in target && target.mark !== token.mark) return false
  const { clientId = token.clientId, username = token.username } = target
  return token.clientId === clientId && token.username === username
}

declare module 'fastify' {
  interface FastifyInstance { accessTokens: AccessTokens }
}

/** `app.accessTokens`: the access tokens of the gateway's own authorization server. */
export default fp<{ tokens: Tokens, clients: Clients }>(async (app, { tokens, clients }) => {
  const accessTokens = new AccessTokens(tokens, clients)
  app.decorate('accessTokens', accessTokens)
  app.addHook('onClose', async () => { accessTokens.close() })
}, { name: 'access-tokens' })
