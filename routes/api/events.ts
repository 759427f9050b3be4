import { Type } from '@sinclair/typebox'
import { FailedEventDelivery } from '../../schemas/events.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { endpointsOf } from './endpoint.ts'

/** What became of events for webhooks. Users see their own, admins all. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  endpointsOf(app, 'Events').get('/events/failed', {
    summary: 'Events that could not be delivered to a webhook',
    description:
      'Newest first, for 7 days. Their client can get them again with a cursor, if the server keeps events.',
    data: Type.Array(FailedEventDelivery)
  }, async ({ principal }) => ({ data: await app.eventWebhooks.listFailed(principal) }))
}
export default routes
