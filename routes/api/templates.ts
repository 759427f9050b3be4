import type { FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { checkScopes } from '../../plugins/identity/index.ts'
import { chargedOwnerOf } from '../../plugins/settings/index.ts'
import { GroupParams } from '../../schemas/group-api.ts'
import { SuccessWithWarnings } from '../../schemas/answers.ts'
import {
  GroupTemplateQuery, TemplateImportResult, NewTemplate, SentTemplate, Template
} from '../../schemas/templates.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'
import { requirePrincipal } from './principal.ts'
import { serializeRecords } from './records.ts'

/**
 * Rejects an export request with unknown members: a misspelt `groupIds` or `serverNames` would export everything.
 * @throws InvalidInput
 */
function checkMembers ({ body }: FastifyRequest): void {
  const known = Object.keys(NewTemplate.properties)
  const unknown = Object.keys(Object(body) as object).find((name) => !known.includes(name))
  if (unknown === undefined) return
  const list = known.map((name) => JSON.stringify(name)).join(', ')
  throw new errors.InvalidInput(`${JSON.stringify(unknown.slice(0, 100))} is not known; there are ${list}`)
}

/** Routes that export servers and groups as a template, without owners and secrets, and import a template. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { templates } = app
  app.addHook('onRequest', async (request) => {
    await app.attempts.count('template', request, chargedOwnerOf(requirePrincipal(request), request.ip))
  })
  // `POST /templates/export` has the effect `read`, which requires no scope. As a POST, it still requires `manage`, the
  // scope for changes, if the caller uses an access token.
  app.addHook('preValidation', async (request) => {
    if (!request.routeOptions.url?.endsWith('/templates/export')) return
    checkScopes(requirePrincipal(request))
    checkMembers(request)
  })
  const api = createApiRouter(app, 'Templates')

  api.post('/templates/export', {
    summary: 'Create a template from servers and groups',
    description: 'Without `groupIds` and `serverNames`, the template contains everything that you manage. Secrets ' +
      'are replaced by environment variables.',
    body: NewTemplate,
    data: Template,
    effect: 'read',
    preSerialization: serializeRecords
  }, async ({ principal, body }) => await templates.export(principal, body))

  api.get('/templates/export/groups/:id', {
    summary: 'Create a template from a group and its servers',
    params: GroupParams,
    query: GroupTemplateQuery,
    data: Template,
    preSerialization: serializeRecords
  }, async ({ principal, params, query }) => await templates.exportGroup(principal, params.id, query.name))

  api.post('/templates/import', {
    summary: 'Add the servers and groups of a template',
    description:
      'Existing names are skipped. 207: some could not be added; `details` contains the reasons, and the members of ' +
      'the others that have no effect.',
    body: SentTemplate,
    response: { 200: SuccessWithWarnings(TemplateImportResult), 207: SuccessWithWarnings(TemplateImportResult) }
  }, async ({ principal, body }) => await templates.import(principal, body))
}
export default routes
