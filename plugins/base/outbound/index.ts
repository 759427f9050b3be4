import fp from 'fastify-plugin'
import { Outbound } from './outbound.ts'

declare module 'fastify' {
  interface FastifyInstance { outbound: Outbound }
}

/** `app.outbound`: makes all connections to other hosts. */
export default fp(async (app) => {
  const outbound = new Outbound({ allow: app.config.env.OUTBOUND_ALLOW })
  app.decorate('outbound', outbound)
  app.addHook('onClose', async () => { await outbound.close() })
}, { name: 'outbound', dependencies: ['config'] })

export type { Fetched } from './fetch.ts'
export { causeOf, reachOf, type Outbound, type Reach } from './outbound.ts'
