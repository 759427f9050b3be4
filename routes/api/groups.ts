import { Type } from '@sinclair/typebox'
import { page } from '../../plugins/servers/page.ts'
import { Done, GroupId, GroupRecord, GroupUpdate, NewGroup, Page, PageOf, Success } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './index.ts'

const tags = ['Groups']

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/groups', {
    schema: { tags, summary: 'List the groups that you may see', querystring: Page, PageOf, response: { 200: PageOf(Type.Partial(GroupRecord)) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, ...page(app.groups.list(principalOf(request)), request.query) }))

  app.post('/groups', {
    schema: { tags, summary: 'Add a group', body: NewGroup, response: { 201: Success(GroupRecord) } },
    config: { effect: 'change' }
  }, async (request, reply) => {
    const { group, warning } = await app.groups.create(principalOf(request), request.body)
    reply.code(201)
    return { success: true as const, data: group, message: warning ?? 'The group was added' }
  })

  app.get('/groups/:id', {
    schema: { tags, summary: 'One group, by id or name', params: GroupId, response: { 200: Success(GroupRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: app.groups.get(principalOf(request), request.params.id) }))

  app.put('/groups/:id', {
    schema: { tags, summary: 'Change a group', params: GroupId, body: GroupUpdate, response: { 200: Success(GroupRecord) } },
    config: { effect: 'change' },
    // Whether it is there, and yours, is answered before what is wrong with the body (DECISIONS §1).
    preValidation: (request, _reply, done) => { app.groups.mustManage(principalOf(request), request.params.id); done() }
  }, async (request) => {
    const { group, warning } = await app.groups.update(principalOf(request), request.params.id, request.body)
    return { success: true as const, data: group, message: warning ?? 'The group was changed' }
  })

  app.delete('/groups/:id', {
    schema: { tags, summary: 'Remove a group', params: GroupId, response: { 200: Done } },
    config: { effect: 'change' }
  }, async (request) => {
    await app.groups.remove(principalOf(request), request.params.id)
    return { success: true as const, message: 'The group was removed' }
  })
}
export default routes
