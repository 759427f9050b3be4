import type { FastifyPluginAsync } from 'fastify'
import { type Form, textOf } from './page.ts'

/** Form: stores the selected theme in a cookie. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.post('/theme', { config: { effect: 'run' } }, async (request, reply) => {
    const { theme, next } = (request.body ?? {}) as Form
    kit.setTheme(reply, textOf(theme))
    const isSigningIn = textOf(next).startsWith(`${kit.base}/login`) && !request.principal
    return await reply.redirect(isSigningIn ? `${kit.base}/login` : kit.consolePathOf(textOf(next)), 303)
  })
}
export default routes
