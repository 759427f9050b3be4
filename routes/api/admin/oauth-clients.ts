import { toShownClient } from '../../../plugins/identity/index.ts'
import { toAuthor } from '../../../plugins/settings/index.ts'
import {
  NewOAuthClient, OAuthClientParams, OAuthClientList, OAuthClientPageQuery, OAuthClientRecord, OAuthClientUpdate
} from '../../../schemas/oauth.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { createApiRouter } from '../endpoint.ts'

const keepSecret = 'Keep the secret: it is not shown again'
const messageOf = (client: { clientSecret?: string }, otherwise: string): string =>
  client.clientSecret === undefined ? otherwise : keepSecret

/** Routes that list, create, change and remove the OAuth clients of the authorization server. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { clients } = app.oauth
  app.addHook('onRequest', async () => { app.oauth.assertEnabled() })
  const api = createApiRouter(app, 'OAuth')
  const one = { params: OAuthClientParams, data: OAuthClientRecord }

  api.get('/oauth/clients', {
    summary: 'List the OAuth clients',
    description: 'Oldest first, in pages: clients can register themselves, so there can be many.',
    query: OAuthClientPageQuery,
    response: { 200: OAuthClientList }
  }, async ({ query: { page = 1, limit = 100 } }) => {
    const { clients: listed, total } = await clients.list(page, limit)
    const pagination = { page, limit, total, totalPages: Math.ceil(total / limit) }
    return { data: listed.map((client) => toShownClient({ client })), pagination }
  })

  api.post('/oauth/clients', {
    summary: 'Create an OAuth client',
    description: 'Only this response contains the secret.',
    body: NewOAuthClient,
    data: OAuthClientRecord,
    collection: '/oauth/clients'
  }, async ({ principal, body }) => {
    const data = toShownClient(await clients.create(toAuthor(principal), body))
    return {
      data,
      message: messageOf(data, 'The client was created; it is public, and has no secret'),
      created: data.clientId
    }
  })

  api.get('/oauth/clients/:clientId', { ...one, summary: 'Get an OAuth client' }, async ({ params }) =>
    ({ data: toShownClient({ client: await clients.get(params.clientId) }) }))

  api.put('/oauth/clients/:clientId', {
    ...one,
    summary: 'Change an OAuth client',
    description: 'Absent members stay unchanged. Removing a scope revokes the tokens of the client.',
    body: OAuthClientUpdate,
    before: async ({ params }) => await clients.get(params.clientId)
  }, async ({ principal, params, body }) => {
    const data = toShownClient(await clients.update(toAuthor(principal), params.clientId, body))
    return { data, message: messageOf(data, 'The client was changed') }
  })

  api.delete('/oauth/clients/:clientId', {
    summary: 'Remove an OAuth client',
    description: 'Revokes its tokens.',
    params: OAuthClientParams
  }, async ({ principal, params }) => {
    await clients.remove(toAuthor(principal), params.clientId)
    return { message: 'The client was removed' }
  })

  api.post('/oauth/clients/:clientId/regenerate-secret', {
    ...one,
    summary: 'Replace the secret of an OAuth client',
    description: 'Revokes its tokens. Only this response contains the new secret.'
  }, async ({ principal, params }) =>
    ({
      data: toShownClient(await clients.regenerateSecret(toAuthor(principal), params.clientId)),
      message: keepSecret
    }))
}
export default routes
