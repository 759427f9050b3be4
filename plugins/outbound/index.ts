import fp from 'fastify-plugin'
import { Agent, type Dispatcher } from 'undici'

declare module 'fastify' {
  interface FastifyInstance { outbound: Outbound }
}

/** The one way out: where sockets to upstreams come from. */
export interface Outbound {
  /** The dispatcher that requests to this address go through. */
  dispatcher: (url: URL) => Dispatcher
}

const connectTimeout = 10_000

export default fp(async (app) => {
  // No bound on connections: event streams hold theirs for hours, and a call must never queue behind one.
  const agent = new Agent({ connect: { timeout: connectTimeout }, keepAliveTimeout: 4_000, headersTimeout: 0, bodyTimeout: 0 })
  app.decorate('outbound', { dispatcher: () => agent })
  app.addHook('onClose', async () => { await agent.destroy() })
}, { name: 'outbound' })
