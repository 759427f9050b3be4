import { errors } from '../../plugins/errors/list.ts'
import { toAccount } from '../../plugins/users/account.ts'
import { Credentials, Login } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

export interface LoginOptions { developmentPassword: string | undefined }

/** Scope `public`: the way to an identity. */
const routes: FastifyPluginAsyncTypebox<LoginOptions> = async (app, { developmentPassword }) => {
  app.post('/auth/login', {
    schema: { tags: ['Account'], summary: 'Log in', description: 'The token goes into the x-auth-token header of every other request.', security: [], body: Credentials, response: { 200: Login } },
    config: { effect: 'run' }
  }, async (request) => {
    const { username, password } = request.body
    const user = await app.users.authenticate(username, password)
    if (!user) throw new errors.Unauthorized('The username or the password is wrong')
    const isUsingDefaultPassword = developmentPassword !== undefined && user.username === 'admin' && password === developmentPassword
    return { success: true as const, message: 'Logged in', token: app.auth.login(user.username), user: toAccount({ username: user.username, isAdmin: user.isAdmin === true }), ...(isUsingDefaultPassword ? { isUsingDefaultPassword } : {}) }
  })
}
export default routes
