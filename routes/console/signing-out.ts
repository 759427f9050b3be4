import type { FastifyPluginAsync } from 'fastify'

/** The form that signs the user out. This immediately ends the session and the streams of its open pages. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.post('/sign-out', { config: { effect: 'run' } }, async (_request, reply) => {
    await kit.signOut(reply)
    return await reply.redirect(`${kit.base}/login`, 303)
  })
}
export default routes
