import fp from 'fastify-plugin'
import type { ManagementOptions } from './parts.ts'

export type { ManagementOptions } from './parts.ts'

/** What changes the settings: servers, groups, system configuration, templates, bundles. */
export default fp<ManagementOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'management', dependencies: ['upstream-wing'] })
