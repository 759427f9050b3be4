import type { FastifyPluginAsync } from 'fastify'

/** Signing out, which ends the session at once, with its open pages. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.post('/sign-out', { config: { effect: 'run' } }, async (_request, reply) => {
    await kit.signOut(reply)
    return await reply.redirect(`${kit.base}/login`, 303)
  })
}
export default routes
