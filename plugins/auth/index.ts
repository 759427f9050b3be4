import { randomBytes } from 'node:crypto'
import jwt from '@fastify/jwt'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Principal } from '../gateway/view.ts'
import { authenticateManagement, guest, loginToken, systemKey, type ManagementStep } from './management.ts'
import { checkOrigin, originRules } from './origin.ts'
import { authenticateTransport, bearerKey, standing, type Step } from './transport.ts'

declare module 'fastify' {
  interface FastifyInstance { auth: Auth }
}

export interface Auth {
  /** Who is asking on an MCP route. @throws Unauthorized */
  transport: (request: FastifyRequest) => Principal
  /** What became of a principal of an MCP route: as it is now; undefined: it has no access any more. */
  standing: (principal: Principal) => Principal | undefined
  /** Who is asking on the management API. @throws Unauthorized */
  management: (request: FastifyRequest) => Principal
  /** @throws ForeignHost, ForeignOrigin */
  origin: (request: FastifyRequest) => void
  /** A login token for a user. */
  login: (username: string) => string
}

export interface AuthOptions {
  host: string
  allowedHosts: string
  allowedOrigins: string
  /** Signs login tokens; without it they end with the process. */
  jwtSecret: string | undefined
  /** As `24h`. */
  jwtExpiresIn: string
}

const issuer = 'tool-hub'
const audience = 'tool-hub-management'
const placeholders = new Set(['secret', 'changeme', 'change-me', 'password', 'your-secret-key', 'jwt-secret'])

/** `app.auth`: who is asking, and from where. */
export default fp<AuthOptions>(async (app, { host, allowedHosts, allowedOrigins, jwtSecret, jwtExpiresIn }) => {
  if (jwtSecret === undefined) app.log.info('JWT_SECRET is not set: logins end when the gateway stops')
  else if (Buffer.byteLength(jwtSecret) < 32 || placeholders.has(jwtSecret.toLowerCase())) app.log.warn('JWT_SECRET is weak: use at least 32 random bytes, for example from "openssl rand -hex 32"')
  await app.register(jwt, {
    secret: jwtSecret ?? randomBytes(32).toString('hex'),
    sign: { algorithm: 'HS256', iss: issuer, aud: audience, expiresIn: jwtExpiresIn },
    verify: { algorithms: ['HS256'], allowedIss: issuer, allowedAud: audience, requiredClaims: ['exp', 'iat', 'sub', 'iss', 'aud'] }
  })
  const usernameOf = (token: string): string | undefined => {
    try {
      return app.jwt.verify<{ sub: string }>(token).sub
    } catch {
      return undefined
    }
  }
  const transportSteps: Step[] = [bearerKey(app.keys)]
  const managementSteps: ManagementStep[] = [systemKey(app.keys), loginToken(usernameOf), guest]
  const rules = originRules(host, allowedHosts, allowedOrigins)
  app.decorate('auth', {
    transport: ({ headers }) => authenticateTransport(transportSteps, headers, app.settings.current),
    standing: (principal) => standing(principal, app.settings.current),
    management: ({ headers, query }) => authenticateManagement(managementSteps, { headers, query: query as Record<string, unknown> }, app.settings.current),
    origin: ({ headers }) => { checkOrigin(rules, headers.host, headers.origin, app.settings.current.system.install?.baseUrl) },
    login: (username) => app.jwt.sign({ sub: username })
  })
}, { name: 'auth', dependencies: ['keys'] })
