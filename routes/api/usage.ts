import { Type } from '@sinclair/typebox'
import { UsageQuery, UsageRecord } from '../../schemas/usage.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'

/** The route that returns the numbers of calls and result tokens that callers have used. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  createApiRouter(app, 'Rules').get('/usage', {
    summary: 'Get calls and tokens of results, by day',
    description: 'By user, key, server or tool. Users see their own usage, admins all. Days are in UTC; without ' +
      '`from`, the last 30. Refused calls are not counted. Usage is kept for 400 days, with and without a database.',
    query: UsageQuery,
    data: Type.Array(UsageRecord)
  }, async ({ principal, query }) => ({ data: await app.usage.read(principal, query) }))
}
export default routes
