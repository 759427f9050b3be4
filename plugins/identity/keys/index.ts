import fp from 'fastify-plugin'
import { listNames } from '../../base/errors/index.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { BearerKeys } from './keys.ts'

declare module 'fastify' {
  interface FastifyInstance { keys: BearerKeys }
}

/** Interval at which the times of last use of keys are stored, in ms. */
const writeInterval = 60_000

/** `app.keys`: the bearer keys. */
export default fp(async (app) => {
  const { READONLY: readonly } = app.config.env
  const keys = new BearerKeys(app.settings, readonly, (sentence) => { app.log.warn(sentence) })
  app.credentials.setKeySource(() => app.settings.current.keys)
  app.decorate('keys', keys)
  if (readonly) return
  // Reports plain tokens that were replaced by hashes: they were written by hand, or imported from another gateway.
  app.settings.on('committed', ({ former, next }) => {
    if (next.keys === former.keys) return
    const hashed =
      [...next.keys.values()].filter(({ id, token }) => token === undefined && former.keys.get(id)?.token !== undefined)
    if (hashed.length === 0) return
    const names = listNames(hashed.map(({ name }) => name))
    app.log.info(`the settings now contain hashes instead of the plain tokens of the bearer keys ${names}`)
  })
  // The legacy key can also appear at runtime, when the settings file is edited.
  app.settings.on('changed', ({ system }) => {
    if (system.routing?.bearerAuthKey) {
      keys.migrateLegacyKey().catch((error: unknown) => {
        app.log.warn({ err: error }, 'routing.bearerAuthKey could not be migrated to a bearer key')
      })
    }
  })
  const write = async (): Promise<void> => {
    await keys.usage.write().catch((error: unknown) => {
      app.log.debug({ err: error }, 'the times of last use of bearer keys could not be stored')
    })
  }
  runPeriodically(app, writeInterval, write)
  app.addHook('onClose', write)
}, { name: 'keys', dependencies: ['base', 'settings'] })
