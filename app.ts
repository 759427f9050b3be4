import Fastify, { LogController, type FastifyInstance, type FastifyServerOptions } from 'fastify'
import type { CatalogueCache, Store } from './db/store.ts'
import access from './plugins/gateway/access.ts'
import auth from './plugins/auth/index.ts'
import downstream from './plugins/downstream/index.ts'
import errors from './plugins/errors/index.ts'
import gateway from './plugins/gateway/index.ts'
import keys from './plugins/keys/index.ts'
import outbound from './plugins/outbound/index.ts'
import store from './plugins/store/index.ts'
import upstream from './plugins/upstream/index.ts'
import mcpRoutes from './routes/mcp/index.ts'
import publicRoutes from './routes/public/index.ts'
import type { Env } from './schemas/env.ts'

export interface AppOptions {
  logger: FastifyServerOptions['logger']
  store: Store
  catalogueCache: CatalogueCache
  version: string
  env: Pick<Env, 'HOST' | 'BASE_PATH' | 'ALLOWED_HOSTS' | 'ALLOWED_ORIGINS' | 'PUBLIC_TOOLS'>
  /** In ms. */
  initTimeout: number
  requestTimeout: number
  drainTimeout: number
  /** What children may inherit from. */
  environment: Readonly<Record<string, string | undefined>>
}

/** The whole program as one list: each line needs only lines above it. Not listening yet. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const { env, version } = options
  const basePath = env.BASE_PATH.replace(/\/$/, '')
  const app = Fastify({
    logger: options.logger,
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: false,
    requestTimeout: 30_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 4_096 },
    http: { headersTimeout: 15_000, maxHeaderSize: 16 * 1024 }
  })

  await app.register(errors)
  await app.register(store, { store: options.store, catalogueCache: options.catalogueCache })
  await app.register(keys)
  await app.register(outbound)
  await app.register(upstream, { version, initTimeout: options.initTimeout, requestTimeout: options.requestTimeout, environment: options.environment })
  await app.register(gateway, { version, publicTools: env.PUBLIC_TOOLS })
  await app.register(access, { publicTools: env.PUBLIC_TOOLS })
  await app.register(downstream, { drainTimeout: options.drainTimeout })
  await app.register(auth, { host: env.HOST, allowedHosts: env.ALLOWED_HOSTS, allowedOrigins: env.ALLOWED_ORIGINS })

  await app.register(publicRoutes, { prefix: basePath, name: 'tool-hub', version, basePath })
  await app.register(mcpRoutes, { prefix: basePath })
  return app
}
