import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { limitFormFields, chunkedBodyReserver, readBodyText } from '../../plugins/base/body/index.ts'
import { oauthPageErrorHandler } from '../../plugins/base/errors/index.ts'
import { sendPage } from '../../plugins/base/pages/index.ts'
import { passToProvider } from '../../plugins/identity/index.ts'
import { addBodyMemoryReservation } from '../bodies.ts'

/** Max size of a form, in bytes. */
const maxForm = 64 * 1024

/** The endpoints that the OAuth library serves: authorization, token (RFC 6749) and revocation (RFC 7009). */
const routes: FastifyPluginAsync = async (app) => {
  // Only memory is reserved here: the library parses the bodies of /token and /revoke, with at most 1,000 fields.
  addBodyMemoryReservation(app, maxForm)
  const answer = async (request: FastifyRequest, reply: FastifyReply, url = request.url): Promise<void> => {
    const issuer = app.oauth.issuer(request)
    const provider = await app.oauth.provider(issuer)
    reply.hijack()
    passToProvider(provider, issuer, request, reply.raw, url.slice(app.config.basePath.length))
  }
  const config = { effect: 'run' } as const
  // Authorization requests are rate-limited, since each one is stored until its user decides.
  const onRequest = async (
    request: FastifyRequest
  ): Promise<void> => { await app.attempts.count('authorization', request) }
  // Browsers are redirected here, so errors are HTML pages.
  await app.register(async (authorization) => {
    authorization.setErrorHandler(oauthPageErrorHandler(app.pages))
    authorization.get('/authorize', { config, exposeHeadRoute: false, onRequest }, async (request, reply) => {
      await answer(request, reply)
    })
    // Resumes an authorization after the login and consent pages.
    authorization.get<{ Params: { uid: string } }>(
      '/authorize/:uid', { config, exposeHeadRoute: false }, async (request, reply) => {
        const provider = await app.oauth.provider(app.oauth.issuer(request))
        const problem = await app.oauth.interactions.checkResumed(provider, request.params.uid)
        if (problem) await sendPage(reply, problem)
        else await answer(request, reply)
      }
    )
    authorization.post('/authorize', { config, onRequest }, async (request, reply) => {
      const query = limitFormFields(await readBodyText(request.raw, maxForm, chunkedBodyReserver(request)))
      request.raw.method = 'GET'
      await answer(request, reply, `${request.url.split('?')[0] ?? ''}?${query}`)
    })
  })
  // The library responds to preflight requests and allows any origin. This is safe: these endpoints read no cookies,
  // and an authorization code is useless without its PKCE verifier.
  for (const path of ['/token', '/revoke']) {
    app.options(path, async (request, reply) => { await answer(request, reply) })
  }
  const post = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    // The library does not report how much of a chunked body it has read, so memory for the max size is reserved.
    chunkedBodyReserver(request)?.()
    await answer(request, reply)
  }
  app.post('/token', { config }, post)
  app.post('/revoke', { config: { effect: 'change' } }, post)
}
export default routes
