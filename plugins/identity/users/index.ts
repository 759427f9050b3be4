import fp from 'fastify-plugin'
import { Passwords } from '../../base/secrets/index.ts'
import { Users } from './users.ts'

declare module 'fastify' {
  interface FastifyInstance { users: Users }
}

/** `app.users`: the local accounts. */
export default fp(async (app) => {
  const { ALLOW_REGISTRATION: allowRegistration, READONLY: readonly } = app.config.env
  const warn = (sentence: string): void => { app.log.warn(sentence) }
  app.decorate('users', new Users(app.settings, new Passwords(), { allowRegistration, readonly, warn }))
}, { name: 'users', dependencies: ['config', 'settings'] })
