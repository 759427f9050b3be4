import { resolve } from 'node:path'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import Fastify, { LogController, type FastifyInstance, type FastifyServerOptions } from 'fastify'
import type { CatalogueCache, Storage } from './db/store.ts'
import activities from './plugins/extensions/activities/index.ts'
import access from './plugins/settings/access/index.ts'
import accessTokens from './plugins/identity/access-tokens/index.ts'
import audit from './plugins/settings/audit/index.ts'
import auth from './plugins/identity/auth/index.ts'
import catalogues from './plugins/management/market/index.ts'
import { trustedProxies } from './plugins/base/config/trust-proxy.ts'
import { readAsset } from './plugins/base/config/assets.ts'
import bundles, { type BundleOptions } from './plugins/management/bundles/index.ts'
import { bundleProblem } from './plugins/management/bundles/usage.ts'
import compression from './plugins/extensions/compression/index.ts'
import config, { basePathOf, type SharedEnv } from './plugins/base/config/config.ts'
import builtIns from './plugins/gateway/builtins/index.ts'
import browsers, { securityHeaders } from './plugins/base/browsers/index.ts'
import exporting from './plugins/management/export/index.ts'
import downstream from './plugins/downstream/plugin.ts'
import type { Sealer } from './plugins/downstream/modern/state.ts'
import sse from './plugins/downstream/sse/index.ts'
import { boundBody } from './plugins/base/body/unread.ts'
import { boundQuery, checkQuery } from './plugins/base/body/query.ts'
import { compileSerializer } from './plugins/base/body/serializers.ts'
import { compileValidator } from './plugins/base/body/validators.ts'
import { clientError, maxHeaderSize } from './plugins/base/errors/client-error.ts'
import errors, { byPath, envelope } from './plugins/base/errors/handlers.ts'
import { errors as list } from './plugins/base/errors/list.ts'
import gateway from './plugins/gateway/plugin.ts'
import groups from './plugins/management/groups/index.ts'
import keyRotation from './plugins/settings/key-rotation/index.ts'
import keys from './plugins/identity/keys/index.ts'
import callLog from './plugins/extensions/logs/calls.ts'
import logs from './plugins/extensions/logs/index.ts'
import { LogRing } from './plugins/extensions/logs/ring.ts'
import { OwnCredentials } from './plugins/base/secrets/own-credentials.ts'
import { maskPatterns } from './plugins/base/secrets/patterns.ts'
import logStreams from './plugins/extensions/logs/streams.ts'
import { tapped } from './plugins/extensions/logs/tap.ts'
import arrivals from './plugins/base/limits/arrivals.ts'
import { ClientMessage } from './plugins/base/limits/client-message.ts'
import connections from './plugins/base/limits/connections.ts'
import counters from './plugins/base/limits/counters.ts'
import { limits } from './plugins/base/limits/limits.ts'
import refusals from './plugins/identity/auth/refusals.ts'
import throttle from './plugins/identity/auth/throttle.ts'
import largeReplies from './plugins/base/limits/large-replies.ts'
import metrics from './plugins/extensions/metrics/index.ts'
import oauth from './plugins/identity/oauth/index.ts'
import openapi from './plugins/downstream/openapi/index.ts'
import outbound from './plugins/base/outbound/plugin.ts'
import pages from './plugins/base/pages/plugin.ts'
import scopes, { enterScope } from './plugins/base/scopes/index.ts'
import servers from './plugins/management/servers/index.ts'
import settings from './plugins/settings/plugin.ts'
import smartRouting from './plugins/extensions/smart-routing/index.ts'
import social from './plugins/identity/social/index.ts'
import system from './plugins/management/system/index.ts'
import templates from './plugins/management/templates/index.ts'
import tools from './plugins/downstream/tools/index.ts'
import tracing from './plugins/extensions/tracing/index.ts'
import upstream from './plugins/upstream/plugin.ts'
import logins from './plugins/upstream/login/index.ts'
import users from './plugins/identity/users/index.ts'
import apiRoutes from './routes/api/index.ts'
import { jsonBodies } from './routes/bodies.ts'
import mcpRoutes from './routes/mcp/index.ts'
import oauthRoutes from './routes/oauth/index.ts'
import openRoutes from './routes/open/index.ts'
import socialRoutes from './routes/social/index.ts'
import type { ProcessUser } from './protocol/transports/process-user.ts'
import healthRoutes from './routes/public/health.ts'
import publicRoutes from './routes/public/index.ts'
import loginRoutes from './routes/public/login.ts'
import { completeApi, describeApi } from './schemas/openapi.ts'

