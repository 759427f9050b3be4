import type { FastifyInstance } from 'fastify'
import base, { createServer, type BaseOptions, type ServerOptions } from './plugins/base/index.ts'
import downstream, { type DownstreamOptions } from './plugins/downstream/index.ts'
import extensions, { startLog, type ExtensionOptions } from './plugins/extensions/index.ts'
import gateway from './plugins/gateway/index.ts'
import identity, { type IdentityOptions } from './plugins/identity/index.ts'
import management, { type ManagementOptions } from './plugins/management/index.ts'
import settings, { type SettingsOptions } from './plugins/settings/index.ts'
import upstream, { type UpstreamWingOptions } from './plugins/upstream/index.ts'
import routes, { type RoutesOptions } from './routes/index.ts'

/** The options of all wings. `drainTimeout`: how long calls in flight may take at shutdown, in ms. */
export type AppOptions =
  & ServerOptions & Omit<BaseOptions, 'credentials'> & SettingsOptions & IdentityOptions & UpstreamWingOptions & DownstreamOptions
  & Omit<ExtensionOptions, 'ring'> & ManagementOptions & RoutesOptions & { drainTimeout: number }

/** How long requests that are still arriving may take once everything else is done, in ms. */
const lastChance = 1_000

/** The whole program as one list: each line needs only lines above it. It does not listen yet. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const { logger, ring, credentials } = startLog(options.logger, options.env.METRICS_TOKEN)
  const app = createServer({ ...options, logger })
  await app.register(base, { ...options, credentials })
  await app.register(settings, options)
  await app.register(identity, options)
  await app.register(gateway)
  await app.register(upstream, options)
  await app.register(downstream, options)
  await app.register(extensions, { ...options, ring })
  await app.register(management, options)
  await app.register(routes, options)

  app.addHook('preClose', async () => {
    app.phase.name = 'draining'
    // All ways of asking drain side by side, within one timeout.
    const { drainTimeout } = options
    await Promise.all([app.downstream.close(drainTimeout), app.tools.close(drainTimeout), app.settings.drain(drainTimeout)])
    // Requests that are still half-sent then are not waited for.
    setTimeout(() => { app.server.closeAllConnections() }, lastChance).unref()
  })
  return app
}
