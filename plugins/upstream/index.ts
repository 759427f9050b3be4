import fp from 'fastify-plugin'
import type { UpstreamWingOptions } from './parts.ts'

export type { UpstreamWingOptions } from './parts.ts'

/** The servers that are alive, as providers of the gateway. */
export default fp<UpstreamWingOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'upstream-wing', dependencies: ['gateway-wing', 'identity'] })