export interface AppOptions {
  logger: FastifyServerOptions['logger']
  storage: Storage
  catalogueCache: CatalogueCache
  bundles: Pick<BundleOptions, 'root' | 'isShared'>
  version: string
  env: SharedEnv
  /** Seals what modern clients keep for servers; undefined: what one process has sealed, no other one opens. */
  sealer?: Sealer
  /** In ms. */
  initTimeout: number
  requestTimeout: number
  drainTimeout: number
  /** Replaces `limits.slowSenders`. */
  slowSenders?: { readonly headers: number, readonly request: number, readonly interval: number }
  /** Replaces the bound that comes from the limit of open files. */
  maxConnections?: number
  /** The environment that children may inherit from. */
  environment: Readonly<Record<string, string | undefined>>
  /** The user that children run as; undefined: the gateway's own. */
  childUser?: ProcessUser
  /** false: no server is connected, as for work on the settings alone. */
  connects?: boolean
  /** The credential of this machine's command line; undefined: there is none. */
  localToken?: string
  /** The admin's password under the development script. */
  developmentPassword?: string
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The phase of the program's life. The process edge says when it is ready. */
    phase: { name: 'starting' | 'ready' | 'draining' }
  }
}

/** How long requests that are still arriving may take once everything else is done, in ms. */
const lastChance = 1_000

