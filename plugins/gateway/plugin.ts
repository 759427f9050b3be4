import fp from 'fastify-plugin'
import { Gateway } from './gateway.ts'

declare module 'fastify' {
  interface FastifyInstance { gateway: Gateway }
}

/** `app.gateway`: lists and runs all tools, prompts and resources, for MCP, REST and OpenAPI. Providers register with it. */
export default fp(async (app) => {
  const gateway = new Gateway({
    access: app.access,
    serverInfo: { name: 'tool-hub', version: app.config.version },
    logError: (error, sentence) => { app.log.error({ err: error }, sentence) }
  })
  app.decorate('gateway', gateway)
  app.addHook('onClose', async () => { await gateway.close() })
}, { name: 'gateway', dependencies: ['config', 'settings', 'access'] })
