import Fastify, { LogController, type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { limitQueryParameters, checkQueryEncoding } from './body/query.ts'
import { compileSerializer, compileValidator } from './body/validators.ts'
import { limitBodyIntake } from './body/unread.ts'
import { basePathOf, type SharedEnv } from './config/config.ts'
import { trustedProxies } from './config/trust-proxy.ts'
import { answerClientError, maxHeaderSize } from './errors/client-error.ts'
import { errorHandlerByPath } from './errors/handlers.ts'
import { ClientMessage } from './limits/client-message.ts'
import connections from './limits/connections.ts'
import { baseLimits } from './limits/index.ts'

export interface ServerOptions {
  logger: FastifyServerOptions['logger']
  env: Pick<SharedEnv, 'BASE_PATH' | 'TRUST_PROXY'>
  /**
   * Replaces `baseLimits.slowSenders`: max time for the headers and for the whole request, and how often connections
   * are checked, in ms.
   */
  slowSenders?: { readonly headers: number, readonly request: number, readonly interval: number }
  /** Max open connections of clients; default: derived from the limit of open files. */
  maxConnections?: number
}

/**
 * Creates a Fastify instance with the gateway's limits, error handlers and parsers, without routes. It does not listen
 * yet.
 */
export function createServer (options: ServerOptions): FastifyInstance {
  const { logger, env, slowSenders = baseLimits.slowSenders, maxConnections: max } = options
  const basePath = basePathOf(env)
  const app = Fastify({
    ...commonOptions(env),
    logger,
    requestTimeout: slowSenders.request,
    forceCloseConnections: 'idle',
    rewriteUrl: ({ url = '/' }) => url.includes('%24smart') ? unescapeSmartRoute(url) : url,
    frameworkErrors: errorHandlerByPath(basePath),
    clientErrorHandler: answerClientError(basePath),
    http: {
      headersTimeout: slowSenders.headers,
      connectionsCheckingInterval: slowSenders.interval,
      maxHeaderSize,
      IncomingMessage: ClientMessage
    }
  })
  prepare(app)
  void app.register(connections, { trustProxy: env.TRUST_PROXY, max, arrives: limitBodyIntake })
  return app
}

/**
 * A second instance of Fastify, which gets requests from the first one by `routing(raw, raw)`: for routes that are made
 * when they are asked for, which an instance that listens does not take any more. It has no routes yet, and never
 * listens.
 * @param outer the instance that listens
 */
export function createInnerServer (outer: FastifyInstance): FastifyInstance {
  const app = Fastify({ ...commonOptions(outer.config.env), loggerInstance: outer.log })
  prepare(app)
  return app
}

/** The options that both instances have. */
const commonOptions = (env: ServerOptions['env']) => ({
  logController: new LogController({ disableRequestLogging: true }),
  trustProxy: trustedProxies(env.TRUST_PROXY),
  // While the app closes, clients may still answer questions and cancel. The endpoints refuse new requests.
  return503OnClosing: false,
  routerOptions: { maxParamLength: 24 * 1024, ignoreTrailingSlash: true }
})

/** Sets the parsers and bounds that both instances have. */
function prepare (app: FastifyInstance): void {
  app.setValidatorCompiler(compileValidator)
  app.setSerializerCompiler(compileSerializer)
  ignoreBodies(app)
  app.addHook('onRequest', limitQueryParameters)
  app.addHook('preValidation', checkQueryEncoding)
}

/**
 * Replaces Fastify's content type parsers by one that does not read the body: otherwise Fastify would parse a body
 * before the 404 handler runs. Scopes whose routes take bodies register their parsers.
 */
function ignoreBodies (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
}

/** Decodes `%24smart`, which `encodeURIComponent` writes, to `$smart` as the router knows it. */
const unescapeSmartRoute = (url: string): string =>
  url.replace(/^([^?]*\/)%24smart(?=[/?]|$)/, (_, before: string) => `${before}$smart`)
