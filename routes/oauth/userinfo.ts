import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { OAuthError } from '../../plugins/base/errors/index.ts'
import { accountSubjectOf } from '../../plugins/identity/index.ts'
import { allowAnyOrigin } from '../any-origin.ts'

/** The UserInfo endpoint, which describes the user of an access token (OpenID Connect Core 1.0, section 5.3). */
const routes: FastifyPluginAsync = async (app) => {
  const answer = async (request: FastifyRequest): Promise<object> => {
    if ((request.query as Record<string, unknown>).access_token !== undefined) {
      if (request.headers.authorization === undefined) throw tokenError(request)
      throw new OAuthError('invalid_request', 'The access token must be in the Authorization header only')
    }
    const principal = await app.auth.identifyTokenUser(request)
    const user = app.users.get(principal?.username ?? '')
    if (!principal || !user) throw tokenError(request)
    const { username, isAdmin = false } = user
    return { sub: accountSubjectOf(user), username, preferred_username: username, isAdmin }
  }
  allowAnyOrigin(app, { '/userinfo': 'GET, POST' })
  app.get('/userinfo', { config: { effect: 'read' } }, answer)
  app.post('/userinfo', { config: { effect: 'run' } }, answer)
}
export default routes

const tokenError = ({ headers }: FastifyRequest): OAuthError => new OAuthError(
  'invalid_token',
  headers.authorization === undefined
    ? 'An access token is required in the Authorization header'
    : 'The access token is not valid',
  401
)
