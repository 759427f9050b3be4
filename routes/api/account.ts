import { Type } from '@sinclair/typebox'
import { toAccountRecord } from '../../plugins/identity/index.ts'
import { AccountRecord } from '../../schemas/login.ts'
import { PasswordChange, PasswordChangeResult } from '../../schemas/users.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'

const AccountResponse = Type.Object({ success: Type.Literal(true), user: AccountRecord })

/** Routes that return the caller's own account, and change its password. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = createApiRouter(app, 'Account')
  api.get('/auth/user', {
    summary: 'Your account', response: { 200: AccountResponse }
  }, ({ principal }) => ({ user: toAccountRecord(principal) }))

  api.post('/auth/change-password', {
    summary: 'Change your password',
    description: 'Revokes all login tokens of the account, including that of this request; the response contains a ' +
      'new one.',
    body: PasswordChange,
    response: { 200: PasswordChangeResult },
    before: ({ principal }) => app.users.accountOf(principal)
  }, async ({ principal, body, request }) => ({
    message: 'The password was changed',
    ...await app.auth.changePassword(request, principal, body.currentPassword, body.newPassword)
  }))
}
export default routes
