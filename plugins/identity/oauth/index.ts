import type { Static } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Provider } from 'oidc-provider'
import type { OAuthClient, OAuthClients } from '../../../db/ports/clients.ts'
import type { Consent, Consents } from '../../../db/ports/consents.ts'
import type { OneTimeValues } from '../../../db/ports/grants.ts'
import type { BrowserStates } from '../../../db/ports/login-states.ts'
import type { OAuthTokens } from '../../../db/ports/tokens.ts'
import type { Snapshot } from '../../../db/store.ts'
import type { ConsentRecord } from '../../../schemas/oauth.ts'
import { mcpScope, type AuditedChange } from '../../settings/index.ts'
import { createTrustedProxyCheck } from '../../base/config/index.ts'
import { errors, noSuchError, oauthErrorTitle } from '../../base/errors/index.ts'
import { rightsMarkOf, accountSubjectOf } from '../users/account.ts'
import {
  accountVersionOf, userOfVersion, issuerOf, issuerPath, type AccountVersion, parseAccountId, resourcePathAsSent
} from './identifiers.ts'
import { splitScopes } from './client-api.ts'
import { ClientRegistry } from './clients.ts'
import { Interactions } from './interactions.ts'
import { fastifyRequestOf } from './provider/requests.ts'
import type { OAuthProblem } from './provider/corrections.ts'
import type { ProviderDeps } from './provider/provider.ts'
import { IssuerProviders } from './providers.ts'
import { oauthSettingsOf, oauthSettingsProblems, grantableScopes, type OAuthSettings } from './settings.ts'

/** The storage ports of the authorization server. */
interface OAuthPorts {
  readonly grants: OneTimeValues
  readonly tokens: OAuthTokens
  readonly clients: OAuthClients
  readonly consents: Consents
  readonly loginStates: BrowserStates
}

interface OAuth {
  /** Checks that the authorization server is enabled. @throws NotFound otherwise */
  assertEnabled: () => void
  readonly settings: OAuthSettings
  readonly clients: ClientRegistry
  readonly interactions: Interactions
  /**
   * Returns the `WWW-Authenticate` challenge for an error on an MCP route, which refers clients to the authorization
   * server (RFC 6750, section 3; RFC 9728, section 5.1).
   * @returns undefined if the error has no challenge, or the authorization server is disabled
   */
  challenge: (request: FastifyRequest, error: { code?: string }) => string | undefined
  /** Returns the issuer identifier (RFC 8414) for a request, as `issuerOf` determines it. */
  issuer: (request: FastifyRequest) => string
  /** Returns the oidc-provider instance that serves the endpoints of an issuer. */
  provider: (issuer: string) => Promise<Provider>
  /** Lists the valid consents of a user, newest first, in the form of the management API. */
  listConsents: (username: string) => Promise<Array<Static<typeof ConsentRecord>>>
  /** Withdraws a consent and revokes the client's tokens for this user. @throws NoSuch */
  withdrawConsent: (username: string, clientId: string) => Promise<void>
}

declare module 'fastify' {
  interface FastifyInstance { oauth: OAuth }
}

