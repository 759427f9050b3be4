// A gateway over a server with events, and the webhook of a client.
import assert from 'node:assert/strict'
import { EventsWorld } from '../fakes/events-server.ts'
import { startModern } from '../fakes/modern-server.ts'
import { startReceiver, type Receiver } from '../fakes/webhook-receiver.ts'
import type { Json } from './client.ts'
import type { Cleanup, Hub } from './hub.ts'
import { served } from './served.ts'

/** The gateway's public https address. */
export const base = 'https://hub.example'

export interface EventsHub { readonly hub: Hub, readonly world: EventsWorld, readonly receiver: Receiver }

/** Starts all three; the server is `pager`. @param more of the settings */
export async function startEventsHub (
  t: Cleanup, { env = {}, more = {}, visibility = 'public' }: { env?: Record<string, string>, more?: Json, visibility?: string } = {}
): Promise<EventsHub> {
  const { url, world } = await startModern(t, { modern: true, world: new EventsWorld() })
  const receiver = await startReceiver(t)
  const hub = await served(t, { pager: { type: 'streamable-http', url, visibility, owner: 'admin' } }, more, { env: { BASE_URL: base, ...env } })
  reach(world, hub)
  return { hub, world, receiver }
}

/** Lets the server reach the gateway's own address. */
export function reach (world: EventsWorld, hub: Hub): void {
  world.post = async (callback, headers, body) => {
    assert.ok(callback.startsWith(`${base}/webhooks/events/`), callback)
    const response = await fetch(callback.replace(base, hub.url), { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
}
