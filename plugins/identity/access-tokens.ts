import { EventEmitter } from 'node:events'
import fp from 'fastify-plugin'
import type { OAuthClients } from '../../db/ports/clients.ts'
import type { RevocationTarget, StoredToken, OAuthTokens } from '../../db/ports/tokens.ts'
import { ownCredentialPrefixes } from '../../schemas/credential-prefixes.ts'
import { BoundedMap, ownerOfAddress, Semaphore } from '../base/limits/index.ts'
import { sha256 } from '../base/secrets/index.ts'
import { identityLimits } from './limits.ts'

/** Age up to which a cached token is used without reading the storage again, in ms. */
const freshTime = 2_000
/**
 * Age from which a cached token is not used until the storage has been read again, in ms. It bounds the time until a
 * revocation by another replica takes effect.
 */
const usableTime = 4_000
/** Interval between two searches for expired and revoked authorizations, in ms. */
const sweepInterval = 2_000
/** Time for which an authorization is kept in memory after its access token has expired, in ms. */
const authorizationRetention = identityLimits.sessionIdle
/** Each search reads the revocations within this time before it, in ms, to find those of other replicas. */
const revocationLookBack = 30_000

/**
 * Matches a token of the authorization server: a prefix, which tokens issued by earlier versions lack, and 256 random
 * bits in base64url.
 */
const tokenPattern = new RegExp(`^(?:${ownCredentialPrefixes.token})?[\\w-]{43}$`)

/** A cached token. `at`: when the read of the token began, in ms since 1970; `reading`: a read in progress. */
interface CachedToken {
  readonly token: StoredToken, readonly at: number, reading: Promise<StoredToken | undefined> | undefined
}

/** `token`: the access token with the latest expiry. `isExpired`: whether `expired` was emitted for that token. */
interface Authorization { readonly token: StoredToken, isExpired: boolean }

/**
 * Finds and revokes the access tokens of the authorization server, with a cache in memory. Emits `expired` with a token
 * family whose access token has expired: its client may hold a refresh token, and most clients use it only after a 401.
 * Emits `ended` with a family that was revoked, or whose token was not renewed for `authorizationRetention` after it
 * expired: its sessions and calls must end. A revocation on this replica takes effect at once, one on another replica
 * within 5 s.
 */
export class AccessTokens extends EventEmitter<{ ended: [family: string], expired: [family: string] }> {
  readonly #tokens: OAuthTokens
  readonly #clients: Pick<OAuthClients, 'find'>
  readonly #cache = new BoundedMap<string, CachedToken>(identityLimits.accessTokens)
  readonly #authorizations = new BoundedMap<string, Authorization>(identityLimits.accessTokens)
  /**
   * Limits concurrent look-ups of uncached tokens, which unauthenticated clients can cause. Client addresses take
   * turns.
   */
  readonly #lookUps = new Semaphore({ places: identityLimits.tokenLookUps.places })
  /** Number of revocations so far. A token that was read before a revocation must be read again after it. */
  #revocations = 0
  readonly #sweeper: NodeJS.Timeout

  constructor (tokens: OAuthTokens, clients: Pick<OAuthClients, 'find'>) {
    super()
    this.#tokens = tokens
    this.#clients = clients
    this.#sweeper = setInterval(() => { void this.#sweep() }, sweepInterval).unref()
  }

  /**
   * Finds a valid access token. It runs for each request with such a token, so it returns a promise only if the storage
   * must be read first.
   * @param address the IP address of the client
   * @returns undefined if the text is not a valid access token
   * @throws StorageError
   */
  find (text: string, address = ''): StoredToken | undefined | Promise<StoredToken | undefined> {
    if (!tokenPattern.test(text)) return undefined
    const hash = sha256(text)
    const known = this.#cache.get(hash)
    const age = known ? Date.now() - known.at : Infinity
    if (!known) return this.#lookUp(hash, ownerOfAddress(address))
    if (age >= usableTime) return this.#readOnce(hash, known)
    if (age >= freshTime) this.#readOnce(hash, known).catch(() => {})
    return known.token.expiresAt > Date.now() ? known.token : undefined
  }

