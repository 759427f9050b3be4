import { randomUUID } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { FailedEventDelivery } from '../../schemas/events.ts'
import { recordCollections, type RecordEntry, RecordPort, type StoredRecord } from '../records.ts'

const {
  eventSubscriptions: subscriptions, endedSubscriptions: ended, eventDeliveries: deliveries, failedDeliveries: failures
} = recordCollections

/** The credential of the request that made a subscription: a bearer key, or an access token of an OAuth client. */
export type SubscriptionCredential =
  | { readonly keyId: string }
  | {
    readonly family: string
    readonly clientId: string | undefined
    readonly username: string
    /** An opaque digest of the user's rights when the subscription was made. It ends when the rights change. */
    readonly mark: string
    readonly scopes: readonly string[]
    readonly audience: string | undefined
  }

/** A webhook that a client registered for an event type (SEP-3415, "Webhook-Based Delivery"). */
export interface EventSubscription {
  /** The id, which is derived from principal, route, server, event type, URL and arguments. */
  readonly id: string
  /** The key of the principal that made the subscription. */
  readonly owner: string
  /** The user whose connections to the server the subscription uses. */
  readonly user: string
  readonly credential: SubscriptionCredential
  /**
   * The route of the request (`SubscriptionRoute`): the scope and presentation of its view, and the client's address.
   */
  readonly route: unknown
  /** The name of the event type on `route`, as the client sees it. */
  readonly name: string
  /** `provider`: the name of the server; `server`: its `serverFingerprint`; `key`: the name of the event type there. */
  readonly event: { readonly provider: string, readonly server: string, readonly key: string }
  /** The arguments of the subscription, as JSON text. */
  readonly argumentsText: string
  readonly url: string
  /**
   * The client's secrets for signatures, newest first. A replaced secret also signs messages until the time `until`, in
   * ms since 1970.
   */
  readonly secrets: ReadonlyArray<{ readonly secret: string, readonly until?: number }>
  /** The gateway's webhook that receives the server's messages. `token`: the last segment of its path. */
  readonly own: { readonly token: string, readonly secret: string }
  readonly expiresAt: number
}

/** A message for a client's webhook. */
export interface EventDelivery {
  /** The key of the record, derived from subscription and message: the same if the server sends the message again. */
  readonly key: string
  readonly subscription: string
  readonly owner: string
  /** The header `webhook-id` and the body, as sent to the client. */
  readonly messageId: string
  readonly body: string
  readonly attempts: number
  /** The time of the next attempt, in ms since 1970. During an attempt, the time from which another may begin. */
  readonly dueAt: number
  readonly version: string
}

/** A message for a client's webhook that could not be delivered. */
export type FailedDelivery = Readonly<Static<typeof FailedEventDelivery>>

/** The outcome of the latest deliveries of a subscription; times are in ms since 1970. */
export interface DeliveryStatus {
  /** When a message was last delivered; undefined if none was within the last hour. */
  readonly deliveredAt?: number
  /** Why the newest failed message failed; undefined if no message has failed since `deliveredAt`. */
  readonly lastError?: string
  /** When the first message after `deliveredAt` failed; undefined if none has. */
  readonly failedSince?: number
}

/**
 * Stores the webhooks of clients, and the messages for these webhooks, as records. A replica claims a message before it
 * sends it, so that only one replica at a time sends it.
 */
export class EventWebhooks extends RecordPort {
  async find (id: string): Promise<EventSubscription | undefined> {
    return (await this.records.find(subscriptions, id))?.value as EventSubscription | undefined
  }

  /** Lists the subscriptions of a principal. @param owner the key of the principal; by default, all principals */
  async list (owner?: string): Promise<EventSubscription[]> {
    return valuesOf(await this.records.list(subscriptions, owner === undefined ? {} : { owner }))
  }

  /** Lists the subscriptions that were made with access tokens of OAuth clients. */
  async listByOAuthClients (): Promise<EventSubscription[]> {
    return valuesOf(await this.records.list(subscriptions, { labels: [authorized] }))
  }

  /** Adds a subscription. @returns false if a subscription has the id already */
  async add (subscription: EventSubscription): Promise<boolean> {
    return await this.records.swap(subscriptions, undefined, toEntry(subscription))
  }

  async update (subscription: EventSubscription): Promise<void> {
    await this.records.put(subscriptions, [toEntry(subscription)])
  }

  /**
   * Removes a subscription.
   * @returns whether this call removed it: of several callers, on any replica, exactly one gets true
   */
  async remove (id: string): Promise<boolean> {
    await this.records.remove(ended, id)
    return await this.records.remove(subscriptions, id) === 1
  }

  /** Ends a subscription at the request of its server. Its waiting messages are still delivered. */
  async endByServer (subscription: EventSubscription): Promise<void> {
    const { id: key, owner } = subscription
    await this.records.put(ended, [{ key, owner, value: { ...subscription }, expiresIn: maxWait }])
    await this.records.remove(subscriptions, key)
  }

