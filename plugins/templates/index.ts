import fp from 'fastify-plugin'
import { Templates } from './templates.ts'

declare module 'fastify' {
  interface FastifyInstance { templates: Templates }
}

/** `app.templates`: servers and groups without owners and secrets, from one gateway to another. */
export default fp(async (app) => {
  app.decorate('templates', new Templates(app.settings, app.servers, app.groups))
}, { name: 'templates', dependencies: ['settings', 'servers', 'groups', 'throttle'] })
