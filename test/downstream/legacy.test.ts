// Sessions of legacy clients on streamable HTTP: ids, streams, replay, batches, rebuilding.
import assert from 'node:assert/strict'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import { Pool } from 'undici'
import {
  assertRefused, at, initialize, KEY, open, OTHER, otherKey, send, Session, text, type Json, type Stream
} from '../helpers/client.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { bearerKey, path, until } from '../helpers/hub.ts'
import { call as toolCall } from '../helpers/wire.ts'

const turn = async (): Promise<void> => { await new Promise((resolve) => { setImmediate(resolve) }) }

const on = (id: string): Record<string, string> => ({ 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' })

test('sessions', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('slow')] })
  const hub = await served(t, { fake: { type: 'streamable-http', url: upstream.url } }, { bearerKeys: [bearerKey(), otherKey()] })
  const url = `${hub.url}/mcp`
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  await t.test('every legacy revision is spoken, an unknown one is answered with one that is', async () => {
    for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']) {
      const session = await Session.open(url, { version })
      assert.equal(session.version, version)
      assert.ok((await session.tools()).includes('fake-echo'))
    }
    assert.match((await Session.open(url, { version: '1999-01-01' })).version, /^20(24|25)-\d\d-\d\d$/)
  })
  await t.test('what a client declares is kept for the session, so it has a bound', async () => {
    const begin = async (experimental: Json): Promise<object> => {
      const { messages: [answer = {}] } = await send(url, { body: initialize('2025-11-25', { experimental }) })
      return answer
    }
    const ordinary = Array.from({ length: 10 }, (_, n) => [`feature${n}`, { enabled: true, modes: 'a' }])
    for (const fits of [{ x: { y: 'z'.repeat(7_000) } }, { x: { y: 'ж'.repeat(4_000) } }, Object.fromEntries(ordinary) as Json]) {
      assert.ok('result' in await begin(fits), JSON.stringify(fits).slice(0, 100))
    }
    for (const [large, sentence] of [
      [{ x: { y: 'z'.repeat(9_000) } }, /has more than 8192 characters, or half as many if any is outside Latin-1; declare fewer/],
      [{ x: { y: 'ж'.repeat(4_200) } }, /has more than 8192 characters/],
      // A hundred bytes of memory each, for three characters.
      [{ x: { y: Array(200).fill({}) } }, /"capabilities" contains too many members and values; declare fewer/]
    ] as const) {
      const answer = await begin(large)
      assert.equal(at(answer, 'error', 'code'), -32602)
      assert.match(String(at(answer, 'error', 'message')), sentence)
    }
  })
  await t.test('a missing id is 400, an unknown one 404, for POST, GET and DELETE', async () => {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const body = method === 'POST' ? list : undefined
      assertRefused(await send(url, { method, body }), 400, -32000)
      assertRefused(await send(url, { method, body, headers: on('f'.repeat(64)) }), 404, -32001)
    }
    assertRefused(await send(url, { body: { jsonrpc: '2.0', method: 'notifications/initialized' }, headers: on('nobody') }), 404, -32001)
  })
  await t.test('DELETE ends it', async () => {
    const session = await Session.open(url)
    const stream = await session.listen()
    const ended = await session.end()
    assert.ok(ended.status === 200 || ended.status === 204, String(ended.status))
    await until(() => stream.ended, 'the GET stream stayed open')
    assertRefused(await session.post(list), 404, -32001)
    assertRefused(await session.end(), 404, -32001)
    assertRefused(await session.listen().then(async (one) => { await one.done; return one }), 404, -32001)
  })
  await t.test('another key\'s session, and another route\'s, is unknown', async () => {
    const session = await Session.open(url)
    for (const [where, key] of [[url, OTHER], [`${url}/fake`, KEY], [`${hub.url}/mcp/fake`, OTHER]] as const) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        assertRefused(await send(where, { method, key, body: method === 'POST' ? list : undefined, headers: on(session.id) }), 404, -32001)
      }
    }
    assert.equal((await send(url, { key: null, body: list, headers: on(session.id) })).status, 401)
    assert.ok((await session.tools()).includes('fake-echo'))
  })
  await t.test('notifications and answers to nothing: 202 without a body', async () => {
    const session = await Session.open(url)
    for (const [method, params] of [
      ['roots/list_changed'], ['cancelled', { requestId: 'never asked' }], ['progress', { progressToken: 'x', progress: 1 }], ['vendor']
    ] as const) {
      const { status, body } = await session.post({ jsonrpc: '2.0', method: `notifications/${method}`, params })
      assert.deepEqual([status, body], [202, ''], method)
    }
  })
  await t.test('a stream begins at once, tells proxies not to buffer, and is not cached', async () => {
    const session = await Session.open(url)
    const stream = await session.listen()
    assert.equal(stream.status, 200)
    assert.ok(stream.sse)
    assert.equal(stream.headers.get('x-accel-buffering'), 'no')
    assert.match(stream.headers.get('cache-control') ?? '', /no-store/)
    await until(() => stream.comments > 0, 'no first comment')
    stream.close()
  })
  await t.test('a batch is answered at 2025-03-26 and refused later', async () => {
    const batch = [
      { jsonrpc: '2.0', id: 'a', method: 'ping' },
      { jsonrpc: '2.0', method: 'notifications/vendor' },
      { jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: 'fake-echo', arguments: { message: 'batched' } } },
      { jsonrpc: '2.0', id: 'c', method: 'nope' }
    ]
    const session = await Session.open(url, { version: '2025-03-26' })
    const reply = await session.post(batch)
    assert.equal(reply.status, 200, reply.body)
    const answers = new Map(reply.messages.map((one) => [one.id, one]))
    assert.deepEqual([...answers.keys()].sort(), ['a', 'b', 'c'])
    assert.deepEqual(answers.get('a')?.result, {})
    assert.equal(text(answers.get('b')?.result), 'batched')
    assert.equal(answers.get('c')?.error?.code, -32601)
    const silent = await session.post([{ jsonrpc: '2.0', method: 'notifications/vendor' }])
    assert.equal(silent.status, 202)
    const errorsOf = (reply: Stream): Array<[unknown, number | undefined]> =>
      reply.messages.map((one): [unknown, number | undefined] => [one.id, one.error?.code])
    const mixed = await session.post([
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      5,
      { jsonrpc: '2.0', id: 'bad', method: 7 },
      { jsonrpc: '2.0', method: 'notifications/vendor' },
      { jsonrpc: '2.0', id: {}, method: 'ping' }
    ])
    assert.deepEqual([mixed.status, errorsOf(mixed).sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1))],
      [200, [[1, undefined], ['bad', -32600], [null, -32600], [null, -32600]]], mixed.body)
    const none = await session.post([1, 2, 3])
    assert.deepEqual([none.status, errorsOf(none)], [400, [[null, -32600], [null, -32600], [null, -32600]]], none.body)
    assertRefused(await session.post([]), 400, -32600)
    assertRefused(await session.post(Array.from({ length: 1_001 }, () => 1)), 400, -32600)
    for (const version of ['2025-06-18', '2025-11-25']) assertRefused(await (await Session.open(url, { version })).post(batch), 400, -32600)
  })
})

