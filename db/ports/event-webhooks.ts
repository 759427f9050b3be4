import type { Static } from '@sinclair/typebox'
import type { FailedEventDelivery } from '../../schemas/events.ts'

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

/** The webhooks of clients and the messages for them, shared by all replicas. */
export interface EventWebhooks {
  find: (id: string) => Promise<EventSubscription | undefined>
  /** @param owner the key of a principal; undefined for all principals */
  list: (owner?: string) => Promise<EventSubscription[]>
  /** The subscriptions made by OAuth clients. */
  listAuthorized: () => Promise<EventSubscription[]>
  /** Adds a subscription. @returns false if one with its id exists */
  add: (subscription: EventSubscription) => Promise<boolean>
  update: (subscription: EventSubscription) => Promise<void>
  /** @returns whether this call removed it: exactly one caller on any replica gets true */
  remove: (id: string) => Promise<boolean>
  /** The number of messages that wait for the webhooks of a principal. */
  countWaiting: (owner: string) => Promise<number>
  /** Stores a message. @returns false if it is stored or was delivered already */
  accept: (delivery: EventDelivery) => Promise<boolean>
  /** The messages whose next attempt is due. */
  listDue: (now: number) => Promise<EventDelivery[]>
  /** Replaces a message, unless another caller was faster. @returns the new message */
  claim: (
    delivery: EventDelivery, next: Pick<EventDelivery, 'attempts' | 'dueAt'>
  ) => Promise<EventDelivery | undefined>
  /** Ends a message: it is kept without its body. @param failed an entry for the list of failed messages */
  settle: (delivery: EventDelivery, failed?: FailedDelivery) => Promise<void>
  statusOf: (subscription: Pick<EventSubscription, 'id' | 'user'>) => Promise<DeliveryStatus>
  /** The newest failed messages. @param user undefined for all users */
  listFailed: (user?: string) => Promise<FailedDelivery[]>
}
