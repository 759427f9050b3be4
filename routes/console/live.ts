import type { FastifyPluginAsync } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { firstQueryValues } from './lists.ts'

/** The route of the SSE stream that tells an open page that its data has changed. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.get('/live', { config: { effect: 'read' }, exposeHeadRoute: false }, async (request, reply) => {
    const params = firstQueryValues(request)
    const watch = kit.watches.get(params.page ?? '')
    if (!watch || !request.signedIn) throw new errors.NotFound()
    await kit.live.open(reply, request.signedIn, (principal) => watch(principal, params), params.seen)
  })
}
export default routes
