import { errors as failures, Provider, type Adapter, type AdapterPayload, type KoaContextWithOIDC } from 'oidc-provider'
import type { Clients, Consents, Grants, IssuedToken, LoginStates, StoredToken, TokenKind, Tokens } from '../../../../db/ports.ts'
import { sha256 } from '../../../base/secrets/index.ts'
import { accountId, parseAccountId } from '../accounts.ts'
import { findClient } from './clients.ts'
import type { GivenConsent } from './grants.ts'
import { LoginStateAdapter } from './login-states.ts'

/** The ports that the authorization server keeps its data in, and what reacts to it. */
export interface AuthorizationStorage {
  readonly grants: Grants
  readonly tokens: Tokens
  readonly clients: Pick<Clients, 'find' | 'touch'>
  readonly consents: Pick<Consents, 'find'>
  readonly loginStates: LoginStates
  /** Revokes all tokens of a family, and ends what hangs on them. */
  readonly revoke: (family: string) => Promise<void>
  /** Ends what hangs on families that the storage has revoked by itself. */
  readonly endRevoked: () => Promise<void>
  /** Whether an account still stands. */
  readonly stands: (accountId: string) => boolean
}

/** The code or refresh token that a request presents: its grant is derived from it, and never stored. */
const presented = new WeakMap<KoaContextWithOIDC, AdapterPayload>()
/** The refresh token that a request gets, until its access token is there as well: both are stored in one step. */
const rotated = new WeakMap<KoaContextWithOIDC, IssuedToken>()

const seconds = (ms: number): number => Math.floor(ms / 1_000)

/**
 * Whether a request may get a refresh token. A client may add the grant type (RFC 7592) after its user has consented: then what holds is
 * what the client was registered for at the consent.
 */
export function isRefreshable (ctx: KoaContextWithOIDC): boolean {
  const consent = ctx.oidc.result?.consent as Partial<GivenConsent> | undefined
  const source = presented.get(ctx) as { isRefreshable?: boolean } | undefined
  return ctx.oidc.client?.grantTypeAllowed('refresh_token') === true && (consent?.isRefreshable ?? source?.isRefreshable ?? true)
}

/** The request that the library is serving. */
function context (): KoaContextWithOIDC {
  const { ctx } = Provider
  if (!ctx) throw new Error('the adapter was used outside of a request')
  return ctx
}

const unused = async (): Promise<undefined> => undefined

/** The adapter of models that are not stored. */
const none: Adapter = {
  upsert: unused,
  find: unused,
  findByUserCode: unused,
  findByUid: unused,
  consume: unused,
  destroy: unused,
  revokeByGrantId: unused
}

/** The library's storage, over our ports: secrets are stored as hashes only. @returns the adapter of a model, by its name */
export function adapterOn (storage: AuthorizationStorage): (model: string) => Adapter {
  return (model) => {
    switch (model) {
      case 'AuthorizationCode': return new Codes(storage)
      case 'AccessToken': return new IssuedTokens(storage, 'access')
      case 'RefreshToken': return new IssuedTokens(storage, 'refresh')
      case 'Grant': return new DerivedGrants()
      case 'Client': return { ...none, find: async (id) => await findClient(storage.clients, id) }
      case 'Session': return new LoginStateAdapter(storage, 'session')
      case 'Interaction': return new LoginStateAdapter(storage, 'interaction')
      default: return none
    }
  }
}

/** Authorization codes are grants that are taken once. A second taker ends all that was issued for the code (RFC 6749, section 4.1.2). */
class Codes implements Adapter {
  readonly #storage: AuthorizationStorage
  readonly findByUserCode = unused
  readonly findByUid = unused
  readonly consume = unused
  readonly destroy = unused
  readonly revokeByGrantId = unused

  constructor (storage: AuthorizationStorage) {
    this.#storage = storage
  }

  async upsert (code: string, { jti: _, ...payload }: AdapterPayload): Promise<void> {
    const { grantId = '', exp = 0 } = payload
    const value = { ...payload, isRefreshable: isRefreshable(context()) }
    await this.#storage.grants.put(sha256(code), grantId, value, exp * 1_000)
  }

  async find (code: string): Promise<AdapterPayload | undefined> {
    const taken = await this.#storage.grants.take(sha256(code))
    if (taken?.first === false) await this.#storage.revoke(taken.family)
    if (!taken?.first) return undefined
    const payload = { ...taken.value as AdapterPayload, jti: code }
    presented.set(context(), payload)
    return payload
  }
}

