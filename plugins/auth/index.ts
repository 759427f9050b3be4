import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Principal } from '../gateway/view.ts'
import { checkOrigin, originRules } from './origin.ts'
import { authenticateTransport, bearerKey, type Step } from './transport.ts'

declare module 'fastify' {
  interface FastifyInstance { auth: Auth }
}

export interface Auth {
  /** Who is asking on an MCP route. @throws Unauthorized */
  transport: (request: FastifyRequest) => Principal
  /** @throws ForeignHost, ForeignOrigin */
  origin: (request: FastifyRequest) => void
}

export interface AuthOptions { host: string, allowedHosts: string, allowedOrigins: string }

/** `app.auth`: who is asking, and from where. */
export default fp<AuthOptions>(async (app, { host, allowedHosts, allowedOrigins }) => {
  const steps: Step[] = [bearerKey(app.keys)]
  const rules = originRules(host, allowedHosts, allowedOrigins)
  app.decorate('auth', {
    transport: ({ headers }) => authenticateTransport(steps, headers, app.snapshot()),
    origin: ({ headers }) => { checkOrigin(rules, headers.host, headers.origin, app.snapshot().system.install?.baseUrl) }
  })
}, { name: 'auth', dependencies: ['keys'] })
