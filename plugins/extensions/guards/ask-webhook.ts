import { isDeeperThan, isObject, memberOf, parseJsonObject } from '../../../protocol/json.ts'
import type { Guard } from '../../../schemas/guards.ts'
import { baseLimits } from '../../base/limits/index.ts'
import { signWebhook, type Outbound } from '../../base/outbound/index.ts'
import { extensionsLimits } from '../limits.ts'

export type WebhookSettings = NonNullable<Guard['webhook']>

/** A question to a guard's webhook: whether arguments (`call`) or a result may be used. */
export interface WebhookQuestion {
  readonly type: 'call' | 'result'
  readonly principal: object
  readonly server: string
  /** The name or URI of the item at the server; '' if the request names none. */
  readonly tool: string
  readonly kind: 'tool' | 'prompt' | 'resource' | 'completion'
  /** The arguments or the result, as JSON text. */
  readonly text: string
}

/** The answer from a webhook. `text`: the arguments or result to use instead, as JSON text. */
type WebhookAnswer =
  { readonly action: 'accept' } |
  { readonly action: 'reject', readonly message: string | undefined } |
  { readonly action: 'replace', readonly text: string }

const { webhookTimeout, webhookAnswer, message: maxMessage } = extensionsLimits.guards

/**
 * Asks a guard's webhook about arguments or a result.
 * @throws Error with a message for the operator if the webhook is unreachable or too slow, or if its answer is invalid
 */
export async function askWebhook (
  outbound: Pick<Outbound, 'fetch'>, { url, secret, timeoutMs = webhookTimeout }: WebhookSettings,
  question: WebhookQuestion
): Promise<WebhookAnswer> {
  const { text, ...others } = question
  const member = question.type === 'call' ? 'arguments' : 'result'
  // The text is inserted without parsing, so that its numbers keep all digits.
  const requestBody = `${JSON.stringify(others).slice(0, -1)},"${member}":${text}}`
  const { status, body } = await outbound.fetch(url, {
    trusted: true,
    method: 'POST',
    headers: signWebhook(secret, requestBody),
    body: requestBody,
    maxSize: webhookAnswer,
    timeout: timeoutMs,
    returnsRedirects: 'all'
  })
  if (status < 200 || status > 299) throw new Error(`it answered HTTP ${status}`)
  const answered = body.toString()
  if (isDeeperThan(answered, baseLimits.requestDepth)) throw new Error('its answer is nested too deeply')
  const answer = parseJsonObject(answered)
  if (answer === undefined) throw new Error('its answer is not a JSON object')
  const { action, message } = answer
  if (action === 'accept') return { action }
  if (action === 'reject') {
    return { action, message: typeof message === 'string' ? message.slice(0, maxMessage) : undefined }
  }
  if (action !== 'replace') throw new Error('"action" in its answer is not accept, reject or replace')
  const replacement = memberOf(answered, member)
  if (!isObject(answer[member]) || replacement === undefined) {
    throw new Error(`"${member}" in its answer is not an object`)
  }
  return { action, text: replacement }
}
