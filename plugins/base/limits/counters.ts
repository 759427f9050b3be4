import fp from 'fastify-plugin'
import type { Counters } from '../../../db/store.ts'

declare module 'fastify' {
  interface FastifyInstance { counters: Counters }
}

/** `app.counters`: counters that all replicas share. */
export default fp<{ counters: Counters }>(async (app, { counters }) => {
  app.decorate('counters', counters)
}, { name: 'counters' })
