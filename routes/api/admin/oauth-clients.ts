import { Type, type Static } from '@sinclair/typebox'
import { toRegistered } from '../../../plugins/oauth/client-metadata.ts'
import type { Client, Issued } from '../../../plugins/oauth/clients.ts'
import { Done, Success } from '../../../schemas/api.ts'
import { NewOAuthClient, OAuthClientId, OAuthClientRecord, OAuthClientUpdate } from '../../../schemas/oauth.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'

const tags = ['OAuth']

/** The clients of the authorization server. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { clients } = app.oauth
  app.addHook('onRequest', (_request, _reply, done) => {
    app.oauth.mustBeOn()
    done()
  })

  app.get('/oauth/clients', {
    schema: { tags, summary: 'List the OAuth clients', response: { 200: Success(Type.Array(OAuthClientRecord)) } },
    config: { effect: 'read' }
  }, async () => ({ success: true as const, data: (await clients.list()).map((client) => toRecord({ client })) }))

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
    const issued = await clients.create(toMetadata(request.body))
    reply.code(201)
    return { success: true as const, data: toRecord(issued), message: 'Keep the secret: it is not shown again' }
  })

  app.get('/oauth/clients/:clientId', {
    schema: { tags, summary: 'Show an OAuth client', params: OAuthClientId, response: { 200: Success(OAuthClientRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: toRecord({ client: await clients.get(request.params.clientId) }) }))

  app.put('/oauth/clients/:clientId', {
    schema: {
      tags,
      summary: 'Change an OAuth client',
      params: OAuthClientId,
      body: OAuthClientUpdate,
      response: { 200: Success(OAuthClientRecord) }
    },
    config: { effect: 'change' },
    // 404 before the body is validated (DECISIONS §1).
    onRequest: async (request) => { await clients.get(request.params.clientId) }
  }, async (request) => {
    const issued = await clients.update(request.params.clientId, (client) => changed(client, request.body))
    return { success: true as const, data: toRecord(issued), message: 'The client was changed' }
  })

  app.delete('/oauth/clients/:clientId', {
    schema: { tags, summary: 'Remove an OAuth client', description: 'Its tokens end.', params: OAuthClientId, response: { 200: Done } },
    config: { effect: 'change' }
  }, async (request) => {
    await clients.remove(request.params.clientId)
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
    const issued = await clients.regenerateSecret(request.params.clientId)
    return { success: true as const, data: toRecord(issued), message: 'Keep the secret: it is not shown again' }
  })
}
export default routes

/** What an admin states, as RFC 7591 writes it. */
const toMetadata = ({
  name,
  redirectUris,
  grants,
  scopes,
  requireSecret = true
}: Static<typeof NewOAuthClient>): Record<string, unknown> => ({
  client_name: name,
  redirect_uris: redirectUris,
  grant_types: grants,
  scope: scopes?.join(' '),
  token_endpoint_auth_method: requireSecret ? 'client_secret_basic' : 'none'
})

/** What a client is after a change by an admin. What the admin does not state stays, also the way in which the client sends its secret. */
function changed (client: Client, body: Static<typeof OAuthClientUpdate>): Record<string, unknown> {
  const isSecret = client.secretHash !== undefined
  const { token_endpoint_auth_method: method, ...members } = toMetadata({
    name: client.name,
    redirectUris: [...client.redirectUris],
    requireSecret: isSecret,
    ...body
  })
  const stated = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
  const isKept = (body.requireSecret ?? isSecret) === isSecret
  return { ...toRegistered(client), ...stated, ...(isKept ? {} : { token_endpoint_auth_method: method }) }
}

const listOf = (scope: string): string[] => scope.split(' ').filter((each) => each !== '')

const timeOf = (time: number | undefined): string | undefined => time === undefined || time === 0 ? undefined : new Date(time).toISOString()

const toRecord = ({ client, secret }: Issued): Static<typeof OAuthClientRecord> => ({
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
