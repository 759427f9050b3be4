import { Type } from '@sinclair/typebox'
import { ServerName } from '../../schemas/server-api.ts'
import { ServerUser, UserName, UserView } from '../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { endpointsOf } from './endpoint.ts'
import { serializeRecords } from './records.ts'

/** Adds the routes about the users of servers. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { people, servers } = app

  endpointsOf(app, 'Users').get('/users/:username/view', {
    summary: 'What a user sees',
    description: 'The servers and groups as the user gets them, and the tools. For the user, and for admins.',
    params: UserName,
    data: UserView,
    preSerialization: serializeRecords
  }, ({ principal, params }) => ({ data: people.viewOf(principal, params.username) }))

  endpointsOf(app, 'Servers').get('/servers/:name/users', {
    summary: 'Who may use a server',
    description:
      'For its owner and admins. Admins use every server, and are listed where there is another reason. An owner who ' +
      'is no admin gets himself, whom `sharedWithUsers` names, members of his own teams, and who has used it.',
    params: ServerName,
    data: Type.Array(ServerUser),
    before: ({ principal, params }) => { servers.mustManage(principal, params.name) }
  }, async ({ principal, params }) => ({ data: await people.usersOf(principal, params.name) }))
}
export default routes