/** The whole program as one list: each line needs only lines above it. Not listening yet. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const { env, version, storage, slowSenders = limits.slowSenders } = options
  const basePath = basePathOf(env)
  const ring = new LogRing(limits.logs, maskPatterns)
  const credentials = new OwnCredentials()
  const app = Fastify({
    logger: tapped(options.logger, ring, (line) => credentials.mask(line)),
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: trustedProxies(env.TRUST_PROXY),
    requestTimeout: slowSenders.request,
    forceCloseConnections: 'idle',
    // While the app closes, clients may still answer questions and cancel; new requests are refused where they arrive.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 24 * 1024, ignoreTrailingSlash: true },
    rewriteUrl: ({ url = '/' }) => url.includes('%24smart') ? withoutEscape(url) : url,
    frameworkErrors: byPath(basePath),
    clientErrorHandler: clientError(basePath),
    http: {
      headersTimeout: slowSenders.headers,
      connectionsCheckingInterval: slowSenders.interval,
      maxHeaderSize,
      IncomingMessage: ClientMessage
    }
  })

  app.setValidatorCompiler(compileValidator)
  app.setSerializerCompiler(compileSerializer)
  ignoreBodies(app)
  app.addHook('onRequest', boundQuery)
  app.addHook('preValidation', checkQuery)

  app.decorate('phase', { name: 'starting' })
  await app.register(config, { version, env })
  await app.register(connections, { trustProxy: env.TRUST_PROXY, max: options.maxConnections, arrives: boundBody })
  await app.register(errors)
  await app.register(arrivals)
  await app.register(largeReplies)
  await app.register(scopes)
  await app.register(settings, { store: storage.store })
  await app.register(logs, { ring, credentials })
  await app.register(audit, storage)
  await app.register(keyRotation, { resealing: storage.resealing, connects: options.connects })
  await app.register(counters, { counters: storage.counters })
  await app.register(refusals)
  await app.register(throttle)
  await app.register(users)
  await app.register(keys)
  await app.register(outbound)
  await app.register(pages)
  await app.register(access)
  await app.register(gateway)
  await app.register(logins, { ...storage, environment: options.environment })
  await app.register(compression)
  await app.register(upstream, {
    cache: options.catalogueCache,
    initTimeout: options.initTimeout,
    requestTimeout: options.requestTimeout,
    environment: options.environment,
    childUser: options.childUser,
    problemOf: bundleProblem(resolve(options.bundles.root)),
    connects: options.connects
  })
  await app.register(builtIns)
  await app.register(smartRouting, storage)
  await app.register(accessTokens, storage)
  await app.register(social, storage)
  await app.register(auth, { localToken: options.localToken })
  await app.register(oauth, storage)
  await app.register(downstream, { sealer: options.sealer, usedStates: storage.usedStates })
  await app.register(sse)
  await app.register(logStreams)
  await app.register(servers)
  await app.register(groups)
  await app.register(system)
  await app.register(exporting)
  await app.register(catalogues)
  await app.register(bundles, { ...options.bundles, environment: options.environment, childUser: options.childUser })
  await app.register(templates, { environment: options.environment })
  await app.register(tools)
  await app.register(openapi)
  await app.register(metrics)
  await app.register(tracing)
  await app.register(activities, storage)
  await app.register(callLog)

  await app.register(browsers)
  await app.register(swagger, {
    openapi: describeApi(version, basePath),
    transformObject: (document) => completeApi('openapiObject' in document ? document.openapiObject : {}) as never
  })
  const icon = await readAsset('icons/tool-hub.svg')
  await app.register(async (docs) => {
    enterScope(docs, 'docs')
    securityHeaders(docs)
    await docs.register(swaggerUi, {
      routePrefix: `${basePath}/docs`,
      uiConfig: { persistAuthorization: true },
      logo: { type: 'image/svg+xml', content: icon },
      theme: {
        title: 'Tool-Hub: the API',
        favicon: [{ filename: 'tool-hub.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: icon }]
      }
    })
  })
  await app.register(async (open) => {
    securityHeaders(open)
    await open.register(publicRoutes, { prefix: basePath })
  })
  await app.register(async (api) => {
    securityHeaders(api)
    jsonBodies(api)
    await api.register(loginRoutes, { developmentPassword: options.developmentPassword })
    await api.register(apiRoutes)
  }, { prefix: `${basePath}/api` })
  await app.register(async (open) => {
    securityHeaders(open)
    await open.register(openRoutes, { prefix: `${basePath}/api` })
  })
  await app.register(oauthRoutes)
  await app.register(socialRoutes, { prefix: basePath })
  await app.register(mcpRoutes, { prefix: basePath })

  app.addHook('preClose', async () => {
    app.phase.name = 'draining'
    // All ways of asking drain side by side, within one timeout.
    await Promise.all([
      app.downstream.close(options.drainTimeout),
      app.tools.close(options.drainTimeout),
      app.settings.drain(options.drainTimeout)
    ])
    // Requests that are still half-sent then are not waited for.
    setTimeout(() => { app.server.closeAllConnections() }, lastChance).unref()
  })
  return app
}

/**
 * Replaces Fastify's content type parsers by one that does not read the body. Scopes with routes that take bodies register their own.
 * Otherwise Fastify would buffer and parse the body of a request before the 404 handler runs.
 */
function ignoreBodies (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
}

/** The app that answers health checks while the database is waited for; every other request is asked to come back. Not listening yet. */
export async function buildWaitingRoom ({ logger, env }: Pick<AppOptions, 'logger' | 'env'>): Promise<FastifyInstance> {
  const app = Fastify({
    logger,
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
    requestTimeout: limits.slowSenders.request,
    http: {
      headersTimeout: limits.slowSenders.headers,
      connectionsCheckingInterval: limits.slowSenders.interval,
      IncomingMessage: ClientMessage
    },
    frameworkErrors: envelope
  })
  ignoreBodies(app)
  await app.register(connections, { trustProxy: env.TRUST_PROXY, arrives: boundBody })
  const problem = 'waiting for the database'
  app.setErrorHandler(envelope)
  app.setNotFoundHandler((request, reply) => { envelope(new list.NotReady(problem), request, reply) })
  await app.register(healthRoutes, {
    prefix: basePathOf(env),
    status: 'starting',
    servers: () => ({ connected: 0 }),
    problem: () => problem
  })
  return app
}

/** An address with `$smart` as the router knows it: `encodeURIComponent`, and others, write `%24smart`. */
const withoutEscape = (url: string): string => url.replace(/^([^?]*\/)%24smart(?=[/?]|$)/, (_, before: string) => `${before}$smart`)
