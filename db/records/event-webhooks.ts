import { randomUUID } from 'node:crypto'
import type {
  DeliveryStatus, EventDelivery, EventSubscription, EventWebhooks, FailedDelivery
} from '../ports/event-webhooks.ts'
import { recordCollections, type RecordEntry, type Records, type StoredRecord } from '../records.ts'

const { eventSubscriptions: subscriptions, eventDeliveries: deliveries, failedDeliveries: failures } = recordCollections

const waiting = 'waiting'
const undelivered = 'undelivered'
const authorized = 'authorized'

/** In ms: how long a message may wait, and how long delivered and failed messages are remembered. */
const [longestWait, memoryOfDelivered, memoryOfFailed] = [24 * 60 * 60_000, 60 * 60_000, 7 * 24 * 60 * 60_000]

const valuesOf = <Value>(found: readonly StoredRecord[]): Value[] =>
  found.flatMap(({ value }) => value === undefined || value === null ? [] : [value as Value])

/** Webhooks and their messages as records. A claim is a swap, so that each message has one sender at a time. */
export class RecordedEventWebhooks implements EventWebhooks {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async find (id: string): Promise<EventSubscription | undefined> {
    return (await this.#records.find(subscriptions, id))?.value as EventSubscription | undefined
  }

  async list (owner?: string): Promise<EventSubscription[]> {
    return valuesOf(await this.#records.list(subscriptions, owner === undefined ? {} : { owner }))
  }

  async listAuthorized (): Promise<EventSubscription[]> {
    return valuesOf(await this.#records.list(subscriptions, { labels: [authorized] }))
  }

  async add (subscription: EventSubscription): Promise<boolean> {
    return await this.#records.swap(subscriptions, undefined, toEntry(subscription))
  }

  async update (subscription: EventSubscription): Promise<void> {
    await this.#records.put(subscriptions, [toEntry(subscription)])
  }

  async remove (id: string): Promise<boolean> { return await this.#records.remove(subscriptions, id) === 1 }

  async countWaiting (owner: string): Promise<number> {
    return (await this.#records.list(deliveries, { labels: [waitingOf(owner)] }, true)).length
  }

  async accept (delivery: EventDelivery): Promise<boolean> {
    return await this.#records.swap(deliveries, undefined, toWaiting(delivery))
  }

  async listDue (now: number): Promise<EventDelivery[]> {
    return valuesOf<EventDelivery>(await this.#records.list(deliveries, { labels: [waiting] }))
      .filter(({ dueAt }) => dueAt <= now)
  }

  async claim (
    delivery: EventDelivery, next: Pick<EventDelivery, 'attempts' | 'dueAt'>
  ): Promise<EventDelivery | undefined> {
    const claimed = { ...delivery, ...next, version: randomUUID() }
    return await this.#records.swap(deliveries, delivery.version, toWaiting(claimed)) ? claimed : undefined
  }

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

  async listFailed (owner?: string): Promise<FailedDelivery[]> {
    return valuesOf(await this.#records.list(failures, owner === undefined ? {} : { owner }))
  }
}

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
