import { Type } from '@sinclair/typebox'
import type { onRequestHookHandler } from 'fastify'
import { Done, KeyId, KeyRecord, KeyUpdate, NewKey, PageQuery, PageOf, Success, SuccessWithWarnings } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { page } from './page.ts'
import { principalOf } from './principal.ts'
import { created, succeeded } from './succeeded.ts'

const tags = ['Bearer keys']

/** Answers 404 or 403 before the body is validated (DECISIONS §1). */
const mustManage: onRequestHookHandler = (request, _reply, done) => {
  request.server.keys.mustManage(principalOf(request), (request.params as { id: string }).id)
  done()
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/auth/keys', {
    schema: {
      tags,
      summary: 'List the bearer keys that you may manage',
      querystring: PageQuery,
      response: { 200: PageOf(Type.Partial(KeyRecord)) }
    },
    config: { effect: 'read' }
  }, async (request) => ({
    success: true as const,
    ...page(app.keys.list(principalOf(request)), request.query, KeyRecord, ({ id }) => id)
  }))

  app.get('/auth/keys/:id', {
    schema: { tags, summary: 'One bearer key', params: KeyId, response: { 200: Success(KeyRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: app.keys.get(principalOf(request), request.params.id) }))

  app.post(
    '/auth/keys',
    {
      schema: {
        tags,
        summary: 'Create a bearer key',
        description: 'The token is shown in this answer and never again.',
        body: NewKey,
        response: { 201: SuccessWithWarnings(KeyRecord) }
      },
      config: { effect: 'change' }
    },
    async (request, reply) => {
      const { key, warnings } = await app.keys.create(principalOf(request), request.body)
      created(reply, 'auth/keys', key.id)
      return succeeded(key, 'Keep the token: it is not shown again', warnings)
    }
  )

  app.put(
    '/auth/keys/:id',
    {
      schema: {
        tags,
        summary: 'Change a bearer key',
        description: 'The name and `enabled`; as an admin also its scope. The token stays, and is not shown.',
        params: KeyId,
        body: KeyUpdate,
        response: { 200: SuccessWithWarnings(KeyRecord) }
      },
      config: { effect: 'change' },
      onRequest: mustManage
    },
    async (request) => {
      const { key, warnings } = await app.keys.update(principalOf(request), request.params.id, request.body)
      return succeeded(key, 'The bearer key was changed', warnings)
    }
  )

  app.delete('/auth/keys/:id', {
    schema: { tags, summary: 'Remove a bearer key', params: KeyId, response: { 200: Done } },
    config: { effect: 'change' },
    onRequest: mustManage
  }, async (request) => {
    await app.keys.remove(principalOf(request), request.params.id)
    return { success: true as const, message: 'The bearer key was removed' }
  })
}
export default routes
