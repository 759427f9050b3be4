import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { EventSubscription, EventWebhooks } from '../../../db/ports/event-webhooks.ts'
import { RpcError } from '../../../protocol/errors.ts'
import { eventError, withClientCursor, withClientEvent } from '../../../protocol/events.ts'
import { argumentsTextOf, type Exchange } from '../../../protocol/exchange.ts'
import { isObject, memberOf, parseSmallMember, withMembers } from '../../../protocol/json.ts'
import { GuardedNames } from '../../../protocol/lookalikes.ts'
import { verifiedWebhookId } from '../../base/outbound/index.ts'
import type { Sealer } from '../../base/secrets/index.ts'
import { accessRevokedError, type Gateway } from '../../gateway/index.ts'
import type { View } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'
import type { WebhookSender, WebhookDestination } from './webhook-sender.ts'
import {
  parseCallbackUrl, deliveryStatusText, type StoredRoute, createWebhookSecret,
  requestedLifetimeText, parseWebhookSecret, subscriptionExpiryOf, subscriptionIdOf, createUnsubscribeRequest
} from './subscription.ts'
import { Deliveries } from './deliveries.ts'

const { eventWebhooks: limits } = extensionsLimits

export interface WebhookDeps {
  readonly gateway: Gateway
  readonly records: EventWebhooks
  readonly sender: WebhookSender
  readonly sealer: Sealer
  /**
   * Returns the base URL of the gateway's own webhooks, to which a token is appended; undefined if the gateway has no
   * https address.
   */
  readonly base: () => string | undefined
  /** Returns a reference to the caller's credential that can be stored; undefined if there is no such credential. */
  readonly credentialOf: (view: View) => EventSubscription['credential'] | undefined
  /**
   * Returns the current view of a subscription; undefined if its principal no longer sees the event.
   * @throws StorageError
   */
  readonly viewOf: (subscription: EventSubscription) => Promise<View | undefined>
  /** Whether the principal of a subscription is an admin now, even if it no longer sees the event. */
  readonly isByAdmin: (subscription: EventSubscription) => Promise<boolean>
  /** Whether the server of a subscription still exists and was not replaced by another one of the same name. */
  readonly hasServer: (subscription: EventSubscription) => boolean
  readonly logError: (error: unknown, sentence: string) => void
}

/** The HTTP response to a message that a server has posted. */
interface Receipt { readonly status: number, readonly body: Readonly<Record<string, unknown>> }

const sealContext = 'event webhook'
/** The members of `delivery` that the gateway replaces. */
const deliveryMembers = new GuardedNames(['url', 'secret'])
const receipt = (status: number, message: string): Receipt => ({ status, body: { success: status < 300, message } })

/**
 * Webhooks for events (SEP-3415, "Webhook-Based Delivery"). A server posts messages to the gateway's own webhook. The
 * gateway verifies the signature, stores the message, and forwards it to the client's webhook, signed with the secret
 * of the client.
 */
export class Webhooks {
  readonly #deps: WebhookDeps
  readonly deliveries: Deliveries

  constructor (deps: WebhookDeps) {
    this.#deps = deps
    this.deliveries = new Deliveries({
      records: deps.records,
      sender: deps.sender,
      destinationOf: async (subscription) => await this.#destinationOf(subscription),
      end: async (subscription) => { await this.end(subscription) },
      logError: deps.logError
    })
  }

