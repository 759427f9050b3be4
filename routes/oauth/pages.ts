import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { oauthPageErrorHandler } from '../../plugins/base/errors/index.ts'
import { limitFormFields, chunkedBodyReserver, readBodyText } from '../../plugins/base/body/index.ts'
import {
  rewriteToIssuerAddress, type BrowserResponse, type BrowserRequest, type FormFields, issuerPath, newCsrfKey
} from '../../plugins/identity/index.ts'
import { sendPage } from '../../plugins/base/pages/index.ts'
import { addBodyMemoryReservation } from '../bodies.ts'

const csrfCookie = 'tool-hub-csrf'

/** Max size of a form, in bytes. */
const maxForm = 8 * 1024

/** The routes of the pages on which a user logs in, gives consent to an OAuth client, or logs out. */
const routes: FastifyPluginAsync = async (app) => {
  app.setErrorHandler(oauthPageErrorHandler(app.pages))
  app.removeAllContentTypeParsers()
  addBodyMemoryReservation(app, maxForm)
  app.addContentTypeParser('application/x-www-form-urlencoded', async (
    request: FastifyRequest, payload: FastifyRequest['raw']
  ) => fieldsOf(limitFormFields(await readBodyText(payload, maxForm, chunkedBodyReserver(request)))))
  app.addHook('onRequest', (request, _reply, done) => {
    app.auth.checkOrigin(request)
    done()
  })

  /** Responds to a request with the page or the redirect that `make` returns. */
  const answer = async (
    request: FastifyRequest,
    reply: FastifyReply,
    make: (browser: BrowserRequest, fields: FormFields) => Promise<BrowserResponse>
  ): Promise<void> => {
    const issuer = app.oauth.issuer(request)
    const csrfKey = request.cookies[csrfCookie] ?? newCsrfKey()
    if (request.cookies[csrfCookie] === undefined) {
      const secure = issuer.startsWith('https:')
      reply.setCookie(
        csrfCookie, csrfKey, { path: `${issuerPath(issuer)}/oauth`, httpOnly: true, sameSite: 'lax', secure }
      )
    }
    const provider = await app.oauth.provider(issuer)
    rewriteToIssuerAddress(issuer, request.raw)
    const response =
      await make({ provider, issuer, raw: request.raw, reply: reply.raw, csrfKey }, (request.body ?? {}) as FormFields)
    if ('html' in response) await sendPage(reply, response)
    // Browsers apply the CSP directive `form-action` to all redirects that follow a form submission, including the
    // redirect to the client. An intermediate page in place of that redirect avoids this.
    else if (response.client && request.headers['sec-fetch-mode'] === 'navigate') {
      const { pathname, search } = new URL(response.location)
      await sendPage(reply, app.pages.leave({ client: response.client, href: `${pathname}${search}` }))
    } else await reply.redirect(response.location, 303)
  }

  const { interactions } = app.oauth
  const config = { effect: 'run' } as const
  app.get('/interaction/:uid', { config, exposeHeadRoute: false }, async (request, reply) => {
    await answer(request, reply, async (browser) => await interactions.show(browser))
  })
  app.get('/interaction/:uid/social', { config, exposeHeadRoute: false }, async (request, reply) => {
    await answer(request, reply, async (browser) => {
      const principal = await app.social.identify(request.headers, app.settings.current)
      return await interactions.continueAfterSocialLogin(browser, principal && app.users.get(principal.user))
    })
  })
  app.post('/interaction/:uid/login', { config }, async (request, reply) => {
    await answer(request, reply, async (browser, fields) =>
      await interactions.login(browser, fields, async (username, password) =>
        await app.auth.authenticate(request, username, password)))
  })
  app.post('/interaction/:uid/consent', { config }, async (request, reply) => {
    await answer(request, reply, async (browser, fields) => await interactions.decide(browser, fields))
  })
  app.post('/interaction/:uid/logout', { config }, async (request, reply) => {
    await answer(request, reply, async (browser, fields) => await interactions.logout(browser, fields))
  })
}
export default routes

/** Returns the fields of a URL-encoded form. Fields that occur several times are omitted. */
function fieldsOf (text: string): FormFields {
  const fields = new Map<string, string>()
  const repeated = new Set<string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (fields.has(name)) repeated.add(name)
    fields.set(name, value)
  }
  return Object.fromEntries([...fields].filter(([name]) => !repeated.has(name)))
}
