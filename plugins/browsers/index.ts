import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/** What pages may read of an answer, beside what every page may. */
const exposedHeaders = ['mcp-session-id', 'mcp-protocol-version', 'www-authenticate', 'retry-after', 'etag']

/** Which pages may read our answers: those of `install.baseUrl` and ALLOWED_ORIGINS. Registered once, at the root. */
export default fp(async (app) => {
  await app.register(cors, {
    origin: (origin, answer) => { answer(null, origin !== undefined && app.auth.trustsOrigin(origin)) },
    methods: ['GET', 'POST', 'PUT', 'DELETE'],
    exposedHeaders,
    maxAge: 600,
    // An OPTIONS that is no preflight is answered as any other request that leads nowhere.
    strictPreflight: false
  })
  // Also where no scope has headers of its own: what leads nowhere, and errors of MCP.
  app.addHook('onRequest', (_request, reply, done) => { reply.header('x-content-type-options', 'nosniff'); done() })
}, { name: 'browsers', dependencies: ['auth'] })

/** The headers that keep pages from misusing answers, for the scope that registers it. The documentation page runs scripts of its own. */
export async function securityHeaders (app: FastifyInstance): Promise<void> {
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        'default-src': ["'self'"],
        'base-uri': ["'none'"],
        'form-action': ["'self'"],
        'frame-ancestors': ["'none'"],
        'img-src': ["'self'", 'data:'],
        'object-src': ["'none'"],
        'style-src': ["'self'", "'unsafe-inline'"]
      }
    },
    // Whether TLS ends here is not ours to know; the proxy that ends it says it.
    hsts: false,
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' }
  })
}
