import type { FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { toAccountRecord } from '../../plugins/identity/index.ts'
import { LoginCredentials, LoginResult } from '../../schemas/login.ts'
import { RegistrationResult, Registration } from '../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { setCreatedStatus } from '../api/endpoint.ts'

interface LoginOptions { developmentPassword: string | undefined }

const tags = ['Account']

/** The routes of the scope `public` to log in with a password and to create an account. */
const routes: FastifyPluginAsyncTypebox<LoginOptions> = async (app, { developmentPassword }) => {
  app.decorateRequest('principal', null)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })

  app.post(
    '/auth/login',
    {
      schema: {
        tags,
        summary: 'Log in',
        description: 'Send the token in the x-auth-token header of every other request.',
        security: [],
        body: LoginCredentials,
        response: { 200: LoginResult }
      },
      config: { effect: 'run' },
      onRequest: (request, _reply, done) => {
        app.auth.checkOrigin(request)
        done()
      }
    },
    async (request) => {
      const { username, password } = request.body
      const user = await app.auth.authenticate(request, username, password)
      if (!user) throw new errors.Unauthorized('The username or the password is wrong')
      const isUsingDefaultPassword =
        developmentPassword !== undefined && user.username === 'admin' && password === developmentPassword
      return {
        success: true as const,
        message: 'Logged in',
        token: app.auth.createLoginToken(user),
        user: toAccountRecord({ username: user.username, isAdmin: user.isAdmin === true }),
        ...(isUsingDefaultPassword ? { isUsingDefaultPassword } : {})
      }
    }
  )

  app.post(
    '/auth/register',
    {
      schema: {
        tags,
        summary: 'Create an account',
        description: 'Admins can create accounts for others. Everybody else can create their own account, if ' +
          'ALLOW_REGISTRATION is set.',
        security: [],
        body: Registration,
        response: { 201: RegistrationResult }
      },
      config: { effect: 'change' },
      onRequest: async (request) => {
        app.auth.checkOrigin(request)
        request.principal = await identifyCaller(request)
        app.users.assertMayRegister(request.principal)
      }
    },
    async (request, reply) => {
      const { principal, body } = request
      const create = async () => await app.users.register(principal, body)
      // Accounts created by admins do not count towards the rate limit.
      const {
        user, warnings
      } = await (principal?.isAdmin === true ? create() : app.attempts.registerAccount(request, create))
      setCreatedStatus(reply, '/users', user.username)
      return {
        success: true as const,
        message: 'The account was created',
        token: app.auth.createLoginToken(user),
        user: toAccountRecord({ username: user.username, isAdmin: user.isAdmin === true }),
        ...(warnings.length > 0 ? { warnings } : {})
      }
    }
  )
}
export default routes

/** Returns the caller of a request; null if the request has no valid credentials. */
async function identifyCaller (request: FastifyRequest): Promise<Principal | null> {
  try {
    return await request.server.auth.identifyManagementCaller(request)
  } catch (error) {
    if (error instanceof errors.Unauthorized) return null
    throw error
  }
}
