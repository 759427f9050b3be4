import { randomUUID } from 'node:crypto'
import type { Grant, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Consent } from '../../../../db/ports/consents.ts'

/**
 * Finds the earlier consent of an account to a client, which makes asking the user again unnecessary; undefined if
 * there is none.
 */
export type FindConsent =
  (accountId: string, clientId: string) => Promise<Pick<Consent, 'scope' | 'resource'> | undefined>

/** The consent that a user has just given. */
export interface GivenConsent {
  readonly scope: string
  /** Whether the client was registered for refresh tokens at the time of the consent. */
  readonly isRefreshable: boolean
}

/**
 * Creates the grant of an authorization request, from the consent that the user has just given or gave before.
 * @returns undefined if the user must log in or be asked for consent first
 */
export async function loadGrant (
  provider: Provider, ctx: KoaContextWithOIDC, findConsent: FindConsent
): Promise<Grant | undefined> {
  const { client, account, result } = ctx.oidc
  if (!client || !account) return undefined
  const givenConsent = result?.consent as Partial<GivenConsent> | undefined
  const resources = Object.keys(ctx.oidc.resourceServers ?? {})
  const consent = givenConsent?.scope === undefined
    ? await findEarlierConsent(findConsent, account.accountId, client.clientId, resources, provider.issuer)
    : { scope: givenConsent.scope }
  if (!consent) return undefined
  // The id of the grant names the family of its tokens. Each authorization has a family of its own.
  const grant = new provider.Grant({ accountId: account.accountId, clientId: client.clientId })
  grant.jti = randomUUID()
  grant.addOIDCScope(consent.scope)
  for (const resource of resources) grant.addResourceScope(resource, consent.scope)
  if (givenConsent === undefined) return grant
  // Scopes that the user did not allow are marked as rejected; otherwise the library would ask for them again and
  // again.
  const allowed = new Set(consent.scope.split(' '))
  const rejected = [...ctx.oidc.requestParamScopes].filter((scope) => !allowed.has(scope)).join(' ')
  if (rejected !== '') {
    grant.rejectOIDCScope(rejected)
    for (const resource of resources) grant.rejectResourceScope(resource, rejected)
  }
  return grant
}

/** Returns the scopes of the earlier consent; undefined if there is none, or if it was for another resource. */
async function findEarlierConsent (
  findConsent: FindConsent,
  accountId: string,
  clientId: string,
  resources: readonly string[],
  issuer: string
): Promise<{ scope: string } | undefined> {
  const consent = await findConsent(accountId, clientId)
  const allowed = consent?.resource ?? issuer
  const isEnough = allowed === issuer || resources.every((resource) => resource === allowed)
  return isEnough ? consent : undefined
}
