// The transport HTTP+SSE (MCP 2024-11-05) towards clients: real ones from npm, and one spoken by hand.
import assert from 'node:assert/strict'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import {
  assertPlain, assertRefused, connected, everything, failed, initialize, KEY, OTHER, otherKey, plain, send, Session,
  settings, text, type Json
} from '../helpers/client.ts'
import { called, startTalker } from '../fakes/talker.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { clients, Connection, get } from '../helpers/sse.ts'

const TEAM = '0f9d2c2e-52f5-4c5c-9df6-3b8f3f2b9b01'
const token = (letter: string): string => `thk_${letter.repeat(64)}`
const key = (letter: string, more: Json = {}): Json =>
  bearerKey({ id: `33333333-3333-4333-8333-33333333333${letter}`, name: letter, token: token(letter), ...more })
const ping = { jsonrpc: '2.0', id: 'ping', method: 'ping' }
const authorized = { authorization: `Bearer ${KEY}` }

test('clients from npm list, call, get progress and are asked', async (t) => {
  const hub = await served(t, { everything: { type: 'streamable-http', url: await everything(t) } })
  for (const [at, [name, connect]] of Object.entries(clients).entries()) {
    // Both routes, in turns.
    const [route, prefix] = at % 2 === 0 ? ['/sse', 'everything-'] : ['/sse/everything', '']
    await t.test(`${name} on ${route}`, async (t) => {
      const { tools, call, progress, asks } = await connect(t, hub.url + route)
      assert.ok((await tools()).includes(`${prefix}echo`))
      assert.equal(text(await call(`${prefix}echo`, { message: 'hello' })), 'Echo: hello')
      const seen = await progress?.(`${prefix}trigger-long-running-operation`, { duration: 0.4, steps: 4 })
      // The SDKs forget a call at its result, before they have handled progress that came in the same packet, as the last one does.
      if (seen) assert.deepEqual(seen, [1, 2, 3, 4].filter((step) => step === 1 || seen.includes(step)))
      for (const kind of asks) {
        const asking = `${prefix}trigger-${kind}-request`
        await until(async () => (await tools()).includes(asking), `${asking} never showed`)
        assert.match(text(await call(asking, { prompt: 'hi' })), kind === 'sampling' ? /sampled here/ : /Name: Ada/)
      }
    })
  }
})

// ---- by hand ------------------------------------------------------------------------------------

test('a connection by hand: answers, notifications, and its end', async (t) => {
  const upstream = await startTalker(t)
  const fake = { type: 'streamable-http', url: upstream.url }
  const hub = await served(t, { fake }, { bearerKeys: [bearerKey(), otherKey()] })
  const connection = await Connection.open(t, `${hub.url}/sse`)
  const { stream } = connection

  await t.test('the stream begins at once with `endpoint`, tells proxies not to buffer, and is not cached', async () => {
    assert.match(connection.endpoint, /^\/messages\?sessionId=[\w-]{43,128}&path=%2Fsse$/)
    assert.equal(stream.headers.get('x-accel-buffering'), 'no')
    assert.match(stream.headers.get('cache-control') ?? '', /no-store/)
    const other = await Connection.start(t, `${hub.url}/sse`)
    assert.notEqual(other.sessionId, connection.sessionId)
  })
  await t.test('progress, then the result; an unknown method; ids as they were', async () => {
    const id = await connection.begin('tools/call', { name: 'fake-talk', arguments: {}, _meta: { progressToken: 'mine' } })
    await connection.answer(id)
    const heard = stream.messages.filter((message) => message.id === id || message.method === 'notifications/progress')
    assert.deepEqual(heard.map(({ id, params }) => id ?? [params?.progressToken, params?.progress]), [['mine', 1], ['mine', 2], id])
    assert.equal((await connection.request('vendor/unknown')).error?.code, -32601)
    for (const id of ['', '0', 0, -1]) {
      const reply = await connection.post({ jsonrpc: '2.0', id, method: 'ping' })
      assert.deepEqual([reply.status, reply.messages], [202, []], 'nothing but 202 comes on the POST')
      assert.deepEqual((await connection.answer(id)).result, {})
    }
  })
  await t.test('notifications/cancelled reaches the upstream, and nothing answers the call', async () => {
    const id = await connection.begin('tools/call', { name: 'fake-never', arguments: {} })
    await called(upstream, 'never')
    await connection.notify('notifications/cancelled', { requestId: id, reason: 'enough' })
    await until(() => upstream.cancelled.length === 1, 'not cancelled upstream')
    assert.deepEqual((await connection.request('ping')).result, {})
    assert.ok(!stream.messages.some((message) => message.id === id))
  })
  await t.test('closing the stream cancels its calls and ends its session, and no other', async (t) => {
    const count = async (): Promise<number> => {
      const metrics = await (await fetch(`${hub.url}/metrics`, { headers: authorized })).text()
      return Number(/^toolhub_sessions (\d+)$/m.exec(metrics)?.[1])
    }
    const leaving = await Connection.open(t, `${hub.url}/sse/fake`)
    await leaving.begin('tools/call', { name: 'never', arguments: {} })
    await called(upstream, 'never', 2)
    const sessions = await count()
    leaving.stream.close()
    await until(() => upstream.cancelled.length === 2, 'not cancelled upstream')
    assertRefused(await leaving.post(ping), 404, -32001)
    await until(async () => await count() < sessions, 'the session is still held')
    assert.deepEqual((await connection.request('ping')).result, {})
  })
})

