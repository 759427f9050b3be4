import type { RequestListener, Server } from 'node:http'
import Fastify, { LogController, type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { Annexes } from './annexes/index.ts'
import { limitQueryParameters, checkQueryEncoding } from './body/query.ts'
import { compileSerializer, compileValidator } from './body/validators.ts'
import { limitUnreadBody } from './body/unread.ts'
import { basePathOf, type SharedEnv } from './config/config.ts'
import { parseTrustProxy } from './config/trust-proxy.ts'
import { createClientErrorHandler, maxHeaderSize } from './errors/client-error.ts'
import { errorHandlerByPath } from './errors/handlers.ts'
import connections from './limits/connections.ts'
import { baseLimits } from './limits/index.ts'
import { canonicalAddress } from './outbound/addresses.ts'

export interface ServerOptions {
  logger: FastifyServerOptions['logger']
  env: Pick<SharedEnv, 'BASE_PATH' | 'TRUST_PROXY'>
  /** Replaces `baseLimits.slowSenders`: max time for headers, for the whole request, and between checks, in ms. */
  slowSenders?: { readonly headers: number, readonly request: number, readonly interval: number }
  /** Max open connections of clients; default: derived from the limit of open files. */
  maxConnections?: number
  /**
   * A server that is already listening. Once the app's `listen` is called, the app answers the server's requests.
   * Default: a new server.
   */
  listener?: Server
}

/**
 * Creates a Fastify instance with the gateway's limits and error handlers. It has no routes, and does not listen yet.
 */
export function createServer (options: ServerOptions): FastifyInstance {
  const { logger, env, slowSenders = baseLimits.slowSenders, maxConnections: max, listener } = options
  const routingOptions = {
    rewriteUrl: ({ url = '/' }) => url.includes('%24smart') ? unescapeSmartRoute(url) : url,
    frameworkErrors: errorHandlerByPath(basePathOf(env))
  } satisfies FastifyServerOptions
  const app = Fastify({
    ...commonOptions(env),
    logger,
    requestTimeout: slowSenders.request,
    forceCloseConnections: 'idle',
    ...routingOptions,
    ...(listener && { serverFactory: (handler: RequestListener) => takeOver(listener, handler) }),
    clientErrorHandler: createClientErrorHandler(basePathOf(env)),
    http: {
      headersTimeout: slowSenders.headers,
      connectionsCheckingInterval: slowSenders.interval,
      maxHeaderSize
    }
  })
  const annexes = new Annexes((server, genReqId) => Fastify({
    ...commonOptions(env), ...routingOptions, loggerInstance: app.log, genReqId, serverFactory: () => server as Server
  }))
  app.decorate('annexes', annexes)
  void annexes.onEveryApp(app, prepare)
  void app.register(connections, { trustProxy: env.TRUST_PROXY, max, onRequest: limitUnreadBody })
  return app
}

/** The options of the main app and the annexes. */
const commonOptions = (env: ServerOptions['env']) => ({
  logController: new LogController({ disableRequestLogging: true }),
  trustProxy: parseTrustProxy(env.TRUST_PROXY),
  // While the app closes, clients may still cancel calls and answer requests of servers. The routes refuse new
  // requests.
  return503OnClosing: false,
  // Otherwise, a start of more than 10 s would fail, on a busy machine or with a slow database.
  pluginTimeout: 0,
  routerOptions: { maxParamLength: 24 * 1024, ignoreTrailingSlash: true },
  // Otherwise, Fastify would load its own compilers.
  schemaController: {
    compilersFactory: {
      buildValidator: () => compileValidator as never, buildSerializer: () => compileSerializer as never
    }
  }
})

/** Sets the body parser, the notation of addresses and the query limits of the main app or an annex. */
function prepare (app: FastifyInstance): void {
  ignoreBodies(app)
  // A client has the same address for policies, limits and records, however a socket or a proxy writes it.
  app.addHook('onRequest', (request, _reply, done) => {
    // Undefined if the client has closed the connection already.
    const ip = request.ip as string | undefined
    if (ip?.includes(':') === true) Object.defineProperty(request, 'ip', { value: canonicalAddress(ip) })
    done()
  })
  app.addHook('onRequest', limitQueryParameters)
  app.addHook('preValidation', checkQueryEncoding)
}

/**
 * Lets an app take over a server that is already listening. Once `listen` is called, the former listeners are removed,
 * and the app gets the requests.
 */
function takeOver (server: Server, handler: RequestListener): Server {
  // The first listener of `connection` is Node's own, which parses HTTP.
  const former = ['connection', 'request', 'checkExpectation'].flatMap((event) =>
    server.listeners(event).slice(event === 'connection' ? 1 : 0)
      .map((each) => [event, each as RequestListener] as const))
  server.removeAllListeners('clientError')
  server.listen = () => {
    for (const [event, each] of former) server.off(event, each)
    server.prependListener('request', handler)
    process.nextTick(() => server.emit('listening'))
    return server
  }
  return server
}

/**
 * Replaces Fastify's content type parsers with one that does not read the body: otherwise, Fastify would parse the body
 * of a request without a route. Scopes whose routes have bodies register their own parsers.
 */
function ignoreBodies (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
}

/** Decodes `%24smart`, as written by `encodeURIComponent`, to `$smart`, which the router knows. */
const unescapeSmartRoute = (url: string): string =>
  url.replace(/^([^?]*\/)%24smart(?=[/?]|$)/, (_, before: string) => `${before}$smart`)
