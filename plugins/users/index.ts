import fp from 'fastify-plugin'
import { Users } from './users.ts'

declare module 'fastify' {
  interface FastifyInstance { users: Users }
}

export default fp(async (app) => {
  app.decorate('users', new Users(app.settings))
}, { name: 'users', dependencies: ['settings'] })
