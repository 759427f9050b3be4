import type { FastifyPluginAsync } from 'fastify'

/** Sign-out: ends the session immediately, with the streams of its open pages. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.post('/sign-out', { config: { effect: 'run' } }, async (_request, reply) => {
    await kit.signOut(reply)
    return await reply.redirect(`${kit.base}/login`, 303)
  })
}
export default routes
