import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import logins from './login/index.ts'
import upstream, { type UpstreamOptions } from './plugin.ts'

export interface UpstreamWingOptions extends UpstreamOptions {
  storage: Pick<Storage, 'grants' | 'loginStates' | 'upstreamTokens'>
}

/** The connections to servers, and the logins at those that want OAuth. */
export default fp<UpstreamWingOptions>(async (app, options) => {
  await app.register(logins, { ...options.storage, environment: options.environment })
  await app.register(upstream, options)
}, { name: 'upstream-parts' })
