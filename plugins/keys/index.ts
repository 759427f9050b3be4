import fp from 'fastify-plugin'
import { Keys } from './keys.ts'

declare module 'fastify' {
  interface FastifyInstance { keys: Keys }
}

/** How often it is written down when keys were last used, in ms (DECISIONS §4). */
const writeInterval = 60_000

/** `app.keys`: the bearer keys. */
export default fp<{ readonly: boolean }>(async (app, { readonly }) => {
  const keys = new Keys(app.settings, readonly)
  app.decorate('keys', keys)
  if (readonly) return
  // Also where somebody wrote it into the file meanwhile.
  app.settings.on('changed', ({ system }) => {
    if (system.routing?.bearerAuthKey) {
      keys.migrate().catch((error: unknown) => {
        app.log.warn({ err: error }, 'routing.bearerAuthKey could not be made a bearer key')
      })
    }
  })
  const write = async (): Promise<void> => {
    await keys.usage.write().catch((error: unknown) => {
      app.log.debug({ err: error }, 'the last use of keys could not be written')
    })
  }
  const timer = setInterval(() => { void write() }, writeInterval).unref()
  app.addHook('onClose', async () => { clearInterval(timer); await write() })
}, { name: 'keys', dependencies: ['settings'] })
