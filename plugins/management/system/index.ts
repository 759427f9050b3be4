import fp from 'fastify-plugin'
import { System } from './system.ts'

declare module 'fastify' {
  interface FastifyInstance { system: System }
}

/** `app.system`: the system configuration. */
export default fp(async (app) => {
  app.decorate('system', new System(app.settings, (sentence) => { app.log.warn(sentence) }))
}, { name: 'system', dependencies: ['settings', 'keys'] })
