import fp from 'fastify-plugin'
import { Outbound } from './outbound.ts'

declare module 'fastify' {
  interface FastifyInstance { outbound: Outbound }
}

/**
 * Decorates the app with `outbound`, which makes HTTP connections to other hosts. The connections end when the app
 * closes.
 */
export default fp(async (app) => {
  const outbound = new Outbound({ allow: app.config.env.OUTBOUND_ALLOW })
  app.decorate('outbound', outbound)
  app.addHook('onClose', async () => { await outbound.close() })
}, { name: 'outbound', dependencies: ['config'] })

export { signWebhook, verifiedWebhookId } from './webhook.ts'
export type { FetchedResponse } from './fetch.ts'
export { serverMemoryOwner, outboundAccessOf, type Outbound, type OutboundAccess } from './outbound.ts'
