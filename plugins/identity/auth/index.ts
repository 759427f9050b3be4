import { randomBytes } from 'node:crypto'
import jwt from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { bearerKeyHeaderName, canUseMcp, type Principal, findBaseUrlSetting } from '../../settings/index.ts'
import { ownCredentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import type { User } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import { accountMarkOf, principalOfUser, accountSubjectOf } from '../users/account.ts'
import type { RouteEffect } from '../../base/scopes/index.ts'
import {
  checkScopes, assertTokenAllowsMcpRoute, isForWholeGateway, otherResourceMessage, canUseRoutesOf, credentialProblem
} from './rights.ts'
import {
  type AuthStep, bearerTokenIn, guestStep, hasCredentials, type IdentifyResult, identifyCaller, type RequestCredentials,
  type RouteClass, socialSessionStep
} from './chain.ts'
import { checkOrigin, hasSingleHost, readOriginRules, isServedHost } from './origin.ts'
import { InternalCredentials } from './internal-credentials.ts'
import { lastingCredentialOf, principalOfCredential } from './lasting-credentials.ts'
import { AccessChanges } from './access-changes.ts'
import { accessTokenStep } from './steps/access-token.ts'
import { bearerKeyStep, principalOfKey, keyRefusalReason, currentPrincipalOfKey } from './steps/bearer-key.ts'
import { createLocalCredentialCheck, forwardingHeaders, localCredentialStep } from './steps/local-credential.ts'
import { type LoginClaims, loginTokenStep, type VerifiedClaims } from './steps/login-token.ts'
import { anonymousAccessOf, warnOfOpenTools, warnOfSkippedAuth, warnOfWeakSecret } from './exposure.ts'
import type { Auth } from './auth.ts'

declare module 'fastify' {
  interface FastifyInstance { auth: Auth }
  interface FastifyContextConfig {
    /** `true`: the route accepts any `Host`, since health checks address the process by its IP address. */
    anyHost?: true
  }
}

interface AuthOptions {
  /** The credential with which the command line calls the management API on this machine, if any. */
  localToken?: string
}

const issuer = 'tool-hub'
const audience = 'tool-hub-management'

const anonymous: Principal = { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }

/**
 * `app.auth`: identifies callers, and checks `Host` and `Origin`. Requests with a foreign `Host` are refused, except on
 * routes with `anyHost` and from the command line.
 */
export default fp<AuthOptions>(async (app, { localToken }) => {
  const { HOST: host, ALLOWED_HOSTS: allowedHosts, ALLOWED_ORIGINS: allowedOrigins } = app.config.env
  const { JWT_SECRET: jwtSecret, JWT_EXPIRES_IN: jwtExpiresIn } = app.config.env
  warnOfWeakSecret(app, jwtSecret)
  await app.register(jwt, {
    secret: jwtSecret ?? randomBytes(32).toString('hex'),
    sign: { algorithm: 'HS256', iss: issuer, aud: audience, expiresIn: jwtExpiresIn },
    verify: {
      algorithms: ['HS256'],
      allowedIss: issuer,
      allowedAud: audience,
      requiredClaims: [
        'exp', 'iat', 'sub', 'iss', 'aud'
      ]
    }
  })
  const claimsOf = (token: string): VerifiedClaims | undefined => {
    try {
      return app.jwt.verify<VerifiedClaims>(token)
    } catch {
      return undefined
    }
  }
  const token = accessTokenStep(app.accessTokens, app.config)
  const [key, local, jwtLogin] = [bearerKeyStep(app.keys), localCredentialStep(localToken), loginTokenStep(claimsOf)]
  const internalCredentials = new InternalCredentials()
  // The first step that identifies the caller decides.
  const chain: readonly AuthStep[] =
    [key, local, token, socialSessionStep(app.social), jwtLogin, internalCredentials.step, guestStep]
  const operatorChain: readonly AuthStep[] = [key, local, token, jwtLogin]
  const hasLocalCredential = createLocalCredentialCheck(localToken)
  const credentialsOf = ({ headers, query, socket, ip }: FastifyRequest): RequestCredentials =>
    ({ headers, query: query as Record<string, unknown>, socket, ip })
  /**
   * Identifies a caller. An unknown credential is checked again after the changes of other replicas have been read.
   * @throws DataAway if the database has been unavailable to this replica for too long
   */
  const identifyFresh = (credentials: RequestCredentials, routes: RouteClass, steps = chain): IdentifyResult => {
    const former = app.settings.current
    const areSent = (): boolean => hasCredentials(credentials, routes, bearerKeyHeaderName(former))
    // This error is not Unauthorized, since clients discard their tokens after a response with status 401.
    if (app.settings.isOutdated && areSent() && !hasLocalCredential(credentials)) throw new errors.DataAway()
    const retry = (): IdentifyResult => {
      if (!areSent()) return undefined
      return app.settings.refreshFromStore()?.then(async () => {
        const { current } = app.settings
        return current === former ? undefined : await identifyCaller(steps, credentials, routes, current)
      })
    }
    const found = identifyCaller(steps, credentials, routes, former)
    return found instanceof Promise ? found.then(async (principal) => principal ?? await retry()) : found ?? retry()
  }
  const rules = readOriginRules(host, allowedHosts, allowedOrigins, app.config.listenAddress)
  const baseUrl = (): string | undefined => findBaseUrlSetting(app.settings.current.system, app.config.env)?.text
  warnOfSkippedAuth(app)
  warnOfOpenTools(app, anonymous)

  // `Host` is checked by every app, since some routes can be read without a credential.
  await app.annexes.onEveryApp(app, (each) => {
    each.addHook('onRequest', (request, _reply, done) => {
      if (!hasSingleHost(request.raw)) throw new errors.TwoHosts()
      const isServed = isServedHost(rules, request.host, baseUrl()) || request.routeOptions.config?.anyHost === true
      // The command line connects to the loopback interface, even if no loopback name is allowed. Web pages cannot know
      // its credential, so DNS rebinding is no threat here.
      if (!isServed && !hasLocalCredential(credentialsOf(request))) throw new errors.ForeignHost()
      done()
    })
  })

  const currentPrincipalOf = (principal: Principal): Principal | undefined => {
    const snapshot = app.settings.current
    if (principal.kind === 'anonymous') {
      return snapshot.system.routing?.enableBearerAuth === false ? anonymous : undefined
    }
    return principal.inSnapshot ? principal.inSnapshot(snapshot) : currentPrincipalOfKey(principal, snapshot)
  }
  const accessChanges = new AccessChanges(currentPrincipalOf)
  app.settings.on('changed', () => { accessChanges.announceChange() })
  app.accessTokens.on('ended', (family) => { accessChanges.announceRevocation(family) })
  app.social.on('ended', (id) => { accessChanges.announceRevocation(id) })
  app.accessTokens.on('expired', (family) => { accessChanges.announceExpiry(family) })
  endExpiredKeys(app, accessChanges)

  /**
   * Records a refused credential. While the authorization server is enabled, a credential without the prefix of keys
   * counts as an access token, since access tokens of earlier versions have no prefix.
   */
  const noteRefused = (request: FastifyRequest, header: string | string[] | undefined): void => {
    if (header === undefined) return
    const text = String(header)
    const known = app.keys.findInactive(bearerTokenIn(text) ?? text.trim())
    if (known !== undefined) {
      app.refusals.noteInactiveKey(request.ip, known)
      return
    }
    const isToken =
      app.settings.current.system.oauthServer?.enabled === true && !text.includes(ownCredentialPrefixes.key)
    app.refusals.note(isToken ? 'token' : 'key', request.ip)
  }

  /** Admits a caller to MCP routes; notes an invalid credential. @throws Unauthorized, InsufficientScope, WrongUser */
  const admit = (principal: Principal | undefined, request: FastifyRequest, named: string | undefined): Principal => {
    const { headers } = request
    if (principal) {
      assertTokenAllowsMcpRoute(principal, request, app.config.basePath)
      if (named !== undefined && !canUseRoutesOf(principal, named)) throw new errors.WrongUser()
      return principal
    }
    const snapshot = app.settings.current
    if (named === undefined && snapshot.system.routing?.enableBearerAuth === false) return anonymous
    noteRefused(request, headers[bearerKeyHeaderName(snapshot)] ?? headers.authorization)
    throw new errors.Unauthorized(credentialProblem(headers, snapshot))
  }

  /**
   * Admits a caller to the management API; notes an invalid credential.
   * @throws Unauthorized; InsufficientScope for an access token whose scopes do not allow the route's effect
   */
  const admitManager = (
    principal: Principal | undefined, request: FastifyRequest, effect: RouteEffect | undefined
  ): Principal => {
    if (principal) {
      if (!isForWholeGateway(principal, app.config.basePath)) throw new errors.Unauthorized(otherResourceMessage)
      checkScopes(principal, effect)
      return principal
    }
    noteRefused(request, request.headers.authorization)
    const wrong = request.headers.authorization === undefined
      ? ''
      : 'The credential in the Authorization header is not valid here. '
    const restriction = keyRefusalReason(app.keys, request.headers, app.settings.current)
    throw new errors.Unauthorized(
      `${restriction ?? wrong}Log in with POST /api/auth/login and send the token in x-auth-token, or send a system ` +
      'bearer key'
    )
  }

  const authenticate: Auth['authenticate'] = async (request, username, password) =>
    await app.attempts.checkPassword(request, username, async () => await app.users.authenticate(username, password))
  const createLoginToken: Auth['createLoginToken'] = (user) =>
    app.jwt.sign({ sub: user.username, mark: accountMarkOf(user) } satisfies LoginClaims)

  app.decorate('auth', {
    authenticate,
    changePassword: async (request, principal, current, next) => {
      const { username } = app.users.accountOf(principal)
      const warnings = app.users.checkNewPassword(next)
      const user = await authenticate(request, username, current)
      if (!user) throw new errors.Unauthorized('The current password is wrong')
      return { token: createLoginToken(await app.users.changePassword(user, next)), warnings }
    },
    identifyMcpCaller: (request, named) => {
      checkSingleToken(request)
      const found: IdentifyResult = identifyFresh(request as RequestCredentials, 'mcp')
      return found instanceof Promise
        ? found.then((principal) => admit(principal, request, named))
        : admit(found, request, named)
    },
    identifyManagementCaller: async (request, { query } = { query: true }) => {
      checkSingleToken(request)
      const credentials = credentialsOf(request)
      const principal = await identifyFresh(query ? credentials : { ...credentials, query: {} }, 'api')
      // Browsers also send cookies with requests made by pages of other sites.
      if (principal?.kind === 'social-session' && !isSafeRead(request)) await app.social.checkOrigin(request)
      return admitManager(principal, request, request.routeOptions.config?.effect)
    },
    identifyMetricsCaller: async (request) => {
      checkSingleToken(request)
      return admitManager(await identifyFresh(headerCredentialsOf(request), 'api', operatorChain), request, 'change')
    },
    identifyTokenUser: async (request) => await token(credentialsOf(request), 'api', app.settings.current),
    identifyOptionally: async (request) => {
      const principal = await identifyFresh(credentialsOf(request), 'open') ?? anonymous
      if (!isForWholeGateway(principal, app.config.basePath)) return anonymous
      return request.routeOptions.config?.effect === 'read' || canUseMcp(principal) ? principal : anonymous
    },
    accessChanges,
    issueInternalCredential: (holder) => internalCredentials.issue((snapshot) => 'keyId' in holder
      ? principalOfKey(holder.keyId, snapshot)
      : mcpPrincipalOf(snapshot.users.get(holder.username))),
    lastingCredentialOf: (principal) => lastingCredentialOf(principal, app.settings.current),
    principalOfCredential: async (credential) => {
      const isEnded = 'family' in credential && !await app.accessTokens.hasUsableTokens(credential.family)
      return isEnded ? undefined : principalOfCredential(credential, app.settings.current)
    },
    anonymousAccess: () => anonymousAccessOf(app, anonymous),
    checkOrigin: (request) => { checkOrigin(rules, request.host, request.headers.origin, baseUrl(), request.protocol) },
    trustsOrigin: (origin) => {
      const base = baseUrl()
      return rules.origins.has(origin) || (base !== undefined && URL.canParse(base) && new URL(base).origin === origin)
    },
    createLoginToken
  })
}, {
  name: 'auth',
  dependencies: [
    'config', 'refusals', 'keys', 'settings', 'access', 'access-tokens', 'social', 'throttle', 'users'
  ]
})

/** Returns the principal of a user on MCP routes. It has the rights of an unscoped key of the user. */
function mcpPrincipalOf (user: User | undefined): Principal | undefined {
  if (!user) return undefined
  const inLaterSnapshot: Principal['inSnapshot'] = (snapshot) => {
    const later = snapshot.users.get(user.username)
    return later && accountSubjectOf(later) === accountSubjectOf(user) ? mcpPrincipalOf(later) : undefined
  }
  return { ...principalOfUser(user, inLaterSnapshot), kind: 'user-key' }
}

/**
 * Returns a request's credentials in `Authorization` and `x-auth-token`, with the headers that show whether a proxy
 * forwarded the request.
 */
function headerCredentialsOf ({ headers, socket, ip }: FastifyRequest): RequestCredentials {
  const names = ['authorization', 'x-auth-token', ...forwardingHeaders]
  const kept = Object.fromEntries(names.map((name) => [name, headers[name]])) as RequestCredentials['headers']
  return { headers: kept, query: {}, socket, ip }
}

/** Refuses a request with a token both in `Authorization` and in the query (RFC 6750, section 2). @throws TokenTwice */
function checkSingleToken ({ headers: { authorization }, query }: FastifyRequest): void {
  const { access_token: token } = query as { access_token?: unknown }
  if (token !== undefined && authorization !== undefined && /^bearer /i.test(authorization)) {
    throw new errors.TokenTwice()
  }
}

/** Whether a request changes nothing: its method is safe (RFC 9110, section 9.2.1), and its route only reads. */
const isSafeRead = ({ method, routeOptions }: FastifyRequest): boolean =>
  ['GET', 'HEAD', 'OPTIONS'].includes(method) && routeOptions.config?.effect === 'read'

/** Max delay of the expiry timer, in ms. For a later expiry, it is set again. Node allows up to 2³¹ − 1 ms. */
const maxTimerDelay = 24 * 3_600_000

/** Ends the sessions and calls of keys that expire, since an expiry does not change the settings. */
function endExpiredKeys (app: FastifyInstance, accessChanges: AccessChanges): void {
  let timer: NodeJS.Timeout | undefined
  const schedule = (): void => {
    clearTimeout(timer)
    const next = app.keys.nextExpiry
    if (next === Infinity) return
    const expire = (): void => { accessChanges.announceChange(); schedule() }
    timer = setTimeout(expire, Math.min(Math.max(next - Date.now(), 0) + 1, maxTimerDelay)).unref()
  }
  schedule()
  app.settings.on('changed', schedule)
  app.addHook('onClose', async () => { clearTimeout(timer) })
}
