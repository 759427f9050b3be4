import fp from 'fastify-plugin'
import type { ExtensionOptions } from './parts.ts'

export { type LogOutput, createLogOutput, createLostTerminalCloser } from './logs/logger.ts'
export { extensionsLimits } from './limits.ts'
export type { ExtensionOptions } from './parts.ts'

export { prepareLog } from './logs/logger.ts'
export type { ShownApproval } from './policies/approvals.ts'
export { escapeInvisible } from './policies/escape-invisible.ts'
export { explanationKey, type ScoreReasons } from './smart-routing/reasons.ts'

/** Registers the extensions of the gateway: hooks that observe or change calls, and presentations that change lists. */
export default fp<ExtensionOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'extensions', dependencies: ['downstream-wing'] })
