import { Type } from '@sinclair/typebox'
import type { onRequestHookHandler } from 'fastify'
import {
  Done,
  GroupId,
  GroupMemberConfig,
  GroupMemberName,
  GroupMembers,
  GroupRecord,
  GroupUpdate,
  NewGroup,
  NewGroupMember,
  PageQuery,
  PageOf,
  Success,
  SuccessWithWarnings,
  ToolSelection
} from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { page } from './page.ts'
import { principalOf } from './principal.ts'
import { created, succeeded } from './succeeded.ts'

const tags = ['Groups']

/** Answers 404 or 403 before the body is validated (DECISIONS §1). */
const mustManage: onRequestHookHandler = (request, _reply, done) => {
  request.server.groups.mustManage(principalOf(request), (request.params as { id: string }).id)
  done()
}

const mustManageMember: onRequestHookHandler = (request, _reply, done) => {
  const { id, serverName } = request.params as { id: string, serverName: string }
  request.server.groups.mustManage(principalOf(request), id, serverName)
  done()
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/groups',
    {
      schema: {
        tags,
        summary: 'List the groups that you may see',
        querystring: PageQuery,
        response: { 200: PageOf(Type.Partial(GroupRecord)) }
      },
      config: { effect: 'read' }
    },
    async (request) => ({
      success: true as const,
      ...page(app.groups.list(principalOf(request)), request.query, GroupRecord, ({ name }) => name)
    })
  )

  app.post('/groups', {
    schema: { tags, summary: 'Add a group', body: NewGroup, response: { 201: SuccessWithWarnings(GroupRecord) } },
    config: { effect: 'change' }
  }, async (request, reply) => {
    const { group, warnings } = await app.groups.create(principalOf(request), request.body)
    created(reply, 'groups', group.id)
    return succeeded(group, 'The group was added', warnings)
  })

  app.get('/groups/:id', {
    schema: { tags, summary: 'One group, by id or name', params: GroupId, response: { 200: Success(GroupRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: app.groups.get(principalOf(request), request.params.id) }))

  app.put('/groups/:id', {
    schema: { tags, summary: 'Change a group', params: GroupId, body: GroupUpdate, response: { 200: SuccessWithWarnings(GroupRecord) } },
    config: { effect: 'change' },
    onRequest: mustManage
  }, async (request) => {
    const { group, warnings } = await app.groups.update(principalOf(request), request.params.id, request.body)
    return succeeded(group, 'The group was changed', warnings)
  })

  app.delete('/groups/:id', {
    schema: { tags, summary: 'Remove a group', params: GroupId, response: { 200: Done } },
    config: { effect: 'change' },
    onRequest: mustManage
  }, async (request) => {
    await app.groups.remove(principalOf(request), request.params.id)
    return { success: true as const, message: 'The group was removed' }
  })

  app.post(
    '/groups/:id/servers',
    {
      schema: {
        tags,
        summary: 'Add a server to a group',
        description: 'With all its items. A server that is a member already stays as it is.',
        params: GroupId,
        body: NewGroupMember,
        response: { 200: Success(GroupRecord) }
      },
      config: { effect: 'change' },
      onRequest: mustManage
    },
    async (request) => ({
      success: true as const,
      data: await app.groups.addServer(principalOf(request), request.params.id, request.body.serverName),
      message: 'The server was added to the group'
    })
  )

  app.delete(
    '/groups/:id/servers/:serverName',
    {
      schema: { tags, summary: 'Remove a server from a group', params: GroupMemberName, response: { 200: Success(GroupRecord) } },
      config: { effect: 'change' },
      onRequest: mustManageMember
    },
    async (request) => ({
      success: true as const,
      data: await app.groups.removeServer(principalOf(request), request.params.id, request.params.serverName),
      message: 'The server was removed from the group'
    })
  )

  app.put(
    '/groups/:id/servers/batch',
    {
      schema: {
        tags,
        summary: 'Replace all servers of a group',
        params: GroupId,
        body: GroupMembers,
        response: { 200: SuccessWithWarnings(GroupRecord) }
      },
      config: { effect: 'change' },
      onRequest: mustManage
    },
    async (request) => {
      const { group, warnings } = await app.groups.update(principalOf(request), request.params.id, { servers: request.body.servers })
      return succeeded(group, 'The servers of the group were replaced', warnings)
    }
  )

  app.get(
    '/groups/:id/server-configs',
    {
      schema: {
        tags,
        summary: 'The servers of a group, with the items selected from each',
        params: GroupId,
        response: { 200: Success(Type.Array(GroupMemberConfig)) }
      },
      config: { effect: 'read' }
    },
    async (request) => ({ success: true as const, data: app.groups.memberConfigs(principalOf(request), request.params.id) })
  )

  app.put(
    '/groups/:id/server-configs/:serverName/tools',
    {
      schema: {
        tags,
        summary: 'Choose the tools of a server in a group',
        params: GroupMemberName,
        body: ToolSelection,
        response: { 200: SuccessWithWarnings(GroupRecord) }
      },
      config: { effect: 'change' },
      onRequest: mustManageMember
    },
    async (request) => {
      const { id, serverName } = request.params
      const { group, warnings } = await app.groups.selectTools(principalOf(request), id, serverName, request.body.tools)
      return succeeded(group, 'The tools were selected', warnings)
    }
  )
}
export default routes
