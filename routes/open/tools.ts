import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import type { ToolAddress } from '../../plugins/downstream/index.ts'
import { GroupOrServerToolParams, OpenRouteError, ToolParams, ToolResult } from '../../schemas/openapi-routes.ts'
import { requirePrincipal } from '../api/principal.ts'
import { bodyTextToParse } from '../bodies.ts'
import { callerOf } from '../caller.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

const tags = ['Tools']
const security: Array<Record<string, string[]>> = []
const config = { effect: 'run' } as const
const response = {
  200: ToolResult,
  400: OpenRouteError,
  403: OpenRouteError,
  404: OpenRouteError,
  502: OpenRouteError,
  503: OpenRouteError,
  504: OpenRouteError
}
/** Only for the documentation: arguments are validated by the tool's own schema. */
const postSchema = {
  body: Type.Object(
    {}, { additionalProperties: true, description: 'The arguments of the tool', examples: [{ message: 'Hello' }] }
  ),
  response: { ...response, 413: OpenRouteError, 415: OpenRouteError }
}
const withoutValidation = { validatorCompiler: () => () => true }
const description =
  'Returns the unchanged MCP result of the tool: `content`, `structuredContent?`, `isError?`. `?group=` calls the ' +
  'tool through a group.'

/**
 * The routes that call tools over plain HTTP. GET also runs a tool, so requests caused by pages of other sites, and
 * prefetches by browsers, are rejected.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.decorateRequest('principal', null)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    app.auth.checkOrigin(request)
    const { origin, 'sec-fetch-site': site, 'sec-purpose': secPurpose, purpose, 'x-moz': mozilla } = request.headers
    // Requests from pages of ALLOWED_ORIGINS are cross-site too, but have an Origin header, which was checked above.
    const isForeign = site === 'cross-site' && origin === undefined
    const isPrefetch = /prefetch|prerender|preview/i.test([secPurpose, purpose, mozilla].join(' '))
    if (isForeign || isPrefetch) throw new errors.CrossSite()
    // The caller is identified before the body is read, since the body's memory is charged to the caller.
    request.principal = await app.auth.identifyOptionally(request)
  })

  const run = async (request: FastifyRequest, reply: FastifyReply, tool: ToolAddress): Promise<string> => {
    const caller = callerOf(request, reply, requirePrincipal(request))
    const search = request.raw.url?.split('?').slice(1).join('?') ?? ''
    const given = { search, ...(request.method === 'POST' ? { body: bodyTextToParse(request, reply) } : {}) }
    const text = await app.tools.callOnOpenRoute(caller, tool, given)
    reply.type('application/json')
    return text
  }

  for (const { path, params, noun } of [
    { path: '/tools/:server/:tool', params: ToolParams, noun: 'a tool' },
    { path: '/:name/tools/:server/:tool', params: GroupOrServerToolParams, noun: 'a tool of a group' }
  ]) {
    const common = { tags, security, params, ...(params === ToolParams && { description }) }
    app.get(path, {
      schema: { ...common, summary: `Run ${noun}; arguments in the query`, response },
      config,
      // HEAD must not run a tool.
      exposeHeadRoute: false
    }, async (request, reply) => await run(request, reply, request.params as ToolAddress))
    app.post(path, {
      schema: { ...common, summary: `Run ${noun}; arguments as a JSON body`, ...postSchema },
      config,
      ...withoutValidation
    }, async (request, reply) => await run(request, reply, request.params as ToolAddress))
  }
}
export default routes
