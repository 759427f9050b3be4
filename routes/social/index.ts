import type { FastifyInstance, FastifyReply } from 'fastify'
import { addSecurityHeaders } from '../../plugins/base/browsers/index.ts'
import { errors, pageErrorHandler } from '../../plugins/base/errors/index.ts'
import { setRouteScope } from '../../plugins/base/scopes/index.ts'
import { type BrowserRedirect, toAccountRecord } from '../../plugins/identity/index.ts'
import {
  CallbackParams, SignOutResult, SignInBody, SignInQuery, SignInStartResult, SocialSession, SocialUserResult
} from '../../schemas/social.ts'
import { addJsonBodyParser } from '../bodies.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

const tags = ['Social login']

/**
 * Scope `social`: the routes of social login. Some exist twice: under the path that better-auth uses (such as
 * `get-session`), and under one of the gateway's own. While social login is disabled, all respond with 404.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  setRouteScope(app, 'social')
  addSecurityHeaders(app)
  addJsonBodyParser(app)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    app.social.assertEnabled()
    done()
  })
  const { social } = app
  // The paths below `mount` are configurable, so they are documented in docs/social-login.md, not in the API document.
  const mount = social.path
  const run = { effect: 'run' } as const
  await app.register(browserRoutes)
  app.post(
    `${mount}/sign-in/social`,
    {
      schema: {
        hide: true,
        tags,
        summary: 'Start a social login from a script',
        description: 'Returns the provider\'s address.',
        security: [],
        body: SignInBody,
        response: { 200: SignInStartResult }
      },
      config: run,
      onRequest: async (request) => {
        if (request.headers.origin !== undefined) await social.checkOrigin(request)
        await app.attempts.count('social', request)
      }
    },
    async (request, reply) => {
      const { provider, callbackURL = defaultTarget(app), disableRedirect = false } = request.body
      const { location, cookies } = await social.begin(provider, callbackURL)
      reply.header('set-cookie', [...cookies])
      return { url: location, redirect: !disableRedirect }
    }
  )
  for (const name of ['session', 'get-session']) {
    app.get(
      `${mount}/${name}`,
      {
        schema: {
          hide: true, tags, summary: 'Get the session of a social login', security: [], response: { 200: SocialSession }
        },
        config: { effect: 'read' }
      },
      async (request, reply) => {
        reply.type('application/json')
        return await social.session(request.headers) ?? null
      }
    )
  }
  for (const name of ['signOut', 'sign-out']) {
    app.post(
      `${mount}/${name}`,
      {
        schema: {
          hide: true,
          tags,
          summary: 'End the session of a social login',
          description: 'Does not end the session at the provider.',
          security: [],
          response: { 200: SignOutResult }
        },
        config: run,
        onRequest: async (request) => { await social.checkOrigin(request) }
      },
      async (request, reply) => {
        reply.header('set-cookie', [...await social.signOut(request.headers)])
        return { success: true as const }
      }
    )
  }
  app.get(
    '/api/social-auth/user',
    {
      schema: { tags, summary: 'Get the account of a social login', response: { 200: SocialUserResult } },
      config: { effect: 'read' }
    },
    async (request) => {
      const principal = await social.identify(request.headers, app.settings.current)
      if (!principal) throw new errors.Unauthorized('There is no session of a social login')
      return { success: true as const, user: toAccountRecord(principal) }
    }
  )
}
export default routes

/** Returns the path to which a browser is redirected after a login, unless the request names another one. */
const defaultTarget = ({ config }: FastifyInstance): string => `${config.basePath}/docs`

const redirect = (reply: FastifyReply, { location, cookies }: BrowserRedirect): FastifyReply =>
  reply.header('set-cookie', [...cookies]).redirect(location, 302)

/** The routes on which a browser starts and finishes a social login. Errors are HTML pages. */
const browserRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { social } = app
  const config = { effect: 'run' } as const
  app.setErrorHandler(pageErrorHandler(app.pages, 'You are not logged in'))
  app.addHook('onRequest', async (request) => { await app.attempts.count('social', request) })
  app.get(
    `${social.path}/signIn/social`,
    {
      schema: {
        hide: true,
        tags,
        summary: 'Start a social login in a browser',
        description: 'Redirects to the provider.',
        security: [],
        querystring: SignInQuery
      },
      config,
      exposeHeadRoute: false
    },
    async (request, reply) =>
      redirect(reply, await social.begin(request.query.provider, request.query.callbackURL ?? defaultTarget(app)))
  )
  app.get(
    `${social.path}/callback/:provider`,
    {
      schema: {
        hide: true,
        tags,
        summary: 'Finish a social login (redirect URI of the provider)',
        security: [],
        params: CallbackParams
      },
      config,
      exposeHeadRoute: false
    },
    async (request, reply) =>
      redirect(reply, await social.finish(request.params.provider, request.query as Record<string, unknown>, request))
  )
}
