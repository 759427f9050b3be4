import type { FastifyRequest } from 'fastify'
import { extensionsLimits } from '../../plugins/extensions/index.ts'
import { Failure } from '../../schemas/answers.ts'
import { EventChallenge, EventReceipt, EventWebhookParams } from '../../schemas/events.ts'
import { addFormMemoryReservation } from '../bodies.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

/**
 * The gateway's own webhooks for servers' events. The path contains a sealed token; the signature of each message
 * authenticates it.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { size: bodyLimit } = extensionsLimits.eventWebhooks
  addFormMemoryReservation(app, bodyLimit)
  app.removeAllContentTypeParsers()
  // The signature covers the raw bytes.
  const keepBytes = async (_request: FastifyRequest, body: Buffer): Promise<Buffer> => body
  app.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit }, keepBytes)

  app.post('/webhooks/events/:token', {
    schema: {
      tags: ['Events'],
      summary: 'Receive an event from a server',
      description:
        'For the servers behind this gateway (SEP-3415, "Webhook event delivery"): the address is `delivery.url` in ' +
        'the `events/subscribe` request of the gateway. The message must be signed with `delivery.secret` (Standard ' +
        'Webhooks). A message whose id was accepted before is accepted again, and ignored.',
      security: [],
      params: EventWebhookParams,
      response: {
        200: EventChallenge,
        202: EventReceipt,
        400: Failure,
        401: Failure,
        403: Failure,
        404: Failure,
        410: Failure,
        413: Failure,
        503: Failure
      }
    },
    config: { effect: 'run' },
    bodyLimit
  }, async ({ params: { token }, headers, body }, reply) => {
    const { status, body: answer } = await app.eventWebhooks.receive(token, headers, body as Buffer)
    return await reply.code(status as 200).send(answer as { challenge: string })
  })
}
export default routes