/** `app.oauth`: the gateway as an authorization server (OAuth 2.1). Disabled unless `oauthServer.enabled` is set. */
export default fp<OAuthPorts>(async (app, ports) => {
  const settings = (): OAuthSettings => oauthSettingsOf(app.settings.current.system)
  const { accessTokens } = app
  const isProxy = createTrustedProxyCheck(app.config.env.TRUST_PROXY)
  const issuer = (request: FastifyRequest): string => issuerOf(app, request, isProxy)
  const revokeClient = async (clientId: string): Promise<void> => { await accessTokens.revoke({ clientId }) }
  const clients = new ClientRegistry(ports.clients, settings, revokeClient, (by, before, after) => {
    app.audit.addChange(by, clientChange(before, after))
  })
  // The path begins with the issuer's path, which differs from the base path of the routes if a proxy strips a prefix.
  const interactionPath = (issuer: string, uid: string): string => `${issuerPath(issuer)}/oauth/interaction/${uid}`
  const interactions = new Interactions({
    pages: app.pages,
    consents: ports.consents,
    audit: (former, next) => { app.audit.addChange(next.username, consentChange(former, next)) },
    clients,
    settings,
    interactionPath,
    // Social logins are offered only on the same origin, since their session cookie must reach these pages.
    otherLogins: (issuer, back) => app.social.isServedAt(new URL(issuer).origin)
      ? app.social.providers.map(({ id: provider, name }) => ({
        name,
        href: `${issuerPath(issuer)}${app.social.path}/signIn/social?` +
          new URLSearchParams({ provider, callbackURL: back }).toString()
      }))
      : []
  })
  const deps: ProviderDeps = {
    storage: {
      ...ports,
      // While client secrets are required, public clients are treated as unknown: their codes and tokens are refused.
      clients: {
        find: async (clientId) => {
          const client = await ports.clients.find(clientId)
          return client?.secretHash === undefined && settings().requireClientSecret ? undefined : client
        },
        touch: async (clientId, at) => { await ports.clients.touch(clientId, at) }
      },
      revokeFamily: async (family) => { await accessTokens.revoke({ family }) },
      endRevokedFamilies: async () => { await accessTokens.endRevokedFamilies() },
      isAccountValid: (id) => userOfVersion(app.settings.current, parseAccountId(id)) !== undefined
    },
    settings,
    outbound: app.outbound,
    interactionPath,
    problemPage: (problem, status) => app.pages.problem({ title: oauthErrorTitle, text: sentenceOf(problem), status }),
    refusalPage: (problem, status, client, href) =>
      app.pages.refused({ title: oauthErrorTitle, text: sentenceOf(problem), status, client, href }),
    isCreatedByAdmin: async (clientId) => (await ports.clients.find(clientId))?.origin === 'admin',
    scopesOf: async (clientId) => grantableScopes(await ports.clients.find(clientId), settings()),
    findConsent: async (id, clientId) => await findValidConsent(ports, parseAccountId(id), clientId),
    checkSecret: async (raw, clientId, check) =>
      await app.attempts.checkClientSecret(fastifyRequestOf(raw), clientId, check),
    countRegistration: async (raw) => { await app.attempts.count('client', fastifyRequestOf(raw)) },
    log: (error, sentence) => { app.log.error({ err: error }, sentence) }
  }
  const providers = new IssuerProviders(async (issuer) => await loadProvider(issuer, deps))
  app.decorate('oauth', {
    assertEnabled: () => { if (!settings().enabled) throw new errors.NotFound() },
    get settings () { return settings() },
    clients,
    interactions,
    challenge: (request, { code }) =>
      settings().enabled ? challengeOf(app.config.basePath, issuer(request), request, code) : undefined,
    issuer,
    provider: async (issuer) => await providers.get(issuer),
    listConsents: async (username) => {
      const user = app.settings.current.users.get(username)
      const now = user && accountVersionOf(user).mark
      const held = (await ports.consents.list(username)).filter(({ mark = now }) => mark === now)
      return await Promise.all(held.map(async ({ clientId, scope, resource, grantedAt }) => ({
        clientId,
        clientName: (await ports.clients.find(clientId))?.name,
        scopes: splitScopes(scope),
        resource,
        grantedAt: new Date(grantedAt).toISOString()
      })))
    },
    withdrawConsent: async (username, clientId) => {
      const former = await ports.consents.find(username, clientId)
      if (!await ports.consents.remove(username, clientId)) throw noSuchError('consent', clientId)
      app.audit.addChange(username, consentChange(former, undefined))
      await accessTokens.revoke({ username, clientId })
    }
  })
  let lastLogged = ''
  const logProblems = (): void => {
    const problems = oauthSettingsProblems(app.settings.current.system, app.config)
    if (problems.join() !== lastLogged) for (const sentence of problems) app.log.warn(sentence)
    lastLogged = problems.join()
  }
  logProblems()
  app.settings.on('changed', (next, former) => {
    logProblems()
    removeDataOfFormerUsers(app, ports, former, next).catch((error: unknown) => {
      // The remaining data is invalid anyway, since it carries the mark of the former account.
      app.log.warn({ err: error }, 'the records of a removed account could not be removed')
    })
  })
}, {
  name: 'oauth',
  dependencies: [
    'audit', 'auth', 'config', 'settings', 'access-tokens', 'outbound', 'pages', 'social', 'throttle', 'users'
  ]
})

function clientChange (before: OAuthClient | undefined, after: OAuthClient | undefined): AuditedChange {
  const isSecretNew =
    before?.secretHash !== undefined && after?.secretHash !== undefined && before.secretHash !== after.secretHash
  return {
    entity: 'oauthClient',
    name: (after ?? before)?.name ?? '',
    before: before && withoutSecrets(before),
    after: after && { ...withoutSecrets(after), ...(isSecretNew ? { secretChanged: true } : {}) }
  }
}

