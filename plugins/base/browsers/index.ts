import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import helmet, { type HelmetOptions } from 'helmet'

/** Response headers that scripts of other origins may read, in addition to the CORS-safelisted ones. */
const exposedHeaders = ['mcp-session-id', 'mcp-protocol-version', 'www-authenticate', 'retry-after', 'etag']

/**
 * Root plugin: CORS for the origins of the public address and ALLOWED_ORIGINS, and `nosniff` in the responses of all
 * apps.
 */
export default fp(async (app) => {
  await app.annexes.onEveryApp(app, async (each) => {
    await each.register(cors, {
      origin: (origin, answer) => { answer(null, origin !== undefined && app.auth.trustsOrigin(origin)) },
      methods: ['GET', 'POST', 'PUT', 'DELETE'],
      exposedHeaders,
      maxAge: 600,
      // An OPTIONS request that is not a preflight gets a 404, like any other request without a route.
      strictPreflight: false
    })
    // Also for responses outside the scopes that call `addSecurityHeaders`, such as 404s.
    each.addHook('onRequest', (_request, reply, done) => {
      reply.header('x-content-type-options', 'nosniff')
      done()
    })
  })
}, { name: 'browsers', dependencies: ['auth'] })

const options: HelmetOptions = {
  // Scripts may only come from the same origin, which is sufficient for the documentation page.
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
  // TLS ends at a proxy, which can send HSTS.
  hsts: false,
  referrerPolicy: { policy: 'no-referrer' },
  xFrameOptions: { action: 'deny' }
}

/**
 * Sends security headers (CSP, frame options, referrer policy) with the responses of a scope. They are computed once,
 * since they are the same for all requests; @fastify/helmet would compute them for each request.
 */
export function addSecurityHeaders (app: FastifyInstance): void {
  app.addHook('onRequest', (_request, reply, done) => {
    headers ??= computeHeaders()
    reply.headers(headers)
    done()
  })
}

let headers: OutgoingHttpHeaders | undefined

function computeHeaders (): OutgoingHttpHeaders {
  const computed = new ServerResponse(new IncomingMessage(new Socket()))
  helmet(options)(computed.req, computed, () => {})
  return computed.getHeaders()
}
