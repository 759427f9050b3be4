import fp from 'fastify-plugin'
import type { Counters, Storage } from '../../db/store.ts'
import config, { type SharedEnv } from './config/config.ts'
import errors from './errors/handlers.ts'
import largeReplies from './limits/large-replies.ts'
import outbound from './outbound/index.ts'
import pages from './pages/index.ts'
import scopes from './scopes/index.ts'
import type { OwnCredentials } from './secrets/own-credentials.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The phase of the process: `server.ts` sets `ready`, `app.ts` sets `draining`. */
    phase: { name: 'starting' | 'ready' | 'draining' }
    /** Counters shared by all replicas. */
    counters: Counters
    /** Recognizes credentials that the gateway has issued. */
    credentials: OwnCredentials
  }
}

export interface BaseOptions {
  version: string
  env: SharedEnv
  storage: Pick<Storage, 'counters'>
  credentials: OwnCredentials
}

export { createServer, type ServerOptions } from './server.ts'

/** Registers what the other plugins need: options, errors, limits, route scopes, outbound connections, pages. */
export default fp<BaseOptions>(async (app, { version, env, storage, credentials }) => {
  app.decorate('phase', { name: 'starting' })
  app.decorate('credentials', credentials)
  app.decorate('counters', storage.counters)
  await app.register(config, { version, env })
  await app.register(errors)
  await app.register(largeReplies)
  await app.register(scopes)
  await app.register(outbound)
  await app.register(pages)
}, { name: 'base' })