test('when the gateway stops, each call gets a result or an error before the stream ends', async (t) => {
  const upstream = await startTalker(t)
  const content = settings({ fake: { type: 'streamable-http', url: upstream.url } })
  const hub = await startHub(t, { env: { DRAIN_TIMEOUT: '2s' }, settings: content })
  await connected(hub, 1)
  const connection = await Connection.open(t, `${hub.url}/sse/fake`)
  const soon = await connection.begin('tools/call', { name: 'soon', arguments: {} })
  const never = await connection.begin('tools/call', { name: 'never', arguments: {} })
  await called(upstream, 'never')
  const stopped = hub.stop()
  assert.equal(text((await connection.answer(soon)).result), 'soon')
  assert.ok(failed(await connection.answer(never)))
  await until(() => connection.stream.ended, 'the stream stayed open')
  await stopped
})

// ---- refusals -----------------------------------------------------------------------------------

/** `team` holds `one` and `two`; `closed` is an admin's private server; keys: 2, 4 and 6 are scoped, c is ann's. */
async function guarded (t: Cleanup, systemConfig: Json = {}, env: Record<string, string> = {}): Promise<Hub> {
  const upstream = await startTalker(t)
  const server = { type: 'streamable-http', url: upstream.url, owner: 'admin', visibility: 'public' }
  const closed = { ...server, visibility: 'private' }
  const more = {
    users: ['admin', 'ann', 'ben'].map((username) => ({ username, password: 'x', isAdmin: username === 'admin' })),
    groups: [{ id: TEAM, name: 'team', description: '', owner: 'admin', servers: ['one', 'two'] }],
    bearerKeys: [
      bearerKey(),
      otherKey(),
      key('2', { accessType: 'groups', allowedGroups: ['team'] }),
      key('4', { accessType: 'servers', allowedServers: ['one'] }),
      key('6', { accessType: 'custom', allowedGroups: [TEAM], allowedServers: ['anns'] }),
      key('c', { kind: 'user', owner: 'ann' })
    ],
    systemConfig
  }
  const hub = await startHub(t, { env, settings: settings({ one: server, two: server, closed, anns: { ...closed, owner: 'ann' } }, more) })
  await connected(hub, 4)
  return hub
}

