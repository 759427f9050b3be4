import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Exchange } from '../../protocol/exchange.ts'
import { accessRevokedError, EventsStreamExchange } from '../../plugins/gateway/event-streams.ts'
import type { View } from '../../plugins/settings/index.ts'
import { EventsWorld } from '../fakes/events-server.ts'
import { startModern } from '../fakes/modern-server.ts'
import { at, connected, KEY, OTHER, otherKey, settings, type Json } from '../helpers/client.ts'
import { bearerKey, startHub, tsServer, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { modernRequest, prefix } from '../helpers/modern-request.ts'

const subscriptionId = `${prefix}subscriptionId`

interface Answer { status: number, result: Json, error: Json | undefined }

/** Sends one modern request and reads its answer. */
async function ask (url: string, method: string, params: Json = {}, key = KEY): Promise<Answer> {
  const { headers, body } = modernRequest(method, { params, key })
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  const last = text.startsWith('{') ? text : text.split('\n').filter((line) => line.startsWith('data: {')).at(-1)?.slice(6)
  const { result, error } = JSON.parse(last ?? '{}') as { result: Json, error?: Json }
  return { status: response.status, result, error }
}

interface OpenStream { readonly messages: Json[], readonly close: () => void, readonly isOver: () => boolean }

/** Opens an event stream. */
function stream (t: Cleanup, url: string, params: Json, key = KEY): OpenStream {
  const { headers, body } = modernRequest('events/stream', { params, key })
  const aborter = new AbortController()
  const messages: Json[] = []
  let isOver = false
  const read = async (): Promise<void> => {
    const response = await fetch(url, { method: 'POST', headers, body: body.replace('"id":1', '"id":"mine"'), signal: aborter.signal })
    let text = ''
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) if (line.startsWith('data: {')) messages.push(JSON.parse(line.slice(6)) as Json)
    }
    if (text.startsWith('{')) messages.push(JSON.parse(text) as Json)
  }
  read().catch(() => {}).finally(() => { isOver = true })
  t.after(() => { aborter.abort() })
  return { messages, close: () => { aborter.abort() }, isOver: () => isOver }
}

const methods = ({ messages }: OpenStream): unknown[] =>
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
    const open = stream(t, `${hub.url}${path}`, { ...polling, name })
    await until(() => open.messages.length > 0)
    await world.raise({ incidentId: 'INC-2' })
    await until(() => methods(open).length === 2)
    assert.deepEqual(methods(open), ['notifications/events/active', 'notifications/events/event'])
    for (const { params } of open.messages) assert.equal(at(params, '_meta', subscriptionId), 'mine')
    const event = open.messages.find(({ method }) => method === 'notifications/events/event')?.params as Json
    const { cursor, _meta, ...occurrence } = event
    assert.deepEqual(occurrence, { ...world.happened.at(-1), name })
    await until(() => open.messages.some(({ method }) => method === 'notifications/events/heartbeat'))
    open.close()
    await until(() => world.streaming === 0, 'the server\'s stream did not end')
    // The cursor of the stream serves a poll, and another stream.
    await world.raise({ incidentId: 'INC-3' })
    const { result } = await ask(`${hub.url}${path}`, 'events/poll', { ...polling, name, cursor })
    assert.deepEqual((result.events as Json[]).map(({ data }) => data), [{ incidentId: 'INC-3' }])
    const again = stream(t, `${hub.url}${path}`, { ...polling, name, cursor })
    await until(() => methods(again).length === 2)
    again.close()
  }
  const refused = stream(t, `${hub.url}/mcp`, { ...polling, name: 'pager-unheard' })
  await until(refused.isOver)
  assert.equal(at(refused.messages[0]?.error, 'code'), -32023)
})

test('events: streams of a stdio server are told apart, though they share its output', async (t) => {
  const hub = await startHub(t, { settings: settings({ local: tsServer('test/fakes/events-server.ts') }) })
  await connected(hub, 1)
  const [one, two] = [stream(t, `${hub.url}/mcp`, { name: 'local-incident.created' }), stream(t, `${hub.url}/mcp/local`, { name: 'incident.created' })]
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
  const manage = async (method: string, path: string, body?: Json): Promise<void> => {
    const headers = { authorization: `Bearer ${KEY}`, ...body && { 'content-type': 'application/json' } }
    const response = await fetch(`${hub.url}/api${path}`, { method, headers, ...body && { body: JSON.stringify(body) } })
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.text()}`)
  }
  const name = 'pager-incident.created'
  const [doomed, kept] = [stream(t, `${hub.url}/mcp`, { name }, OTHER), stream(t, `${hub.url}/mcp`, { name })]
  await until(() => doomed.messages.length > 0 && kept.messages.length > 0)
  await manage('DELETE', `/auth/keys/${String(otherKey().id)}`)
  await until(doomed.isOver)
  const [last, result] = doomed.messages.slice(-2)
  assert.equal(last?.method, 'notifications/events/terminated')
  assert.deepEqual(at(last.params, 'error'), { code: -32024, message: 'Forbidden', data: { reason: 'Access revoked' } })
  assert.deepEqual([result?.id, at(result?.result, '_meta', subscriptionId)], ['mine', 'mine'])
  assert.equal(kept.isOver(), false)

  // Its server is switched off: the event type is not there any more.
  await manage('POST', '/servers/pager/toggle', { enabled: false })
  await until(kept.isOver)
  assert.deepEqual(at(kept.messages.at(-2)?.params, 'error'), { code: -32023, message: 'NotFound', data: { kind: 'event' } })
  await until(() => world.streaming === 0)
  await manage('POST', '/servers/pager/toggle', { enabled: true })
  await connected(hub, 1)

  const { headers, body } = modernRequest('subscriptions/listen', { params: { notifications: { eventsListChanged: true } } })
  const aborter = new AbortController()
  t.after(() => { aborter.abort() })
  const listening = await fetch(`${hub.url}/mcp`, { method: 'POST', headers, body, signal: aborter.signal })
  let heard = ''
  const read = async (): Promise<void> => {
    for await (const chunk of (listening.body ?? []) as AsyncIterable<Uint8Array>) heard += Buffer.from(chunk).toString()
  }
  read().catch(() => {})
  await until(() => heard.includes('"eventsListChanged":true'), 'the filter was not acknowledged')
  await manage('POST', '/servers/pager/toggle', { enabled: false })
  await until(() => heard.includes('notifications/events/list_changed'), 'the change was not announced')
})

test('events: a stop ends the streams at once, without an error', async (t) => {
  const { hub } = await hubWith(t)
  const open = stream(t, `${hub.url}/mcp`, { name: 'pager-incident.created' })
  await until(() => open.messages.length > 0)
  await hub.stop()
  await until(open.isOver)
  assert.deepEqual([open.messages.at(-1)?.id, open.messages.at(-1)?.error], ['mine', undefined])
})
