import { randomBytes } from 'node:crypto'
import jwt from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { headerOf, mayRun, type Principal, statedAddress } from '../../settings/index.ts'
import { credentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import type { User } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import { markOf, principalOfUser, subjectOf } from '../users/account.ts'
import type { Effect } from '../../base/scopes/index.ts'
import { checkScopes, checkToken, isForAll, otherResource, entersFor, missingOrWrong } from './rights.ts'
import {
  type AuthStep, guest, hasCredentials, type Identified, identify, type RequestCredentials, type RouteClass,
  socialSession
} from './chain.ts'
import { checkOrigin, namesOneHost, originRules, servesHost } from './origin.ts'
import { LentCredentials } from './lent.ts'
import { Standings } from './standings.ts'
import { accessToken } from './steps/access-token.ts'
import { bearerKey, principalOfKey, restrictionOf, standingOfKey } from './steps/bearer-key.ts'
import { holdsLocal, localCredential, type LoginClaims, loginToken } from './steps/login-token.ts'
import { opennessOf, warnOfOpenTools, warnOfSkippedAuth, warnOfSecret } from './warn-open.ts'
import type { Auth } from './auth.ts'

declare module 'fastify' {
  interface FastifyInstance { auth: Auth }
  interface FastifyContextConfig {
    /** The route is served under any `Host`: health checks address the process by its IP address. */
    anyHost?: true
  }
}

interface AuthOptions {
  /** The credential of the command line on this machine; undefined: there is none. */
  localToken?: string
}

const issuer = 'tool-hub'
const audience = 'tool-hub-management'

const anonymous: Principal = { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }

/** `app.auth`: identifies callers, and checks `Host` and `Origin`. No route is served to a foreign `Host`. */
export default fp<AuthOptions>(async (app, { localToken }) => {
  const { HOST: host, ALLOWED_HOSTS: allowedHosts, ALLOWED_ORIGINS: allowedOrigins } = app.config.env
  const { JWT_SECRET: jwtSecret, JWT_EXPIRES_IN: jwtExpiresIn } = app.config.env
  warnOfSecret(app, jwtSecret)
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
  const claimsOf = (token: string): LoginClaims | undefined => {
    try {
      return app.jwt.verify<LoginClaims>(token)
    } catch {
      return undefined
    }
  }
  // The first match wins.
  const token = accessToken(app.accessTokens, app.config)
  const [key, local, jwtLogin] = [bearerKey(app.keys), localCredential(localToken), loginToken(claimsOf)]
  const lent = new LentCredentials()
  const chain: readonly AuthStep[] =
    [key, local, token, socialSession(app.social), jwtLogin, lent.step, guest]
  const operators: readonly AuthStep[] = [key, local, token, jwtLogin]
  const isLocal = holdsLocal(localToken)
  const credentialsOf = ({ headers, query, socket, ip }: FastifyRequest): RequestCredentials =>
    ({ headers, query: query as Record<string, unknown>, socket, ip })
  /**
   * Identifies a caller. If the credential is unknown, it is tried again after a look-up of changes by other replicas.
   * @throws DataAway while a replica has been without its database for too long
   */
  const identifyFresh = (credentials: RequestCredentials, routes: RouteClass, steps = chain): Identified => {
    const former = app.settings.current
    // Never 401: clients discard their tokens on it.
    if (app.settings.isOutdated && hasCredentials(credentials, routes, headerOf(former)) && !isLocal(credentials)) {
      throw new errors.DataAway()
    }
    const again = (): Identified => {
      if (!hasCredentials(credentials, routes, headerOf(former))) return undefined
      return app.settings.lookUp()?.then(async () => {
        const { current } = app.settings
        return current === former ? undefined : await identify(steps, credentials, routes, current)
      })
    }
    const found = identify(steps, credentials, routes, former)
    return found instanceof Promise ? found.then(async (principal) => principal ?? await again()) : found ?? again()
  }
  const rules = originRules(host, allowedHosts, allowedOrigins)
  const baseUrl = (): string | undefined => statedAddress(app.settings.current.system, app.config.env)?.text
  warnOfSkippedAuth(app)
  warnOfOpenTools(app, anonymous)

  // Registered for every app, since some routes can be read without a credential.
  await app.annexes.onEveryApp(app, (each) => {
    each.addHook('onRequest', (request, _reply, done) => {
      if (!namesOneHost(request.raw)) throw new errors.TwoHosts()
      const isServed = servesHost(rules, request.host, baseUrl()) || request.routeOptions.config?.anyHost === true
      // The command line addresses the loopback interface, whatever host names are allowed. Web pages cannot know its
      // credential, so DNS rebinding is no threat here.
      if (!isServed && !isLocal(credentialsOf(request))) throw new errors.ForeignHost()
      done()
    })
  })

  const standingOf = (principal: Principal): Principal | undefined => {
    const snapshot = app.settings.current
    if (principal.kind === 'anonymous') {
      return snapshot.system.routing?.enableBearerAuth === false ? anonymous : undefined
    }
    return principal.standing ? principal.standing(snapshot) : standingOfKey(principal, snapshot)
  }
  const standings = new Standings(standingOf)
  app.settings.on('changed', () => { standings.settingsChanged() })
  app.accessTokens.on('ended', (family) => { standings.revoke(family) })
  app.social.on('ended', (id) => { standings.revoke(id) })
  app.accessTokens.on('expired', (family) => { standings.expire(family) })
  endExpired(app, standings)

  /** Records a refused credential. Tokens of earlier versions have no prefix. */
  const noteRefused = (request: FastifyRequest, sent: string | string[] | undefined): void => {
    if (sent === undefined) return
    const text = String(sent)
    const known = app.keys.refusal(/^bearer +(.+)$/i.exec(text)?.[1]?.trim() ?? text.trim())
    if (known !== undefined) {
      app.refusals.noteInactive(request.ip, known)
      return
    }
    const isToken = app.settings.current.system.oauthServer?.enabled === true && !text.includes(credentialPrefixes.key)
    app.refusals.note(isToken ? 'token' : 'key', request.ip)
  }

  /** Admits a principal to an MCP route. @throws Unauthorized, WrongUser */
  const admit = (principal: Principal | undefined, request: FastifyRequest, named: string | undefined): Principal => {
    const { headers } = request
    if (principal) {
      checkToken(principal, request, app.config.basePath)
      if (named !== undefined && !entersFor(principal, named)) throw new errors.WrongUser()
      return principal
    }
    const snapshot = app.settings.current
    if (named === undefined && snapshot.system.routing?.enableBearerAuth === false) return anonymous
    noteRefused(request, headers[headerOf(snapshot)] ?? headers.authorization)
    throw new errors.Unauthorized(missingOrWrong(headers, snapshot))
  }

  /**
   * Admits a principal to the management API.
   * @throws Unauthorized; InsufficientScope for an access token whose scopes do not allow the route's effect
   */
  const admitManager = (
    principal: Principal | undefined, request: FastifyRequest, effect: Effect | undefined
  ): Principal => {
    if (principal) {
      if (!isForAll(principal, app.config.basePath)) throw new errors.Unauthorized(otherResource)
      checkScopes(principal, effect)
      return principal
    }
    noteRefused(request, request.headers.authorization)
    const wrong = request.headers.authorization === undefined
      ? ''
      : 'The credential in the Authorization header is not valid here. '
    const restriction = restrictionOf(app.keys, request.headers, app.settings.current)
    throw new errors.Unauthorized(
      `${restriction ?? wrong}Log in with POST /api/auth/login and send the token in x-auth-token, or send a system ` +
      'bearer key'
    )
  }

  const authenticate: Auth['authenticate'] = async (request, username, password) =>
    await app.attempts.check(request, username, async () => await app.users.authenticate(username, password))
  const login: Auth['login'] = (user) => app.jwt.sign({ sub: user.username, mark: markOf(user) } satisfies LoginClaims)

  app.decorate('auth', {
    authenticate,
    changePassword: async (request, principal, current, next) => {
      const { username } = app.users.accountOf(principal)
      const warnings = app.users.judge(next)
      const user = await authenticate(request, username, current)
      if (!user) throw new errors.Unauthorized('The current password is wrong')
      return { token: login(await app.users.changePassword(user, next)), warnings }
    },
    transport: (request, named) => {
      inOneWay(request)
      const found: Identified = identifyFresh(request as RequestCredentials, 'mcp')
      return found instanceof Promise
        ? found.then((principal) => admit(principal, request, named))
        : admit(found, request, named)
    },
    management: async (request, { query } = { query: true }) => {
      inOneWay(request)
      const credentials = credentialsOf(request)
      const principal = await identifyFresh(query ? credentials : { ...credentials, query: {} }, 'api')
      // Browsers also send cookies with requests that pages of other sites make.
      if (principal?.kind === 'social-session' && !isReading(request)) await app.social.checkOrigin(request)
      return admitManager(principal, request, request.routeOptions.config?.effect)
    },
    operator: async (request) => {
      inOneWay(request)
      return admitManager(await identifyFresh(inHeadersOf(request), 'api', operators), request, 'change')
    },
    token: async (request) => await token(credentialsOf(request), 'api', app.settings.current),
    optional: async (request) => {
      const principal = await identifyFresh(credentialsOf(request), 'open') ?? anonymous
      if (!isForAll(principal, app.config.basePath)) return anonymous
      return request.routeOptions.config?.effect === 'read' || mayRun(principal) ? principal : anonymous
    },
    standings,
    lend: (whom) => lent.lend((snapshot) => 'keyId' in whom
      ? principalOfKey(whom.keyId, snapshot)
      : clientOf(snapshot.users.get(whom.username))),
    openness: () => opennessOf(app, anonymous),
    origin: (request) => { checkOrigin(rules, request.host, request.headers.origin, baseUrl(), request.protocol) },
    trustsOrigin: (origin) => {
      const base = baseUrl()
      return rules.origins.has(origin) || (base !== undefined && URL.canParse(base) && new URL(base).origin === origin)
    },
    login
  })
}, {
  name: 'auth',
  dependencies: [
    'config', 'refusals', 'keys', 'settings', 'access', 'access-tokens', 'social', 'throttle', 'users'
  ]
})

/** The principal of a user as an MCP client: the same as that of an unscoped key of the user. */
function clientOf (user: User | undefined): Principal | undefined {
  if (!user) return undefined
  const standing: Principal['standing'] = (snapshot) => {
    const later = snapshot.users.get(user.username)
    return later && subjectOf(later) === subjectOf(user) ? clientOf(later) : undefined
  }
  return { ...principalOfUser(user, standing), kind: 'user-key' }
}

/** The credentials in the standard headers, and the parts of the request that show whether a proxy forwarded it. */
function inHeadersOf ({ headers, socket }: FastifyRequest): RequestCredentials {
  const { authorization, 'x-auth-token': login, forwarded, 'x-forwarded-for': forwardedFor } = headers
  return {
    headers: { authorization, 'x-auth-token': login, forwarded, 'x-forwarded-for': forwardedFor }, query: {}, socket
  }
}

/**
 * Refuses a request that sends a token in two ways (RFC 6750, section 2), even if only one of them would be used.
 * @throws TokenTwice
 */
function inOneWay ({ headers: { authorization }, query }: FastifyRequest): void {
  const { access_token: token } = query as { access_token?: unknown }
  if (token !== undefined && authorization !== undefined && /^bearer /i.test(authorization)) {
    throw new errors.TokenTwice()
  }
}

/** Whether the method of a request is safe (RFC 9110, section 9.2.1). */
const isReading = ({ method, routeOptions }: FastifyRequest): boolean =>
  ['GET', 'HEAD', 'OPTIONS'].includes(method) && routeOptions.config?.effect === 'read'

/** Max delay of the timer, in ms. Node allows up to 2³¹ − 1. */
const longestDelay = 24 * 3_600_000

/** Ends the sessions and calls of a key when it expires, since the expiry is not a change of the settings. */
function endExpired (app: FastifyInstance, standings: Standings): void {
  let timer: NodeJS.Timeout | undefined
  const schedule = (): void => {
    clearTimeout(timer)
    const next = app.keys.nextExpiry
    if (next === Infinity) return
    const expire = (): void => { standings.settingsChanged(); schedule() }
    timer = setTimeout(expire, Math.min(Math.max(next - Date.now(), 0) + 1, longestDelay)).unref()
  }
  schedule()
  app.settings.on('changed', schedule)
  app.addHook('onClose', async () => { clearTimeout(timer) })
}
