import { Type } from '@sinclair/typebox'
import { auditedEntities, type Principal, toAuthor } from '../../../plugins/settings/index.ts'
import { CleanupQuery, DeletedCount } from '../../../schemas/activities.ts'
import { createAuditQuerySchema, createAuditRecordSchema } from '../../../schemas/audit.ts'
import { revisionOfRecord } from '../../entity-tag.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { createApiRouter } from '../endpoint.ts'

/** Routes for the system configuration, the problems of the settings, the audit log, and the removal of old calls. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = createApiRouter(app, 'System')

  const revision = ({ principal }: { principal: Principal }) => revisionOfRecord(app.system.get(principal))
  api.get('/system-config', {
    summary: 'Get the system configuration',
    description: 'Includes the defaults; secrets are masked.',
    data: Type.Object({}, {
      additionalProperties: true, examples: [{ nameSeparator: '-', routing: { enableGlobalRoute: true } }]
    }),
    revision
  }, ({ principal }) => ({ data: app.system.get(principal) }))

  api.put('/system-config', {
    summary: 'Change the system configuration',
    description:
      'Accepts the sections routing, install, smartRouting, toolResultCompression, mcpRouter, oauthServer and ' +
      'notifications, and nameSeparator and enableSessionRebuild, in the format of GET /settings. A given key ' +
      'replaces its value, absent keys stay unchanged, and null resets a key to its default. Changes take effect at ' +
      'once.',
    body: Type.Object(
      {}, { additionalProperties: true, examples: [{ nameSeparator: '_', routing: { jsonBodyLimit: '5mb' } }] }
    ),
    data: Type.Object({}, { additionalProperties: true }),
    revision
  }, async ({ principal, body }) => ({
    message: 'The system configuration was changed', ...await app.system.update(principal, body)
  }))

  api.get('/settings/problems', {
    summary: 'List the problems of the settings',
    description:
      'One sentence for each problem: an ignored edit of the settings file, ignored entries, references to missing ' +
      'entries, an unavailable storage. The reason why a server is not connected is in its record.',
    data: Type.Array(Type.String(), {
      examples: [['"groups" entry 2 is ignored: an earlier one has the same "id"']]
    })
  }, () => ({ data: app.system.problems() }))

  api.get('/audit', {
    summary: 'List the changes in the audit log',
    description:
      'Newest first, with secrets masked: the last 100,000 changes with a database, otherwise the last 1,000 since ' +
      'the start of the process. Filters match exactly. A `before` or `after` that is too large to be stored is ' +
      '`{id?, name?, truncated: true}`. A changed password appears as `passwordChanged` in `after`.',
    query: createAuditQuerySchema(auditedEntities),
    response: {
      200: Type.Object({
        success: Type.Literal(true),
        data: Type.Array(createAuditRecordSchema(auditedEntities)),
        nextCursor: Type.Optional(Type.String())
      })
    }
  }, async ({ query }) => ({ ...await app.audit.list(query) }))

  createApiRouter(app, 'Activities').delete('/activities/cleanup', {
    summary: 'Remove old recorded calls',
    description: 'Removes calls older than this number of days. Calls older than ACTIVITY_RETENTION are removed ' +
      'automatically.',
    query: CleanupQuery,
    data: DeletedCount,
    before: () => { app.activities.assertAvailable() }
  }, async ({ principal, query: { daysOld = 30 } }) => {
    const deletedCount = await app.activities.removeOlderThan(daysOld)
    app.audit.addChange(
      toAuthor(principal), { entity: 'activities', name: 'activities', before: { daysOld, deletedCount } }
    )
    return { data: { deletedCount }, message: `${deletedCount} recorded calls were removed` }
  })
}
export default routes
