import fp from 'fastify-plugin'
import { Tools } from './tools.ts'

declare module 'fastify' {
  interface FastifyInstance { tools: Tools }
}

export default fp(async (app) => {
  app.decorate('tools', new Tools(app.gateway, app.access))
}, { name: 'tools', dependencies: ['gateway', 'access'] })
