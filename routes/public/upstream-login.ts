import { Type } from '@sinclair/typebox'
import { sendPage } from '../../plugins/pages/index.ts'
import { errors } from '../../plugins/errors/list.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

/** Longer parameters are of no authorization server. */
const text = () => Type.Optional(Type.String({ maxLength: 8_000 }))

/** What authorization servers of upstreams need of the gateway, which is their client. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/oauth/callback', {
    schema: {
      hide: true,
      querystring: Type.Object({ code: text(), state: text(), iss: text(), error: text(), error_description: text() })
    },
    config: { effect: 'run' },
    exposeHeadRoute: false,
    onRequest: async (request) => { await app.attempts.countAuthorization(request) }
  }, async (request, reply) => {
    const { ok, title, text } = await app.logins.finish(request.query)
    return await sendPage(reply, ok ? app.pages.done({ title, text }) : app.pages.problem({ title, text, status: 400 }))
  })

  app.get('/client-metadata.json', { schema: { hide: true }, config: { effect: 'read' } }, async (_request, reply) => {
    const { document } = app.logins
    if (document === undefined) throw new errors.NotFound()
    reply.header('cache-control', 'public, max-age=300')
    return document
  })
}
export default routes
