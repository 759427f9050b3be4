import fp from 'fastify-plugin'
import { Outbound } from './outbound.ts'

declare module 'fastify' {
  interface FastifyInstance { outbound: Outbound }
}

/** `app.outbound`: all connections to other hosts are made through it. */
export default fp(async (app) => {
  const outbound = new Outbound({ allow: app.config.env.OUTBOUND_ALLOW })
  app.decorate('outbound', outbound)
  app.addHook('onClose', async () => { await outbound.close() })
}, { name: 'outbound', dependencies: ['config'] })