  /** Returns the subscription whose waiting messages are delivered: also one that `endByServer` has ended. */
  async findForDelivery (id: string): Promise<EventSubscription | undefined> {
    return await this.find(id) ?? (await this.records.find(ended, id))?.value as EventSubscription | undefined
  }

  /** Returns the number of messages that wait for the webhooks of a principal. */
  async countWaiting (owner: string): Promise<number> {
    return (await this.records.list(deliveries, { labels: [waitingOf(owner)] }, true)).length
  }

  /** Stores a message. @returns false if it is stored already, waiting or settled */
  async addDelivery (delivery: EventDelivery): Promise<boolean> {
    return await this.records.swap(deliveries, undefined, toWaiting(delivery))
  }

  /** Lists the messages whose next attempt is due. @param now the time in ms since 1970 */
  async listDue (now: number): Promise<EventDelivery[]> {
    return valuesOf<EventDelivery>(await this.records.list(deliveries, { labels: [waiting] }))
      .filter(({ dueAt }) => dueAt <= now)
  }

  /**
   * Claims a message for an attempt to deliver it.
   * @param next the new values of `attempts` and `dueAt`
   * @returns the claimed message; undefined if another caller has claimed or settled it
   */
  async claim (
    delivery: EventDelivery, next: Pick<EventDelivery, 'attempts' | 'dueAt'>
  ): Promise<EventDelivery | undefined> {
    const claimed = { ...delivery, ...next, version: randomUUID() }
    return await this.records.swap(deliveries, delivery.version, toWaiting(claimed)) ? claimed : undefined
  }

  /**
   * Ends the delivery of a message, unless another caller has claimed or settled it. The message stays stored without
   * its body for an hour, so that it is not accepted again.
   * @param failed the entry to add to the list of failed messages; undefined if the message was delivered
   */
  async settle ({ key, subscription, version, messageId }: EventDelivery, failed?: FailedDelivery): Promise<void> {
    const labels = failed === undefined ? [] : [undelivered]
    const entry = { key, owner: subscription, labels, value: null, expiresIn: settledRetention }
    if (!await this.records.swap(deliveries, version, entry) || failed === undefined) return
    const value = { ...failed } satisfies FailedDelivery
    await this.records.put(
      failures, [{ key: `${key} ${messageId}`, owner: failed.user, value, expiresIn: failureRetention }]
    )
  }

  async statusOf ({ id, user }: Pick<EventSubscription, 'id' | 'user'>): Promise<DeliveryStatus> {
    const ages = (await this.records.list(deliveries, { owner: id }, true))
      .flatMap(({ labels, age }) => labels.length === 0 ? [age] : [])
    const deliveredAt = ages.length === 0 ? undefined : Date.now() - Math.min(...ages)
    const failed = (await this.listFailed(user))
      .filter(({ subscription, failedAt }) => subscription === id && Date.parse(failedAt) > (deliveredAt ?? 0))
    const [newest, oldest] = [failed.at(0), failed.at(-1)]
    return {
      ...deliveredAt !== undefined && { deliveredAt },
      ...newest && oldest && { lastError: newest.reason, failedSince: Date.parse(oldest.failedAt) }
    }
  }

  /** Lists the failed messages of a user, newest first; by default, those of all users. */
  async listFailed (user?: string): Promise<FailedDelivery[]> {
    return valuesOf(await this.records.list(failures, user === undefined ? {} : { owner: user }))
  }
}

// The labels of waiting messages, of messages that could not be delivered, and of subscriptions of OAuth clients.
const waiting = 'waiting'
const undelivered = 'undelivered'
const authorized = 'authorized'

/** How long an undelivered message is stored, in ms from its arrival or the last attempt. */
const maxWait = 24 * 60 * 60_000
/** How long a settled message is stored so that it is not accepted again, in ms. */
const settledRetention = 60 * 60_000
/** How long a failed message is listed, in ms. */
const failureRetention = 7 * 24 * 60 * 60_000

const valuesOf = <Value>(found: readonly StoredRecord[]): Value[] =>
  found.flatMap(({ value }) => value === undefined || value === null ? [] : [value as Value])

const toEntry = (subscription: EventSubscription): RecordEntry => ({
  key: subscription.id,
  value: { ...subscription },
  owner: subscription.owner,
  labels: 'family' in subscription.credential ? [authorized] : [],
  expiresAt: subscription.expiresAt
})

/** Returns the label of the waiting messages of a principal. */
const waitingOf = (owner: string): string => `${waiting} ${owner}`

const toWaiting = (delivery: EventDelivery): RecordEntry => ({
  key: delivery.key,
  value: { ...delivery },
  owner: delivery.subscription,
  labels: [waiting, waitingOf(delivery.owner)],
  version: delivery.version,
  expiresIn: maxWait
})