  /** Whether an authorization has a valid access token or refresh token. @throws StorageError */
  async hasUsableTokens (family: string): Promise<boolean> { return await this.#tokens.hasTokens(family) }

  /** Revokes tokens, and ends the sessions and calls that use them. @throws StorageError */
  async revoke (target: RevocationTarget): Promise<void> {
    await this.#tokens.revoke(target)
    this.#revocations++
    const families = new Set<string>()
    for (const { token } of this.#cache.values()) if (isCoveredBy(token, target)) families.add(token.family)
    for (const { token } of this.#authorizations.values()) if (isCoveredBy(token, target)) families.add(token.family)
    for (const family of families) this.#end(family)
  }

  /**
   * Ends the sessions and calls of families that the storage has revoked, for example after reuse of a refresh token.
   */
  async endRevokedFamilies (): Promise<void> {
    this.#revocations++
    await this.#sweep()
  }

  /** Forgets the tokens of a family, and ends the sessions and calls of the family. */
  #end (family: string): void {
    for (const [hash, { token }] of this.#cache) if (token.family === family) this.#cache.delete(hash)
    this.#authorizations.delete(family)
    this.emit('ended', family)
  }

  close (): void { clearInterval(this.#sweeper) }

  async #readOnce (hash: string, known: CachedToken): Promise<StoredToken | undefined> {
    known.reading ??= this.#readCurrent(hash).finally(() => { known.reading = undefined })
    return await known.reading
  }

  async #lookUp (hash: string, owner: string): Promise<StoredToken | undefined> {
    const leave = await this.#lookUps.take(owner)
    try {
      return await this.#readCurrent(hash)
    } finally {
      leave()
    }
  }

  /** Reads a token from the storage; reads it again if a token was revoked meanwhile. @throws StorageError */
  async #readCurrent (hash: string): Promise<StoredToken | undefined> {
    for (;;) {
      const [at, revocations] = [Date.now(), this.#revocations]
      const token = await this.#read(hash)
      if (revocations !== this.#revocations) continue
      if (token === undefined) this.#cache.delete(hash)
      else this.#remember(hash, token, at)
      return token
    }
  }

  /**
   * Reads an access token; returns undefined if its client no longer exists, since the tokens of a client that was
   * removed by editing the settings file are still stored. A client whose id is a URL is never stored, and not checked.
   */
  async #read (hash: string): Promise<StoredToken | undefined> {
    const token = await this.#tokens.find(hash)
    if (token?.kind !== 'access') return undefined
    return token.clientId.startsWith('https://') || await this.#clients.find(token.clientId) ? token : undefined
  }

  #remember (hash: string, token: StoredToken, at: number): void {
    this.#cache.setNewest(hash, { token, at, reading: undefined })
    const former = this.#authorizations.get(token.family)
    if (former && former.token.expiresAt > token.expiresAt) return
    this.#authorizations.setNewest(token.family, { token, isExpired: false })
  }

  /**
   * Emits `expired` for each authorization whose token has expired since the last sweep. Ends the authorizations that
   * expired at least `authorizationRetention` ago, and those that were revoked on any replica.
   */
  async #sweep (): Promise<void> {
    const now = Date.now()
    for (const [family, authorization] of this.#authorizations) {
      const { token: { expiresAt }, isExpired } = authorization
      if (expiresAt + authorizationRetention <= now) this.#end(family)
      else if (expiresAt <= now && !isExpired) {
        authorization.isExpired = true
        this.emit('expired', family)
      }
    }
    if (this.#authorizations.size === 0) return
    // While the storage is unavailable, no token is considered revoked.
    const revoked = await this.#tokens.listRevokedWithin(revocationLookBack).catch(() => [])
    for (const family of revoked) if (this.#authorizations.has(family)) this.#end(family)
  }
}

function isCoveredBy (token: StoredToken, target: RevocationTarget): boolean {
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
export default fp<{ tokens: OAuthTokens, clients: OAuthClients }>(async (app, { tokens, clients }) => {
  const accessTokens = new AccessTokens(tokens, clients)
  app.decorate('accessTokens', accessTokens)
  app.addHook('onClose', async () => { accessTokens.close() })
}, { name: 'access-tokens' })
