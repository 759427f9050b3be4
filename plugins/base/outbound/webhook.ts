import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Max difference between a webhook's timestamp and the current time, in ms (Standard Webhooks 1.0). */
const tolerance = 5 * 60_000

const signatureOf = (secret: string, id: string, timestamp: string, body: string | Buffer): string =>
  createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest('base64')

/**
 * Creates the headers of a webhook, with its signature (Standard Webhooks 1.0: HMAC-SHA256 over id, time and body).
 * @param secrets base64, with or without the prefix `whsec_`; any other text stands for its UTF-8 bytes. There is one
 * signature for each secret
 * @param id must be the same in each attempt to deliver a message
 * @param now the current time, in ms since the epoch
 */
export function signWebhook (
  secrets: string | readonly string[], body: string, id = `msg_${randomUUID()}`, now = Date.now()
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000))
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': [secrets].flat().map((each) => `v1,${signatureOf(each, id, timestamp, body)}`).join(' ')
  }
}

/**
 * Checks the signature of a webhook, and that its timestamp differs from the current time by at most `tolerance`.
 * @param body the body as received
 * @param now the current time, in ms since the epoch
 * @returns the id of the webhook; undefined if it is not valid
 */
export function verifiedWebhookId (
  secret: string, headers: IncomingHttpHeaders, body: Buffer, now = Date.now()
): string | undefined {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return undefined
  if (id === '' || !/^\d{1,12}$/.test(timestamp)) return undefined
  if (Math.abs(now - Number(timestamp) * 1_000) > tolerance) return undefined
  const expected = Buffer.from(`v1,${signatureOf(secret, id, timestamp, body)}`)
  const isValid = signatures.split(' ').some((each) => {
    const sent = Buffer.from(each)
    return sent.length === expected.length && timingSafeEqual(sent, expected)
  })
  return isValid ? id : undefined
}

function keyOf (secret: string): Buffer {
  const text = secret.replace(/^whsec_/, '')
  const key = Buffer.from(text, 'base64')
  return key.toString('base64') === text ? key : Buffer.from(secret)
}