  /**
   * Handles `events/subscribe`: creates or refreshes a subscription.
   * @returns the result as JSON text
   * @throws RpcError, StorageError
   */
  async subscribe (exchange: Exchange<View>): Promise<string> {
    const { gateway, records } = this.#deps
    const { view, params, paramsText } = exchange
    const event = await gateway.findEventType(exchange)
    const { credential, base } = this.#requireWebhooks(exchange)
    const [url, secret] = [parseCallbackUrl(params), parseWebhookSecret(params)]
    const members = gateway.toServerEventMembers(exchange, event)
    const id = subscriptionIdOf(exchange, event, url)
    const own = await records.list(view.principal.key)
    const known = own.find((each) => each.id === id)
    if (known === undefined && own.length >= limits.perPrincipal) {
      throw eventError('resourceExhausted', { limit: 'subscriptions', max: limits.perPrincipal })
    }
    if (!own.some((each) => each.url === url)) {
      const to = { id, url, secrets: [secret], owner: view.principal.key, trusted: view.principal.isAdmin }
      await this.#deps.sender.verify(to)
    }
    const { provider, server, key } = event
    const begun: EventSubscription = {
      id,
      owner: view.principal.key,
      user: view.principal.user,
      credential,
      route: { scope: view.scope, presentation: view.presentation, address: exchange.address } satisfies StoredRoute,
      name: String(params.name),
      event: { provider, server, key },
      argumentsText: argumentsTextOf(exchange),
      url,
      secrets: secretsWith(secret, known),
      // After a rotation of the encryption key, the former token is invalid.
      own: known !== undefined && this.#unseal(known.own.token) === id
        ? known.own
        : { token: this.#deps.sealer.seal(id, sealContext), secret: createWebhookSecret() },
      expiresAt: Math.max(known?.expiresAt ?? 0, subscriptionExpiryOf(undefined, params))
    }
    // The subscription is stored first, since the server may send its verification to any replica before it responds.
    if (known) await records.update(begun)
    else if (!await records.add(begun)) return await this.subscribe(exchange)
    const delivery = withMembers(deliveryMembers.strip(memberOf(paramsText, 'delivery') ?? '{}'), {
      url: JSON.stringify(`${base}${begun.own.token}`), secret: JSON.stringify(begun.own.secret)
    })
    const ttlMs = requestedLifetimeText(params)
    const changes = { ...members, delivery, ...ttlMs !== undefined && { ttlMs } }
    let result: string
    try {
      result = await gateway.send(exchange, provider, key, changes)
    } catch (error) {
      if (known === undefined) await records.remove(id)
      throw error
    }
    const expiresAt = subscriptionExpiryOf(parseSmallMember(result, 'refreshBefore'), params)
    await records.update({ ...begun, expiresAt })
    // The delivery status that the server returned is about its deliveries to the gateway, so it is replaced.
    const status = known && deliveryStatusText(await records.statusOf(known))
    return withClientCursor(withMembers(result, {
      id: JSON.stringify(id),
      refreshBefore: JSON.stringify(new Date(expiresAt).toISOString()),
      deliveryStatus: status
    }), event.presentation)
  }

  /** Handles `events/unsubscribe`. @returns the result as JSON text @throws RpcError, StorageError */
  async unsubscribe (exchange: Exchange<View>): Promise<string> {
    const { gateway, records } = this.#deps
    const event = await gateway.findEventType(exchange)
    this.#requireWebhooks(exchange)
    const found = await records.find(subscriptionIdOf(exchange, event, parseCallbackUrl(exchange.params)))
    if (found === undefined || !await records.remove(found.id)) {
      throw eventError('notFound', { kind: 'subscription' })
    }
    this.#unsubscribeAtServer(found)
    return '{}'
  }

  /**
   * Returns what a subscription requires: a credential that can be stored, and the base URL of the gateway's webhooks.
   * @throws RpcError if one of them is missing
   */
  #requireWebhooks ({ view }: Exchange<View>): { credential: EventSubscription['credential'], base: string } {
    const credential = this.#deps.credentialOf(view)
    if (credential === undefined) {
      throw eventError('forbidden', { reason: 'No credential' }, 'webhooks need a bearer key or an OAuth login')
    }
    const base = this.#deps.base()
    if (base === undefined) {
      const unsupported = { feature: 'deliveryMode', value: 'webhook' }
      throw eventError('unsupported', unsupported, 'this gateway has no https address')
    }
    return { credential, base }
  }

  /**
   * Handles a message from a server.
   * @param token the last segment of the URL to which the message was posted
   * @param body the raw request body
   * @throws StorageError
   */
  async receive (token: string, headers: IncomingHttpHeaders, body: Buffer): Promise<Receipt> {
    const { records } = this.#deps
    const id = this.#unseal(token)
    if (id === undefined) return receipt(404, 'There is no such webhook')
    const subscription = await records.find(id)
    if (subscription?.own.token !== token) return receipt(410, 'The subscription has ended')
    const messageId = verifiedWebhookId(subscription.own.secret, headers, body)
    if (messageId === undefined) return receipt(401, 'The signature is missing, wrong or too old')
    const [text, value] = parseBody(body)
    if (!isObject(value)) return receipt(400, 'The body must be a JSON object')
    if (value.type === 'verification') return { status: 200, body: { challenge: String(value.challenge) } }
    const view = await this.#deps.viewOf(subscription)
    if (view === undefined) {
      await this.end(subscription)
      return receipt(410, 'The subscription has ended')
    }
    if (await records.countWaiting(subscription.owner) >= limits.waiting) {
      return receipt(503, 'Too many messages are queued')
    }
    await this.#deliver(subscription, view, messageId, text, value.type === undefined)
    if (value.type === 'terminated') await records.endByServer(subscription)
    return receipt(202, 'Accepted')
  }

