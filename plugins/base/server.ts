import type { RequestListener, Server } from 'node:http'
import Fastify, { LogController, type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { Annexes } from './annexes/index.ts'
import { boundQuery, checkQuery } from './body/query.ts'
import { compileSerializer, compileValidator } from './body/validators.ts'
import { boundBody } from './body/unread.ts'
import { basePathOf, type SharedEnv } from './config/config.ts'
import { trustedProxies } from './config/trust-proxy.ts'
import { clientError, maxHeaderSize } from './errors/client-error.ts'
import { byPath } from './errors/handlers.ts'
import { ClientMessage } from './limits/client-message.ts'
import connections from './limits/connections.ts'
import { baseLimits } from './limits/index.ts'

export interface ServerOptions {
  logger: FastifyServerOptions['logger']
  env: Pick<SharedEnv, 'BASE_PATH' | 'TRUST_PROXY'>
  /**
   * Replaces `baseLimits.slowSenders`: max time of headers and of a whole request, and how often connections are
   * checked, in ms.
   */
  slowSenders?: { readonly headers: number, readonly request: number, readonly interval: number }
  /** Max open connections of clients, in place of the bound that comes from the limit of open files. */
  maxConnections?: number
  /** A server that listens already, whose requests the app answers once it is told to listen; undefined: its own. */
  listener?: Server
}

/** A Fastify instance with the gateway's bounds, errors and parsers, without routes. It does not listen yet. */
export function createServer (options: ServerOptions): FastifyInstance {
  const { logger, env, slowSenders = baseLimits.slowSenders, maxConnections: max, listener } = options
  const basePath = basePathOf(env)
  const common = {
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: trustedProxies(env.TRUST_PROXY),
    requestTimeout: slowSenders.request,
    // While the app closes, clients may still answer questions and cancel. The endpoints refuse new requests.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 24 * 1024, ignoreTrailingSlash: true },
    rewriteUrl: ({ url = '/' }) => url.includes('%24smart') ? withoutEscape(url) : url,
    frameworkErrors: byPath(basePath),
    // Fastify would load its own compilers.
    schemaController: {
      compilersFactory: {
        buildValidator: () => compileValidator as never, buildSerializer: () => compileSerializer as never
      }
    }
  } as const satisfies FastifyServerOptions
  const app = Fastify({
    ...common,
    logger,
    forceCloseConnections: 'idle',
    ...(listener && { serverFactory: (handler: RequestListener) => takeOver(listener, handler) }),
    clientErrorHandler: clientError(basePath),
    http: {
      headersTimeout: slowSenders.headers,
      connectionsCheckingInterval: slowSenders.interval,
      maxHeaderSize,
      IncomingMessage: ClientMessage
    }
  })
  const annexes = new Annexes((server, genReqId) =>
    Fastify({ ...common, loggerInstance: app.log, genReqId, serverFactory: () => server as Server }))
  app.decorate('annexes', annexes)
  void annexes.onEveryApp(app, (each) => {
    ignoreBodies(each)
    each.addHook('onRequest', boundQuery)
    each.addHook('preValidation', checkQuery)
  })
  void app.register(connections, { trustProxy: env.TRUST_PROXY, max, arrives: boundBody })
  return app
}

/**
 * A server that another app listens with, for an app that takes its place: when it is told to listen, it listens
 * already, and its requests are the new app's from then on.
 */
function takeOver (server: Server, handler: RequestListener): Server {
  // The first listener to connections is Node's own parser.
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
 * Replaces Fastify's content type parsers by one that does not read the body: Fastify would parse the body of a request
 * before the 404 handler runs. Scopes with routes that take bodies register their parsers.
 */
function ignoreBodies (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
}

/** A URL with `$smart` as the router knows it: `encodeURIComponent` writes `%24smart`. */
const withoutEscape = (url: string): string =>
  url.replace(/^([^?]*\/)%24smart(?=[/?]|$)/, (_, before: string) => `${before}$smart`)
