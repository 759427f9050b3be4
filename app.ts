import type { FastifyInstance } from 'fastify'
import base, { createServer, type BaseOptions, type ServerOptions } from './plugins/base/index.ts'
import downstream, { type DownstreamOptions } from './plugins/downstream/index.ts'
import extensions, { prepareLog, type ExtensionOptions } from './plugins/extensions/index.ts'
import gateway, { type GatewayOptions } from './plugins/gateway/index.ts'
import identity, { type IdentityOptions } from './plugins/identity/index.ts'
import management, { type ManagementOptions } from './plugins/management/index.ts'
import settings, { type SettingsOptions } from './plugins/settings/index.ts'
import upstream, { type UpstreamPluginOptions } from './plugins/upstream/index.ts'
import routes, { type RoutesOptions } from './routes/index.ts'

/** The options of all plugins. `drainTimeout`: max time for calls in flight to finish at shutdown, in ms. */
export type AppOptions =
  & ServerOptions & Omit<BaseOptions, 'credentials'> & SettingsOptions & IdentityOptions & GatewayOptions
  & UpstreamPluginOptions & DownstreamOptions & Omit<ExtensionOptions, 'ring'> & ManagementOptions & RoutesOptions
  & { drainTimeout: number }

/** Max time after the drain for requests whose body is still being received, in ms. */
const incompleteBodyTimeout = 1_000

/** Builds the app, which does not listen yet. Each plugin depends only on plugins that are registered before it. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const { logger, ring, credentials } = prepareLog(options.logger, options.env.METRICS_TOKEN)
  const app = createServer({ ...options, logger })
  await app.register(base, { ...options, credentials })
  await app.register(settings, options)
  await app.register(identity, options)
  await app.register(gateway, options)
  await app.register(upstream, options)
  await app.register(downstream, options)
  await app.register(extensions, { ...options, ring })
  await app.register(management, options)
  await app.register(routes, options)

  app.addHook('preClose', async () => {
    app.phase.name = 'draining'
    // Calls in flight and pending changes of the settings are awaited at the same time, within one timeout.
    const { drainTimeout } = options
    await Promise.all(
      [app.downstream.close(drainTimeout), app.tools.close(drainTimeout), app.settings.drain(drainTimeout)]
    )
    // `app.close()` would wait for requests whose body is still being received, so their connections are closed.
    setTimeout(() => { app.server.closeAllConnections() }, incompleteBodyTimeout).unref()
  })
  return app
}
