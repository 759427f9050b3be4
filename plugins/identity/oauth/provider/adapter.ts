import { errors as failures, Provider, type Adapter, type AdapterPayload, type KoaContextWithOIDC } from 'oidc-provider'
import type { OAuthClients, OAuthClient } from '../../../../db/ports/clients.ts'
import type { Consents } from '../../../../db/ports/consents.ts'
import type { OneTimeValues } from '../../../../db/ports/grants.ts'
import type { HashedToken, StoredToken, TokenKind, OAuthTokens } from '../../../../db/ports/tokens.ts'
import type { BrowserState, BrowserStates } from '../../../../db/ports/login-states.ts'
import { sha256 } from '../../../base/secrets/index.ts'
import { parseAccountId, resourcePath, toAccountId } from '../identifiers.ts'
import type { GivenConsent } from './grants.ts'

/** The storage ports that the adapters of oidc-provider use, with functions that revoke tokens and check accounts. */
export interface AuthorizationStorage {
  readonly grants: OneTimeValues
  readonly tokens: OAuthTokens
  readonly clients: Pick<OAuthClients, 'find' | 'touch'>
  readonly consents: Pick<Consents, 'find'>
  readonly loginStates: BrowserStates
  /** Revokes all tokens of a family, and ends the sessions that use one of the tokens. */
  readonly revokeFamily: (family: string) => Promise<void>
  /** Ends the sessions of token families that the storage has revoked by itself. */
  readonly endRevokedFamilies: () => Promise<void>
  /** Whether the account still exists, with the same password and admin rights. */
  readonly isAccountValid: (accountId: string) => boolean
}

/** The issuer and the scopes against which token requests are checked. */
interface TokenTerms {
  readonly issuer: string
  /** The scopes that the settings allow. Other scopes in a request are ignored. */
  readonly allowedScopes: () => readonly string[]
}

/** For each token request, the payload of its code or refresh token. The grant for oidc-provider is derived from it. */
const presentedPayloads = new WeakMap<KoaContextWithOIDC, AdapterPayload>()
/** For each request that uses a refresh token, its first new token: it is stored in one step with the second one. */
const newRefreshTokens = new WeakMap<KoaContextWithOIDC, HashedToken>()

const seconds = (ms: number): number => Math.floor(ms / 1_000)

/**
 * Whether a request may get a refresh token: the client must be registered for refresh tokens now, and must have been
 * at the time of the user's consent (a client can change its registration later, RFC 7592).
 */
export function canGetRefreshToken (ctx: KoaContextWithOIDC): boolean {
  const consent = ctx.oidc.result?.consent as Partial<GivenConsent> | undefined
  const source = presentedPayloads.get(ctx) as { isRefreshable?: boolean } | undefined
  return ctx.oidc.client?.grantTypeAllowed('refresh_token') === true &&
    (consent?.isRefreshable ?? source?.isRefreshable ?? true)
}

/** Returns the Koa context of the request that oidc-provider is serving. @throws Error outside of a request */
function currentContext (): KoaContextWithOIDC {
  const { ctx } = Provider
  if (!ctx) throw new Error('the adapter was used outside of a request')
  return ctx
}

const returnNothing = async (): Promise<undefined> => undefined

/** The adapter for models that are not stored. */
const emptyAdapter: Adapter = {
  upsert: returnNothing,
  find: returnNothing,
  findByUserCode: returnNothing,
  findByUid: returnNothing,
  consume: returnNothing,
  destroy: returnNothing,
  revokeByGrantId: returnNothing
}

/**
 * Adapts a token request and the payload of its code or refresh token to each other, and remembers the payload. The
 * request may write the granted resource in another form, or name any resource if the grant is for the whole gateway
 * (RFC 8707, section 2.2): the requested resource is then added to the payload. Scopes that the settings do not allow
 * are removed from the request, unless none would remain.
 * @param granted the stored payload; its first resource is the granted one
 * @returns the payload for oidc-provider
 */
function adaptPresented (granted: AdapterPayload, { issuer, allowedScopes }: TokenTerms): AdapterPayload {
  const ctx = currentContext()
  const { params = {} } = ctx.oidc
  const scopes = allowedScopes().filter((scope) => ctx.oidc.requestParamScopes.has(scope))
  if (scopes.length > 0) params.scope = scopes.join(' ')
  const [held, ...others] = [granted.resource ?? []].flat()
  const requested = typeof params.resource === 'string' ? params.resource : undefined
  const path = requested === undefined ? undefined : resourcePath(issuer, requested)
  const heldPath = held === undefined ? undefined : resourcePath(issuer, held)
  const isWithin = path !== undefined && (heldPath === '' || heldPath === path)
  const payload = isWithin ? { ...granted, resource: [held, ...others, requested] as string[] } : granted
  presentedPayloads.set(ctx, payload)
  return payload
}

