// What a session asked for outlives the connections that it was asked on, and ends with the access to it.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { at, connected, failure, KEY, Session, settings, sleep, text, within, type Json, type Message } from './client.ts'
import { Refusal, startUpstream, tool, type Upstream } from './fakes/fault-http.ts'
import { bearerKey, path, startHub, until, type Hub } from './helper.ts'

const timeout = 120_000
const resources = [{ uri: 'fault://r', name: 'r' }]
const http = (url: string, more: Json = {}): Json => ({ type: 'streamable-http', url, ...more })

async function api (hub: Hub, method: string, route: string, body?: unknown): Promise<Json> {
  const answer = await fetch(`${hub.url}/api${route}`, { method, headers: { authorization: `Bearer ${KEY}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }, body: body === undefined ? undefined : JSON.stringify(body) })
  const value = await answer.json() as Json
  assert.ok(answer.ok, `${method} ${route}: ${JSON.stringify(value)}`)
  return value
}

/** What arrived upstream on the newest session there. */
const newest = (upstream: Upstream): Message[] => {
  const last = [...upstream.sessions.keys()].at(-1)
  return upstream.received.filter(({ session }) => session === last).map(({ message }) => message)
}
const isUpdate = ({ method, params }: Message): boolean => method === 'notifications/resources/updated' && params?.uri === 'fault://r'

test('a new connection is asked for what the former one was', { timeout }, async (t) => {
  const upstream = await startUpstream(t, { resources })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  const sessions = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp/a`), await Session.open(`${hub.url}/mcp/a`, { capabilities: { sampling: {} } })]
  const streams = await Promise.all(sessions.map(async (session) => await session.listen()))
  for (const session of sessions) {
    await session.ask('resources/subscribe', { uri: 'fault://r' })
    await session.ask('logging/setLevel', { level: 'error' })
  }
  const stillHears = async (): Promise<void> => {
    const seen = streams.map((stream) => stream.messages.length)
    await until(() => [...upstream.sessions.values()].filter((session) => session.streams.size > 0).length >= 2, 10_000, 'the links are not there')
    await until(() => upstream.count('resources/subscribe') >= 2, 5_000, 'nobody subscribed')
    await sleep(200)
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    for (const [n, stream] of streams.entries()) await until(() => stream.messages.slice(seen[n]).some(isUpdate), 5_000, `session ${n} hears nothing any more`)
  }
  await stillHears()
  for (const [what, change] of [
    ['after a reload', async () => await api(hub, 'POST', '/servers/a/reload')],
    ['after a change of its config', async () => await api(hub, 'PUT', '/servers/a', { config: http(upstream.url, { headers: { 'X-Any': 'other' } }) })],
    ['after an edit on disk', async () => {
      const file = JSON.parse(readFileSync(hub.settingsPath, 'utf8')) as { mcpServers: Record<string, Json> }
      writeFileSync(hub.settingsPath, JSON.stringify({ ...file, mcpServers: { a: { ...file.mcpServers.a, headers: { 'X-Any': 'third' } } } }))
    }]
  ] as const) {
    await t.test(what, async () => {
      const before = [...upstream.sessions.keys()]
      upstream.received.length = 0
      await change()
      await until(() => before.every((id) => !upstream.sessions.has(id)), 10_000, 'the old links are still there')
      await stillHears()
      const levels = upstream.received.filter(({ message }) => message.method === 'logging/setLevel').map(({ message }) => message.params?.level)
      assert.deepEqual(levels, ['error', 'error'], 'one for the shared link, one for the session\'s own')
    })
  }

  await t.test('an expired upstream session: subscribing is repeated on a new one, and leaving is no error', async () => {
    const [session] = sessions
    assert.ok(session)
    await session.ask('resources/unsubscribe', { uri: 'fault://r' })
    await sessions[1]?.ask('resources/unsubscribe', { uri: 'fault://r' })
    // The fake keeps its GET streams: only a request finds out.
    upstream.sessions.clear()
    assert.deepEqual(await within(10_000, 'the subscription', session.ask('resources/subscribe', { uri: 'fault://r' })), {})
    assert.ok(newest(upstream).some(({ method }) => method === 'resources/subscribe'))
    upstream.sessions.clear()
    assert.deepEqual(await session.ask('resources/unsubscribe', { uri: 'fault://r' }), {})
    upstream.sessions.clear()
    assert.deepEqual(await session.ask('logging/setLevel', { level: 'debug' }), {})
  })
  for (const stream of streams) stream.close()
})

