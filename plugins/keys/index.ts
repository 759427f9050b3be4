import fp from 'fastify-plugin'
import { Keys } from './keys.ts'

declare module 'fastify' {
  interface FastifyInstance { keys: Keys }
}

export default fp(async (app) => {
  app.decorate('keys', new Keys(app.settings))
}, { name: 'keys', dependencies: ['settings'] })
