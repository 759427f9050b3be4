// Events of servers and guards: what a webhook, a stream and a poll deliver, and what clients subscribe to.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { managed } from '../../fakes/replica.ts'
import { secret } from '../../fakes/webhook-receiver.ts'
import { at, open, type Json, type Stream } from '../../helpers/client.ts'
import { startEventsHub, type EventsHub } from '../../helpers/events-hub.ts'
import { until, type Cleanup } from '../../helpers/hub.ts'
import { modernRequest } from '../../helpers/modern-request.ts'

const email = 'canary.events@secret-domain.org'
const guard = (more: Json = {}): Json => ({ name: 'Private', on: 'both', detect: ['email'], action: 'mask', ...more })
const named = { name: 'incident.created', arguments: { severity: 'P1' } }

const start = async (t: Cleanup, guards: Json[]): Promise<EventsHub> =>
  await startEventsHub(t, { more: { guards: guards.map((each, n) => ({ id: `g${n}`, enabled: true, ...each })) } })

async function ask ({ hub }: EventsHub, method: string, params: Json): Promise<{ result: Json, error?: Json }> {
  const { headers, body } = modernRequest(method, { params })
  return await (await fetch(`${hub.url}/mcp/pager`, { method: 'POST', headers, body })).json() as { result: Json, error?: Json }
}

const subscribe = async (world: EventsHub, more: Json = {}): Promise<{ result: Json, error?: Json }> =>
  await ask(world, 'events/subscribe', { ...named, delivery: { mode: 'webhook', url: world.receiver.url, secret }, ...more })

const stream = async ({ hub }: EventsHub): Promise<Stream> => await open(`${hub.url}/mcp/pager`, modernRequest('events/stream', { params: named }))
const eventsOf = ({ messages }: Stream): unknown[] =>
  messages.filter(({ method }) => method === 'notifications/events/event').map(({ params }) => params?.data)

test('a webhook is sent events as the guards leave them, and what could not be delivered holds no more', async (t) => {
  const world = await start(t, [guard()])
  assert.equal((await subscribe(world)).error, undefined)
  const { receiver } = world
  receiver.answer = ({ body }, response) => { response.writeHead(at(body, 'data', 'n') === 2 ? 410 : 204).end() }
  assert.deepEqual(await world.world.raise({ n: 1, from: email, deep: [{ [email]: 1 }] }), [202])
  assert.deepEqual(await world.world.raise({ n: 2, from: email }, `evt of ${email}`), [202])
  const failed = async (): Promise<Json[]> => await managed(world.hub, 'GET', '/events/failed') as unknown as Json[]
  await until(async () => receiver.events().length === 2 && (await failed()).length === 1)
  const [first] = receiver.events()
  assert.deepEqual(first?.data, { n: 1, from: '[email]', deep: [{ '[email]': 1 }] })
  assert.deepEqual([first?.eventId, typeof first?.cursor], ['evt_1', 'string'])
  const kept = JSON.stringify([receiver.got, await failed(), world.hub.output()])
  assert.doesNotMatch(kept, /canary/)
  assert.match(kept, /a guard found content/)
})

test('a webhook is not sent an event that a guard refuses, and the server hears nothing of it', async (t) => {
  const world = await start(t, [guard({ action: 'refuse', servers: ['pager'] })])
  assert.equal((await subscribe(world)).error, undefined)
  assert.deepEqual(await world.world.raise({ from: email }), [202])
  assert.deepEqual(await world.world.raise({ from: 'nobody' }), [202])
  await until(() => world.receiver.events().length > 0)
  assert.deepEqual(world.receiver.events().map(({ data }) => data), [{ from: 'nobody' }])
})

test('streams and polls deliver events as the guards of the moment leave them', async (t) => {
  const world = await start(t, [])
  const opened = await stream(world)
  await opened.wait(({ method }) => method === 'notifications/events/active')
  await world.world.raise({ from: email })
  await until(() => eventsOf(opened).length === 1)
  const { result: { cursor } } = await ask(world, 'events/poll', named)
  const { id } = await managed(world.hub, 'POST', '/guards', guard({ tools: ['of any tool'] }))
  await world.world.raise({ from: email })
  await until(() => eventsOf(opened).length === 2)
  await managed(world.hub, 'DELETE', `/guards/${String(id)}`)
  await world.world.raise({ from: email })
  await until(() => eventsOf(opened).length === 3)
  assert.deepEqual(eventsOf(opened), [{ from: email }, { from: '[email]' }, { from: email }])
  await managed(world.hub, 'POST', '/guards', guard())
  const { result } = await ask(world, 'events/poll', { ...named, cursor })
  assert.deepEqual((result.events as Json[]).map(({ data }) => data), [{ from: '[email]' }, { from: '[email]' }])
})

test('a subscription is made for what the client asks, or refused', async (t) => {
  const world = await start(t, [guard()])
  const refused = await subscribe(world, { arguments: { severity: email } })
  assert.match(String(refused.error?.message), /The guard "Private" refuses this call: "arguments" contains what it masks/)
  const polled = await ask(world, 'events/poll', { ...named, arguments: { severity: email } })
  assert.match(String(polled.error?.message), /"arguments" contains what it masks/)
  assert.deepEqual(world.world.asked.filter(({ method }) => method !== 'events/list'), [])
  assert.equal((await subscribe(world)).error, undefined, 'the secret of a delivery is none of the content')
})
