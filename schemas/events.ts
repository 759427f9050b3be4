import { Type } from '@sinclair/typebox'

export const EventWebhookParams = Type.Object({ token: Type.String({ maxLength: 1_000 }) })

/** The response to a message that a server sends to the gateway's webhook. */
export const EventReceipt = Type.Object(
  { success: Type.Boolean(), message: Type.String() }, { examples: [{ success: true, message: 'Accepted' }] }
)

/** The response when a server verifies the address of the gateway's webhook. */
export const EventChallenge = Type.Object(
  { challenge: Type.String() }, { examples: [{ challenge: 'c4a1b0…' }] }
)

/** A message that could not be delivered to a client's webhook. */
export const FailedEventDelivery = Type.Object({
  subscription: Type.String({ description: 'The id of the subscription, as in `X-MCP-Subscription-Id`' }),
  user: Type.String({ description: 'The user or key that subscribed' }),
  server: Type.String(),
  event: Type.String({ description: 'The name of the event type on the route of the subscription' }),
  url: Type.String(),
  messageId: Type.String({ description: 'The id of the event, sent as `webhook-id`' }),
  body: Type.String({ description: 'The body of the message' }),
  attempts: Type.Integer(),
  reason: Type.String({
    description: 'The reason why the last attempt failed, as defined by SEP-3415, for example `http_5xx`'
  }),
  failedAt: Type.String({ format: 'date-time' })
}, {
  examples: [{
    subscription: 'sub_a3f1c8e2b0d49f7ea3f1c8e2b0d49f7e',
    user: 'alice',
    server: 'pager',
    event: 'incident.created',
    url: 'https://agent.example.com/hooks/1',
    messageId: 'evt_789',
    body: '{"eventId":"evt_789","name":"incident.created","timestamp":"2026-02-19T16:00:00Z","data":{}}',
    attempts: 5,
    reason: 'http_5xx',
    failedAt: '2026-02-19T16:15:00.000Z'
  }]
})

export const EventSubscriptionParams = Type.Object({ id: Type.String({ maxLength: 100 }) })

/** A webhook that a client registered for an event type. */
export const ShownEventSubscription = Type.Object({
  id: Type.String({ description: 'As in `X-MCP-Subscription-Id`' }),
  user: Type.String({ description: 'The user or key that subscribed' }),
  server: Type.String(),
  event: Type.String({ description: 'The name of the event type on the route' }),
  route: Type.String({ description: 'The path of the MCP endpoint of the subscription' }),
  url: Type.String({ description: 'The address that messages are sent to' }),
  expiresAt: Type.String({
    format: 'date-time',
    description: 'When the subscription expires, unless its client refreshes it'
  })
}, {
  examples: [{
    id: 'sub_a3f1c8e2b0d49f7ea3f1c8e2b0d49f7e',
    user: 'alice',
    server: 'pager',
    event: 'pager-incident.created',
    route: '/mcp',
    url: 'https://agent.example.com/hooks/1',
    expiresAt: '2026-02-20T16:00:00.000Z'
  }]
})
