import fp from 'fastify-plugin'
import { Servers } from './servers.ts'

declare module 'fastify' {
  interface FastifyInstance { servers: Servers }
}

/** Decorates the app with `servers`, which manages the configured servers. */
export default fp(async (app) => {
  const { ALLOW_USER_STDIO: usersMayRun } = app.config.env
  app.decorate('servers', new Servers(app, usersMayRun))
}, { name: 'servers', dependencies: ['config', 'settings', 'outbound', 'upstream', 'gateway', 'pins', 'user-values'] })
