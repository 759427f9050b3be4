import { randomUUID } from 'node:crypto'
import type {
  EventDelivery, EventSubscription, EventWebhooks, FailedDelivery
} from '../../../db/ports/event-webhooks.ts'
import { extensionsLimits } from '../limits.ts'
import type { WebhookSender, WebhookDestination } from './webhook-sender.ts'

const { pauses, timeout } = extensionsLimits.eventWebhooks

/** Time after which any replica repeats an unfinished attempt, since its process seems to have ended, in ms. */
const lostAfter = 6 * timeout

interface DeliveriesDeps {
  readonly records: EventWebhooks
  readonly sender: WebhookSender
  /**
   * Returns the current destination of a subscription; undefined if its principal has lost access.
   * @throws StorageError if the database is unavailable
   */
  readonly destinationOf: (subscription: EventSubscription) => Promise<WebhookDestination | undefined>
  /** Ends a subscription whose principal has lost access. */
  readonly end: (subscription: EventSubscription) => Promise<void>
  readonly logError: (error: unknown, sentence: string) => void
}

/** Delivers messages to the webhooks of clients, with retries. One replica at a time tries to deliver a message. */
export class Deliveries {
  readonly #deps: DeliveriesDeps
  readonly #running = new Set<Promise<void>>()
  #isClosed = false

  constructor (deps: DeliveriesDeps) {
    this.#deps = deps
  }

  /**
   * Stores a message and starts to send it. Ignores a message whose key was stored before.
   * @param key identifies the message and its subscription
   * @param messageId the id that the webhook receives
   * @throws StorageError
   */
  async enqueue (subscription: EventSubscription, key: string, messageId: string, body: string): Promise<void> {
    const { id, owner } = subscription
    const delivery: EventDelivery = {
      key, subscription: id, owner, messageId, body, attempts: 1, dueAt: Date.now() + lostAfter, version: randomUUID()
    }
    if (await this.#deps.records.addDelivery(delivery)) this.#begin(delivery, subscription)
  }

  /**
   * Starts to send the messages whose next attempt is due, except those that another replica has claimed. Messages of
   * subscriptions that the client or the gateway has ended are dropped.
   * @throws StorageError
   */
  async sendDue (): Promise<void> {
    const { records } = this.#deps
    for (const due of await records.listDue(Date.now())) {
      if (this.#isClosed) return
      const claimed = await records.claim(due, { attempts: due.attempts + 1, dueAt: Date.now() + lostAfter })
      if (claimed === undefined) continue
      const subscription = await records.findForDelivery(claimed.subscription)
      if (subscription === undefined) await records.settle(claimed)
      else this.#begin(claimed, subscription)
    }
  }

  /** Aborts the running attempts; other replicas, or this one after a restart, retry them. */
  async close (): Promise<void> {
    this.#isClosed = true
    this.#deps.sender.close()
    await Promise.allSettled(this.#running)
  }

  #begin (delivery: EventDelivery, subscription: EventSubscription): void {
    const running = this.#attempt(delivery, subscription)
      .catch((error: unknown) => { this.#deps.logError(error, 'a message for a webhook could not be sent') })
      .finally(() => { this.#running.delete(running) })
    this.#running.add(running)
  }

  async #attempt (delivery: EventDelivery, subscription: EventSubscription): Promise<void> {
    const { records, sender, destinationOf, end } = this.#deps
    const { messageId, body, attempts } = delivery
    const to = await destinationOf(subscription)
    if (to === undefined) {
      await end(subscription)
      await records.settle(delivery)
      return
    }
    const outcome = await sender.post(to, messageId, body)
    if (outcome.reason === undefined) {
      await records.settle(delivery)
      return
    }
    if (this.#isClosed && !outcome.isFinal) {
      // An attempt that was aborted by `close` does not count.
      await records.claim(delivery, { attempts: attempts - 1, dueAt: Date.now() })
      return
    }
    const pause = outcome.isFinal ? undefined : pauses[attempts - 1]
    if (pause !== undefined) await records.claim(delivery, { attempts, dueAt: Date.now() + pause })
    else await records.settle(delivery, failureOf(delivery, subscription, outcome.reason))
  }
}

const failureOf = (
  { messageId, body, attempts }: EventDelivery, { id, user, event, name, url }: EventSubscription, reason: string
): FailedDelivery => ({
  subscription: id,
  user,
  server: event.provider,
  event: name,
  url,
  messageId,
  body,
  attempts,
  reason,
  failedAt: new Date().toISOString()
})
