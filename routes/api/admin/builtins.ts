import type { onRequestHookHandler } from 'fastify'
import { Done, Success } from '../../../schemas/api.ts'
import {
  BuiltInId,
  NewPrompt,
  NewResource,
  PromptRecord,
  PromptUpdate,
  ResourceRecord,
  ResourceUpdate
} from '../../../schemas/builtins.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { principalOf } from '../principal.ts'
import { created } from '../succeeded.ts'

const tags = ['Built-ins']

/** Answers 404 before the body is validated (DECISIONS §1). */
const mustExist = (list: 'prompts' | 'resources'): onRequestHookHandler => (request, _reply, done) => {
  request.server.builtIns[list].get((request.params as { id: string }).id)
  done()
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { prompts, resources } = app.builtIns

  app.post('/prompts', {
    schema: {
      tags,
      summary: 'Add a built-in prompt',
      description: 'It is listed on the global MCP route. `{{name}}` in its template is replaced by the argument of that name.',
      body: NewPrompt,
      response: { 201: Success(PromptRecord) }
    },
    config: { effect: 'change' }
  }, async (request, reply) => {
    const data = await prompts.create(principalOf(request), request.body)
    created(reply, 'prompts', data.id)
    return { success: true as const, data, message: 'The prompt was added' }
  })

  app.put('/prompts/:id', {
    schema: {
      tags,
      summary: 'Change a built-in prompt',
      params: BuiltInId,
      body: PromptUpdate,
      response: { 200: Success(PromptRecord) }
    },
    config: { effect: 'change' },
    onRequest: mustExist('prompts')
  }, async (request) => {
    const data = await prompts.update(principalOf(request), request.params.id, request.body)
    return { success: true as const, data, message: 'The prompt was changed' }
  })

  app.delete('/prompts/:id', {
    schema: { tags, summary: 'Remove a built-in prompt', params: BuiltInId, response: { 200: Done } },
    config: { effect: 'change' },
    onRequest: mustExist('prompts')
  }, async (request) => {
    await prompts.remove(principalOf(request), request.params.id)
    return { success: true as const, message: 'The prompt was removed' }
  })

  app.post('/resources', {
    schema: {
      tags,
      summary: 'Add a built-in resource',
      description: 'It is listed on the global MCP route.',
      body: NewResource,
      response: { 201: Success(ResourceRecord) }
    },
    config: { effect: 'change' }
  }, async (request, reply) => {
    const data = await resources.create(principalOf(request), request.body)
    created(reply, 'resources', data.id)
    return { success: true as const, data, message: 'The resource was added' }
  })

  app.put('/resources/:id', {
    schema: {
      tags,
      summary: 'Change a built-in resource',
      params: BuiltInId,
      body: ResourceUpdate,
      response: { 200: Success(ResourceRecord) }
    },
    config: { effect: 'change' },
    onRequest: mustExist('resources')
  }, async (request) => {
    const data = await resources.update(principalOf(request), request.params.id, request.body)
    return { success: true as const, data, message: 'The resource was changed' }
  })

  app.delete('/resources/:id', {
    schema: { tags, summary: 'Remove a built-in resource', params: BuiltInId, response: { 200: Done } },
    config: { effect: 'change' },
    onRequest: mustExist('resources')
  }, async (request) => {
    await resources.remove(principalOf(request), request.params.id)
    return { success: true as const, message: 'The resource was removed' }
  })
}
export default routes
