import fp from 'fastify-plugin'
import type { ExtensionOptions } from './parts.ts'

export { type LogOutput, logOutput, lostTerminals } from './logs/output.ts'
export type { ExtensionOptions } from './parts.ts'

export { startLog } from './logs/tap.ts'

/** What looks at calls, or changes how they are shown. */
export default fp<ExtensionOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'extensions', dependencies: ['downstream-wing'] })
