import type { FastifyRequest } from 'fastify'
import { extensionsLimits } from '../../plugins/extensions/index.ts'
import { Failure } from '../../schemas/answers.ts'
import { EventChallenge, EventReceipt, EventWebhookParams } from '../../schemas/events.ts'
import { addBodyMemoryReservation } from '../bodies.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

/**
 * The webhook route on which servers deliver events to the gateway. The path contains an encrypted subscription id;
 * each message is authenticated by its signature.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { size: bodyLimit } = extensionsLimits.eventWebhooks
  addBodyMemoryReservation(app, bodyLimit)
  app.removeAllContentTypeParsers()
  // The body is kept as bytes, since the signature covers the raw bytes.
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
