import fp from 'fastify-plugin'
import { Passwords } from '../secrets/password.ts'
import { Users, type UsersOptions } from './users.ts'

declare module 'fastify' {
  interface FastifyInstance { users: Users }
}

/** `app.users`: the local accounts. */
export default fp<Pick<UsersOptions, 'allowRegistration' | 'readonly'>>(async (app, options) => {
  const warn = (sentence: string): void => { app.log.warn(sentence) }
  app.decorate('users', new Users(app.settings, new Passwords(), { ...options, warn }))
}, { name: 'users', dependencies: ['settings'] })