/**
 * Creates the storage adapters of oidc-provider, on the gateway's storage ports. Codes and tokens are stored as hashes.
 * @returns a function that returns the adapter of the model with a given name
 */
export const createAdapterFactory = (storage: AuthorizationStorage, terms: TokenTerms) => (model: string): Adapter => {
  switch (model) {
    case 'AuthorizationCode': return codesOn(storage, terms)
    case 'AccessToken': return tokensOn(storage, 'access', terms)
    case 'RefreshToken': return tokensOn(storage, 'refresh', terms)
    case 'Grant': return { ...emptyAdapter, find: async (id) => derivedGrant(id) }
    case 'Client': return { ...emptyAdapter, find: async (id) => clientPayload(await storage.clients.find(id)) }
    case 'Session': return loginStatesOn(storage, 'session')
    case 'Interaction': return loginStatesOn(storage, 'interaction')
    default: return emptyAdapter
  }
}

/** Creates the adapter of authorization codes. A second use of a code revokes all its tokens (RFC 6749, 4.1.2). */
const codesOn = ({ grants, revokeFamily: revoke }: AuthorizationStorage, terms: TokenTerms): Adapter => ({
  ...emptyAdapter,
  upsert: async (code, { jti: _, ...payload }) => {
    const { grantId = '', exp = 0 } = payload
    await grants.put(
      sha256(code), grantId, { ...payload, isRefreshable: canGetRefreshToken(currentContext()) }, exp * 1_000
    )
  },
  find: async (code) => {
    const taken = await grants.take(sha256(code))
    if (taken?.first === false) await revoke(taken.family)
    if (!taken?.first) return undefined
    return adaptPresented({ ...taken.value as AdapterPayload, jti: code }, terms)
  }
})

/** Creates the adapter of access or refresh tokens. Of concurrent requests with one refresh token, one succeeds. */
function tokensOn (storage: AuthorizationStorage, kind: TokenKind, terms: TokenTerms): Adapter {
  const { tokens, clients, consents, revokeFamily: revoke, endRevokedFamilies, isAccountValid } = storage
  /** Records that a client was used. Called only when it gets a token, since any request can contain a client's id. */
  const touch = (clientId: string): void => { void clients.touch(clientId, Date.now()) }

  /** Stores the first tokens of an authorization. @throws InvalidGrant if the consent was withdrawn meanwhile */
  const issue = async (
    issued: HashedToken, { grantId: family = '', clientId = '', accountId = '' }: AdapterPayload
  ): Promise<void> => {
    const account = parseAccountId(accountId)
    await tokens.put({ family, clientId, ...account }, [issued])
    // The client or the consent may have been removed since the code was issued. The removal revoked only the tokens
    // that existed at that time.
    if (await consents.find(account.username, clientId)) { touch(clientId); return }
    await revoke(family)
    throw new failures.InvalidGrant('the user has withdrawn the authorization')
  }

  /** Replaces a refresh token by two new tokens once both exist. @throws InvalidGrant if it was used before */
  const rotate = async (
    ctx: KoaContextWithOIDC, former: { jti: string, grantId?: string }, issued: HashedToken
  ): Promise<void> => {
    const other = newRefreshTokens.get(ctx)
    if (other === undefined) { newRefreshTokens.set(ctx, issued); return }
    const outcome = await tokens.rotate(sha256(former.jti), [other, issued])
    if (outcome === 'reused' && former.grantId !== undefined) await revoke(former.grantId)
    if (outcome !== 'swapped') throw new failures.InvalidGrant('the refresh token was already used')
    touch(ctx.oidc.client?.clientId ?? '')
  }

  return {
    ...emptyAdapter,
    upsert: async (token, payload) => {
      const ctx = currentContext()
      const issued = toIssued(token, kind, payload)
      const former = ctx.oidc.entities.RotatedRefreshToken
      if (former === undefined) await issue(issued, payload)
      else await rotate(ctx, former, issued)
    },
    find: async (text) => {
      const hash = sha256(text)
      const token = await tokens.find(hash)
      if (token === undefined) {
        // If the refresh token was used before, `rotate` has revoked its family.
        if (kind === 'refresh' && await tokens.rotate(hash, []) === 'reused') await endRevokedFamilies()
        return undefined
      }
      if (token.kind !== kind || !isAccountValid(accountOf(token))) return undefined
      const payload = tokenPayload(text, kind, token)
      return kind === 'refresh' ? adaptPresented(payload, terms) : payload
    },
    // Revoking one token revokes the whole authorization, which RFC 7009, section 2.1, allows.
    destroy: async (text) => {
      const token = await tokens.find(sha256(text))
      if (token) await revoke(token.family)
    },
    revokeByGrantId: async (family) => { await revoke(family) }
  }
}

