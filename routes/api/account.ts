import { Type } from '@sinclair/typebox'
import { toAccount } from '../../plugins/users/account.ts'
import { Account } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './index.ts'

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/auth/user', {
    schema: { tags: ['Account'], summary: 'Who is asking', response: { 200: Type.Object({ success: Type.Literal(true), user: Account }) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, user: toAccount(principalOf(request)) }))
}
export default routes
