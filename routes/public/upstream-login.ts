import cookie from '@fastify/cookie'
import { Type } from '@sinclair/typebox'
import type { FastifyReply } from 'fastify'
import { errors, pageErrorHandler } from '../../plugins/base/errors/index.ts'
import { sendPage } from '../../plugins/base/pages/index.ts'
import { isStartPageToken, startPageToken, withBrowserTag } from '../../plugins/upstream/index.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { browserKeyOf, ensureBrowserKey } from './browser-key.ts'
import userValues, { sendUserValuesPage } from './user-values.ts'

/** Creates the schema of a query parameter of the OAuth callback. Authorization servers send far shorter values. */
const CallbackParameter = () => Type.Optional(Type.String({ maxLength: 8_000 }))
const Ticket = Type.Object({ ticket: Type.String({ maxLength: 100 }) })

/**
 * The routes of the gateway as an OAuth client of upstream servers: the login pages, the callback and the client
 * metadata document; and the page on which users enter values for a server.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  await app.register(async (pages: typeof app) => {
    await pages.register(cookie)
    pages.setErrorHandler(pageErrorHandler(app.pages, 'This login cannot continue'))
    pages.addHook('onRequest', async (request) => { await app.attempts.count('authorization', request) })
    await pages.register(browserRoutes)
    await pages.register(userValues)
  })

  app.get('/client-metadata.json', { schema: { hide: true }, config: { effect: 'read' } }, async (_request, reply) => {
    const { clientIdMetadataDocument: document } = app.logins
    if (document === undefined) throw new errors.NotFound()
    reply.header('cache-control', 'public, max-age=300')
    return document
  })
}
export default routes

/** The pages on which a browser starts and finishes a login at an upstream server. */
const browserRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const problem = async (reply: FastifyReply, title: string, sentence: string): Promise<FastifyReply> =>
    await sendPage(reply, app.pages.problem({ title, text: sentence, status: 400 }))
  const unknown = async (reply: FastifyReply): Promise<FastifyReply> =>
    await problem(reply, 'This login is not known', 'It was started too long ago, or at another gateway, or you may ' +
      'no longer use the server. Start again with a new address.')

  app.get('/oauth/login/:ticket', {
    schema: { hide: true, params: Ticket },
    config: { effect: 'read' }
  }, async (request, reply) => {
    const { ticket } = request.params
    const start = await app.logins.findStart(ticket)
    if (!start) return await sendUserValuesPage(request, reply, ticket) ? reply : await unknown(reply)
    const session = await app.social.identify(request.headers, app.settings.current)
    if (session && start.user !== undefined && session.user !== start.user) {
      return await problem(
        reply,
        'This login belongs to somebody else',
        `You are signed in here as ${session.user}, and this address is for ${start.whose}. Nothing was changed.`
      )
    }
    const redirectUri = new URL(new URL(start.url).searchParams.get('redirect_uri') ?? '')
    const secure = redirectUri.protocol === 'https:'
    const folder = redirectUri.pathname.replace(/\/[^/]*$/, '')
    const key = ensureBrowserKey(request, reply, folder, secure)
    const { server, whose, url } = start
    const href = `${folder}/login/${ticket}/continue?proof=${startPageToken(key, ticket)}`
    return await sendPage(reply, app.pages.upstreamLogin({ server, whose, href, url }))
  })

  app.get('/oauth/login/:ticket/continue', {
    schema: {
      hide: true, params: Ticket, querystring: Type.Object({ proof: Type.Optional(Type.String({ maxLength: 100 })) })
    },
    config: { effect: 'run' },
    exposeHeadRoute: false
  }, async (request, reply) => {
    const { ticket } = request.params
    const [start, key] = [await app.logins.findStart(ticket), browserKeyOf(request)]
    if (!start) return await unknown(reply)
    if (key === undefined || !isStartPageToken(request.query.proof ?? '', key, ticket)) {
      return await problem(
        reply,
        'This login was started in another browser',
        'Open the address in this browser, which must accept cookies of this gateway, and continue on its page.'
      )
    }
    return await reply.header('cache-control', 'no-store').header('referrer-policy', 'no-referrer')
      .redirect(withBrowserTag(start, key), 303)
  })

  app.get('/oauth/callback', {
    schema: {
      hide: true,
      querystring: Type.Object({
        code: CallbackParameter(),
        state: CallbackParameter(),
        iss: CallbackParameter(),
        error: CallbackParameter(),
        error_description: CallbackParameter()
      })
    },
    config: { effect: 'run' },
    exposeHeadRoute: false
  }, async (request, reply) => {
    const { ok, title, text, login, problem } = await app.logins.finish(request.query, browserKeyOf(request))
    if (login) {
      const { server, whose, user = 'system' } = login
      app.audit.addChange(user, { entity: 'login', name: server, after: { server, for: whose } })
    }
    if (problem !== undefined) request.log.warn(problem)
    return await sendPage(reply, ok ? app.pages.done({ title, text }) : app.pages.problem({ title, text, status: 400 }))
  })
}