test('refusals: credentials, scopes, origins, malformed requests, other principals', async (t) => {
  const hub = await guarded(t)
  const url = `${hub.url}/sse`
  const connection = await Connection.open(t, url)

  await t.test('no key or a wrong one: 401 with WWW-Authenticate', async () => {
    const wrong: Array<Record<string, string>> = [{}, { authorization: `Bearer ${KEY}x` }, { 'x-auth-token': KEY }]
    for (const headers of wrong) {
      const replies = ['/sse', '/sse/one', '/sse/nowhere', '/ann/sse', `/sse?token=${KEY}`].map(async (route) =>
        await get(hub.url + route, { key: null, headers }))
      for (const reply of await Promise.all([...replies, connection.post(ping, { key: null, headers })])) {
        assertRefused(reply, 401)
        assert.equal(reply.headers.get('www-authenticate'), 'Bearer')
      }
    }
  })
  await t.test('scopes of keys, users, unknown and hidden names: 200, 403 and 404 as on /mcp, with the same body', async () => {
    const routes = ['', '/one', '/two', '/closed', '/anns', '/team', `/${TEAM}`, '/nowhere']
    const table: ReadonlyArray<readonly [string, string, number[]]> = [
      [KEY, '', [200, 200, 200, 200, 200, 200, 200, 404]],
      [token('6'), '', [403, 403, 403, 403, 200, 200, 200, 403]],
      [token('c'), '', [200, 200, 200, 404, 200, 200, 200, 404]],
      [token('c'), '/ann', [200, 200, 200, 404, 200, 200, 200, 404]],
      [token('c'), '/ben', [403, 403, 403, 403, 403, 403, 403, 403]],
      [token('4'), '/ann', [403, 403, 403, 403, 403, 403, 403, 403]]
    ]
    for (const [key, user, statuses] of table) {
      for (const [index, route] of routes.entries()) {
        const reply = await get(`${hub.url}${user}/sse${route}`, { key })
        const model = await send(`${hub.url}${user}/mcp${route}`, { key, body: initialize() })
        assert.deepEqual([reply.status, model.status], [statuses[index], statuses[index]], `${key.slice(0, 5)}… on ${user}/sse${route}`)
        if (reply.status !== 200) assert.equal(reply.body, model.body)
      }
    }
    const ann = async (route: string): Promise<string> => (await get(hub.url + route, { key: token('c') })).body
    assert.equal((await ann('/sse/closed')).replace('closed', 'nowhere'), await ann('/sse/nowhere'), 'hidden and absent must look the same')
    assert.equal(await ann('/ben/sse'), await ann('/eve/sse'), 'another user and an unknown one must look the same')
    assert.deepEqual(await (await Connection.open(t, `${hub.url}/ann/sse/team`, { key: token('c') })).tools(),
      ['one', 'two'].flatMap((server) => ['echo', 'talk', 'never', 'soon'].map((name) => `${server}-${name}`)))
  })
  await t.test('a foreign Origin or Host: 403', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      assertRefused(await get(url, { headers: { origin } }), 403)
      assertRefused(await connection.post(ping, { headers: { origin } }), 403)
    }
    assert.equal((await get(url, { headers: { origin: hub.url } })).status, 200)
    for (const [address, method] of [[url, 'GET'], [connection.url, 'POST']] as const) {
      const headers = { ...authorized, host: 'evil.example', accept: 'text/event-stream', 'content-type': 'application/json' }
      const reply = await plain(address, { method, headers, body: method === 'GET' ? undefined : JSON.stringify(ping) })
      assert.equal(reply.status, 403)
      assertPlain(reply.body)
    }
  })
  await t.test('POSTs without a session, malformed or too early', async () => {
    const bare = `${hub.url}/messages`
    assertRefused(await send(bare, { body: ping }), 400, -32000)
    assertRefused(await send(`${bare}?sessionId=`, { body: ping }), 400, -32000)
    for (const id of ['f'.repeat(43), '__proto__']) assertRefused(await send(`${bare}?sessionId=${id}`, { body: ping }), 404, -32001)
    for (const body of ['{"broken', '', '7', '{}']) assertRefused(await connection.post(body), 400)
    assertRefused(await connection.post(JSON.stringify(ping), { headers: { 'content-type': 'text/plain' } }), 415)
    assertRefused(await connection.post({ ...ping, params: { padding: 'x'.repeat(1_100_000) } }), 413)
    const early = await Connection.start(t, url)
    assertRefused(await early.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }), 400)
    assert.equal((await connection.post(initialize('2024-11-05', {}, 'again'))).status, 202)
    assert.ok((await connection.answer('again')).error !== undefined)
    assert.deepEqual((await connection.request('ping')).result, {}, 'the session goes on')
  })
  await t.test('Accept must admit event streams; other methods; HEAD opens nothing', async () => {
    assertRefused(await get(url, { headers: { accept: 'application/json' } }), 406)
    for (const accept of ['*/*', 'text/*', 'application/json, text/event-stream;q=0.5']) {
      assert.equal((await get(url, { headers: { accept } })).status, 200, accept)
    }
    for (const [method, address] of [['HEAD', url], ['POST', url], ['DELETE', url], ['GET', connection.url], ['DELETE', connection.url]]) {
      const reply = await send(String(address), { method, body: method === 'POST' ? initialize() : undefined })
      assert.ok([404, 405].includes(reply.status), `${String(method)} ${String(address)}: ${reply.status}`)
    }
  })
  await t.test('a session belongs to one principal and one transport', async () => {
    const stranger = { jsonrpc: '2.0', id: 'stranger', method: 'tools/list' }
    const before = connection.stream.messages.length
    for (const key of [OTHER, token('2'), token('c')]) assertRefused(await connection.post(stranger, { key }), 404, -32001)
    const streamable = await Session.open(`${hub.url}/mcp`)
    assertRefused(await send(`${hub.url}/messages?sessionId=${streamable.id}`, { body: stranger }), 404, -32001)
    for (const method of ['POST', 'GET', 'DELETE']) {
      const headers = { 'mcp-session-id': connection.sessionId }
      assertRefused(await send(`${hub.url}/mcp`, { method, headers, body: method === 'POST' ? stranger : undefined }), 404, -32001)
    }
    assert.deepEqual((await connection.request('ping')).result, {})
    assert.equal(connection.stream.messages.length, before + 1, 'something else reached the stream')
  })
})

