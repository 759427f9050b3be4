import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/errors/list.ts'
import type { ToolWord } from '../../plugins/tools/tools.ts'
import { OpenFailure, PartToolPath, ToolPath, ToolResult } from '../../schemas/openapi-routes.ts'
import { callerOf } from '../caller.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

const tags = ['Tools']
const security: Array<Record<string, string[]>> = []
const config = { effect: 'run' } as const
const response = {
  200: ToolResult,
  400: OpenFailure,
  403: OpenFailure,
  404: OpenFailure,
  502: OpenFailure,
  503: OpenFailure,
  504: OpenFailure
}
/** Arguments are checked by the tool's own schema; the route's is for its documentation. */
const posted = {
  body: Type.Object({}, { additionalProperties: true, description: 'The arguments of the tool', examples: [{ message: 'Hello' }] }),
  response: { ...response, 413: OpenFailure, 415: OpenFailure }
}
/** HEAD runs nothing. */
const exposeHeadRoute = false
const unchecked = { validatorCompiler: () => () => true }
const description =
  'Answers the MCP result as the tool gave it: `content`, `structuredContent?`, `isError?`. `?group=` asks through a group.'

/** Tools over plain HTTP. GET runs them too: so pages of other sites, and what fetches ahead, are kept out. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    app.auth.origin(request)
    const { origin, 'sec-fetch-site': site, 'sec-purpose': purpose, purpose: formerly, 'x-moz': mozilla } = request.headers
    // A page that ALLOWED_ORIGINS names is of another site, too; it says which.
    if ((site === 'cross-site' && origin === undefined) || /prefetch|prerender|preview/i.test([purpose, formerly, mozilla].join(' '))) {
      throw new errors.CrossSite()
    }
  })

  const run = async (request: FastifyRequest, reply: FastifyReply, word: ToolWord): Promise<string> => {
    const caller = callerOf(request, reply, await app.auth.optional(request))
    const search = request.raw.url?.split('?').slice(1).join('?') ?? ''
    const given = { search, ...(request.method === 'POST' ? { body: String(request.body ?? '') } : {}) }
    const text = await app.tools.open(caller, word, given)
    reply.type('application/json')
    return text
  }

  app.get(
    '/tools/:server/:tool',
    {
      schema: { tags, security, summary: 'Run a tool; arguments in the query', description, params: ToolPath, response },
      config,
      exposeHeadRoute
    },
    async (request, reply) => await run(request, reply, request.params)
  )
  app.post(
    '/tools/:server/:tool',
    {
      schema: { tags, security, summary: 'Run a tool; arguments as a JSON body', description, params: ToolPath, ...posted },
      config,
      ...unchecked
    },
    async (request, reply) => await run(request, reply, request.params)
  )
  app.get(
    '/:name/tools/:server/:tool',
    {
      schema: { tags, security, summary: 'Run a tool of a group; arguments in the query', params: PartToolPath, response },
      config,
      exposeHeadRoute
    },
    async (request, reply) => await run(request, reply, request.params)
  )
  app.post(
    '/:name/tools/:server/:tool',
    {
      schema: { tags, security, summary: 'Run a tool of a group; arguments as a JSON body', params: PartToolPath, ...posted },
      config,
      ...unchecked
    },
    async (request, reply) => await run(request, reply, request.params)
  )
}
export default routes
