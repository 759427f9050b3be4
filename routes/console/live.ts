import type { FastifyPluginAsync } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'

/** The route of the SSE stream that tells an open page that its data has changed. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.get('/live', { config: { effect: 'read' }, exposeHeadRoute: false }, async (request, reply) => {
    const params = request.query as Record<string, unknown>
    const watch = kit.watches.get(String(params.page))
    if (!watch || !request.signedIn) throw new errors.NotFound()
    const seen = typeof params.seen === 'string' ? params.seen : undefined
    await kit.live.open(reply, request.signedIn, (principal) => watch(principal, params), seen)
  })
}
export default routes
