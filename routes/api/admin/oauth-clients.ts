import type { Static } from '@sinclair/typebox'
import { checkUnchanged } from '../../../plugins/base/body/index.ts'
import type { IssuedClient } from '../../../plugins/identity/index.ts'
import { Done, Success } from '../../../schemas/api.ts'
import {
  NewOAuthClient,
  OAuthClientId,
  OAuthClientList,
  OAuthClientPage,
  OAuthClientRecord,
  OAuthClientUpdate
} from '../../../schemas/oauth.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { authorOf } from '../principal.ts'
import { created } from '../succeeded.ts'

const tags = ['OAuth']

/** The clients of the authorization server. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { clients } = app.oauth
  app.addHook('onRequest', (_request, _reply, done) => {
    app.oauth.mustBeOn()
    done()
  })

  app.get('/oauth/clients', {
    schema: {
      tags,
      summary: 'List the OAuth clients',
      description: 'Oldest first. Anybody may register one, so that there can be many: the list comes in pages.',
      querystring: OAuthClientPage,
      response: { 200: OAuthClientList }
    },
    config: { effect: 'read' }
  }, async ({ query: { page = 1, limit = 100 } }) => {
    const { clients: listed, total } = await clients.list(page, limit)
    const pagination = { page, limit, total, totalPages: Math.ceil(total / limit) }
    return { success: true as const, data: listed.map((client) => toRecord({ client })), pagination }
  })

  app.post('/oauth/clients', {
    schema: {
      tags,
      summary: 'Create an OAuth client',
      description: 'The secret is shown in this answer and never again.',
      body: NewOAuthClient,
      response: { 201: Success(OAuthClientRecord) }
    },
    config: { effect: 'change' }
  }, async (request, reply) => {
    const issued = await clients.create(authorOf(request), request.body)
    created(reply, 'oauth/clients', issued.client.clientId)
    const message = messageOf(issued, 'The client was created; it is public, and has no secret')
    return { success: true as const, data: toRecord(issued), message }
  })

  app.get('/oauth/clients/:clientId', {
    schema: { tags, summary: 'Show an OAuth client', params: OAuthClientId, response: { 200: Success(OAuthClientRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: toRecord({ client: await clients.get(request.params.clientId) }) }))

  app.put('/oauth/clients/:clientId', {
    schema: {
      tags,
      summary: 'Change an OAuth client',
      description: 'What is not given stays. A scope that is taken away ends the tokens of the client.',
      params: OAuthClientId,
      body: OAuthClientUpdate,
      response: { 200: Success(OAuthClientRecord) }
    },
    config: { effect: 'change' },
    // 404 before the body is validated (DECISIONS §1).
    onRequest: async (request) => { await clients.get(request.params.clientId) }
  }, async (request) => {
    const record = toRecord({ client: await clients.get(request.params.clientId) })
    checkUnchanged(request.body, record, ['clientId', 'origin', 'clientUri', 'createdAt'])
    const issued = await clients.update(authorOf(request), request.params.clientId, request.body)
    return { success: true as const, data: toRecord(issued), message: messageOf(issued, 'The client was changed') }
  })

  app.delete('/oauth/clients/:clientId', {
    schema: { tags, summary: 'Remove an OAuth client', description: 'Its tokens end.', params: OAuthClientId, response: { 200: Done } },
    config: { effect: 'change' }
  }, async (request) => {
    await clients.remove(authorOf(request), request.params.clientId)
    return { success: true as const, message: 'The client was removed' }
  })

  app.post('/oauth/clients/:clientId/regenerate-secret', {
    schema: {
      tags,
      summary: 'Give an OAuth client another secret',
      description: 'Its tokens end. The secret is shown in this answer and never again.',
      params: OAuthClientId,
      response: { 200: Success(OAuthClientRecord) }
    },
    config: { effect: 'change' }
  }, async (request) => {
    const issued = await clients.regenerateSecret(authorOf(request), request.params.clientId)
    return { success: true as const, data: toRecord(issued), message: 'Keep the secret: it is not shown again' }
  })
}
export default routes

const messageOf = ({ secret }: IssuedClient, otherwise: string): string =>
  secret === undefined ? otherwise : 'Keep the secret: it is not shown again'

const listOf = (scope: string): string[] => scope.split(' ').filter((each) => each !== '')

const timeOf = (time: number | undefined): string | undefined => time === undefined || time === 0 ? undefined : new Date(time).toISOString()

const toRecord = ({ client, secret }: IssuedClient): Static<typeof OAuthClientRecord> => ({
  clientId: client.clientId,
  ...(secret === undefined ? {} : { clientSecret: secret }),
  name: client.name,
  redirectUris: [...client.redirectUris],
  grants: [...client.grantTypes],
  scopes: listOf(client.scope),
  requireSecret: client.secretHash !== undefined,
  origin: client.origin,
  clientUri: client.clientUri,
  createdAt: timeOf(client.createdAt),
  lastUsedAt: timeOf(client.lastUsedAt)
})
