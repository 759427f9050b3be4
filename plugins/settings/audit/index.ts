import fp from 'fastify-plugin'
import type { AuditTrail } from '../../../db/audit-trail.ts'
import { AuditLog } from './audit.ts'
import { MemoryAuditTrail } from './memory-trail.ts'
import { settingsLimits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyInstance { audit: AuditLog }
}

/** How long to wait at shutdown for pending entries to be written, in ms. */
const closeTimeout = 2_000

/**
 * `app.audit`: the audit log of changes made by the management API, in the database where there is one. Each entry is
 * also written to the log of the process.
 */
export default fp<{ auditTrail?: AuditTrail }>(async (
  app, { auditTrail: trail = new MemoryAuditTrail(settingsLimits.audit) }
) => {
  const audit = new AuditLog({
    trail,
    bounds: settingsLimits.audit,
    mask: (text) => app.credentials.mask(text),
    notify: ({ username, keyId, keyName, action, entity, name }) => {
      const key = keyId === undefined ? '' : ` by key ${JSON.stringify(keyName ?? keyId)}`
      const audited = { username, keyId, keyName, action, entity, name }
      app.log.info({ audit: audited }, `${username}${key}: ${action} ${entity} ${JSON.stringify(name)}`)
    },
    warn: (sentence) => { app.log.warn(sentence) }
  })
  app.settings.on('committed', (committed) => { audit.addCommit(committed) })
  app.decorate('audit', audit)
  app.addHook('onClose', async () => { await audit.close(closeTimeout) })
}, { name: 'audit', dependencies: ['base', 'settings'] })
