import { randomUUID } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { FailedEventDelivery } from '../../schemas/events.ts'
import { recordCollections, type RecordEntry, type Records, type StoredRecord } from '../records.ts'

const { eventSubscriptions: subscriptions, eventDeliveries: deliveries, failedDeliveries: failures } = recordCollections

/** The credential of a principal with a subscription: a bearer key, or an authorization of an OAuth client. */
export type LastingCredential =
  | { readonly keyId: string }
  | {
    readonly family: string
    readonly clientId: string | undefined
    readonly username: string
    /** The mark of the user's rights when the subscription was made; the subscription ends when it changes. */
    readonly mark: string
    readonly scopes: readonly string[]
    readonly audience: string | undefined
  }

/** A webhook that a client registered for an event type (SEP-3415, "Webhook-Based Delivery"). */
export interface EventSubscription {
  /** The id, which is the same for the same principal, URL, event type and arguments. */
  readonly id: string
  /** The key of the principal that owns it. */
  readonly owner: string
  /** The user whose connections to the server it uses. */
  readonly user: string
  readonly credential: LastingCredential
  /** The route (`EventRoute`): the scope and presentation of its view, and the client's address. */
  readonly route: unknown
  /** The name of the event type on that route. */
  readonly name: string
  /** The event type at its server; `server` identifies the server. */
  readonly event: { readonly provider: string, readonly server: string, readonly key: string }
  /** The arguments as JSON text. */
  readonly argumentsText: string
  readonly url: string
  /** The client's secrets, newest first; the former one is also used for signatures until `until`, in ms since 1970. */
  readonly secrets: ReadonlyArray<{ readonly secret: string, readonly until?: number }>
  /** The gateway's own webhook at the server: the last segment of its path, and its secret. */
  readonly own: { readonly token: string, readonly secret: string }
  readonly expiresAt: number
}

/** A message for a client's webhook. */
export interface EventDelivery {
  /** The key of subscription and message; it is the same when the server sends the message again. */
  readonly key: string
  readonly subscription: string
  readonly owner: string
  /** `webhook-id` and the body, as sent to the client. */
  readonly messageId: string
  readonly body: string
  readonly attempts: number
  /** The time of the next attempt, in ms since 1970; during an attempt, the time after which it is treated as lost. */
  readonly dueAt: number
  readonly version: string
}

/** A message that could not be delivered. */
export type FailedDelivery = Readonly<Static<typeof FailedEventDelivery>>

/** The delivery status of a subscription; times are in ms since 1970. */
export interface DeliveryStatus {
  /** When a message was last delivered, if within the last hour. */
  readonly deliveredAt?: number
  /** Why the newest message failed, and since when messages fail, if none was delivered after that. */
  readonly lastError?: string
  readonly failedSince?: number
}

/**
 * The webhooks of clients and the messages for them as records, shared by all replicas. A claim is a swap, so that each
 * message has one sender at a time.
 */
export class EventWebhooks {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async find (id: string): Promise<EventSubscription | undefined> {
    return (await this.#records.find(subscriptions, id))?.value as EventSubscription | undefined
  }

  /** @param owner the key of a principal; undefined for all principals */
  async list (owner?: string): Promise<EventSubscription[]> {
    return valuesOf(await this.#records.list(subscriptions, owner === undefined ? {} : { owner }))
  }

  /** The subscriptions made by OAuth clients. */
  async listAuthorized (): Promise<EventSubscription[]> {
    return valuesOf(await this.#records.list(subscriptions, { labels: [authorized] }))
  }

  /** Adds a subscription. @returns false if one with its id exists */
  async add (subscription: EventSubscription): Promise<boolean> {
    return await this.#records.swap(subscriptions, undefined, toEntry(subscription))
  }

  async update (subscription: EventSubscription): Promise<void> {
    await this.#records.put(subscriptions, [toEntry(subscription)])
  }

  /** @returns whether this call removed it: exactly one caller on any replica gets true */
  async remove (id: string): Promise<boolean> { return await this.#records.remove(subscriptions, id) === 1 }

  /** The number of messages that wait for the webhooks of a principal. */
  async countWaiting (owner: string): Promise<number> {
    return (await this.#records.list(deliveries, { labels: [waitingOf(owner)] }, true)).length
  }

  /** Stores a message. @returns false if it is stored or was delivered already */
  async accept (delivery: EventDelivery): Promise<boolean> {
    return await this.#records.swap(deliveries, undefined, toWaiting(delivery))
  }

  /** The messages whose next attempt is due. */
  async listDue (now: number): Promise<EventDelivery[]> {
    return valuesOf<EventDelivery>(await this.#records.list(deliveries, { labels: [waiting] }))
      .filter(({ dueAt }) => dueAt <= now)
  }

  /** Replaces a message, unless another caller was faster. @returns the new message */
  async claim (
    delivery: EventDelivery, next: Pick<EventDelivery, 'attempts' | 'dueAt'>
  ): Promise<EventDelivery | undefined> {
    const claimed = { ...delivery, ...next, version: randomUUID() }
    return await this.#records.swap(deliveries, delivery.version, toWaiting(claimed)) ? claimed : undefined
  }

  /** Ends a message: it is kept without its body. @param failed an entry for the list of failed messages */
  async settle ({ key, subscription, version, messageId }: EventDelivery, failed?: FailedDelivery): Promise<void> {
    const labels = failed === undefined ? [] : [undelivered]
    const entry = { key, owner: subscription, labels, value: null, expiresIn: memoryOfDelivered }
    if (!await this.#records.swap(deliveries, version, entry) || failed === undefined) return
    const value = { ...failed } satisfies FailedDelivery
    await this.#records.put(
      failures, [{ key: `${key} ${messageId}`, owner: failed.user, value, expiresIn: memoryOfFailed }]
    )
  }

  async statusOf ({ id, user }: Pick<EventSubscription, 'id' | 'user'>): Promise<DeliveryStatus> {
    const ages = (await this.#records.list(deliveries, { owner: id }, true))
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

  /** The newest failed messages. @param user undefined for all users */
  async listFailed (owner?: string): Promise<FailedDelivery[]> {
    return valuesOf(await this.#records.list(failures, owner === undefined ? {} : { owner }))
  }
}

const waiting = 'waiting'
const undelivered = 'undelivered'
const authorized = 'authorized'

/** In ms: how long a message may wait, and how long delivered and failed messages are remembered. */
const [longestWait, memoryOfDelivered, memoryOfFailed] = [24 * 60 * 60_000, 60 * 60_000, 7 * 24 * 60 * 60_000]

const valuesOf = <Value>(found: readonly StoredRecord[]): Value[] =>
  found.flatMap(({ value }) => value === undefined || value === null ? [] : [value as Value])

const toEntry = (subscription: EventSubscription): RecordEntry => ({
  key: subscription.id,
  value: { ...subscription },
  owner: subscription.owner,
  labels: 'family' in subscription.credential ? [authorized] : [],
  expiresAt: subscription.expiresAt
})

const waitingOf = (owner: string): string => `${waiting} ${owner}`

const toWaiting = (delivery: EventDelivery): RecordEntry => ({
  key: delivery.key,
  value: { ...delivery },
  owner: delivery.subscription,
  labels: [waiting, waitingOf(delivery.owner)],
  version: delivery.version,
  expiresIn: longestWait
})
