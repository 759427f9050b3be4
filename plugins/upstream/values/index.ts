import fp from 'fastify-plugin'
import type { BrowserStates } from '../../../db/ports/login-states.ts'
import type { UserValueRecords } from '../../../db/ports/user-values.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { publicBaseUrl } from '../../settings/index.ts'
import { UserValues } from './values.ts'

declare module 'fastify' {
  interface FastifyInstance { userValues: UserValues }
}

/** Interval at which changes of values by other replicas are looked up, in ms. */
const followInterval = 2_000

/** Decorates the app with `userValues`: what users provide for the variables of servers (`userVariables`). */
export default fp<{ userValues: UserValueRecords, loginStates: BrowserStates, connects?: boolean }>(async (
  app, { userValues: records, loginStates, connects = true }
) => {
  const values = new UserValues({
    records,
    states: loginStates,
    settings: () => app.settings.current,
    isOwnCredential: (value) => app.credentials.hasMatchIn(value),
    baseUrl: () => publicBaseUrl(app)
  })
  app.decorate('userValues', values)
  const warn = (error: unknown): void => {
    // Values that were not removed cannot be used, since they are bound to the target and the account.
    app.log.warn({ err: error }, 'users\' values for removed servers could not be removed')
  }
  // While the storage is unavailable, changes cannot be looked up.
  runPeriodically(app, followInterval, async () => { await values.syncReplicas() })
  if (connects) app.addHook('onReady', async () => { void values.sweep().catch(warn) })
  app.settings.on('changed', (next, former) => { values.removeGone(former, next).catch(warn) })
}, { name: 'user-values', dependencies: ['config', 'settings', 'logins'] })
