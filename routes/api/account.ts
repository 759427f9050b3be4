import { Type } from '@sinclair/typebox'
import { errors } from '../../plugins/base/errors/index.ts'
import { toAccount } from '../../plugins/identity/index.ts'
import { Account } from '../../schemas/api.ts'
import { PasswordChange, PasswordChanged } from '../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'

const tags = ['Account']

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/auth/user', {
    schema: { tags, summary: 'Your account', response: { 200: Type.Object({ success: Type.Literal(true), user: Account }) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, user: toAccount(principalOf(request)) }))

  app.post(
    '/auth/change-password',
    {
      schema: {
        tags,
        summary: 'Change your password',
        description: 'All earlier login tokens end, the one of this request included: the answer holds a new one.',
        body: PasswordChange,
        response: { 200: PasswordChanged }
      },
      config: { effect: 'change' },
      onRequest: (request, _reply, done) => {
        app.users.accountOf(principalOf(request))
        done()
      }
    },
    async (request) => {
      const { currentPassword, newPassword } = request.body
      const { username } = app.users.accountOf(principalOf(request))
      const warnings = app.users.judge(newPassword)
      const user = await app.attempts.check(request, username, async () => await app.users.authenticate(username, currentPassword))
      if (!user) throw new errors.Unauthorized('The current password is wrong')
      const token = app.auth.login(await app.users.changePassword(user, newPassword))
      return { success: true as const, message: 'The password was changed', token, ...(warnings.length > 0 ? { warnings } : {}) }
    }
  )
}
export default routes
