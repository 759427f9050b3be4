import type { FastifyPluginAsync } from 'fastify'

/** Form: signs out, which ends the session and the streams of its open pages at once. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.post('/sign-out', { config: { effect: 'run' } }, async (_request, reply) => {
    await kit.signOut(reply)
    return await reply.redirect(`${kit.base}/login`, 303)
  })
}
export default routes
