import fp from 'fastify-plugin'
import type { CatalogueCache, Server, Snapshot, Storage } from '../../db/store.ts'
import type { ProcessUser } from '../../protocol/transports/started-process.ts'
import { parseTimerDuration } from '../../schemas/durations.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { Semaphore } from '../base/limits/index.ts'
import { removedAccountNames } from '../identity/index.ts'
import { chargedUserOfServer, unmatchedOverrideWarnings, withCurrentRights } from '../settings/index.ts'
import { noReview, type CatalogueReviewer } from './catalogues/review.ts'
import { ChildProcessManager } from './links/child-record.ts'
import logins from './login/index.ts'
import userValues from './values/index.ts'
import { Upstreams } from './upstreams.ts'
import { upstreamLimits } from './limits.ts'

declare module 'fastify' {
  interface FastifyInstance {
    upstreams: Upstreams
    upstreamHooks: UpstreamHooks
  }
}

interface UpstreamOptions {
  catalogueCache: CatalogueCache
  /** The gateway's environment: stdio servers inherit some variables, and `${NAME}` in configs is expanded from it. */
  environment: Readonly<Record<string, string | undefined>>
  /** The user as whom the processes of stdio servers run; undefined for the gateway's own user. */
  childUser?: ProcessUser
  /**
   * The folder in which the processes of stdio servers are recorded, so that processes that survive a `kill -9` of the
   * gateway can be ended at the next start; undefined to record none.
   */
  childRecord?: string
  /** Whether the gateway connects to the servers; false for commands that need the settings only. */
  connects?: boolean
}

export interface UpstreamPluginOptions extends UpstreamOptions {
  storage: Pick<Storage, 'grants' | 'loginStates' | 'upstreamTokens' | 'userValues'>
}

/** What other plugins set before the app is ready. */
interface UpstreamHooks {
  /** Receives the lines that a server's process prints, except MCP messages. */
  onLine: (server: string, line: string) => void
  /**
   * Called before a server's command is started.
   * @returns the reason why it cannot be started with its config, as a clause; undefined if no problem is known
   */
  findProblem: (config: ServerConfig) => Promise<string | undefined>
  /** Decides which items of the servers' catalogues are listed. */
  review: CatalogueReviewer
}

/**
 * Decorates the app with `upstreams` (the servers, as providers of the gateway) and `upstreamHooks`. The gateway
 * begins to connect to the servers once the app is ready.
 */
const upstream = fp<UpstreamOptions>(async (app, options) => {
  const { catalogueCache: cache, environment, childUser, childRecord, connects = true } = options
  const { env, version } = app.config
  const record = childRecord === undefined
    ? undefined
    : new ChildProcessManager(childRecord, (level, sentence) => { app.log[level](sentence) })
  const hooks: UpstreamHooks = { onLine: () => {}, findProblem: async () => undefined, review: noReview }
  const isOwnCredential = (value: string): boolean => app.credentials.hasMatchIn(value)
  const upstreams = new Upstreams({
    connecting: {
      clientInfo: { name: 'tool-hub', version },
      transport: {
        outbound: app.outbound,
        environment,
        childUser,
        startProcess: record?.start,
        problemOf: async (config) => await hooks.findProblem(config),
        install: () => app.settings.current.system.install,
        isOwnCredential
      },
      dialling: new Semaphore(
        { places: upstreamLimits.concurrentSpawns, perOwner: upstreamLimits.concurrentSpawnsPerUser, reserved: 1 }
      ),
      initTimeout: parseTimerDuration(env.INIT_TIMEOUT),
      requestTimeout: parseTimerDuration(env.REQUEST_TIMEOUT)
    },
    cache,
    logins: app.logins,
    userValues: app.userValues,
    settings: {
      userOf: (config) => chargedUserOfServer(app.settings.current, config),
      remarks (name, catalogue) {
        const server = app.settings.current.servers.get(name)
        return server === undefined ? [] : unmatchedOverrideWarnings(server, catalogue)
      }
    },
    review: {
      examine: async (...read) => { await hooks.review.examine(...read) },
      listed: (...read) => hooks.review.listed(...read)
    },
    onLine: (server, line) => { hooks.onLine(server, line) },
    log: (server, level, sentence, more) => { app.log[level]({ server, ...more }, `${server}: ${sentence}`) }
  })
  app.decorate('upstreams', upstreams)
  app.decorate('upstreamHooks', hooks)
  app.gateway.addSource(upstreams)
  app.addHook('onClose', async () => {
    await upstreams.close()
    await record?.close()
  })
  if (!connects) return
  record?.endOrphans()
  app.addHook('onReady', async () => { await upstreams.apply(serversOf(app.settings.current)) })
  app.settings.on('changed', (next, former) => {
    const removed = new Set(removedAccountNames(former.users, next.users))
    if (removed.size > 0) void upstreams.endLinksOf(removed)
    upstreams.apply(serversOf(next)).catch((error: unknown) => {
      app.log.error({ err: error }, 'the changed servers could not be applied')
    })
  })
}, { name: 'upstream', dependencies: ['config', 'settings', 'outbound', 'gateway', 'logins', 'user-values'] })

/** Returns the servers of a snapshot, each restricted by the current rights of the users who stored it. */
const serversOf = (snapshot: Snapshot): ReadonlyMap<string, Server> =>
  new Map([...snapshot.servers].map(([name, server]) => {
    const config = withCurrentRights(snapshot, server.config)
    return [name, config === server.config ? server : { ...server, config }]
  }))

/** Registers the connections to servers, the logins at servers that require OAuth, and the values users provide. */
export default fp<UpstreamPluginOptions>(async (app, options) => {
  await app.register(logins, { ...options.storage, environment: options.environment })
  await app.register(userValues, { ...options.storage, connects: options.connects })
  await app.register(upstream, options)
}, { name: 'upstream-parts' })