test('BASE_PATH, routes that are switched off, and enableSessionRebuild, which does not apply', async (t) => {
  const routing = { enableGlobalRoute: false, enableGroupNameRoute: false }
  const hub = await guarded(t, { routing, enableSessionRebuild: true }, { BASE_PATH: '/gate' })
  assertRefused(await send(`${hub.url}/messages?sessionId=${'f'.repeat(43)}`, { body: ping }), 404, -32001)
  assertRefused(await get(`${hub.url}/sse`), 403)
  assertRefused(await get(`${hub.url}/sse/team`), 404)
  assert.equal((await get(`http://127.0.0.1:${hub.port}/sse/one`)).status, 404)
  for (const route of ['/sse/one', `/sse/${TEAM}`, '/ann/sse/one']) {
    const connection = await Connection.open(t, hub.url + route)
    assert.match(connection.endpoint, /^\/gate\/messages\?sessionId=/)
    assert.ok((await connection.tools()).length > 0)
  }
})

test('enableBearerAuth=false: the anonymous view, and sessions apart from those of keys', async (t) => {
  const hub = await guarded(t, { routing: { enableBearerAuth: false } })
  const anonymous = await Connection.open(t, `${hub.url}/sse`, { key: null })
  const servers = new Set((await anonymous.tools()).map((name) => name.split('-')[0]))
  assert.deepEqual([...servers], ['one', 'two'])
  assert.ok(failed(await anonymous.request('tools/call', { name: 'closed-echo', arguments: {} })))
  assertRefused(await get(`${hub.url}/sse/closed`, { key: null }), 404)
  for (const route of ['/ann/sse', '/ann/sse/one']) assertRefused(await get(hub.url + route, { key: null }), 401)
  const keyed = await Connection.open(t, `${hub.url}/sse/closed`)
  assertRefused(await keyed.post(ping, { key: null }), 404, -32001)
  assertRefused(await anonymous.post(ping, { key: KEY }), 404, -32001)
  assert.ok(!keyed.stream.messages.some(({ id }) => id === 'ping') && !anonymous.stream.messages.some(({ id }) => id === 'ping'))
})
