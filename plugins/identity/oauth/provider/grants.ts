import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Grant, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Consent } from '../../../../db/ports/consents.ts'

/** Finds an earlier consent because of which the user need not be asked. */
export type FindConsent =
  (accountId: string, clientId: string) => Promise<Pick<Consent, 'scope' | 'resource'> | undefined>

/** The consent that a user has just given. */
export interface GivenConsent {
  readonly scope: string
  /** Whether the client was registered for refresh tokens at the time of the consent. */
  readonly isRefreshable: boolean
}

/** Returns the grant of an authorization request, from the consent that the user has just given or gave before. */
export async function loadGrant (
  provider: Provider, ctx: KoaContextWithOIDC, remembered: FindConsent
): Promise<Grant | undefined> {
  const { client, account, result } = ctx.oidc
  if (!client || !account) return undefined
  const given = result?.consent as Partial<GivenConsent> | undefined
  const resources = Object.keys(ctx.oidc.resourceServers ?? {})
  const consent = given?.scope === undefined
    ? await rememberedConsent(remembered, account.accountId, client.clientId, resources, provider.issuer)
    : { scope: given.scope }
  if (!consent) return undefined
  // Each authorization has its own family of tokens.
  const grant = new provider.Grant({ accountId: account.accountId, clientId: client.clientId })
  grant.jti = randomUUID()
  grant.addOIDCScope(consent.scope)
  for (const resource of resources) grant.addResourceScope(resource, consent.scope)
  if (given === undefined) return grant
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

/** Finds the earlier consent, unless it was for another resource. */
async function rememberedConsent (
  remembered: FindConsent,
  accountId: string,
  clientId: string,
  resources: readonly string[],
  issuer: string
): Promise<{ scope: string } | undefined> {
  const consent = await remembered(accountId, clientId)
  const allowed = consent?.resource ?? issuer
  const isEnough = allowed === issuer || resources.every((resource) => resource === allowed)
  return isEnough ? consent : undefined
}

/** The Fastify request of each raw request that was passed to the library. */
const requests = new WeakMap<IncomingMessage, FastifyRequest>()

/** Returns the Fastify request of a raw one. @throws Error for one that `passToProvider` did not pass to the library */
export function fastifyRequestOf (raw: IncomingMessage): FastifyRequest {
  const request = requests.get(raw)
  if (!request) throw new Error('the request was not handed over')
  return request
}

/** Rewrites a request as if it was sent to the issuer's address, since the library builds URLs from request headers. */
export function setIssuerAddress (issuer: string, raw: IncomingMessage): void {
  const { host, protocol } = new URL(issuer)
  raw.headers.host = host
  raw.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  for (const name of ['x-forwarded-host', 'x-forwarded-for', 'forwarded']) delete raw.headers[name]
}

/** Passes a request to the library, which sends the response. @param path path and query below the base path */
export function passToProvider (
  provider: Provider,
  issuer: string,
  request: FastifyRequest,
  reply: ServerResponse,
  path: string
): void {
  const raw: IncomingMessage & { originalUrl?: string } = request.raw
  requests.set(raw, request)
  setIssuerAddress(issuer, raw)
  raw.url = path
  // Fastify stores the original URL here; the library would build its URLs from it instead of from the issuer.
  delete raw.originalUrl
  reply.setHeader('x-content-type-options', 'nosniff')
  void provider.callback()(raw, reply)
}
