import fp from 'fastify-plugin'
import { limits } from '../limits/index.ts'
import { Audit } from './audit.ts'

declare module 'fastify' {
  interface FastifyInstance { audit: Audit }
}

/** `app.audit`: the audit log of changes made by the management API. Each entry is also written to the log of the process. */
export default fp(async (app) => {
  const audit = new Audit(limits.audit, ({ username, action, entity, name }) => {
    app.log.info({ audit: { username, action, entity, name } }, `${username}: ${action} ${entity} ${JSON.stringify(name)}`)
  })
  app.settings.on('committed', (committed) => { audit.add(committed) })
  app.decorate('audit', audit)
}, { name: 'audit', dependencies: ['settings'] })
