import fp from 'fastify-plugin'
import { Outbound } from './outbound.ts'

declare module 'fastify' {
  interface FastifyInstance { outbound: Outbound }
}

/** `app.outbound`: all connections to other hosts are made through it. @param allow the text of OUTBOUND_ALLOW */
export default fp<{ allow: string }>(async (app, { allow }) => {
  const outbound = new Outbound({ allow })
  app.decorate('outbound', outbound)
  app.addHook('onClose', async () => { await outbound.close() })
}, { name: 'outbound' })
