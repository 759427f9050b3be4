import fp from 'fastify-plugin'
import type { CatalogueCache } from '../../db/store.ts'
import { chargedUser, unmatchedIn } from '../settings/index.ts'
import type { ProcessUser } from '../../protocol/transports/process-user.ts'
import { limits, Semaphore } from '../base/limits/index.ts'
import { goneAccounts } from '../identity/index.ts'
import { UpstreamHooks } from './hooks.ts'
import { Upstreams } from './upstreams.ts'

declare module 'fastify' {
  interface FastifyInstance {
    upstreams: Upstreams
    upstreamHooks: UpstreamHooks
  }
}

export interface UpstreamOptions {
  catalogueCache: CatalogueCache
  /** In ms. */
  initTimeout: number
  requestTimeout: number
  /** The environment that children may inherit from. */
  environment: Readonly<Record<string, string | undefined>>
  /** The user that children run as; undefined: the gateway's own. */
  childUser?: ProcessUser
  /** false: no server is connected, as for work on the settings alone. */
  connects?: boolean
}

/** `app.upstreams`: the running servers, as providers of the gateway. They begin to connect when the app is ready, and never delay it. */
export default fp<UpstreamOptions>(async (app, { connects = true, ...options }) => {
  const { catalogueCache: cache, initTimeout, requestTimeout, environment, childUser } = options
  const hooks = new UpstreamHooks()
  const isOurs = (value: string): boolean => app.credentials.holds(value)
  const upstreams = new Upstreams({
    clientInfo: { name: 'tool-hub', version: app.config.version },
    transport: {
      outbound: app.outbound,
      environment,
      childUser,
      problemOf: async (config) => await hooks.problemOf(config),
      install: () => app.settings.current.system.install,
      isOurs
    },
    dialling: new Semaphore({ places: limits.concurrentSpawns, perOwner: limits.concurrentSpawnsPerUser, reserved: 1 }),
    cache,
    logins: app.logins,
    userOf: (config) => chargedUser(app.settings.current, config),
    isOurs,
    initTimeout,
    requestTimeout,
    onLine: (server, line) => { hooks.printed(server, line) },
    remarks: (name, catalogue) => {
      const server = app.settings.current.servers.get(name)
      return server === undefined ? [] : unmatchedIn(server, catalogue)
    },
    log: (server, level, sentence, more) => { app.log[level]({ server, ...more }, `${server}: ${sentence}`) }
  })
  app.decorate('upstreams', upstreams)
  app.decorate('upstreamHooks', hooks)
  app.gateway.addSource(upstreams)
  app.addHook('onClose', async () => { await upstreams.close() })
  if (!connects) return
  app.addHook('onReady', async () => { await upstreams.apply(app.settings.current.servers) })
  app.settings.on('changed', ({ servers, users }, former) => {
    const gone = new Set(goneAccounts(former.users, users))
    if (gone.size > 0) void upstreams.endOf(gone)
    upstreams.apply(servers).catch((error: unknown) => { app.log.error({ err: error }, 'the servers could not be applied') })
  })
}, { name: 'upstream', dependencies: ['config', 'settings', 'outbound', 'gateway', 'logins'] })
