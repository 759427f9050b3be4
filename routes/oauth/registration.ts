import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { checkScopes, type IssuedClient, toClientInformation, identityLimits } from '../../plugins/identity/index.ts'
import { errors, OAuthError } from '../../plugins/base/errors/index.ts'
import { addJsonBodyParser } from '../bodies.ts'

/** Returns the bearer token of the Authorization header; undefined if there is none. */
const bearerOf = ({ headers: { authorization } }: FastifyRequest): string | undefined =>
  authorization === undefined ? undefined : /^bearer +(.+)$/i.exec(authorization)?.[1]?.trim()

/** The routes on which OAuth clients register themselves (RFC 7591) and manage their registration (RFC 7592). */
const routes: FastifyPluginAsync = async (app) => {
  addJsonBodyParser(app, identityLimits.oauth.registration)
  const { clients } = app.oauth
  const answerOf = ({ client, secret, registrationToken }: IssuedClient, request: FastifyRequest): object => ({
    ...toClientInformation(client),
    ...(secret === undefined ? {} : { client_secret: secret }),
    ...(client.secretHash === undefined ? {} : { client_secret_expires_at: 0 }),
    registration_access_token: registrationToken ?? bearerOf(request),
    registration_client_uri: `${app.oauth.issuer(request)}/oauth/register/${encodeURIComponent(client.clientId)}`
  })
  const clientIdOf = ({ params }: FastifyRequest): string => (params as { clientId: string }).clientId

  app.post('/register', {
    config: { effect: 'change' },
    onRequest: async (request) => {
      // Even if only this computer can reach the gateway, a page of another site, opened in a browser on this computer,
      // could register clients.
      app.auth.checkOrigin(request)
      const { enabled, requiresAuthentication } = app.oauth.settings.dynamicRegistration
      if (!enabled) {
        throw new OAuthError('access_denied', 'Clients cannot register themselves here; ask an admin for a client', 403)
      }
      if (requiresAuthentication) await assertAdmin(app, request)
    }
  }, async (request, reply) => {
    await app.attempts.count('client', request)
    const issued = await clients.register(request.body)
    reply.code(201)
    return answerOf(issued, request)
  })
  // The token is checked here too, so that an invalid one is rejected before the body is read.
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    await clients.findRegistered(clientIdOf(request), bearerOf(request))
  }
  app.get('/register/:clientId', { config: { effect: 'read' } }, async (request) =>
    answerOf({ client: await clients.findRegistered(clientIdOf(request), bearerOf(request)) }, request))
  app.put('/register/:clientId', { config: { effect: 'change' }, onRequest }, async (request) =>
    answerOf(await clients.updateRegistered(clientIdOf(request), bearerOf(request), request.body), request))
  app.delete('/register/:clientId', { config: { effect: 'change' } }, async (request, reply) => {
    await clients.removeRegistered(clientIdOf(request), bearerOf(request))
    await reply.code(204).send()
  })
}
export default routes

/**
 * Checks the initial access token of a registration request (RFC 7591, section 3). It must be an admin's credential for
 * the management API, sent in a header. Guests (callers without a credential under `routing.skipAuth`) are rejected.
 * @throws Unauthorized, Forbidden, InsufficientScope
 */
async function assertAdmin (app: FastifyInstance, request: FastifyRequest): Promise<void> {
  const principal = await app.auth.identifyManagementCaller(request, { query: false })
  if (principal.kind === 'guest') {
    throw new errors.Unauthorized('An admin\'s credential is required to register a client')
  }
  if (!principal.isAdmin) throw new errors.Forbidden('Only admins may register clients')
  checkScopes(principal)
}
