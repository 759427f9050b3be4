import { Type } from '@sinclair/typebox'
import { ConsentRecord, OAuthClientParams } from '../../schemas/oauth.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'

/** Routes that list and withdraw the consents that the caller has given to OAuth clients. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { oauth } = app
  app.addHook('onRequest', async () => { oauth.assertEnabled() })
  const api = createApiRouter(app, 'OAuth')

  api.get('/oauth/consents', {
    summary: 'List your consents to applications',
    data: Type.Array(ConsentRecord)
  }, async (call) => ({ data: await oauth.listConsents(call.principal.username ?? '') }))

  api.delete('/oauth/consents/:clientId', {
    summary: 'Withdraw your consent to an application',
    description: 'Revokes its tokens; the application must ask for consent again.',
    params: OAuthClientParams
  }, async ({ principal, params }) => {
    await oauth.withdrawConsent(principal.username ?? '', params.clientId)
    return { message: 'The consent was withdrawn' }
  })
}
export default routes
