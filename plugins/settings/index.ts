import fp from 'fastify-plugin'
import type { SettingsOptions } from './parts.ts'

export type { SettingsOptions } from './parts.ts'

/** What is written down, and who sees which item of it. */
export default fp<SettingsOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'settings-wing', dependencies: ['base'] })
