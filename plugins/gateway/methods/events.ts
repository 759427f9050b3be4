import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import {
  eventError, eventNameOf, withClientCursor, withClientEvent, type EventPresentation
} from '../../../protocol/events.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { elementsOf, memberOf, withMembers } from '../../../protocol/json.ts'
import { listCapabilityOf } from '../../../protocol/lists.ts'
import type { View } from '../../settings/index.ts'
import type { EventCursors, EventTypeTarget } from '../event-cursors.ts'
import { EventsStreamExchange } from '../event-streams.ts'
import { serverFingerprint } from '../task-handles.ts'
import { createListMethod, resolveOrFailCall } from './items.ts'
import type { GatewayParts, MethodHandler } from './method.ts'

/** An event type that a view shows. */
export interface ShownEventType extends EventTypeTarget {
  /** How the client sees these events: the name of their type, and a function that converts the server's cursors. */
  readonly presentation: EventPresentation
  /** Tells whether the view still shows the event type, from the same server. */
  readonly isShown: () => boolean
}

/**
 * Finds the event type that a request names.
 * @throws RpcError -32601 if no server of the view has events; NotFound (-32023) if none has this event type
 */
export async function findEventType (parts: GatewayParts, exchange: Exchange<View>): Promise<ShownEventType> {
  const { resolver, surfaces, cursors } = parts
  const { view, client, params, address } = exchange
  const name = eventNameOf(params)
  const found = await resolveOrFailCall(
    parts, exchange, name, async () => await resolver.findByName(exchange, 'events', name)
  )
  if (!found) {
    requireEvents(parts, exchange)
    throw eventError('notFound', { kind: 'event' }, `there is no event type ${JSON.stringify(name)}`)
  }
  const { provider, key } = found
  const identity = (): string | undefined => {
    const section = surfaces.section(view, client, provider)
    return section && serverFingerprint(provider, section.server.config)
  }
  const target = { provider, key, server: identity() ?? '' }
  return {
    ...target,
    presentation: createEventPresentation(cursors, view, target, name),
    isShown: () => {
      // Hooks may now hide other items than at the time of the request.
      const now = surfaces.filtered(view.unfiltered ?? view, address)
      return identity() === target.server &&
        resolver.lookUpName(now, surfaces.of(now, client), 'events', name)?.provider === provider
    }
  }
}

/**
 * Creates the presentation of an event type to clients: the name by which they know it, and a function that converts
 * the server's cursors to the clients'.
 */
export const createEventPresentation = (
  cursors: EventCursors, view: View, target: EventTypeTarget, name: string
): EventPresentation =>
  ({ name, toClientCursor: (own) => cursors.seal(view, target, own) })

/** @throws RpcError -32601 if no server of the view has events */
function requireEvents ({ surfaces }: GatewayParts, { view, client, method }: Exchange<View>): void {
  if (listCapabilityOf(surfaces.of(view, client).announced, 'events') !== undefined) return
  throw new RpcError(rpcCode.methodNotFound, `Method not found: ${method}`)
}

/**
 * Converts the name and the cursor in a client's request to those of the event type's server.
 * @returns both as JSON text
 * @throws RpcError -32602 if the cursor is not valid
 */
export function toServerEventMembers (
  { cursors }: Pick<GatewayParts, 'cursors'>, { view, params }: Exchange<View>, event: EventTypeTarget
): { name: string, cursor: string } {
  return { name: JSON.stringify(event.key), cursor: cursors.open(view, event, params.cursor) }
}

/** Handles `events/list`. */
export const listEvents: MethodHandler = async (parts, exchange) => {
  await parts.resolver.waitForSurface(exchange)
  requireEvents(parts, exchange)
  return await createListMethod('events')(parts, exchange)
}

/** Handles `events/poll`. */
export const pollEvents: MethodHandler = async (parts, exchange) => {
  const event = await findEventType(parts, exchange)
  const { provider, key, presentation } = event
  const result = await parts.forwarder.send(exchange, provider, key, toServerEventMembers(parts, exchange, event))
  const events = elementsOf(memberOf(result, 'events') ?? '[]').map((each) => withClientEvent(each, presentation))
  return withClientCursor(withMembers(result, { events: `[${events.join()}]` }), presentation)
}

/** Handles `events/stream`. The result is sent when the stream ends. */
export const streamEvents: MethodHandler = async (parts, exchange) => {
  const event = await findEventType(parts, exchange)
  const changes = toServerEventMembers(parts, exchange, event)
  const stream = new EventsStreamExchange(exchange, event.presentation)
  return await parts.streams.run(stream, event.isShown, async () =>
    await parts.forwarder.send(stream, event.provider, event.key, changes))
}
