import { setTimeout as sleep } from 'node:timers/promises'
import fp from 'fastify-plugin'
import type { Activities } from '../../../db/ports/activities.ts'
import { parseDuration } from '../../../schemas/durations.ts'
import { ActivityReader } from './reader.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { maskLikelyCredentials } from '../../base/secrets/index.ts'
import { toActivity, isRecordableCall, type ToActivityOptions } from './describe.ts'
import { ActivityRecorder } from './recorder.ts'
import { extensionsLimits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyInstance { activities: ActivityReader }
}

/** Max time to write the waiting activities at shutdown, in ms. */
const closeTimeout = 2_000
/** Time between two rounds of removing expired activities, in ms. */
const roundInterval = 60_000
/** Pause between two steps of a round, during which the database can run other queries, in ms. */
const stepPause = 100

/** Decorates the app with `activities`. With a database, records calls, and removes them after ACTIVITY_RETENTION. */
export default fp<{ activities?: Activities }>(async (app, { activities }) => {
  const { ACTIVITY_RETENTION: retention, ACTIVITY_PAYLOADS: payloads } = app.config.env
  const maxAge = parseDuration(retention)
  const store = maxAge === 0 ? undefined : activities
  const accountCreatedAt = (username: string): number | undefined => {
    const time = Date.parse(app.settings.current.users.get(username)?.createdAt ?? '')
    return Number.isNaN(time) ? undefined : time
  }
  const disabledReason = activities === undefined
    ? 'this requires a database: set DB_URL (postgres://…, or pglite://<folder> without a server)'
    : 'ACTIVITY_RETENTION is 0'
  app.decorate('activities', new ActivityReader(store ?? disabledReason, accountCreatedAt))
  if (activities) {
    // With a retention of 0, calls are not recorded, and all former records are removed.
    // `removeSomeBefore` lets only one replica remove them at a time.
    const removeExpired = runPeriodically(app, roundInterval, async (signal) => {
      while (!signal.aborted && await activities.removeSomeBefore(Date.now() - maxAge) > 0) {
        await sleep(stepPause, undefined, { ref: false })
      }
    })
    app.addHook('onReady', async () => { removeExpired() })
  }
  if (store === undefined) return

  const redact = (server: string, text: string): string =>
    maskLikelyCredentials(app.credentials.mask(app.gateway.redact(server, text)))
  const options: ToActivityOptions = { includesPayloads: payloads, redact }
  const recorder = new ActivityRecorder({
    store,
    describe: (call) => toActivity(call, options),
    isStorageAway: () => app.settings.storeProblem !== undefined,
    bounds: extensionsLimits.activities,
    log: (level, sentence) => { app.log[level](sentence) }
  })
  app.gateway.addHook('onDone', (call) => { if (isRecordableCall(call)) recorder.record(call) })
  app.metrics.count('toolhub_activities_written_total', 'Calls that were recorded', () => recorder.writtenCount)
  app.metrics.count('toolhub_activities_shed_total', 'Calls that were not recorded: the database was slow ' +
    'or unavailable', () => recorder.shedCount)
  app.metrics.gauge('toolhub_activities_waiting', 'Calls that wait to be recorded', () => recorder.waitingCount)
  app.addHook('onClose', async () => { await recorder.close(closeTimeout) })
}, { name: 'activities', dependencies: ['config', 'settings', 'gateway', 'logs', 'metrics'] })