test('what is withdrawn from a session reaches it no more', { timeout }, async (t) => {
  const asked: Message[] = []
  const upstream = await startUpstream(t, {
    resources,
    tools: [tool('echo'), tool('slow')],
    on: ({ method, params, notify }) => {
      if (method !== 'tools/call' || params.name !== 'slow') return undefined
      notify('notifications/message', { level: 'info', data: 'begun' })
      return 'never'
    }
  })
  const user = { username: 'bob', isAdmin: false, password: 'x' }
  const bobs = bearerKey({ id: '33333333-3333-4333-8333-333333333333', name: 'bobs', token: `thk_${'c'.repeat(64)}`, kind: 'user', owner: 'bob' })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url, { visibility: 'public' }) }, { bearerKeys: [bearerKey(), bobs], users: [{ username: 'admin', isAdmin: true, password: 'x' }, user], groups: [{ id: 'g1', name: 'crew', servers: ['a'] }] }) })
  await connected(hub, 1)

  await t.test('a server that is private now: no news, no questions, and the call in flight ends', async () => {
    const bob = await Session.open(`${hub.url}/mcp`, { key: bobs.token, capabilities: { sampling: {} } })
    const own = await Session.open(`${hub.url}/mcp`)
    const [stream, ours] = [await bob.listen(), await own.listen()]
    await bob.ask('resources/subscribe', { uri: 'fault://r' })
    await own.ask('resources/subscribe', { uri: 'fault://r' })
    const call = await bob.start({ jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: { name: 'a-slow', arguments: {} } })
    await call.wait((message) => message.method === 'notifications/message')
    const link = [...upstream.sessions.values()].find(({ capabilities }) => capabilities.sampling !== undefined)
    assert.ok(link)
    void link.ask('sampling/createMessage', { messages: [], maxTokens: 1 }).then((answer) => { asked.push(answer) })
    await call.wait(({ method }) => method === 'sampling/createMessage')
    const seen = stream.messages.length
    await api(hub, 'PUT', '/servers/a', { config: http(upstream.url, { visibility: 'private' }) })
    await within(5_000, 'the call\'s end', call.wait(({ id }) => id === 'slow'))
    await until(() => !upstream.sessions.has(link.id), 5_000, 'the session\'s own link lives on')
    assert.ok(upstream.cancelled.length > 0, 'the upstream is told')
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    await ours.wait(isUpdate)
    await sleep(200)
    assert.deepEqual(stream.messages.slice(seen).filter(isUpdate), [])
    assert.match(failure(await bob.request('tools/call', { name: 'a-echo', arguments: {} })), /Unknown tool/)
    assert.deepEqual(asked, [])
    await own.ask('resources/unsubscribe', { uri: 'fault://r' })
    for (const each of [stream, ours]) each.close()
    await api(hub, 'PUT', '/servers/a', { config: http(upstream.url, { visibility: 'public' }) })
  })

  await t.test('a resource that its group selects no more: no news, and it can be left', async () => {
    const session = await Session.open(`${hub.url}/mcp/crew`)
    const stream = await session.listen()
    await session.ask('resources/subscribe', { uri: 'fault://r' })
    await api(hub, 'PUT', '/groups/crew', { servers: [{ name: 'a', tools: 'all', prompts: 'all', resources: [] }] })
    await until(() => newest(upstream).some(({ method }) => method === 'resources/unsubscribe'), 5_000, 'nobody unsubscribed')
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    await sleep(200)
    assert.deepEqual(stream.messages.filter(isUpdate), [])
    stream.close()
  })
})