  /**
   * Lets the gateway's hooks process a message, and queues it for the client's webhook unless a hook drops it.
   * @param isEvent whether the message is an event, not a notice about the subscription
   */
  async #deliver (
    subscription: EventSubscription, view: View, messageId: string, text: string, isEvent: boolean
  ): Promise<void> {
    const { gateway } = this.#deps
    const { id, event, name } = subscription
    const screened = await gateway.screenEvent(event.provider, text)
    if (screened === undefined) return
    const digest = hash('sha256', messageId, 'hex')
    // The id of a message often contains data of the event, so it is screened too.
    const idText = JSON.stringify(messageId)
    const shownId = await gateway.screenEvent(event.provider, idText) === idText ? messageId : `msg_${digest}`
    const present = isEvent ? withClientEvent : withClientCursor
    const body = present(screened, gateway.createEventPresentation(view, event, name))
    await this.deliveries.enqueue(subscription, `${id} ${digest}`, shownId, body)
  }

  #unseal (token: string): string | undefined {
    try {
      return this.#deps.sealer.unseal(token, sealContext)
    } catch {
      return undefined
    }
  }

  /**
   * Ends the subscriptions whose principals have lost access.
   * @param onlyAuthorized whether only subscriptions of OAuth clients are checked
   */
  async endSubscriptionsWithoutAccess (onlyAuthorized: boolean): Promise<void> {
    const { records, viewOf } = this.#deps
    for (const subscription of onlyAuthorized ? await records.listByOAuthClients() : await records.list()) {
      if (await viewOf(subscription) === undefined) await this.end(subscription)
    }
  }

  /** Returns the current destination of a subscription; undefined if its principal has lost access. */
  async #destinationOf (subscription: EventSubscription): Promise<WebhookDestination | undefined> {
    const view = await this.#deps.viewOf(subscription)
    return view && destinationOf(subscription, view.principal.isAdmin)
  }

  /**
   * Ends a subscription, because its principal has lost access, or at the request of a user of the management API. The
   * replica that removes the subscription notifies the server and the client.
   * @throws StorageError
   */
  async end (subscription: EventSubscription): Promise<void> {
    const { records, sender, isByAdmin, logError } = this.#deps
    if (!await records.remove(subscription.id)) return
    const body = `{"type":"terminated","error":${accessRevokedError.toText()}}`
    isByAdmin(subscription)
      .then(async (trusted) =>
        await sender.post(destinationOf(subscription, trusted), `msg_terminated_${subscription.id}`, body))
      .catch((error: unknown) => { logError(error, 'the end of a subscription could not be announced') })
    this.#unsubscribeAtServer(subscription)
  }

  /** Ends the gateway's own subscription at the server, without waiting for the response. */
  #unsubscribeAtServer (subscription: EventSubscription): void {
    const { gateway, base, hasServer, logError } = this.#deps
    const address = base()
    // If the server cannot be notified, its subscription expires, since it is no longer refreshed.
    if (!hasServer(subscription) || address === undefined) return
    const { provider, key } = subscription.event
    const request = createUnsubscribeRequest(subscription, `${address}${subscription.own.token}`)
    gateway.send(request, provider, key, {}).catch((error: unknown) => {
      if (!(error instanceof RpcError)) logError(error, 'a subscription at a server could not be ended')
    })
  }
}

const destinationOf = ({ id, url, owner, secrets }: EventSubscription, trusted: boolean): WebhookDestination => ({
  id,
  url,
  owner,
  trusted,
  secrets: secrets.filter(({ until = Infinity }) => until > Date.now()).map(({ secret }) => secret)
})

/** Returns the secrets of a subscription after a refresh, newest first. A replaced secret also signs for some time. */
function secretsWith (secret: string, known: EventSubscription | undefined): EventSubscription['secrets'] {
  const [newest] = known?.secrets ?? []
  if (newest === undefined || newest.secret === secret) return known?.secrets ?? [{ secret }]
  return [{ secret }, { secret: newest.secret, until: Date.now() + limits.former }]
}

function parseBody (body: Buffer): [text: string, value: unknown] {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body).trim()
    return [text, JSON.parse(text)]
  } catch {
    return ['', undefined]
  }
}
