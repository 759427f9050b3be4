import fp from 'fastify-plugin'
import builtIns from './builtins/index.ts'
import { Gateway } from './gateway.ts'

declare module 'fastify' {
  interface FastifyInstance { gateway: Gateway }
}

/**
 * Decorates `app.gateway`, which lists and runs all tools, prompts and resources, for MCP, REST and OpenAPI. Providers
 * register with it.
 */
const gateway = fp(async (app) => {
  const gateway = new Gateway({
    access: app.access,
    serverInfo: { name: 'tool-hub', version: app.config.version },
    logError: (error, sentence) => { app.log.error({ err: error }, sentence) }
  })
  app.decorate('gateway', gateway)
  app.addHook('onClose', async () => { await gateway.close() })
}, { name: 'gateway', dependencies: ['config', 'settings', 'access'] })

/** The gateway, with its built-in prompts and resources. */
export default fp(async (app) => {
  await app.register(gateway)
  await app.register(builtIns)
}, { name: 'gateway-parts' })
