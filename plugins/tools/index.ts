import fp from 'fastify-plugin'
import { ownHeaders } from './own-headers.ts'
import { Tools } from './tools.ts'

declare module 'fastify' {
  interface FastifyInstance { tools: Tools }
}

export default fp(async (app) => {
  const tools = new Tools(app.gateway, app.access, app.upstreams, ownHeaders(app.keys, () => app.settings.current))
  app.decorate('tools', tools)
  app.settings.on('changed', () => {
    tools.withdraw((principal) => (principal.kind === 'anonymous' ? principal : app.auth.standing(principal)))
  })
}, { name: 'tools', dependencies: ['gateway', 'access', 'auth', 'upstream', 'keys', 'settings'] })
