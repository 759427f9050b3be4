import fp from 'fastify-plugin'
import { Settings } from './settings.ts'
import type { Store } from '../../db/store.ts'

declare module 'fastify' {
  interface FastifyInstance { settings: Settings }
}

export interface SettingsOptions {
  store: Store
  /** READONLY. */
  readonly: boolean
}

/** `app.settings`: the settings. @throws when they cannot be read, so that the program does not start */
export default fp<SettingsOptions>(async (app, { store, readonly }) => {
  const settings = await Settings.open(store, readonly)
  for (const problem of settings.current.problems) app.log.warn(problem)
  settings.on('changed', ({ problems }, former) => {
    const known = new Set(former.problems)
    for (const problem of problems) if (!known.has(problem)) app.log.warn(problem)
  })
  app.decorate('settings', settings)
  app.addHook('onClose', async () => { await settings.close() })
}, { name: 'settings' })
