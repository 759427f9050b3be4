import type { FastifyPluginAsync } from 'fastify'
import { type SubmittedForm, formFieldText } from './page.ts'

/** The form that stores the selected theme (such as dark) in a cookie. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  app.post('/theme', { config: { effect: 'run' } }, async (request, reply) => {
    const { theme, next } = (request.body ?? {}) as SubmittedForm
    kit.setTheme(reply, formFieldText(theme))
    const isSigningIn = formFieldText(next).startsWith(`${kit.base}/login`) && !request.principal
    return await reply.redirect(isSigningIn ? `${kit.base}/login` : kit.consolePathOf(formFieldText(next)), 303)
  })
}
export default routes
