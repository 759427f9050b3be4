import type { Static } from '@sinclair/typebox'
import type { FailedEventDelivery } from '../../schemas/events.ts'

/** The credential of a principal that has a subscription: a bearer key, or an authorization of an OAuth client. */
export type LastingCredential =
  | { readonly keyId: string }
  | {
    readonly family: string
    readonly clientId: string | undefined
    readonly username: string
    /** The rights of the user when the subscription was made; it ends when they change. */
    readonly mark: string
    readonly scopes: readonly string[]
    readonly audience: string | undefined
  }

/** A webhook that a client registered for an event type (SEP-3415, "Webhook-Based Delivery"). */
export interface EventSubscription {
  /** The same for the same principal, URL, event type and arguments. */
  readonly id: string
  /** The key of its principal. */
  readonly owner: string
  /** The user whose connections to the server it uses. */
  readonly user: string
  readonly credential: LastingCredential
  /** The route: the scope and presentation of its view. */
  readonly route: unknown
  /** The name of the event type on that route. */
  readonly name: string
  /** The event type at its server; `server` identifies the server. */
  readonly event: { readonly provider: string, readonly server: string, readonly key: string }
  /** The text of the arguments. */
  readonly argumentsText: string
  readonly url: string
  /** The client's secrets, newest first; the former one signs as well until `until`, in ms since 1970. */
  readonly secrets: ReadonlyArray<{ readonly secret: string, readonly until?: number }>
  /** The gateway's own webhook at the server: the last part of its path, and its secret. */
  readonly own: { readonly token: string, readonly secret: string }
  readonly expiresAt: number
}

/** A message for a client's webhook. */
export interface EventDelivery {
  /** Of the subscription and the message; the same when its server sends the message again. */
  readonly key: string
  readonly subscription: string
  readonly owner: string
  /** `webhook-id` and the body, as the client gets them. */
  readonly messageId: string
  readonly body: string
  readonly attempts: number
  /** The time of the next attempt, in ms since 1970; while one runs, the time at which it counts as lost. */
  readonly dueAt: number
  readonly version: string
}

/** A message that could not be delivered. */
export type FailedDelivery = Readonly<Static<typeof FailedEventDelivery>>

/** How the messages of a subscription fare; times in ms since 1970. */
export interface DeliveryStatus {
  /** When a message was delivered, in the last hour. */
  readonly deliveredAt?: number
  /** Why the newest message failed, and since when they do, if none was delivered after that. */
  readonly lastError?: string
  readonly failedSince?: number
}

/** The webhooks of clients and the messages for them, shared by all replicas. */
export interface EventWebhooks {
  find: (id: string) => Promise<EventSubscription | undefined>
  /** @param owner the key of a principal; undefined: of all */
  list: (owner?: string) => Promise<EventSubscription[]>
  /** The subscriptions that an OAuth client made. */
  listAuthorized: () => Promise<EventSubscription[]>
  /** Adds a subscription. @returns false if there is one with its id */
  add: (subscription: EventSubscription) => Promise<boolean>
  update: (subscription: EventSubscription) => Promise<void>
  /** @returns whether this call removed it: exactly one caller on any replica gets true */
  remove: (id: string) => Promise<boolean>
  /** The number of messages that wait for the webhooks of a principal. */
  countWaiting: (owner: string) => Promise<number>
  /** Keeps a message. @returns false if it is kept or was delivered already */
  accept: (delivery: EventDelivery) => Promise<boolean>
  /** The messages whose next attempt is due. */
  listDue: (now: number) => Promise<EventDelivery[]>
  /** Replaces a message, unless another caller was faster. @returns the new one */
  claim: (
    delivery: EventDelivery, next: Pick<EventDelivery, 'attempts' | 'dueAt'>
  ) => Promise<EventDelivery | undefined>
  /** Ends a message: it is remembered without its body. @param failed kept in the list of failed ones */
  settle: (delivery: EventDelivery, failed?: FailedDelivery) => Promise<void>
  statusOf: (subscription: Pick<EventSubscription, 'id' | 'user'>) => Promise<DeliveryStatus>
  /** The newest failed messages. @param user undefined: of all */
  listFailed: (user?: string) => Promise<FailedDelivery[]>
}