test('ids beyond 2^53 are compared as they were written', async (t) => {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const on = async ({ method }: { method: string }): Promise<Json | undefined> => {
    if (method !== 'tools/call') return undefined
    await released
    return { content: [] }
  }
  const upstream = await startUpstream(t, { tools: [tool('held')], on })
  const hub = await served(t, { fake: { type: 'streamable-http', url: upstream.url } })
  const session = await Session.open(`${hub.url}/mcp/fake`)
  const begin = async (id: string, count: number): Promise<{ answer: Promise<Stream> }> => {
    const answer = session.post(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"held"}}`)
    await until(() => upstream.count('tools/call') === count, `${id} was not passed on`)
    return { answer }
  }
  const first = await begin('1234567890123456789', 1)
  const second = await begin('1234567890123456790', 2)
  const again = await session.post('{"jsonrpc":"2.0","id":1234567890123456790,"method":"ping"}')
  assert.match(again.body, /a request with id 1234567890123456790 is already in flight/)
  await session.post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1234567890123456790}}')
  await until(() => upstream.cancelled.length === 1, 'not cancelled')
  assert.deepEqual(upstream.cancelled, [upstream.received.findLast(({ message }) => message.method === 'tools/call')?.message.id])
  release()
  assert.match((await first.answer).body, /"id":1234567890123456789,"result"/)
  assert.doesNotMatch((await second.answer).body, /"result"/)
})

test('enableSessionRebuild', async (t) => {
  const upstream = await startUpstream(t)
  const hub = await served(t, { fake: { type: 'streamable-http', url: upstream.url } }, { systemConfig: { enableSessionRebuild: true } })
  const call = (name: string, id: string | number = 1): Json => toolCall(name, { message: `to ${name}` }, id)

  await t.test('a POST rebuilds the session and is answered', async () => {
    const id = '1'.repeat(64)
    const reply = await send(`${hub.url}/mcp`, { body: call('fake-echo'), headers: on(id) })
    assert.equal(reply.status, 200, reply.body)
    assert.equal(text(reply.messages.at(-1)?.result), 'to fake-echo')
    assert.equal(reply.headers.get('mcp-session-id') ?? id, id)
    const stream = await open(`${hub.url}/mcp`, { method: 'GET', headers: on(id) })
    assert.equal(stream.status, 200)
    upstream.options.tools = [tool('echo'), tool('more')]
    await upstream.broadcast('notifications/tools/list_changed')
    await stream.wait((one) => one.method === 'notifications/tools/list_changed')
    stream.close()
    assert.ok([200, 204].includes((await send(`${hub.url}/mcp`, { method: 'DELETE', headers: on(id) })).status))
  })
  await t.test('a GET rebuilds it, too', async () => {
    const id = '2'.repeat(64)
    const stream = await open(`${hub.url}/mcp`, { method: 'GET', headers: on(id) })
    assert.equal(stream.status, 200)
    assert.ok(stream.sse)
    const reply = await send(`${hub.url}/mcp`, { body: call('fake-echo'), headers: on(id) })
    assert.equal(text(reply.messages.at(-1)?.result), 'to fake-echo')
    stream.close()
  })
  await t.test('many requests at once on one unknown id are all answered', async () => {
    const replies = await Promise.all(Array.from(
      { length: 16 },
      async (_, index) => await send(`${hub.url}/mcp`, { body: call('fake-echo', index), headers: on('3'.repeat(64)) })
    ))
    for (const [index, reply] of replies.entries()) {
      assert.equal(reply.status, 200, reply.body)
      assert.equal(reply.messages.at(-1)?.id, index)
      assert.equal(text(reply.messages.at(-1)?.result), 'to fake-echo')
    }
  })
  await t.test('a single-server route takes raw and qualified names', async () => {
    for (const name of ['echo', 'fake-echo']) {
      const reply = await send(`${hub.url}/mcp/fake`, { body: call(name), headers: on('4'.repeat(64)) })
      assert.equal(text(reply.messages.at(-1)?.result), `to ${name}`, reply.body)
    }
  })
  await t.test('DELETE of an unknown id is 404, a missing id 400, a key still needed, an absurd id refused', async () => {
    assertRefused(await send(`${hub.url}/mcp`, { method: 'DELETE', headers: on('5'.repeat(64)) }), 404, -32001)
    assertRefused(await send(`${hub.url}/mcp`, { body: call('fake-echo') }), 400, -32000)
    assert.equal((await send(`${hub.url}/mcp`, { key: null, body: call('fake-echo'), headers: on('6'.repeat(64)) })).status, 401)
    const absurd = await send(`${hub.url}/mcp`, { body: call('fake-echo'), headers: on('7'.repeat(4_000)) })
    assert.ok(absurd.status >= 400 && absurd.status < 500, String(absurd.status))
  })
})

test('two clients with the same ids, 2,000 interleaved calls: no answer crosses', async (t) => {
  const upstream = await startUpstream(t, {
    on: async ({ method, params }) => {
      const message = String(at(params, 'arguments', 'message'))
      // some overtake others
      if (method === 'tools/call' && /[37]$/.test(message)) for (let n = 0; n < Number(message.at(-2)); n++) await turn()
      return undefined
    }
  })
  const hub = await served(t, {
    http: { type: 'streamable-http', url: upstream.url },
    stdio: { type: 'stdio', command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
  },
  { bearerKeys: [bearerKey(), otherKey()] })
  const pool = new Pool(hub.url, { connections: 32 })
  t.after(async () => { await pool.close() })
  const clients = [{ name: 'one', key: KEY, next: 0 }, { name: 'two', key: OTHER, next: 0 }]
  const work = clients.flatMap((client) => Array.from({ length: 16 }, () => client))
  const sessions = new Map(
    await Promise.all(clients.map(async (client) => [client.name, await Session.open(`${hub.url}/mcp`, { key: client.key })] as const))
  )
  let crossed: string | undefined
  await Promise.all(work.map(async (client) => {
    const headers = {
      ...sessions.get(client.name)?.headers,
      authorization: `Bearer ${client.key}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json'
    }
    while (client.next < 1_000 && crossed === undefined) {
      const id = client.next++
      const message = `${client.name} ${id}`
      const name = `${id % 2 === 0 ? 'http' : 'stdio'}-echo`
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: '/mcp',
        headers,
        body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: { message } } })
      })
      const answer = (await body.text()).replace(/^[^{]*/, '').trim()
      const parsed: unknown = statusCode === 200 ? JSON.parse(answer) : undefined
      if (at(parsed, 'id') !== id || at(parsed, 'result', 'content', 0, 'text') !== message) {
        crossed ??= `${message} was answered with HTTP ${statusCode} ${answer}`
      }
    }
  }))
  assert.equal(crossed, undefined)
  assert.deepEqual(clients.map(({ next }) => next), [1_000, 1_000])
})
