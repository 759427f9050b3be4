import type { FastifyInstance, FastifyReply } from 'fastify'
import { pageError } from '../../plugins/base/errors/index.ts'
import type { Redirect } from '../../plugins/identity/index.ts'
import { Callback, SignInQuery } from '../../schemas/social.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

const tags = ['Social login']

/** Where a login leads when its beginning does not say. */
export const home = ({ config }: FastifyInstance): string => `${config.basePath}/docs`

const redirect = (reply: FastifyReply, { location, cookies }: Redirect): FastifyReply =>
  reply.header('set-cookie', [...cookies]).redirect(location, 302)

/** Where browsers begin and end a login. Errors are pages, since people see them. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { social } = app
  const config = { effect: 'run' } as const
  app.setErrorHandler(pageError(app.pages, 'You are not logged in'))
  app.addHook('onRequest', async (request) => { await app.attempts.countSocial(request) })
  app.get(
    `${social.path}/signIn/social`,
    {
      schema: {
        hide: true,
        tags,
        summary: 'Log in by a provider',
        description: 'For browsers: redirects to the provider.',
        security: [],
        querystring: SignInQuery
      },
      config,
      exposeHeadRoute: false
    },
    async (request, reply) => redirect(reply, await social.begin(request.query.provider, request.query.callbackURL ?? home(app)))
  )
  app.get(
    `${social.path}/callback/:provider`,
    {
      schema: { hide: true, tags, summary: 'Where a provider sends its user back to', security: [], params: Callback },
      config,
      exposeHeadRoute: false
    },
    async (request, reply) =>
      redirect(reply, await social.finish(request.params.provider, request.query as Record<string, unknown>, request))
  )
}
export default routes
