import fp from 'fastify-plugin'
import { Servers } from './servers.ts'

declare module 'fastify' {
  interface FastifyInstance { servers: Servers }
}

/** `app.servers`: the configured servers. @param usersMayRun ALLOW_USER_STDIO */
export default fp<{ usersMayRun: boolean }>(async (app, { usersMayRun }) => {
  app.decorate('servers', new Servers(app.settings, app.upstreams, app.gateway, usersMayRun, app.outbound))
}, { name: 'servers', dependencies: ['settings', 'outbound', 'upstream', 'gateway'] })