/** Returns the audit log entry for a change of a user's consent to a client. */
const consentChange = (before: Consent | undefined, after: Consent | undefined): AuditedChange =>
  ({
    entity: 'consent',
    name: (after ?? before)?.clientId ?? '',
    before: before && withoutMark(before),
    after: after && withoutMark(after)
  })

const withoutMark = ({ mark: _, ...consent }: Consent): Record<string, unknown> => consent

const withoutSecrets = (
  { secretHash: _, registrationTokenHash: __, ...client }: OAuthClient
): Record<string, unknown> => ({ ...client })

/** Converts an OAuth error to a sentence for the user. */
function sentenceOf ({ error, error_description: text }: OAuthProblem): string {
  if (error === 'server_error') {
    return 'Something went wrong in the gateway. Try again, or ask its administrator, who finds the reason in the log.'
  }
  const sentence = text ?? error
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`
}

/** Creates the oidc-provider instance of an issuer. The library is loaded when it is first needed. */
async function loadProvider (issuer: string, deps: ProviderDeps): Promise<Provider> {
  const { createProvider } = await withoutRuntimeWarning(async () => await import('./provider/provider.ts'))
  return createProvider(issuer, deps)
}

/**
 * Runs `load`, which loads oidc-provider, and suppresses a warning that the library prints on Node 20: the text would
 * break a log in JSON.
 */
async function withoutRuntimeWarning<Module> (load: () => Promise<Module>): Promise<Module> {
  const { warn } = console
  console.warn = (...parts) => {
    if (!String(parts[0]).includes('oidc-provider WARNING: Unsupported runtime')) warn(...parts)
  }
  try {
    return await load()
  } finally {
    console.warn = warn
  }
}

function challengeOf (
  basePath: string, issuer: string, request: FastifyRequest, code: string | undefined
): string | undefined {
  if (code === 'TH_TOKEN_TWICE') return 'Bearer error="invalid_request"'
  const isForbidden = code === 'TH_INSUFFICIENT_SCOPE'
  if (code !== 'TH_UNAUTHORIZED' && !isForbidden) return undefined
  // The client compares the path that it requested with the resource in the metadata (RFC 9728, section 3.3). SSE
  // clients post their messages to another path than that of their stream, which is in the query. For a path that is
  // not a resource, the challenge refers to the metadata of the whole gateway.
  const { path: streamPath } = request.query as { path?: unknown }
  const isMessage = request.routeOptions.url === `${basePath}/messages` && typeof streamPath === 'string'
  const path = (isMessage ? streamPath : request.originalUrl.split('?', 1)[0] ?? '').slice(basePath.length)
  const metadata =
    `${issuer}/.well-known/oauth-protected-resource${resourcePathAsSent(issuer, `${issuer}${path}`) ?? ''}`
  const error = isForbidden
    ? 'insufficient_scope'
    : request.headers.authorization === undefined ? undefined : 'invalid_token'
  return `Bearer ${error === undefined ? '' : `error="${error}", `}resource_metadata="${metadata}", scope="${mcpScope}"`
}

/**
 * Finds an earlier consent that makes asking the user again unnecessary. Only consents to clients that an admin created
 * count. Anyone can use the id of a self-registered client (RFC 8252, section 8.6), so its users are asked each time.
 */
async function findValidConsent (
  { clients, consents }: OAuthPorts,
  { username, mark }: AccountVersion,
  clientId: string
): Promise<Consent | undefined> {
  const client = await clients.find(clientId)
  if (client?.origin !== 'admin') return undefined
  const consent = await consents.find(username, clientId)
  // A consent with a different mark is invalid: since then, the user's rights or password changed, or the account was
  // replaced by another of the same name.
  return consent?.mark === mark ? consent : undefined
}

/**
 * Removes the data of removed accounts, and revokes the tokens that former admins granted as admins: the tokens would
 * become valid again if the users became admins again. The data of an account with a new password stays. It is invalid,
 * since it carries the former mark, and a removal by username, which every replica runs when it sees the change, would
 * also end logins with the new password.
 */
async function removeDataOfFormerUsers (
  app: FastifyInstance, { consents, loginStates }: OAuthPorts, former: Snapshot, next: Snapshot
): Promise<void> {
  if (former.users === next.users) return
  for (const [username, user] of former.users) {
    const later = next.users.get(username)
    if (later && accountSubjectOf(later) === accountSubjectOf(user)) {
      if (user.isAdmin !== true || later.isAdmin === true) continue
      await app.accessTokens.revoke({ username, mark: rightsMarkOf(user) })
      continue
    }
    await consents.removeAll({ username })
    if (later) continue
    await loginStates.removeAll(username)
    await app.accessTokens.revoke({ username })
  }
}
