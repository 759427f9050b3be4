import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Exchange } from '../../protocol/exchange.ts'
import { accessRevokedError, EventsStreamExchange } from '../../plugins/gateway/event-streams.ts'
import type { View } from '../../plugins/settings/index.ts'
import { EventsWorld } from '../fakes/events-server.ts'
import { startModern } from '../fakes/modern-server.ts'
import { managed } from '../fakes/replica.ts'
import { at, connected, KEY, open, OTHER, otherKey, send, settings, type Json, type Stream } from '../helpers/client.ts'
import { bearerKey, startHub, tsServer, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { modernRequest, prefix } from '../helpers/modern-request.ts'

const subscriptionId = `${prefix}subscriptionId`

/** Sends one modern request and reads its answer. */
async function ask (url: string, method: string, params: Json = {}, key = KEY): Promise<{ status: number, result: Json, error?: Json }> {
  const { status, messages } = await send(url, { ...modernRequest(method, { params, key }), key: null })
  const { result = {}, error } = messages.at(-1) ?? assert.fail('no answer')
  return { status, result, error: error as Json | undefined }
}

/** Opens a stream, until the test ends. */
async function stream (t: Cleanup, url: string, params: Json, key = KEY, method = 'events/stream'): Promise<Stream> {
  const { headers, body } = modernRequest(method, { params, key })
  const opened = await open(url, { headers, body: body.replace('"id":1', '"id":"mine"'), key: null })
  t.after(() => { opened.close() })
  return opened
}

const methods = ({ messages }: Stream): unknown[] =>
  messages.map(({ method }) => method).filter((method) => method !== 'notifications/events/heartbeat')

async function hubWith (t: Cleanup, more: Json = {}): Promise<{ hub: Hub, world: EventsWorld, url: string }> {
  const { url, world } = await startModern(t, { modern: true, world: new EventsWorld() })
  const hub = await startHub(t, { settings: settings({ pager: { type: 'streamable-http', url } }, more) })
  await connected(hub, 1)
  return { hub, world, url }
}

const polling = { name: 'incident.created', arguments: { severity: 'P1' } }

test('events: listed and polled directly, through its server\'s route, and merged', async (t) => {
  const { hub, world, url } = await hubWith(t)
  const direct = await ask(url, 'events/list')
  const raw = await ask(`${hub.url}/mcp/pager`, 'events/list')
  assert.deepEqual(raw.result.events, direct.result.events)
  const merged = await ask(`${hub.url}/mcp`, 'events/list')
  const names = (merged.result.events as Json[]).map(({ name }) => String(name))
  for (const name of names) assert.match(name, /^pager-[a-z]+_[a-z]+_[0-9a-f]{8}$/)
  assert.deepEqual(merged.result.events, world.types.map((each, index) => ({ ...each, name: names[index] })))
  assert.equal(merged.result.resultType, 'complete')
  for (const path of ['/mcp', '/mcp/pager']) {
    const { result } = await ask(`${hub.url}${path}`, 'server/discover')
    assert.deepEqual(at(result, 'capabilities', 'extensions', `${prefix}events`), { listChanged: true }, path)
  }

  for (const [path, name] of [['/mcp/pager', 'incident.created'], ['/mcp', String(names[1])], ['/mcp', 'pager-incident.created']] as const) {
    const route = `${hub.url}${path}`
    const begun = await ask(route, 'events/poll', { ...polling, name })
    assert.deepEqual(begun.result.events, [])
    await world.raise({ incidentId: 'INC-1', severity: 'P1', big: 1 })
    const next = await ask(route, 'events/poll', { ...polling, name, cursor: begun.result.cursor, maxEvents: 5 })
    assert.deepEqual(next.result.events, [{ ...world.happened.at(-1), name }], path)
    const { events: _e, cursor, _meta, ...others } = next.result
    assert.deepEqual(others, { resultType: 'complete', truncated: false, hasMore: false, nextPollMs: 50 })
    assert.notEqual(cursor, String(world.happened.length), 'a client never sees the server\'s own cursor')
    assert.deepEqual(world.asked.at(-1), {
      method: 'events/poll', params: { ...polling, cursor: String(world.happened.length - 1), maxEvents: 5 }
    })
  }
})

test('events: streams are relayed over HTTP and stdio, and end with their client', async (t) => {
  const { hub, world } = await hubWith(t)
  for (const [path, name] of [['/mcp/pager', 'incident.created'], ['/mcp', 'pager-incident.created']] as const) {
    const opened = await stream(t, `${hub.url}${path}`, { ...polling, name })
    await until(() => opened.messages.length > 0)
    await world.raise({ incidentId: 'INC-2' })
    await until(() => methods(opened).length === 2)
    assert.deepEqual(methods(opened), ['notifications/events/active', 'notifications/events/event'])
    for (const { params } of opened.messages) assert.equal(at(params, '_meta', subscriptionId), 'mine')
    const event = opened.messages.find(({ method }) => method === 'notifications/events/event')?.params as Json
    const { cursor, _meta, ...occurrence } = event
    assert.deepEqual(occurrence, { ...world.happened.at(-1), name })
    await until(() => opened.messages.some(({ method }) => method === 'notifications/events/heartbeat'))
    opened.close()
    await until(() => world.streaming === 0, 'the server\'s stream did not end')
    // The cursor of the stream serves a poll, and another stream.
    await world.raise({ incidentId: 'INC-3' })
    const { result } = await ask(`${hub.url}${path}`, 'events/poll', { ...polling, name, cursor })
    assert.deepEqual((result.events as Json[]).map(({ data }) => data), [{ incidentId: 'INC-3' }])
    const again = await stream(t, `${hub.url}${path}`, { ...polling, name, cursor })
    await until(() => methods(again).length === 2)
    again.close()
  }
  const refused = await stream(t, `${hub.url}/mcp`, { ...polling, name: 'pager-unheard' })
  await refused.done
  assert.equal(at(refused.messages[0]?.error, 'code'), -32023)
})

test('events: streams of a stdio server are told apart, though they share its output', async (t) => {
  const hub = await startHub(t, { settings: settings({ local: tsServer('test/fakes/events-server.ts') }) })
  await connected(hub, 1)
  const [one, two] = [await stream(t, `${hub.url}/mcp`, { name: 'local-incident.created' }), await stream(t, `${hub.url}/mcp/local`, { name: 'incident.created' })]
  await until(() => one.messages.length > 0 && two.messages.length > 0)
  await ask(`${hub.url}/mcp/local`, 'tools/call', { name: 'raise', arguments: { incidentId: 'I' } })
  await until(() => methods(one).length === 2 && methods(two).length === 2)
  assert.equal(at(one.messages.find(({ method }) => method === 'notifications/events/event')?.params, 'name'), 'local-incident.created')
  assert.equal(at(two.messages.find(({ method }) => method === 'notifications/events/event')?.params, 'name'), 'incident.created')
})

test('events: a cursor serves its principal, its route and its event type, after a restart, too', async (t) => {
  const { hub, world } = await hubWith(t, { bearerKeys: [bearerKey(), otherKey()] })
  const route = `${hub.url}/mcp/pager`
  const { result: { cursor } } = await ask(route, 'events/poll', polling)
  await world.raise({ incidentId: 'INC-4' })
  const refused = async (url: string, params: Json, key = KEY): Promise<void> => {
    const count = world.asked.length
    const { error } = await ask(url, 'events/poll', { ...polling, cursor, ...params }, key)
    assert.equal(error?.code, -32602)
    assert.equal(world.asked.length, count, 'the server heard of it')
  }
  await refused(route, {}, OTHER)
  await refused(`${hub.url}/mcp`, { name: 'pager-incident.created' })
  await refused(route, { name: 'email.received' })
  await refused(route, { cursor: `${String(cursor).slice(0, -4)}AAAA` })
  await refused(route, { cursor: '0' })
  await refused(route, { cursor: { from: 0 } })
  await hub.stop()
  const next = await startHub(t, { folder: hub.folder })
  await connected(next, 1)
  const { result } = await ask(`${next.url}/mcp/pager`, 'events/poll', { ...polling, cursor })
  assert.deepEqual((result.events as Json[]).map(({ data }) => data), [{ incidentId: 'INC-4' }])
})

test('events: announced and answered only where a server has them, and to modern clients', async (t) => {
  const { url } = await startModern(t)
  const hub = await startHub(t, { settings: settings({ plain: { type: 'streamable-http', url } }) })
  await connected(hub, 1)
  for (const path of ['/mcp', '/mcp/plain']) {
    const { result } = await ask(`${hub.url}${path}`, 'server/discover')
    assert.equal(at(result, 'capabilities', 'extensions', `${prefix}events`), undefined)
    for (const method of ['events/list', 'events/poll', 'events/stream', 'events/subscribe', 'events/unsubscribe', 'events/other']) {
      const { status, error } = await ask(`${hub.url}${path}`, method, { ...polling, delivery: { mode: 'webhook', url: 'https://a.example', secret: '' } })
      assert.deepEqual([status, error?.code], [404, -32601], method)
    }
  }
})

test('events: a stream whose access ends before it is sent to the server is cancelled when it is sent', async () => {
  const sent: string[] = []
  const exchange = { params: {}, paramsText: '{}', notify: (method: string) => { sent.push(method) }, onCancel: () => {} }
  const stream = new EventsStreamExchange(
    exchange as unknown as Exchange<View>, { name: 'alarm', toClientCursor: (own) => own }
  )
  stream.terminate(accessRevokedError.toText())
  const reasons: string[] = []
  stream.onCancel((reason) => { reasons.push(reason) })
  assert.deepEqual([sent, reasons], [['notifications/events/terminated'], ['the subscription has ended']])
})

test('events: a stream is told when its access ends, and changed event types are announced', async (t) => {
  const { hub, world } = await hubWith(t, { bearerKeys: [bearerKey(), otherKey()] })
  const name = 'pager-incident.created'
  const [doomed, kept] = [await stream(t, `${hub.url}/mcp`, { name }, OTHER), await stream(t, `${hub.url}/mcp`, { name })]
  await until(() => doomed.messages.length > 0 && kept.messages.length > 0)
  await managed(hub, 'DELETE', `/auth/keys/${String(otherKey().id)}`)
  await doomed.done
  const [last, result] = doomed.messages.slice(-2)
  assert.equal(last?.method, 'notifications/events/terminated')
  assert.deepEqual(at(last.params, 'error'), { code: -32024, message: 'Forbidden', data: { reason: 'Access revoked' } })
  assert.deepEqual([result?.id, at(result?.result, '_meta', subscriptionId)], ['mine', 'mine'])
  assert.equal(kept.ended, false)

  // Its server is switched off: the event type is not there any more.
  await managed(hub, 'POST', '/servers/pager/toggle', { enabled: false })
  await kept.done
  assert.deepEqual(at(kept.messages.at(-2)?.params, 'error'), { code: -32023, message: 'NotFound', data: { kind: 'event' } })
  await until(() => world.streaming === 0)
  await managed(hub, 'POST', '/servers/pager/toggle', { enabled: true })
  await connected(hub, 1)

  const listening = await stream(t, `${hub.url}/mcp`, { notifications: { eventsListChanged: true } }, KEY, 'subscriptions/listen')
  await until(() => listening.body.includes('"eventsListChanged":true'), 'the filter was not acknowledged')
  await managed(hub, 'POST', '/servers/pager/toggle', { enabled: false })
  await until(() => listening.body.includes('notifications/events/list_changed'), 'the change was not announced')
})

test('events: a stop ends the streams at once, without an error', async (t) => {
  const { hub } = await hubWith(t)
  const opened = await stream(t, `${hub.url}/mcp`, { name: 'pager-incident.created' })
  await until(() => opened.messages.length > 0)
  await hub.stop()
  await opened.done
  assert.deepEqual([opened.messages.at(-1)?.id, opened.messages.at(-1)?.error], ['mine', undefined])
})
