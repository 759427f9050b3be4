import { errors } from '../../plugins/errors/list.ts'
import { limits } from '../../plugins/limits/index.ts'
import { Throttle } from '../../plugins/limits/throttle.ts'
import { toAccount } from '../../plugins/users/account.ts'
import { Credentials, Login } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

export interface LoginOptions { developmentPassword: string | undefined }

/** Scope `public`: the way to an identity. */
const routes: FastifyPluginAsyncTypebox<LoginOptions> = async (app, { developmentPassword }) => {
  const failures = new Throttle(limits.loginFailures, limits.loginWindow)

  app.post('/auth/login', {
    schema: { tags: ['Account'], summary: 'Log in', description: 'The token goes into the x-auth-token header of every other request.', security: [], body: Credentials, response: { 200: Login } },
    config: { effect: 'run' },
    onRequest: (request, _reply, done) => { app.auth.origin(request); done() }
  }, async (request) => {
    const { username, password } = request.body
    const who = `${username}\n${request.ip}`
    failures.check(who)
    const user = await app.users.authenticate(username, password)
    if (!user) {
      failures.failed(who)
      throw new errors.Unauthorized('The username or the password is wrong')
    }
    failures.succeeded(who)
    const isUsingDefaultPassword = developmentPassword !== undefined && user.username === 'admin' && password === developmentPassword
    return { success: true as const, message: 'Logged in', token: app.auth.login(user.username), user: toAccount({ username: user.username, isAdmin: user.isAdmin === true }), ...(isUsingDefaultPassword ? { isUsingDefaultPassword } : {}) }
  })
}
export default routes
