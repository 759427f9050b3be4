import fp from 'fastify-plugin'
import type { IdentityOptions } from './parts.ts'

export type { IdentityOptions } from './parts.ts'

/** Who is asking. */
export default fp<IdentityOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'identity', dependencies: ['settings-wing'] })
