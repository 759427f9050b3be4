import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { type SubmittedForm, formFieldText } from './page.ts'

/** The page on which users sign in with a password or, if social login is enabled, with a login provider. */
const routes: FastifyPluginAsync = async (app) => {
  const { auth, kit, social, users } = app
  const { base } = kit
  const run = { effect: 'run' } as const

  const show = (
    request: FastifyRequest,
    reply: FastifyReply,
    next: unknown,
    status = 200,
    more: { username?: string, error?: string } = {}
  ): FastifyReply => {
    const to = kit.consolePathOf(next)
    const back = `${base}/login/social?${new URLSearchParams({ next: to }).toString()}`
    // Social login is offered only if the provider redirects back to this host.
    const others = social.isServedAt(`${request.protocol}://${request.host}`)
      ? social.providers.map(({ id: provider, name }) => ({
        name,
        href: `${app.config.basePath}${social.path}/signIn/social?` +
          new URLSearchParams({ provider, callbackURL: back }).toString()
      }))
      : []
    const values = { username: more.username ?? '' }
    const failed: Record<string, string> = more.error === undefined ? {} : { '': more.error }
    return kit.renderer.send(reply, 'login', { title: 'Sign in', next: to, others, values, errors: failed }, status)
  }

  app.get('/login', { config: { effect: 'read' } }, async (request, reply) => {
    const { next } = request.query as { next?: unknown }
    return request.principal ? await reply.redirect(kit.consolePathOf(next), 303) : show(request, reply, next)
  })

  app.post('/login', { config: run }, async (request, reply) => {
    const form = (request.body ?? {}) as SubmittedForm
    const [username, next] = [formFieldText(form.username), formFieldText(form.next)]
    try {
      const user = await auth.authenticate(request, username, formFieldText(form.password))
      if (!user) {
        return show(request, reply, next, 401, { username, error: 'The username or the password is wrong.' })
      }
      await kit.signIn(reply, user)
      return await reply.redirect(kit.consolePathOf(next), 303)
    } catch (error) {
      if (!(error instanceof errors.TooManyFailures || error instanceof errors.TooManyRequests)) throw error
      if ('retryAfter' in error) reply.header('retry-after', String(error.retryAfter))
      return show(request, reply, next, 429, { username, error: `${error.message}.` })
    }
  })

  // The target of the redirect after a social login. It starts a console session for the user of the social login.
  app.get('/login/social', { config: run, exposeHeadRoute: false }, async (request, reply) => {
    const { next } = request.query as { next?: unknown }
    const principal = await social.identify(request.headers, app.settings.current)
    const user = principal && users.get(principal.user)
    if (!user) return show(request, reply, next, 401, { error: 'Signing in with that provider failed: try again.' })
    await kit.signIn(reply, user)
    return await reply.redirect(kit.consolePathOf(next), 303)
  })
}
export default routes
