import { toClientRecord } from '../../../plugins/identity/index.ts'
import { toAuthor } from '../../../plugins/settings/index.ts'
import {
  NewOAuthClient, OAuthClientId, OAuthClientList, OAuthClientPage, OAuthClientRecord, OAuthClientUpdate
} from '../../../schemas/oauth.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { endpointsOf } from '../endpoint.ts'

const keepSecret = 'Keep the secret: it is not shown again'
const messageOf = (client: { clientSecret?: string }, otherwise: string): string =>
  client.clientSecret === undefined ? otherwise : keepSecret

/** The clients of the authorization server. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { clients } = app.oauth
  app.addHook('onRequest', async () => { app.oauth.assertEnabled() })
  const api = endpointsOf(app, 'OAuth')
  const one = { params: OAuthClientId, data: OAuthClientRecord }

  api.get('/oauth/clients', {
    summary: 'List the OAuth clients',
    description: 'Oldest first. Anybody may register one, so that there can be many: the list comes in pages.',
    query: OAuthClientPage,
    response: { 200: OAuthClientList }
  }, async ({ query: { page = 1, limit = 100 } }) => {
    const { clients: listed, total } = await clients.list(page, limit)
    const pagination = { page, limit, total, totalPages: Math.ceil(total / limit) }
    return { data: listed.map((client) => toClientRecord({ client })), pagination }
  })

  api.post('/oauth/clients', {
    summary: 'Create an OAuth client',
    description: 'The secret is shown in this answer and never again.',
    body: NewOAuthClient,
    data: OAuthClientRecord,
    collection: '/oauth/clients'
  }, async ({ principal, body }) => {
    const data = toClientRecord(await clients.create(toAuthor(principal), body))
    return {
      data,
      message: messageOf(data, 'The client was created; it is public, and has no secret'),
      created: data.clientId
    }
  })

  api.get('/oauth/clients/:clientId', { ...one, summary: 'Show an OAuth client' }, async ({ params }) =>
    ({ data: toClientRecord({ client: await clients.get(params.clientId) }) }))

  api.put('/oauth/clients/:clientId', {
    ...one,
    summary: 'Change an OAuth client',
    description: 'What is not given stays. A scope that is taken away ends the tokens of the client.',
    body: OAuthClientUpdate,
    before: async ({ params }) => await clients.get(params.clientId)
  }, async ({ principal, params, body }) => {
    const data = toClientRecord(await clients.update(toAuthor(principal), params.clientId, body))
    return { data, message: messageOf(data, 'The client was changed') }
  })

  api.delete('/oauth/clients/:clientId', {
    summary: 'Remove an OAuth client',
    description: 'Its tokens end.',
    params: OAuthClientId
  }, async ({ principal, params }) => {
    await clients.remove(toAuthor(principal), params.clientId)
    return { message: 'The client was removed' }
  })

  api.post('/oauth/clients/:clientId/regenerate-secret', {
    ...one,
    summary: 'Give an OAuth client another secret',
    description: 'Its tokens end. The secret is shown in this answer and never again.'
  }, async ({ principal, params }) =>
    ({
      data: toClientRecord(await clients.regenerateSecret(toAuthor(principal), params.clientId)),
      message: keepSecret
    }))
}
export default routes
