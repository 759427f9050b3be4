import { Type } from '@sinclair/typebox'
import { ServerParams } from '../../schemas/server-api.ts'
import { UserOfServer, UserParams, VisibleToUser } from '../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'
import { serializeRecords } from './records.ts'

/** Routes that show what a user may use, and which users may use a server. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { people, servers } = app

  createApiRouter(app, 'Users').get('/users/:username/view', {
    summary: 'Show what a user sees',
    description: 'The servers and groups in the form that the user gets, and the tools. For the user and for admins.',
    params: UserParams,
    data: VisibleToUser,
    preSerialization: serializeRecords
  }, ({ principal, params }) => ({ data: people.visibleToUser(principal, params.username) }))

  createApiRouter(app, 'Servers').get('/servers/:name/users', {
    summary: 'List the users who may use a server',
    description:
      'For its owner and admins. Admins may use every server, and are listed only if they have another reason to. An ' +
      'owner without admin rights sees the owner, the users whom the server is shared with, and, if it is public, ' +
      'only those other users who have used it.',
    params: ServerParams,
    data: Type.Array(UserOfServer),
    before: ({ principal, params }) => { servers.assertCanManage(principal, params.name) }
  }, async ({ principal, params }) => ({ data: await people.usersOf(principal, params.name) }))
}
export default routes
