import fp from 'fastify-plugin'
import { Settings } from './settings.ts'
import type { Store } from '../../db/store.ts'

declare module 'fastify' {
  interface FastifyInstance { settings: Settings }
}

export interface SettingsOptions { store: Store }

/** `app.settings`: what is written down. @throws when it cannot be read: the program does not start */
export default fp<SettingsOptions>(async (app, { store }) => {
  const settings = await Settings.open(store)
  for (const problem of settings.current.problems) app.log.warn(problem)
  app.decorate('settings', settings)
  app.addHook('onClose', async () => { await settings.close() })
}, { name: 'settings' })