test('lists that fail', { timeout }, async (t) => {
  let broken: 'refuse' | 'hang' | 'no' = 'no'
  const upstream = await startUpstream(t, {
    prompts: [{ name: 'p' }],
    on: ({ method }) => method !== 'tools/list' || broken === 'no' ? undefined : broken === 'hang' ? 'never' : new Refusal(-32603, 'database busy')
  })
  const silent = await startUpstream(t, { resources, prompts: [{ name: 'p' }], on: ({ method }) => method === 'prompts/list' ? 'never' : undefined })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url), silent: http(silent.url) }) })
  const session = await Session.open(`${hub.url}/mcp/a`)
  await connected(hub, 1)
  assert.deepEqual(await session.tools(), ['echo'])

  await t.test('what was known stays, on disk as well, and it is asked again', async () => {
    broken = 'refuse'
    await api(hub, 'POST', '/servers/a/reload')
    await until(async () => at(await api(hub, 'GET', '/servers/a'), 'data', 'status') === 'connected', 10_000, 'not connected')
    assert.deepEqual(await session.tools(), ['echo'])
    const kept = join(hub.folder, '.tool-hub', 'catalogues')
    assert.ok(readdirSync(kept).some((file) => readFileSync(join(kept, file), 'utf8').includes('"echo')))
    upstream.options.tools = [tool('echo'), tool('more')]
    broken = 'no'
    await until(async () => (await session.tools()).includes('more'), 15_000, 'never asked again')
  })

  await t.test('one that is never answered does not take the others with it', async () => {
    await until(async () => at(await api(hub, 'GET', '/servers/silent'), 'data', 'status') === 'connected', 30_000, () => `never connected: ${hub.output()}`)
    const other = await Session.open(`${hub.url}/mcp/silent`)
    assert.deepEqual(await other.tools(), ['echo'])
    assert.equal(text(await other.call('echo', { message: 'here' })), 'here')
  })
})

