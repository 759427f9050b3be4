import { hash, randomBytes } from 'node:crypto'
import type { DeliveryStatus, EventSubscription } from '../../../db/ports/event-webhooks.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { NonMcpClient, UnattendedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { canonicalJson, isObject } from '../../../protocol/json.ts'
import type { EventTypeTarget } from '../../gateway/index.ts'
import { makeView, routeKeyOf, type View } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'

const { url: maxUrl, lifetime } = extensionsLimits.eventWebhooks

const invalid = (sentence: string): RpcError => new RpcError(rpcCode.invalidParams, `Invalid params: ${sentence}`)

/** Returns the callback URL in the params of a request. @throws RpcError -32602 */
export function parseCallbackUrl ({ delivery }: Exchange['params']): string {
  const url = isObject(delivery) ? delivery.url : undefined
  if (typeof url !== 'string' || url.length > maxUrl || !URL.canParse(url)) {
    throw invalid('"delivery.url" must be an absolute URL')
  }
  const { protocol, username, password, href } = new URL(url)
  if (protocol !== 'https:' || username !== '' || password !== '') {
    throw invalid('"delivery.url" must be an https URL without user name and password')
  }
  return href
}

/** Returns the secret in the params of a request: `whsec_` and the base64 of 24 to 64 bytes. @throws RpcError -32602 */
export function parseWebhookSecret ({ delivery }: Exchange['params']): string {
  const secret = isObject(delivery) ? delivery.secret : undefined
  const encoded = typeof secret === 'string' && secret.startsWith('whsec_') ? secret.slice(6) : ''
  const bytes = Buffer.from(encoded, 'base64')
  const isExact = bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '')
  if (bytes.length < 24 || bytes.length > 64 || !isExact) {
    throw invalid('"delivery.secret" must be "whsec_" and the base64 of 24 to 64 bytes')
  }
  return String(secret)
}

/** Creates the secret with which a server signs its messages to the gateway. */
export const createWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

/** The stored form of a subscription's route. `address`: the IP address of the client that last subscribed. */
export type StoredRoute = Pick<View, 'scope' | 'presentation'> & { readonly address?: string }

/**
 * Returns the id of a subscription (SEP-3415, "Subscription identity"). It is the same for the same principal, route,
 * event type, arguments and URL. It is not secret.
 * @param url the callback URL of the client
 */
export function subscriptionIdOf (
  { view, params }: Exchange<View>, { server, key }: EventTypeTarget, url: string
): string {
  const parts = [view.principal.key, routeKeyOf(view), server, key, url, params.arguments ?? {}]
  return `sub_${hash('sha256', canonicalJson(parts), 'hex').slice(0, 32)}`
}

/** Returns the `ttlMs` to request from the server, as JSON text; undefined if the client requested none. */
export function requestedLifetimeText ({ ttlMs }: Exchange['params']): string | undefined {
  if (ttlMs === undefined) return undefined
  return String(typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(Math.trunc(ttlMs), lifetime) : lifetime)
}

/**
 * Returns the time at which a subscription expires unless it is refreshed, in ms since 1970: the earliest of the time
 * that the server granted, the time that the client requested (at least a minute from now), and the latest allowed.
 * @param refreshBefore the time that the server granted, in ISO 8601; ignored if it is not valid
 */
export function subscriptionExpiryOf (refreshBefore: unknown, { ttlMs }: Exchange['params'], now = Date.now()): number {
  const granted = typeof refreshBefore === 'string' ? Date.parse(refreshBefore) : NaN
  const requested = typeof ttlMs === 'number' && ttlMs > 0 ? Math.max(ttlMs, 60_000) : lifetime
  return Math.min(Number.isNaN(granted) ? Infinity : granted, now + Math.min(requested, lifetime))
}

/**
 * Returns the `deliveryStatus` for the response to a refresh, as JSON text. It says that the subscription is active,
 * since the gateway never suspends deliveries.
 */
export function deliveryStatusText ({ deliveredAt, lastError, failedSince }: DeliveryStatus): string {
  const timeOf = (at?: number): string | undefined => at === undefined ? undefined : new Date(at).toISOString()
  return JSON.stringify({
    active: true, lastDeliveryAt: timeOf(deliveredAt), lastError: lastError ?? null, failedSince: timeOf(failedSince)
  })
}

/**
 * Creates the request by which the gateway ends its subscription at the server, on behalf of the principal.
 * @param callback the gateway's callback URL, as the server knows it
 */
export function createUnsubscribeRequest (
  { id, owner, user, route, event, argumentsText }: EventSubscription, callback: string
): Exchange<View> {
  const { scope, presentation } = route as StoredRoute
  const paramsText = `{"name":${JSON.stringify(event.key)},"arguments":${argumentsText},` +
    `"delivery":{"url":${JSON.stringify(callback)}}}`
  return new UnattendedExchange({
    view: makeView({ key: owner, kind: 'user-key', user, isAdmin: false }, scope, presentation),
    client: new NonMcpClient(`events ${id}`, user, owner, false, owner),
    method: 'events/unsubscribe',
    params: JSON.parse(paramsText) as Record<string, unknown>,
    paramsText
  })
}
