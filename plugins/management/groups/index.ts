import fp from 'fastify-plugin'
import { Groups } from './groups.ts'

declare module 'fastify' {
  interface FastifyInstance { groups: Groups }
}

/** `app.groups`: the groups. */
export default fp(async (app) => {
  app.decorate('groups', new Groups(app.settings, app.gateway))
}, { name: 'groups', dependencies: ['settings', 'gateway'] })
