import { Type } from '@sinclair/typebox'
import type { onRequestHookHandler } from 'fastify'
import { Done, PageQuery, PageOf, Success } from '../../../schemas/api.ts'
import { NewUser, UserName, UserRecord, UserStats, UserUpdate } from '../../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { page } from '../page.ts'
import { principalOf } from '../principal.ts'
import { created } from '../succeeded.ts'

const tags = ['Users']

/** Answers 404 before the body is validated (DECISIONS §1). */
const mustExist: onRequestHookHandler = (request, _reply, done) => {
  request.server.users.mustGet((request.params as { username: string }).username)
  done()
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/users', {
    schema: { tags, summary: 'List the users', querystring: PageQuery, response: { 200: PageOf(Type.Partial(UserRecord)) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, ...page(app.users.list(), request.query, UserRecord, ({ username }) => username) }))

  app.get('/users/:username', {
    schema: { tags, summary: 'One user', params: UserName, response: { 200: Success(UserRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: app.users.mustGet(request.params.username) }))

  app.post('/users', {
    schema: { tags, summary: 'Add a user', body: NewUser, response: { 201: Success(UserRecord) } },
    config: { effect: 'change' }
  }, async (request, reply) => {
    const data = await app.users.create(principalOf(request), request.body)
    created(reply, 'users', data.username)
    return { success: true as const, data, message: 'The user was added' }
  })

  app.put(
    '/users/:username',
    {
      schema: {
        tags,
        summary: 'Change a user',
        description: 'A new password ends earlier logins; a change of `isAdmin` takes effect at once.',
        params: UserName,
        body: UserUpdate,
        response: { 200: Success(UserRecord) }
      },
      config: { effect: 'change' },
      onRequest: mustExist
    },
    async (request) => ({
      success: true as const,
      data: await app.users.update(principalOf(request), request.params.username, request.body),
      message: 'The user was changed'
    })
  )

  app.delete(
    '/users/:username',
    {
      schema: {
        tags,
        summary: 'Remove a user',
        description:
          'Its servers and groups pass to `admin`, servers become private, bearer keys are removed, logins and sessions end.',
        params: UserName,
        response: { 200: Done }
      },
      config: { effect: 'change' },
      onRequest: mustExist
    },
    async (request) => {
      await app.users.remove(principalOf(request), request.params.username)
      return { success: true as const, message: 'The user was removed' }
    }
  )

  app.get('/users-stats', {
    schema: { tags, summary: 'How many users there are', response: { 200: Success(UserStats) } },
    config: { effect: 'read' }
  }, async () => ({ success: true as const, data: app.users.stats() }))
}
export default routes