/** Access and refresh tokens. A refresh token is swapped for its successors in one step, so that one of all who present it is first. */
class IssuedTokens implements Adapter {
  readonly #storage: AuthorizationStorage
  readonly #kind: TokenKind
  readonly findByUserCode = unused
  readonly findByUid = unused
  // `swap` does it.
  readonly consume = unused

  constructor (storage: AuthorizationStorage, kind: TokenKind) {
    this.#storage = storage
    this.#kind = kind
  }

  async upsert (token: string, payload: AdapterPayload): Promise<void> {
    const { tokens } = this.#storage
    const ctx = context()
    const issued = this.#toIssued(token, payload)
    const former = ctx.oidc.entities.RotatedRefreshToken
    if (former === undefined) {
      const { grantId: family = '', clientId = '' } = payload
      const account = parseAccountId(payload.accountId ?? '')
      await tokens.put({ family, clientId, ...account }, [issued])
      // Between code and tokens, the client or the consent may have been removed: that has revoked tokens which existed then.
      if (await this.#storage.consents.find(account.username, clientId)) { this.#touch(clientId); return }
      await this.#storage.revoke(family)
      throw new failures.InvalidGrant('the user has withdrawn the authorization')
    }
    const other = rotated.get(ctx)
    if (other === undefined) { rotated.set(ctx, issued); return }
    const outcome = await tokens.swap(sha256(former.jti), [other, issued])
    if (outcome === 'reused' && former.grantId !== undefined) await this.#storage.revoke(former.grantId)
    if (outcome !== 'swapped') throw new failures.InvalidGrant('the refresh token was used already')
    this.#touch(payload.clientId ?? '')
  }

  /** Only issuing a token marks a client as used; a request that merely names its id does not. */
  #touch (clientId: string): void { void this.#storage.clients.touch(clientId, Date.now()) }

  async find (text: string): Promise<AdapterPayload | undefined> {
    const { tokens } = this.#storage
    const hash = sha256(text)
    const token = await tokens.find(hash)
    if (token === undefined) {
      // One that was used already ends its family.
      if (this.#kind === 'refresh' && await tokens.swap(hash, []) === 'reused') await this.#storage.endRevoked()
      return undefined
    }
    if (token.kind !== this.#kind || !this.#storage.stands(accountOf(token))) return undefined
    const payload = this.#toPayload(text, token)
    if (this.#kind === 'refresh') presented.set(context(), payload)
    return payload
  }

  // A client that gives up one token gives up the authorization (RFC 7009, section 2.1 allows it).
  async destroy (text: string): Promise<void> {
    const token = await this.#storage.tokens.find(sha256(text))
    if (token) await this.#storage.revoke(token.family)
  }

  async revokeByGrantId (family: string): Promise<void> { await this.#storage.revoke(family) }

  #toIssued (token: string, { scope = '', exp = 0, aud, resource }: AdapterPayload): IssuedToken {
    const target = this.#kind === 'access' ? aud : resource
    const [only] = [target ?? []].flat()
    return { hash: sha256(token), kind: this.#kind, scope, ...(only === undefined ? {} : { resource: only }), expiresAt: exp * 1_000 }
  }

  #toPayload (text: string, token: StoredToken): AdapterPayload {
    const { clientId, family, scope, resource, expiresAt } = token
    return {
      jti: text,
      kind: this.#kind === 'access' ? 'AccessToken' : 'RefreshToken',
      accountId: accountOf(token),
      clientId,
      grantId: family,
      scope,
      iat: seconds(Date.now()),
      exp: seconds(expiresAt),
      gty: 'authorization_code',
      ...(this.#kind === 'access' ? { aud: resource } : { resource })
    }
  }
}

const accountOf = ({ username = '', mark = '' }: StoredToken): string => accountId({ username, mark })

/** What a user allowed a client, as the code or refresh token in hand says it. */
class DerivedGrants implements Adapter {
  readonly findByUserCode = unused
  readonly findByUid = unused
  readonly consume = unused
  readonly destroy = unused
  readonly revokeByGrantId = unused

  readonly upsert = unused

  async find (id: string): Promise<AdapterPayload | undefined> {
    const source = presented.get(context())
    if (source?.grantId !== id) return undefined
    const { accountId, clientId, iat, scope, resource } = source
    return {
      jti: id,
      kind: 'Grant',
      accountId,
      clientId,
      iat,
      exp: seconds(Date.now()) + 60,
      openid: { scope },
      resources: Object.fromEntries([resource ?? []].flat().map((each) => [each, scope ?? '']))
    }
  }
}
