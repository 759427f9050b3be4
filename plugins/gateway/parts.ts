import fp from 'fastify-plugin'
import builtIns from './builtins/index.ts'
import gateway from './plugin.ts'

/** The gateway, and the prompts and resources of its own. */
export default fp(async (app) => {
  await app.register(gateway)
  await app.register(builtIns)
}, { name: 'gateway-parts' })
