import { randomBytes, timingSafeEqual } from 'node:crypto'
import { UpstreamError } from '../../../protocol/errors.ts'
import { eventError } from '../../../protocol/events.ts'
import { parseJsonObject } from '../../../protocol/json.ts'
import { Semaphore, TokenBucket } from '../../base/limits/index.ts'
import { signWebhook, type FetchedResponse, type Outbound } from '../../base/outbound/index.ts'
import { extensionsLimits } from '../limits.ts'

const { timeout, answer: maxSize, verifications, places, ofPrincipal } = extensionsLimits.eventWebhooks

/** A client's webhook, to which the messages of a subscription are sent. */
export interface WebhookDestination {
  /** The id of the subscription. */
  readonly id: string
  readonly url: string
  /** The secrets with which messages are signed. */
  readonly secrets: readonly string[]
  /** The key of the principal on whose behalf messages are sent. */
  readonly owner: string
  /** Whether the principal is an admin, for whom private addresses are allowed. */
  readonly trusted: boolean
}

/** The reason why a delivery failed (SEP-3415, "Webhook delivery status"). */
type FailureReason =
  'connection_refused' | 'timeout' | 'tls_error' | 'http_4xx' | 'http_5xx' | 'challenge_failed'

/**
 * The outcome of an attempt to deliver a message. `reason`: why it failed; undefined if it succeeded. `isFinal`: the
 * message must not be sent again.
 */
type PostOutcome =
  { readonly reason: undefined } | { readonly reason: FailureReason, readonly isFinal: boolean }

/** HTTP statuses after which a message is not sent again. */
const finalStatuses: ReadonlySet<number> = new Set([410, 413])

/** Sends signed messages to the webhooks of clients. */
export class WebhookSender {
  readonly #outbound: Pick<Outbound, 'fetch'>
  /** Limits the number of simultaneous requests, in total and for each principal. */
  readonly #places = new Semaphore({ places, perOwner: ofPrincipal })
  /** Limits the verifications of each host. */
  readonly #verifications = new TokenBucket(verifications)
  readonly #closing = new AbortController()

  constructor (outbound: Pick<Outbound, 'fetch'>) {
    this.#outbound = outbound
  }

  /** Aborts the requests that are in flight. */
  close (): void { this.#closing.abort() }

  /** Tries once to send a message. The outcome says whether it succeeded. */
  async post (to: WebhookDestination, messageId: string, body: string): Promise<PostOutcome> {
    const answer = await this.#send(to, messageId, body)
    if (typeof answer === 'string') return { reason: answer, isFinal: false }
    const { status } = answer
    if (status >= 200 && status < 300) return { reason: undefined }
    return { reason: status >= 500 ? 'http_5xx' : 'http_4xx', isFinal: finalStatuses.has(status) }
  }

  /**
   * Verifies that a webhook accepts messages (SEP-3415, "Endpoint verification"): it must echo a challenge.
   * @throws RpcError CallbackEndpointError if it does not; ResourceExhausted if its host is verified too often
   */
  async verify (to: WebhookDestination): Promise<void> {
    if (!this.#verifications.take(new URL(to.url).host)) {
      const sentence = 'too many requests were sent to this host; try again later'
      throw eventError('resourceExhausted', { limit: 'verifications' }, sentence)
    }
    const challenge = randomBytes(32).toString('base64url')
    const body = JSON.stringify({ type: 'verification', challenge })
    const answer = await this.#send(to, `msg_verification_${randomBytes(12).toString('hex')}`, body)
    const reason = typeof answer === 'string' ? answer : echoes(answer, challenge) ? undefined : 'challenge_failed'
    if (reason !== undefined) throw eventError('callbackEndpoint', { reason })
  }

  async #send (
    { id, url, secrets, owner, trusted }: WebhookDestination, messageId: string, body: string
  ): Promise<FetchedResponse | FailureReason> {
    const release = await this.#places.take(owner, false)
    try {
      return await this.#outbound.fetch(url, {
        trusted,
        owner,
        method: 'POST',
        headers: { ...signWebhook(secrets, body, messageId), 'x-mcp-subscription-id': id },
        body,
        maxSize,
        timeout,
        returnsRedirects: 'all',
        signal: this.#closing.signal
      })
    } catch (error) {
      return reasonOf(error)
    } finally {
      release()
    }
  }
}

function reasonOf (error: unknown): FailureReason {
  if (!(error instanceof UpstreamError)) return 'connection_refused'
  if (error.fault === 'timeout') return 'timeout'
  return /certificate|TLS|SSL/i.test(error.message) ? 'tls_error' : 'connection_refused'
}

/** Whether a response contains the challenge that was sent. */
function echoes ({ status, body }: FetchedResponse, challenge: string): boolean {
  if (status < 200 || status >= 300) return false
  const echoed = Buffer.from(String(parseJsonObject(body.toString())?.challenge))
  return echoed.length === challenge.length && timingSafeEqual(echoed, Buffer.from(challenge))
}
