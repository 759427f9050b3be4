import { Type } from '@sinclair/typebox'
import { Done, Success } from '../../schemas/api.ts'
import { ConsentRecord, OAuthClientId } from '../../schemas/oauth.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'

const tags = ['OAuth']

/** What a user has allowed the clients of the authorization server. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.addHook('onRequest', (_request, _reply, done) => {
    app.oauth.mustBeOn()
    done()
  })
  app.get('/oauth/consents', {
    schema: { tags, summary: 'List what you have allowed applications', response: { 200: Success(Type.Array(ConsentRecord)) } },
    config: { effect: 'read' }
  }, async (request) => {
    const consents = await app.oauth.consents(principalOf(request).username ?? '')
    const data = await Promise.all(consents.map(async ({ clientId, scope, resource, grantedAt }) => ({
      clientId,
      clientName: (await app.oauth.clients.find(clientId))?.name,
      scopes: scope.split(' ').filter((each) => each !== ''),
      resource,
      grantedAt: new Date(grantedAt).toISOString()
    })))
    return { success: true as const, data }
  })

  app.delete('/oauth/consents/:clientId', {
    schema: {
      tags,
      summary: 'Withdraw what you have allowed an application',
      description: 'Its tokens end, and it has to ask again.',
      params: OAuthClientId,
      response: { 200: Done }
    },
    config: { effect: 'change' }
  }, async (request) => {
    await app.oauth.withdraw(principalOf(request).username ?? '', request.params.clientId)
    return { success: true as const, message: 'The consent was withdrawn' }
  })
}
export default routes
