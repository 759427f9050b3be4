import { once } from 'node:events'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { OneTimeValues } from '../../../db/ports/grants.ts'
import type { BrowserStates } from '../../../db/ports/login-states.ts'
import type { UpstreamTokens } from '../../../db/ports/upstream-tokens.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { configuredBaseUrl, publicBaseUrl } from '../../settings/index.ts'
import type { ProcessEnvironment } from '../links/environment.ts'
import { Logins } from './logins.ts'
import type { GatewayAsOAuthClient } from './registration.ts'

declare module 'fastify' {
  interface FastifyInstance { logins: Logins }
}

interface LoginOptions {
  grants: OneTimeValues
  upstreamTokens: UpstreamTokens
  loginStates: BrowserStates
  environment: ProcessEnvironment
}

/** Interval at which changes of logins by other replicas are looked up, in ms. */
const followInterval = 2_000
/** Max time to wait until the gateway listens, in ms: in tests, it may never listen. */
const maxListenWait = 5_000

/** Decorates the app with `logins`: the gateway as an OAuth client of upstream servers. */
export default fp<LoginOptions>(async (app, { grants, upstreamTokens, loginStates, environment }) => {
  const logins = new Logins({
    stores: { grants, tokens: upstreamTokens, states: loginStates },
    outbound: app.outbound,
    environment,
    settings: () => app.settings.current,
    self: () => gatewayClientOf(app),
    listening: async () => {
      if (configuredBaseUrl(app.settings.current.system, app.config) === undefined) await listening(app)
    }
  })
  app.decorate('logins', logins)
  // While the storage is unavailable, changes cannot be looked up.
  runPeriodically(app, followInterval, async () => { await logins.syncReplicas() })
  app.settings.on('changed', (next, former) => {
    logins.removeGone(former, next).catch((error: unknown) => {
      // Logins that were not removed cannot be used, since they are bound to the server and the account.
      app.log.warn({ err: error }, 'logins at removed upstream servers could not be removed')
    })
  })
}, { name: 'logins', dependencies: ['config', 'settings', 'outbound'] })

function gatewayClientOf (app: FastifyInstance): GatewayAsOAuthClient {
  const baseUrl = publicBaseUrl(app)
  return {
    baseUrl,
    redirectUri: `${baseUrl}/oauth/callback`,
    documentUrl: baseUrl.startsWith('https:') ? `${baseUrl}/client-metadata.json` : undefined
  }
}

async function listening ({ server }: FastifyInstance): Promise<void> {
  if (!server.listening) await once(server, 'listening', { signal: AbortSignal.timeout(maxListenWait) }).catch(() => {})
}
