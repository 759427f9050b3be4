import assert from 'node:assert/strict'
import { test } from 'tap'
import { EventsWorld } from '../fakes/events-server.ts'
import { startModern } from '../fakes/modern-server.ts'
import { loggedIn, managed, startReplica } from '../fakes/replica.ts'
import { secret, startReceiver } from '../fakes/webhook-receiver.ts'
import { connected, type Json } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { until, type Hub } from '../helpers/hub.ts'
import { modernRequest } from '../helpers/modern-request.ts'

const base = 'https://hub.example'

test('events over two replicas: cursors open on both, each event is delivered once, and access ends on both', async (t) => {
  const { url: db } = await database(t)
  const { url, world } = await startModern(t, { modern: true, world: new EventsWorld() })
  const receiver = await startReceiver(t)
  const env = { BASE_URL: base, OUTBOUND_ALLOW: '127.0.0.1' }
  const one = await startReplica(t, db, { env })
  const two = await startReplica(t, db, { env })
  const admin = await loggedIn(one)
  await managed(one, 'POST', '/servers', { name: 'pager', config: { type: 'streamable-http', url, visibility: 'public' } }, admin)
  for (const hub of [one, two]) await connected(hub, 1)
  const made = await managed(one, 'POST', '/auth/keys', { name: 'agent', kind: 'system', accessType: 'all' }, admin)
  const { id: keyId, token: key } = made as { id: string, token: string }

  const ask = async (hub: Hub, method: string, params: Json, by = key): Promise<{ result: Json, error?: Json }> => {
    const { headers, body } = modernRequest(method, { params, key: by })
    return await (await fetch(`${hub.url}/mcp/pager`, { method: 'POST', headers, body })).json() as { result: Json, error?: Json }
  }
  // Every message of the server reaches another replica than the one before, as behind a load balancer, and some reach both.
  let turn = 0
  let both = false
  world.post = async (callback, headers, body) => {
    const send = async (hub: Hub): Promise<{ status: number, text: string }> => {
      const response = await fetch(callback.replace(base, hub.url), { method: 'POST', headers, body })
      return { status: response.status, text: await response.text() }
    }
    const [answer] = await Promise.all(both ? [send(one), send(two)] : [send(turn++ % 2 === 0 ? two : one)])
    return answer ?? { status: 0, text: '' }
  }
  const polling = { name: 'incident.created', arguments: {} }
  await until(async () => (await ask(two, 'events/list', {})).error === undefined, 'the key is not known to the other replica')
  const { result: { cursor } } = await ask(one, 'events/poll', polling)
  const subscribing = { ...polling, delivery: { mode: 'webhook', url: receiver.url, secret } }
  const { result, error } = await ask(one, 'events/subscribe', subscribing)
  assert.equal(error, undefined)
  assert.equal((await ask(two, 'events/subscribe', subscribing)).result.id, result.id, 'the other replica refreshes it')
  assert.equal(world.webhooks.size, 1)

  for (let at = 0; at < 6; at++) await world.raise({ at })
  both = true
  for (let at = 6; at < 12; at++) await world.raise({ at })
  await until(() => receiver.events().length >= 12)
  const polled = await ask(two, 'events/poll', { ...polling, cursor })
  assert.equal((polled.result.events as Json[]).length, 12)

  // A webhook that is away: of both replicas, one makes each further attempt.
  let attempts = 0
  receiver.answer = (_delivery, response) => { response.writeHead(++attempts === 1 ? 503 : 204).end() }
  await world.raise({ at: 12 })
  await until(() => attempts === 2)
  const idsOf = (events: ReadonlyArray<{ eventId?: unknown }>): unknown[] => events.slice(0, 12).map(({ eventId }) => eventId).sort()
  assert.deepEqual(idsOf(receiver.events()), idsOf(world.happened))
  assert.equal(receiver.events().length, 14, 'each once, and one twice')

  receiver.answer = undefined
  // A user is removed at one replica: what she subscribed to at the other ends, too.
  await managed(one, 'POST', '/users', { username: 'ada', password: 'Analytical-1' }, admin)
  const { token: adas } = await managed(one, 'POST', '/auth/keys', { name: 'of ada', kind: 'user', owner: 'ada' }, admin) as { token: string }
  await until(async () => (await ask(two, 'events/list', {}, adas)).error === undefined, 'the key is not known to the other replica')
  assert.equal((await ask(two, 'events/subscribe', subscribing, adas)).error, undefined)
  assert.equal(world.webhooks.size, 2)
  const listed = async (hub: Hub): Promise<unknown[]> =>
    (await managed(hub, 'GET', '/events/subscriptions', undefined, admin) as unknown as Json[]).map(({ user }) => user)
  for (const hub of [one, two]) assert.equal((await listed(hub)).filter((user) => user === 'ada').length, 1)
  await managed(one, 'DELETE', '/users/ada', undefined, admin)
  await until(() => world.webhooks.size === 1, 'the server was not told')
  for (const hub of [one, two]) assert.equal((await listed(hub)).includes('ada'), false)

  await managed(one, 'DELETE', `/auth/keys/${keyId}`, undefined, admin)
  await until(() => world.webhooks.size === 0, 'the server was not told')
  both = false
  const { url: own, secret: ownSecret } = { url: `${base}/webhooks/events/x`, secret }
  assert.equal((await world.send({ id: 'x', url: own, secret: ownSecret }, 'e', {})).status, 404)
})