test('a server without a type that moved to another transport is found there', { timeout }, async (t) => {
  const upstream = await startUpstream(t)
  const sse = new Set<ServerResponse>()
  let old = true
  upstream.options.raw = (req, res) => {
    if (!old) return false
    if (req.method === 'GET') {
      sse.add(res.writeHead(200, { 'content-type': 'text/event-stream' }))
      res.write('event: endpoint\ndata: /messages\n\n')
      return true
    }
    if (req.url !== '/messages') { res.writeHead(405).end(); return true }
    let body = ''
    req.on('data', (chunk) => { body += String(chunk) }).on('end', () => {
      res.writeHead(202).end()
      const { id, method } = JSON.parse(body) as Message
      if (id === undefined) return
      const result = method === 'initialize' ? { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } } : method === 'tools/list' ? { tools: [tool('by-sse')] } : {}
      for (const stream of sse) stream.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    })
    return true
  }
  const hub = await startHub(t, { settings: settings({ a: { url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/a`)
  assert.deepEqual(await session.tools(), ['by-sse'])
  old = false
  for (const stream of sse) stream.end()
  await until(async () => (await session.tools()).includes('echo'), 20_000, () => `not found: ${hub.output()}`)
})

test('a call aimed at a server that is still connecting waits for it on merged routes, too', { timeout }, async (t) => {
  const answering = Date.now() + 4_000
  const slow = await startUpstream(t, { on: async ({ method }) => { if (method === 'initialize') await sleep(Math.max(answering - Date.now(), 0)); return undefined } })
  const never = await startUpstream(t, { on: ({ method }) => method === 'initialize' ? 'never' : undefined })
  const hub = await startHub(t, { settings: settings({ s: http(slow.url), 'dead-end': http(never.url) }, { groups: [{ id: 'g1', name: 'crew', servers: [{ name: 's', alias: 'x' }] }] }) })
  const [session, crew] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp/crew`)]
  const [all, grouped, dead, unknown] = await Promise.all([
    session.request('tools/call', { name: 's-echo', arguments: { message: 'hello' } }),
    crew.request('tools/call', { name: 'x-echo', arguments: { message: 'hello' } }),
    session.request('tools/call', { name: 'dead-end-echo', arguments: {} }),
    session.request('tools/call', { name: 'nothing-echo', arguments: {} })
  ])
  assert.deepEqual([text(all.result), text(grouped.result)], ['hello', 'hello'])
  assert.equal(at(dead, 'error', 'code'), -32001)
  assert.match(failure(dead), /"dead-end" is not connected: it is still connecting/)
  assert.equal(at(unknown, 'error', 'code'), -32602)
})

test('a client of an older revision may resume a stream that broke', { timeout }, async (t) => {
  let finish = (): void => {}
  const upstream = await startUpstream(t, {
    on: async ({ method, notify }) => {
      if (method !== 'tools/call') return undefined
      notify('notifications/message', { level: 'info', data: 'begun' })
      await new Promise<void>((resolve) => { finish = resolve })
      return { content: [{ type: 'text', text: 'done' }] }
    }
  })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  for (const version of ['2025-03-26', '2025-06-18', '2025-11-25']) {
    const session = await Session.open(`${hub.url}/mcp/a`, { version })
    const call = await session.start({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'echo', arguments: {} } })
    await call.wait(({ method }) => method === 'notifications/message')
    const last = call.events.filter(({ message }) => message !== undefined).at(-1)?.id
    assert.ok(last !== undefined)
    call.close()
    await sleep(400)
    assert.equal(upstream.cancelled.length, 0, version)
    const again = await session.listen(last)
    finish()
    assert.equal(text((await again.wait(({ id }) => id === 'c')).result), 'done', version)
    again.close()
  }
})

test('tasks, and pages that a person was sent to, on a process that several share', { timeout }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-lively-'))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  const log = join(folder, 'log')
  const lively = (more: Json = {}): Json => ({ command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')], env: { FAULT_LIVELY: '1', FAULT_LOG: log }, ...more })
  const hub = await startHub(t, { settings: settings({ a: lively(), lazy: lively({ startOnDemand: true, idleTimeoutMs: 1_000 }) }) })
  await connected(hub, 1)
  const askable = { capabilities: { elicitation: { form: {}, url: {} }, sampling: {} } }

  await t.test('a task\'s news reach who began it, and nobody else', async () => {
    const [one, other] = [await Session.open(`${hub.url}/mcp/a`), await Session.open(`${hub.url}/mcp/a`)]
    const [news, others] = [await one.listen(), await other.listen()]
    const { task } = await one.ask('tools/call', { name: 'work', arguments: { time: 500 }, task: { ttl: 60_000 } })
    const told = await news.wait(({ method }) => method === 'notifications/tasks/status')
    assert.deepEqual([told.params?.taskId, told.params?.status], [at(task, 'taskId'), 'completed'])
    assert.equal((await one.ask('tasks/get', { taskId: at(task, 'taskId') })).status, 'completed')
    await sleep(200)
    assert.deepEqual(others.messages, [])
    for (const stream of [news, others]) stream.close()
  })

  await t.test('the end of a visit is told to who was sent there', async () => {
    const session = await Session.open(`${hub.url}/mcp/a`, askable)
    const news = await session.listen()
    const call = await session.start({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'page', arguments: { id: 'visit-1', time: 500 } } })
    const question = await call.wait(({ method }) => method === 'elicitation/create')
    await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'accept' } })
    await call.wait(({ id }) => id === 'c')
    const told = await news.wait(({ method }) => method === 'notifications/elicitation/complete')
    assert.equal(told.params?.elicitationId, 'visit-1')
    news.close()
  })

  await t.test('a process that starts on demand does not end under a task', async () => {
    const session = await Session.open(`${hub.url}/mcp/lazy`)
    const { task } = await session.ask('tools/call', { name: 'work', arguments: { time: 4_000 }, task: { ttl: 60_000 } })
    await sleep(3_000)
    assert.equal((await session.ask('tasks/get', { taskId: at(task, 'taskId') })).status, 'working')
  })

  await t.test('clients that get a process of their own take their subscriptions with them', async () => {
    const [one, other] = [await Session.open(`${hub.url}/mcp/a`, askable), await Session.open(`${hub.url}/mcp/a`, askable)]
    const news = await one.listen()
    await one.ask('resources/subscribe', { uri: 'r://1' })
    const ask = async (session: Session): Promise<Message> => await session.request('tools/call', { name: 'ask', arguments: { kind: 'sampling', tag: 'x', delay: 300 } })
    await Promise.all([ask(one), ask(other)])
    await until(() => /connections of their own/.test(hub.output()), 5_000, 'never contested')
    await until(async () => text(await one.call('touch', { uri: 'r://1' })) === 'r://1', 10_000, 'its own process knows of no subscription')
    await news.wait(({ method, params }) => method === 'notifications/resources/updated' && params?.uri === 'r://1')
    const entries = readFileSync(log, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Json)
    assert.ok(entries.some(({ event, uri }) => event === 'unsubscribe' && uri === 'r://1'), 'the shared one is left')
    assert.deepEqual(await one.ask('resources/unsubscribe', { uri: 'r://1' }), {})
    assert.equal(text(await one.call('touch', { uri: 'r://1' })), '')
    news.close()
  })
})
