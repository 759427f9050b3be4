import { Type } from '@sinclair/typebox'
import { PageQuery, PageOf, Success } from '../../schemas/api.ts'
import { BuiltInId, PromptRecord, ReadResource, ResourceRecord } from '../../schemas/builtins.ts'
import { callerOf } from '../caller.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { page } from './page.ts'
import { principalOf } from './principal.ts'

const tags = ['Built-ins']

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/prompts', {
    schema: {
      tags,
      summary: 'List the built-in prompts',
      querystring: PageQuery,
      response: { 200: PageOf(Type.Partial(PromptRecord)) }
    },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, ...page(app.builtIns.prompts.list(), request.query, PromptRecord, ({ name }) => name) }))

  app.get('/prompts/:id', {
    schema: { tags, summary: 'One built-in prompt', params: BuiltInId, response: { 200: Success(PromptRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: app.builtIns.prompts.get(request.params.id) }))

  app.get('/resources', {
    schema: {
      tags,
      summary: 'List the built-in resources',
      querystring: PageQuery,
      response: { 200: PageOf(Type.Partial(ResourceRecord)) }
    },
    config: { effect: 'read' }
  }, async (request) => ({
    success: true as const,
    ...page(app.builtIns.resources.list(), request.query, ResourceRecord, ({ uri }) => uri)
  }))

  app.get('/resources/:id', {
    schema: { tags, summary: 'One built-in resource', params: BuiltInId, response: { 200: Success(ResourceRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: app.builtIns.resources.get(request.params.id) }))

  app.post(
    '/resources/read',
    {
      schema: {
        tags,
        summary: 'Read a resource',
        description: 'A built-in one, or one of any server that you may see: by its URI, listed or of a template.',
        body: ReadResource,
        response: { 200: Type.Unsafe<string>(Success(Type.Object({ contents: Type.Array(Type.Unknown()) }))) }
      },
      config: { effect: 'run' }
    },
    async (request, reply) => {
      const data = await app.tools.read(callerOf(request, reply, principalOf(request)), request.body.uri)
      reply.type('application/json')
      return `{"success":true,"data":${data}}`
    }
  )
}
export default routes
