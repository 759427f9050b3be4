import { VariableNamesByUser, MyValues, MyVariables, ServerParams } from '../../schemas/server-api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { type ApiHandlerContext, createApiRouter } from './endpoint.ts'

/** Routes that set, list and remove the values that each user gives for the `userVariables` of a server. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { ownVariables, servers } = app
  const api = createApiRouter(app, 'Servers')
  const mine = {
    params: ServerParams,
    before: ({ principal, params }: Pick<ApiHandlerContext<typeof ServerParams>, 'principal' | 'params'>) => {
      ownVariables.assertIsUser(principal, params.name)
    }
  }

  api.get('/servers/:name/my-variables', {
    ...mine, summary: 'List the values that a server requires from you', data: MyVariables
  }, async ({ principal, params }) => ({ data: await ownVariables.get(principal, params.name) }))

  api.put('/servers/:name/my-variables', {
    ...mine,
    summary: 'Set your values for a server',
    description:
      'Your connection to the server uses these values (`userVariables` of its config). They are stored encrypted, ' +
      'and never returned.',
    body: MyValues,
    data: MyVariables
  }, async ({ principal, params, body: { values } }) => await ownVariables.setValues(principal, params.name, values))

  api.delete('/servers/:name/my-variables', {
    ...mine, summary: 'Remove your values for a server'
  }, async ({ principal, params }) => {
    const existed = await ownVariables.forget(principal, params.name)
    return { message: existed ? 'Your values were removed' : 'You had set no values' }
  })

  api.get('/servers/:name/variables', {
    summary: 'List the users who have set values for a server',
    description: 'For its owner and admins; the values are not returned.',
    params: ServerParams,
    before: ({ principal, params }) => { servers.assertCanManage(principal, params.name) },
    data: VariableNamesByUser
  }, async ({ principal, params }) => ({ data: await ownVariables.list(principal, params.name) }))
}
export default routes
