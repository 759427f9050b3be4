import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { OAuthError } from '../../plugins/base/errors/index.ts'
import { subjectOf } from '../../plugins/identity/index.ts'
import { forAnyOrigin } from '../any-origin.ts'

/** The user of an access token (OpenID Connect Core 1.0, section 5.3). */
const routes: FastifyPluginAsync = async (app) => {
  const answer = async (request: FastifyRequest): Promise<object> => {
    if ((request.query as Record<string, unknown>).access_token !== undefined) {
      if (request.headers.authorization === undefined) throw required()
      throw new OAuthError('invalid_request', 'The access token belongs in the Authorization header, and nowhere else')
    }
    const principal = await app.auth.token(request)
    const user = app.users.get(principal?.username ?? '')
    if (!principal || !user) throw required()
    const { username, isAdmin = false } = user
    return { sub: subjectOf(user), username, preferred_username: username, isAdmin }
  }
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
  forAnyOrigin(app, { '/userinfo': 'GET, POST' })
  app.get('/userinfo', { config: { effect: 'read' } }, answer)
  app.post('/userinfo', { config: { effect: 'run' } }, answer)
}
export default routes

const required = (): OAuthError =>
  new OAuthError('invalid_token', 'An access token is required in the Authorization header', 401)
