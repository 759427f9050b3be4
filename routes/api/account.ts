import { Type } from '@sinclair/typebox'
import { toAccount } from '../../plugins/identity/index.ts'
import { Account } from '../../schemas/login.ts'
import { PasswordChange, PasswordChanged } from '../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { endpointsOf } from './endpoint.ts'

const Shown = Type.Object({ success: Type.Literal(true), user: Account })

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = endpointsOf(app, 'Account')
  api.get('/auth/user', {
    summary: 'Your account', response: { 200: Shown }
  }, ({ principal }) => ({ user: toAccount(principal) }))

  api.post('/auth/change-password', {
    summary: 'Change your password',
    description: 'All earlier login tokens end, the one of this request included: the answer holds a new one.',
    body: PasswordChange,
    response: { 200: PasswordChanged },
    before: ({ principal }) => app.users.accountOf(principal)
  }, async ({ principal, body, request }) => ({
    message: 'The password was changed',
    ...await app.auth.changePassword(request, principal, body.currentPassword, body.newPassword)
  }))
}
export default routes
