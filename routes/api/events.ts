import { Type } from '@sinclair/typebox'
import { EventSubscriptionId, FailedEventDelivery, ShownEventSubscription } from '../../schemas/events.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { endpointsOf } from './endpoint.ts'

/** The webhooks that clients registered for events, and undelivered messages. Users see their own, admins see all. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { eventWebhooks } = app
  const api = endpointsOf(app, 'Events')
  api.list('/events/subscriptions', {
    summary: 'List the webhooks that clients registered for events, newest first: the own ones, or all for admins',
    item: ShownEventSubscription,
    key: 'id'
  }, async ({ principal }) => await eventWebhooks.list(principal))
  api.delete('/events/subscriptions/:id', {
    summary: 'End the webhook of a client',
    description: 'Its client is told (`terminated`), and its server. The client may subscribe again.',
    params: EventSubscriptionId
  }, async ({ principal, params }) => {
    await eventWebhooks.remove(principal, params.id)
    return { message: 'The subscription has ended' }
  })
  api.get('/events/failed', {
    summary: 'Events that could not be delivered to a webhook',
    description:
      'Newest first, for 7 days. Their client can get them again with a cursor, if the server keeps events.',
    data: Type.Array(FailedEventDelivery)
  }, async ({ principal }) => ({ data: await eventWebhooks.listFailed(principal) }))
}
export default routes
