import { Type } from '@sinclair/typebox'
import {
  GroupParams, GroupMemberConfig, GroupMemberParams, GroupMembersUpdate, GroupRecord, NewGroupMember, ToolSelection
} from '../../schemas/group-api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'
import { groupEntity } from './entities.ts'
import { addReadRoutes, addWriteRoutes } from './entity.ts'

/** Routes that read and change groups and their members (servers). */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { groups } = app
  const entity = groupEntity(app)
  addReadRoutes(app, entity)
  addWriteRoutes(app, entity)
  const api = createApiRouter(app, 'Groups')
  const ofGroup = { params: GroupParams, data: GroupRecord }
  const ofMember = { params: GroupMemberParams, data: GroupRecord }

  api.post('/groups/:id/servers', {
    ...ofGroup,
    summary: 'Add a server to a group',
    description: 'Includes all its items. An existing member stays unchanged.',
    body: NewGroupMember,
    before: ({ principal, params }) => { groups.assertCanManage(principal, params.id) }
  }, async ({ principal, params, body }) => ({
    data: await groups.addServer(principal, params.id, body.serverName),
    message: 'The server was added to the group'
  }))

  api.delete('/groups/:id/servers/:serverName', {
    ...ofMember,
    summary: 'Remove a server from a group',
    before: ({ principal, params: { id, serverName } }) => { groups.assertCanManage(principal, id, serverName) }
  }, async ({ principal, params }) => ({
    data: await groups.removeServer(principal, params.id, params.serverName),
    message: 'The server was removed from the group'
  }))

  api.put('/groups/:id/servers/batch', {
    ...ofGroup,
    summary: 'Replace all servers of a group',
    body: GroupMembersUpdate,
    before: ({ principal, params }) => { groups.assertCanManage(principal, params.id) }
  }, async ({ principal, params, body }) => ({
    ...await groups.update(principal, params.id, { servers: body.servers }),
    message: 'The servers of the group were replaced'
  }))

  api.get('/groups/:id/server-configs', {
    summary: 'List the servers of a group, with the items selected from each',
    params: GroupParams,
    data: Type.Array(GroupMemberConfig)
  }, ({ principal, params }) => ({ data: groups.memberConfigs(principal, params.id) }))

  api.put('/groups/:id/server-configs/:serverName/tools', {
    ...ofMember,
    summary: 'Select the tools of a server in a group',
    body: ToolSelection,
    before: ({ principal, params: { id, serverName } }) => { groups.assertCanManage(principal, id, serverName) }
  }, async ({ principal, params: { id, serverName }, body }) => ({
    ...await groups.selectTools(principal, id, serverName, body.tools),
    message: 'The tools were selected'
  }))
}
export default routes
