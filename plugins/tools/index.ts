import fp from 'fastify-plugin'
import { ownHeaders } from './own-headers.ts'
import { Tools } from './tools.ts'

declare module 'fastify' {
  interface FastifyInstance { tools: Tools }
}

export default fp(async (app) => {
  app.decorate('tools', new Tools(app.gateway, app.access, app.upstreams, ownHeaders(app.keys, () => app.settings.current)))
}, { name: 'tools', dependencies: ['gateway', 'access', 'upstream', 'keys', 'settings'] })