const accountOf = ({ username = '', mark = '' }: StoredToken): string => toAccountId({ username, mark })

function toIssued (
  token: string, kind: TokenKind, { scope = '', exp = 0, aud, resource }: AdapterPayload
): HashedToken {
  const [only] = [(kind === 'access' ? aud : resource) ?? []].flat()
  return { hash: sha256(token), kind, scope, ...(only === undefined ? {} : { resource: only }), expiresAt: exp * 1_000 }
}

const tokenPayload = (text: string, kind: TokenKind, token: StoredToken): AdapterPayload => ({
  jti: text,
  kind: kind === 'access' ? 'AccessToken' : 'RefreshToken',
  accountId: accountOf(token),
  clientId: token.clientId,
  grantId: token.family,
  scope: token.scope,
  iat: seconds(Date.now()),
  exp: seconds(token.expiresAt),
  gty: 'authorization_code',
  ...(kind === 'access' ? { aud: token.resource } : { resource: token.resource })
})

/** Returns the grant with this id, derived from the code or refresh token of the current request, or undefined. */
function derivedGrant (id: string): AdapterPayload | undefined {
  const source = presentedPayloads.get(currentContext())
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

/**
 * Returns a client in the form that oidc-provider expects. The secret is given as a hash: `provider.ts` makes
 * oidc-provider compare hashes. Scopes are omitted: the settings determine them, and oidc-provider would reject a
 * client with an unknown scope.
 */
function clientPayload (client: OAuthClient | undefined): AdapterPayload | undefined {
  if (!client) return undefined
  const { clientId, secretHash, name, redirectUris, grantTypes, clientUri, logoUri, policyUri, tosUri } = client
  // A client from a settings file may lack `tokenEndpointAuthMethod`.
  const method = client.tokenEndpointAuthMethod ?? (secretHash === undefined ? 'none' : 'client_secret_post')
  return {
    client_id: clientId,
    ...(secretHash === undefined ? {} : { client_secret: secretHash }),
    client_name: name,
    redirect_uris: [...redirectUris],
    grant_types: [...grantTypes],
    response_types: ['code'],
    token_endpoint_auth_method: method as 'none',
    application_type: 'native',
    client_uri: clientUri,
    logo_uri: logoUri,
    policy_uri: policyUri,
    tos_uri: tosUri
  }
}

/** Replaces the id of an interaction in the stored `returnTo` URL, since ids are not stored in plain text. */
const idPlaceholder = '{id}'

/** Creates the adapter of the login sessions of browsers, or of pending interactions. */
function loginStatesOn (
  { loginStates, isAccountValid }: AuthorizationStorage, kind: 'session' | 'interaction'
): Adapter {
  /** Returns the payload of a stored state; undefined if its account was changed or removed since. */
  const payloadOf = (id: string, state: BrowserState | undefined): AdapterPayload | undefined => {
    if (state?.kind !== kind) return undefined
    const payload = state.value as AdapterPayload
    if (payload.accountId !== undefined && !isAccountValid(payload.accountId)) return undefined
    return {
      ...payload,
      jti: id,
      ...(payload.returnTo === undefined
        ? {}
        : { returnTo: payload.returnTo.replace(idPlaceholder, id) })
    }
  }
  return {
    ...emptyAdapter,
    upsert: async (id, { jti: _, ...payload }, expiresIn = 0) => {
      const account = payload.accountId ?? payload.session?.accountId
      // Neither the cookie of the session nor the id of the interaction is stored in plain text.
      const value = {
        ...payload,
        ...(payload.session === undefined ? {} : { session: { ...payload.session, cookie: undefined } }),
        ...(payload.returnTo === undefined ? {} : { returnTo: payload.returnTo.replace(id, idPlaceholder) })
      }
      const username = account === undefined ? undefined : parseAccountId(account).username
      // The uid of an interaction is its id.
      const uid = kind === 'session' ? payload.uid : undefined
      await loginStates.put(sha256(id), { kind, uid, username, value, createdAt: Date.now() }, Date.now() +
        expiresIn * 1_000)
    },
    find: async (id) => payloadOf(id, await loginStates.find(sha256(id))),
    findByUid: async (uid) => payloadOf('', await loginStates.findByUid(uid)),
    destroy: async (id) => { await loginStates.remove(sha256(id)) }
  }
}
