// The webhook of a client: an https endpoint that checks signatures, as SEP-3415 asks of receivers.
import { createHmac } from 'node:crypto'
import { createServer } from 'node:https'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { bodyOf } from './answer-by.ts'
import { certificate, key } from './tls-postgres.ts'

type Json = Record<string, unknown>
export interface Delivery { readonly headers: IncomingHttpHeaders, readonly body: Json, readonly isSigned: boolean }

export const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export interface Receiver {
  readonly url: string
  /** What came, verifications included. */
  readonly got: Delivery[]
  /** The events that came, without verifications. */
  readonly events: () => Json[]
  /** Answers instead of the receiver; undefined: it takes everything. */
  answer: ((delivery: Delivery, response: ServerResponse) => void) | undefined
}

const isSignedBy = (one: string, headers: IncomingHttpHeaders, text: string): boolean => {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures } = headers
  const mac = createHmac('sha256', Buffer.from(one.slice(6), 'base64')).update(`${String(id)}.${String(at)}.${text}`).digest('base64')
  return String(signatures).split(' ').includes(`v1,${mac}`)
}

/** Starts a receiver. Its certificate is nobody's: the test process accepts any, and so does a gateway in it. */
export async function startReceiver (t: Cleanup, { secrets = [secret] } = {}): Promise<Receiver> {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  const got: Delivery[] = []
  const receiver: { answer: Receiver['answer'] } = { answer: undefined }
  const server = createServer({ key, cert: certificate }, (request, response) => {
    void bodyOf(request).then((text) => {
      const delivery: Delivery = {
        headers: request.headers, body: JSON.parse(text) as Json, isSigned: secrets.every((each) => isSignedBy(each, request.headers, text))
      }
      got.push(delivery)
      if (receiver.answer) receiver.answer(delivery, response)
      else if (delivery.body.type === 'verification') response.end(JSON.stringify({ challenge: delivery.body.challenge }))
      else response.writeHead(204).end()
    })
  })
  const port = await listen(t, server)
  const events = (): Json[] => got.map(({ body }) => body).filter(({ type }) => type === undefined)
  return Object.assign(receiver, { url: `https://127.0.0.1:${port}/hook`, got, events })
}
