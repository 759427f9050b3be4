import fp from 'fastify-plugin'
import type { Counters } from '../../db/store.ts'

declare module 'fastify' {
  interface FastifyInstance { counters: Counters }
}

/** `app.counters`: counts that all replicas add to. */
export default fp<{ counters: Counters }>(async (app, { counters }) => {
  app.decorate('counters', counters)
}, { name: 'counters' })
