import { createHmac, randomUUID } from 'node:crypto'

/**
 * The headers that sign the body of a webhook (Standard Webhooks 1.0: HMAC-SHA256 over id, time and body).
 * @param secret `whsec_` and base64, or base64; any other text is used as its UTF-8 bytes
 * @param id the same for each attempt to deliver a message
 * @param now in ms since 1970
 */
export function signWebhook (
  secret: string, body: string, id = `msg_${randomUUID()}`, now = Date.now()
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000))
  const signature = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`
  }
}

function keyOf (secret: string): Buffer {
  const text = secret.replace(/^whsec_/, '')
  const key = Buffer.from(text, 'base64')
  return key.toString('base64') === text ? key : Buffer.from(secret)
}
