import { Type } from '@sinclair/typebox'
import { EventSubscriptionParams, FailedEventDelivery, ShownEventSubscription } from '../../schemas/events.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'

/**
 * Routes that list and remove the webhooks which clients registered for events, and list undelivered messages. Users
 * see their own, admins see all.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { eventWebhooks } = app
  const api = createApiRouter(app, 'Events')
  api.list('/events/subscriptions', {
    summary: 'List the webhooks that clients registered for events, newest first: your own, or all for admins',
    item: ShownEventSubscription,
    key: 'id'
  }, async ({ principal }) => await eventWebhooks.list(principal))
  api.delete('/events/subscriptions/:id', {
    summary: 'End the webhook of a client',
    description: 'Notifies its client (`terminated`) and its server. The client may subscribe again.',
    params: EventSubscriptionParams
  }, async ({ principal, params }) => {
    await eventWebhooks.remove(principal, params.id)
    return { message: 'The subscription has ended' }
  })
  api.get('/events/failed', {
    summary: 'List events that could not be delivered to a webhook',
    description:
      'Newest first, kept for 7 days. The client can request them again with a cursor if the server keeps events.',
    data: Type.Array(FailedEventDelivery)
  }, async ({ principal }) => ({ data: await eventWebhooks.listFailed(principal) }))
}
export default routes
