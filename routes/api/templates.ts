import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { checkScopes } from '../../plugins/identity/index.ts'
import { ownerOf } from '../../plugins/settings/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'
import { GroupId, Success, SuccessWithWarnings } from '../../schemas/api.ts'
import { GroupTemplate, Imported, NewTemplate, SentTemplate, Template } from '../../schemas/templates.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'
import { serializeRecords } from './records.ts'
import { succeeded } from './succeeded.ts'

const tags = ['Templates']

const list = (names: readonly string[]): string => names.map((name) => JSON.stringify(name)).join(', ')

/** What is to be known of a template: members of groups that are not in it, and bundles that its servers run. */
function remarksOn (leftOut: readonly string[], bundles: readonly string[]): { message?: string } {
  const sentences = [
    ...(leftOut.length === 0 ? [] : [`Left out, since you do not manage them: ${list(leftOut)}`]),
    ...(bundles.length === 0
      ? []
      : [`Bundles are not in a template, and configs name their folder of this gateway: upload ${list(bundles)} there, and put that in`])
  ]
  return sentences.length === 0 ? {} : { message: sentences.join('. ') }
}

/** The answer to an import: the result of each item, and the environment variables that the new servers need. */
function resultOf ({ details }: Imported, variables: readonly string[]): string {
  const has = (action: Imported['details'][number]['action']): boolean => details.some((each) => each.action === action)
  const cause = '`details` says why'
  const result = has('created')
    ? has('failed') ? `A part of the template was imported: ${cause} the rest was not` : 'The template was imported'
    : has('failed')
      ? `Nothing of the template was imported: ${cause}`
      : has('skipped') ? 'Nothing was imported: all names of the template exist already' : 'The template is empty: nothing was imported'
  return variables.length === 0
    ? result
    : `${result}. Its servers need these environment variables of the gateway, which are filled in for admins' servers only: ` +
      variables.join(', ')
}

/** Who asks, and to whom the work for it is counted. */
function callerOf (request: FastifyRequest): [principal: ReturnType<typeof principalOf>, owner: string] {
  const principal = principalOf(request)
  return [principal, ownerOf(principal, request.ip)]
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const count: onRequestAsyncHookHandler = async (request) => {
    await app.attempts.countTemplate(request, callerOf(request)[1])
  }
  app.addHook('onRequest', count)
  const bundlesIn = ({ servers }: Template): string[] => app.bundles.namesIn(Object.values(servers) as ServerConfig[])

  app.post('/templates/export', {
    schema: {
      tags,
      summary: 'Make a template of servers and groups',
      description: 'With neither groups nor servers named, of all that you manage. Environment variables stand in the places of secrets.',
      body: NewTemplate,
      response: { 200: Success(Template) }
    },
    config: { effect: 'read' },
    preSerialization: serializeRecords,
    // An access token needs `manage` for each method but GET (DECISIONS §3).
    preValidation: (request, _reply, done) => {
      checkScopes(principalOf(request))
      // What is misspelt would export everything.
      const unknown = Object.keys(Object(request.body) as object).find((name) => !Object.hasOwn(NewTemplate.properties, name))
      const sentence = `${JSON.stringify(unknown?.slice(0, 100))} is not known; there are ${list(Object.keys(NewTemplate.properties))}`
      done(unknown === undefined ? undefined : new errors.InvalidInput(sentence))
    }
  }, async (request) => {
    const { template, leftOut } = await app.templates.export(...callerOf(request), request.body)
    return { success: true as const, data: template, ...remarksOn(leftOut, bundlesIn(template)) }
  })

  app.get('/templates/export/groups/:id', {
    schema: {
      tags,
      summary: 'Make a template of one group and its servers',
      params: GroupId,
      querystring: GroupTemplate,
      response: { 200: Success(Template) }
    },
    config: { effect: 'read' },
    preSerialization: serializeRecords
  }, async (request) => {
    const { template, leftOut } = await app.templates.exportGroup(...callerOf(request), request.params.id, request.query.name)
    return { success: true as const, data: template, ...remarksOn(leftOut, bundlesIn(template)) }
  })

  app.post('/templates/import', {
    schema: {
      tags,
      summary: 'Add the servers and groups of a template',
      description:
        'Existing names are skipped. 207: some could not be added; `details` says which, and why, and what of the others has no effect.',
      body: SentTemplate,
      response: { 200: SuccessWithWarnings(Imported), 207: SuccessWithWarnings(Imported) }
    },
    config: { effect: 'change' }
  }, async (request, reply) => {
    const { variables, warnings, ...data } = await app.templates.import(principalOf(request), request.body)
    if (data.details.some(({ action }) => action === 'failed')) reply.code(207)
    return succeeded(data, resultOf(data, variables), warnings)
  })
}
export default routes
