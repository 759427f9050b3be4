// What a session asked for outlives the connections that it was asked on, and ends with the access to it.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import {
  at,
  connected,
  failure,
  KEY,
  OTHER,
  otherKey,
  Session,
  settings,
  sleep,
  text,
  within,
  type Json,
  type Message,
  type Stream
} from '../helpers/client.ts'
import { Raw, Refusal, startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { bearerKey, path, startHub, until, type Hub } from '../helpers/hub.ts'

const timeout = 120_000
const resources = [{ uri: 'fault://r', name: 'r' }]
const http = (url: string, more: Json = {}): Json => ({ type: 'streamable-http', url, ...more })

async function api (hub: Hub, method: string, route: string, body?: unknown): Promise<Json> {
  const answer = await fetch(`${hub.url}/api${route}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body)
  })
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
  const sessions = [
    await Session.open(`${hub.url}/mcp`),
    await Session.open(`${hub.url}/mcp/a`),
    await Session.open(`${hub.url}/mcp/a`, { capabilities: { sampling: {} } })
  ]
  const streams = await Promise.all(sessions.map(async (session) => await session.listen()))
  for (const session of sessions) {
    await session.ask('resources/subscribe', { uri: 'fault://r' })
    await session.ask('logging/setLevel', { level: 'error' })
  }
  const stillHears = async (): Promise<void> => {
    const seen = streams.map((stream) => stream.messages.length)
    await until(
      () => [...upstream.sessions.values()].filter((session) => session.streams.size > 0).length >= 2,
      'the links are not there'
    )
    await until(() => upstream.count('resources/subscribe') >= 2, 'nobody subscribed')
    await sleep(200)
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    for (const [n, stream] of streams.entries()) {
      await until(() => stream.messages.slice(seen[n]).some(isUpdate), `session ${n} hears nothing any more`)
    }
  }
  await stillHears()
  for (const [what, change] of [
    ['after a reload', async () => await api(hub, 'POST', '/servers/a/reload')],
    [
      'after a change of its config',
      async () => await api(hub, 'PUT', '/servers/a', { config: http(upstream.url, { headers: { 'X-Any': 'other' } }) })
    ],
    [
      'after an edit on disk',
      async () => {
        const file = JSON.parse(readFileSync(hub.settingsPath, 'utf8')) as { mcpServers: Record<string, Json> }
        writeFileSync(
          hub.settingsPath,
          JSON.stringify({ ...file, mcpServers: { a: { ...file.mcpServers.a, headers: { 'X-Any': 'third' } } } })
        )
      }
    ]
  ] as const) {
    await t.test(what, async () => {
      const before = [...upstream.sessions.keys()]
      upstream.received.length = 0
      await change()
      await until(() => before.every((id) => !upstream.sessions.has(id)), 'the old links are still there')
      await stillHears()
      const levels = upstream.received
        .filter(({ message }) => message.method === 'logging/setLevel')
        .map(({ message }) => message.params?.level)
      assert.deepEqual(levels, ['error', 'error'], "one for the shared link, one for the session's own")
    })
  }

  await t.test('an expired upstream session: subscribing is repeated on a new one, and leaving is no error', async () => {
    const [session] = sessions
    assert.ok(session)
    await session.ask('resources/unsubscribe', { uri: 'fault://r' })
    await sessions[1]?.ask('resources/unsubscribe', { uri: 'fault://r' })
    // The fake keeps its GET streams: only a request finds out.
    upstream.sessions.clear()
    assert.deepEqual(await within('the subscription', session.ask('resources/subscribe', { uri: 'fault://r' })), {})
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
    tools: [tool('echo'), tool('slow'), tool('link')],
    on: ({ method, params, notify }) => {
      if (method === 'resources/read') return { contents: [{ uri: String(params.uri), text: 'linked' }] }
      if (params.name === 'link') return { content: [{ type: 'resource_link', uri: 'out://result/1', name: 'r' }] }
      if (method !== 'tools/call' || params.name !== 'slow') return undefined
      notify('notifications/message', { level: 'info', data: 'begun' })
      return 'never'
    }
  })
  const user = { username: 'bob', isAdmin: false, password: 'x' }
  const bobs = bearerKey({
    id: '33333333-3333-4333-8333-333333333333',
    name: 'bobs',
    token: `thk_${'c'.repeat(64)}`,
    kind: 'user',
    owner: 'bob'
  })
  const hub = await startHub(t, {
    settings: settings(
      { a: http(upstream.url, { visibility: 'public' }) },
      {
        bearerKeys: [bearerKey(), bobs],
        users: [{ username: 'admin', isAdmin: true, password: 'x' }, user],
        groups: [{ id: 'g1', name: 'crew', servers: ['a'] }]
      }
    )
  })
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
    await within('the call\'s end', call.wait(({ id }) => id === 'slow'))
    await until(() => !upstream.sessions.has(link.id), 'the session\'s own link lives on')
    assert.ok(upstream.cancelled.length > 0, 'the upstream is told')
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    await ours.wait(isUpdate)
    await sleep(200)
    assert.deepEqual(stream.messages.slice(seen).filter(isUpdate), [])
    assert.match(failure(await bob.request('tools/call', { name: 'a-echo', arguments: {} })), /Unknown tool/)
    assert.deepEqual(asked, [])
    await own.ask('resources/unsubscribe', { uri: 'fault://r' })
    for (const each of [stream, ours]) each.close()
    // It would be subscribed again for him.
    await bob.end()
    await api(hub, 'PUT', '/servers/a', { config: http(upstream.url, { visibility: 'public' }) })
  })

  await t.test('a resource that its group selects no more: no news, and it can be left', async () => {
    const session = await Session.open(`${hub.url}/mcp/crew`)
    const stream = await session.listen()
    await session.ask('resources/subscribe', { uri: 'fault://r' })
    await api(hub, 'PUT', '/groups/crew', { servers: [{ name: 'a', tools: 'all', prompts: 'all', resources: [] }] })
    await until(() => newest(upstream).some(({ method }) => method === 'resources/unsubscribe'), 'nobody unsubscribed')
    await upstream.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    await sleep(200)
    assert.deepEqual(stream.messages.filter(isUpdate), [])
    stream.close()
    await session.end()
  })

  await t.test(
    'a resource that a result links to is read where it comes from, by whom it was given to, as far as that may be',
    async () => {
      await api(hub, 'PUT', '/groups/crew', { servers: [{ name: 'a' }] })
      const session = await Session.open(`${hub.url}/mcp/crew`)
      const bob = await Session.open(`${hub.url}/mcp`, { key: bobs.token })
      const read = async (by: Session): Promise<number | string> => {
        const { error, result } = await by.request('resources/read', { uri: 'out://result/1' })
        return error?.code ?? JSON.stringify(result)
      }
      assert.equal(await read(session), -32002)
      await session.call('a-link')
      assert.match(String(await read(session)), /"contents"/)
      assert.deepEqual(await session.ask('resources/subscribe', { uri: 'out://result/1' }), {})
      assert.equal(await read(bob), -32002)
      await api(hub, 'PUT', '/groups/crew', { servers: [{ name: 'a', tools: 'all', prompts: 'all', resources: ['fault://r'] }] })
      assert.equal(await read(session), -32002)
    }
  )

  await t.test('a resource that another server has now: subscribed there, and at the first no more', async () => {
    const second = await startUpstream(t, { resources })
    await api(hub, 'POST', '/servers', { name: 'b', config: http(second.url, { visibility: 'public' }) })
    await api(hub, 'PUT', '/groups/crew', { servers: ['a', 'b'] })
    await connected(hub, 2)
    const session = await Session.open(`${hub.url}/mcp/crew`)
    const stream = await session.listen()
    await session.ask('resources/subscribe', { uri: 'fault://r' })
    await api(hub, 'PUT', '/groups/crew', { servers: ['b', 'a'] })
    await until(() => second.count('resources/subscribe') === 1, 'nobody subscribed at the second')
    await until(
      () => newest(upstream).findLast(({ method }) => method?.startsWith('resources/') === true)?.method === 'resources/unsubscribe',
      'nobody unsubscribed at the first'
    )
    await second.broadcast('notifications/resources/updated', { uri: 'fault://r' })
    await stream.wait(isUpdate)
    await api(hub, 'PUT', '/groups/crew', { servers: ['a'] })
    await until(
      () => newest(upstream).findLast(({ method }) => method?.startsWith('resources/') === true)?.method === 'resources/subscribe',
      'nobody subscribed at the first again'
    )
    stream.close()
  })
})

test('an exposed name means the same while its server is away, after a restart, or lists less', { timeout }, async (t) => {
  const tools = { a: [tool('b-c'), tool('x')], ab: [tool('c'), tool('d')] }
  const first = await startUpstream(t, { on: ({ method }) => method === 'tools/list' ? { tools: tools.a } : undefined })
  const second = await startUpstream(t, {
    tools: tools.ab,
    resources: [{ uri: 'x:1', name: 'of the second' }],
    on: ({ method }) => method === 'resources/read' ? { contents: [{ uri: 'x:1', text: 'of the second' }] } : undefined
  })
  const given = settings({ 'a-b': http(second.url, { owner: 'bob', visibility: 'public' }), a: http(first.url), 'a-x': http(second.url) }, {
    users: [{ username: 'bob' }]
  })
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-'))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  const hub = await startHub(t, { settings: given, env: { DATA_DIR: folder } })
  await connected(hub, 3)
  const session = await Session.open(`${hub.url}/mcp`)
  const listed = await session.tools()
  assert.deepEqual(listed.slice(0, 4), ['a-b-c', 'a-x', 'a-x-c', 'a-x-d'], 'the admins\' first, each in the order of configuration')
  assert.deepEqual(listed.slice(4).map((name) => name.replace(/_[0-9a-f]{8}$/, '_#')), ['a-b-c_#', 'a-b-d_#'], 'then the users\'')
  const ofUser = listed[4] ?? ''
  const reached = async (by: Session, name: string): Promise<string> => {
    const [before, other] = [first.count('tools/call'), second.count('tools/call')]
    await by.request('tools/call', { name, arguments: {} })
    if (first.count('tools/call') > before) return 'first'
    return second.count('tools/call') > other ? 'second' : 'none'
  }
  assert.deepEqual([await reached(session, 'a-b-c'), await reached(session, ofUser)], ['first', 'second'])
  const own = await Session.open(`${hub.url}/mcp/a-b`)
  assert.equal(await reached(own, ofUser), 'second', 'its own route takes that name, too')

  tools.a = [tool('x')]
  await first.broadcast('notifications/tools/list_changed', {})
  await until(async () => !(await session.tools()).includes('a-b-c'), 'the name is still listed')
  assert.deepEqual([await reached(session, 'a-b-c'), await reached(session, ofUser)], ['none', 'second'])
  tools.a = [tool('b-c'), tool('x')]
  await first.broadcast('notifications/tools/list_changed', {})
  await until(async () => (await session.tools()).includes('a-b-c'), 'the name is not back')
  await first.close()
  await until(async () => at(await api(hub, 'GET', '/servers/a'), 'data', 'status') !== 'connected', 'it is still connected')
  assert.deepEqual([await reached(session, 'a-b-c'), await reached(session, ofUser)], ['none', 'second'])
  await hub.stop()

  const again = await startHub(t, { settings: given, env: { DATA_DIR: folder } })
  await connected(again, 2)
  const later = await Session.open(`${again.url}/mcp`)
  assert.deepEqual(await later.tools(), listed, 'from the catalogue that was kept')
  assert.deepEqual([await reached(later, 'a-b-c'), await reached(later, ofUser)], ['none', 'second'])
})

test('lists that fail', { timeout }, async (t) => {
  let broken: 'refuse' | 'hang' | 'no' = 'no'
  const upstream = await startUpstream(t, {
    prompts: [{ name: 'p' }],
    on: ({ method }) =>
      method !== 'tools/list' || broken === 'no' ? undefined : broken === 'hang' ? 'never' : new Refusal(-32603, 'database busy')
  })
  const silent = await startUpstream(t, {
    resources,
    prompts: [{ name: 'p' }],
    on: ({ method }) => (method === 'prompts/list' ? 'never' : undefined)
  })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url), silent: http(silent.url) }) })
  const session = await Session.open(`${hub.url}/mcp/a`)
  await connected(hub, 1)
  assert.deepEqual(await session.tools(), ['echo'])

  await t.test('what was known stays, on disk as well, and it is asked again', async () => {
    const kept = join(hub.folder, '.tool-hub', 'catalogues')
    const isKept = (): boolean =>
      readdirSync(kept).some((file) => file.endsWith('.json') && readFileSync(join(kept, file), 'utf8').includes('"echo'))
    await until(isKept, 'never kept on disk')
    broken = 'refuse'
    await api(hub, 'POST', '/servers/a/reload')
    await until(async () => at(await api(hub, 'GET', '/servers/a'), 'data', 'status') === 'connected', 'not connected')
    assert.deepEqual(await session.tools(), ['echo'])
    assert.ok(isKept())
    upstream.options.tools = [tool('echo'), tool('more')]
    broken = 'no'
    await until(async () => (await session.tools()).includes('more'), 'never asked again')
  })

  await t.test('one that is never answered does not take the others with it', async () => {
    await until(
      async () => at(await api(hub, 'GET', '/servers/silent'), 'data', 'status') === 'connected',
      () => `never connected: ${hub.output()}`
    )
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
      const result =
        method === 'initialize'
          ? { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } }
          : method === 'tools/list'
            ? { tools: [tool('by-sse')] }
            : {}
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
  await until(async () => (await session.tools()).includes('echo'), () => `not found: ${hub.output()}`)
})

test('a call aimed at a server that is still connecting waits for it on merged routes, too', { timeout }, async (t) => {
  const answering = Date.now() + 4_000
  const slow = await startUpstream(t, {
    on: async ({ method }) => {
      if (method === 'initialize') await sleep(Math.max(answering - Date.now(), 0))
      return undefined
    }
  })
  const never = await startUpstream(t, { on: ({ method }) => method === 'initialize' ? 'never' : undefined })
  const hub = await startHub(t, {
    settings: settings(
      { s: http(slow.url), 'dead-end': http(never.url) },
      { groups: [{ id: 'g1', name: 'crew', servers: [{ name: 's', alias: 'x' }] }] }
    )
  })
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
  const lively = (more: Json = {}): Json => ({
    command: process.execPath,
    args: [path('test/fakes/fault-stdio.mjs')],
    env: { FAULT_LIVELY: '1', FAULT_LOG: log },
    ...more
  })
  const hub = await startHub(t, {
    settings: settings(
      { a: lively(), b: lively(), lazy: lively({ startOnDemand: true, idleTimeoutMs: 1_000 }) },
      { bearerKeys: [bearerKey(), otherKey()] }
    )
  })
  await connected(hub, 2)
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

  await t.test('progress of a task comes for as long as it lasts, under the token of the call that began it', async () => {
    const session = await Session.open(`${hub.url}/mcp/a`)
    const news = await session.listen()
    await session.ask('tools/call', { name: 'work', arguments: { time: 200 }, task: { ttl: 60_000 }, _meta: { progressToken: 'mine' } })
    await news.wait(({ method }) => method === 'notifications/tasks/status')
    assert.deepEqual(
      news.messages.flatMap(({ method, params }) => (method === 'notifications/progress' ? [params] : [])),
      [
        { progressToken: 'mine', progress: 1 },
        { progressToken: 'mine', progress: 2 }
      ]
    )
    news.close()
  })

  await t.test('a question of a task is for who began it or waits for its result, whoever else has a call open', async () => {
    const [one, other] = [await Session.open(`${hub.url}/mcp/a`, askable), await Session.open(`${hub.url}/mcp/a`, askable)]
    const [news, others] = [await one.listen(), await other.listen()]
    const begin = async (): Promise<unknown> =>
      at(
        await one.ask('tools/call', { name: 'work', arguments: { time: 200, ask: 'sampling', tag: 'x' }, task: { ttl: 60_000 } }),
        'task',
        'taskId'
      )
    const answer = async (stream: Stream, name: string): Promise<void> => {
      const { id } = await stream.wait(({ method }) => method === 'sampling/createMessage')
      await one.post({ jsonrpc: '2.0', id, result: { model: name, role: 'assistant', content: { type: 'text', text: name } } })
    }
    await other.call('pid')
    const open = other.post({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'echo', arguments: { delay: 800 } } })
    const first = await begin()
    await answer(news, 'on its own')
    assert.match(text(await one.ask('tasks/result', { taskId: first })), /on its own/)
    const waiting = await one.start({ jsonrpc: '2.0', id: 'r', method: 'tasks/result', params: { taskId: await begin() } })
    await answer(waiting, 'on the stream of its result')
    assert.match(text((await waiting.wait(({ id }) => id === 'r')).result), /on the stream of its result/)
    assert.deepEqual([...(await open).messages, ...others.messages].filter(({ method }) => method === 'sampling/createMessage'), [])
    for (const stream of [news, others]) stream.close()
  })

  await t.test(
    'a question that may be of a task or of a call is for nobody; the result of a task that is over is still had, from another process now',
    async () => {
      const [one, other] = [await Session.open(`${hub.url}/mcp/b`, askable), await Session.open(`${hub.url}/mcp/b`, askable)]
      const [news, others] = [await one.listen(), await other.listen()]
      await other.call('pid')
      const open = other.post({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'echo', arguments: { delay: 600 } } })
      const { task } = await one.ask('tools/call', {
        name: 'work',
        arguments: { time: 200, ask: 'sampling', tag: 'x', unmarked: true },
        task: { ttl: 60_000 }
      })
      await news.wait(({ method, params }) => method === 'notifications/tasks/status' && params?.status === 'completed')
      assert.deepEqual(
        [...(await open).messages, ...others.messages, ...news.messages].filter(({ method }) => method === 'sampling/createMessage'),
        []
      )
      assert.notEqual(text(await one.call('pid')), String(at(task, 'taskId')).split('-')[1])
      assert.equal(at(await one.ask('tasks/get', { taskId: at(task, 'taskId') }), 'status'), 'completed')
      for (let time = 0; time < 2; time++) assert.match(text(await one.ask('tasks/result', { taskId: at(task, 'taskId') })), /isolation/)
      for (const stream of [news, others]) stream.close()
    }
  )

  await t.test('a log message that may be of several calls is for all of them, if they are one principal\'s', async () => {
    const [one, other, stranger] = [
      await Session.open(`${hub.url}/mcp/a`),
      await Session.open(`${hub.url}/mcp/a`),
      await Session.open(`${hub.url}/mcp/a`, { key: OTHER })
    ]
    const said = async (data: string, ...sessions: Session[]): Promise<boolean[]> => {
      const calls = sessions.map(
        async (session) =>
          await session.post({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'echo', arguments: { delay: 400 } } })
      )
      await sleep(200)
      const say = await one.post({ jsonrpc: '2.0', id: 's', method: 'tools/call', params: { name: 'say', arguments: { data } } })
      return [say, ...(await Promise.all(calls))].map(({ messages }) =>
        messages.some(({ method, params }) => method === 'notifications/message' && params?.data === data)
      )
    }
    assert.deepEqual(await said('of one', other), [true, true])
    assert.deepEqual(await said('of two', stranger), [false, false])
  })

  await t.test('the end of a visit is told to who was sent there', async () => {
    const session = await Session.open(`${hub.url}/mcp/a`, askable)
    const news = await session.listen()
    const call = await session.start({
      jsonrpc: '2.0',
      id: 'c',
      method: 'tools/call',
      params: { name: 'page', arguments: { id: 'visit-1', time: 500 } }
    })
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
    const ask = async (session: Session): Promise<Message> =>
      await session.request('tools/call', { name: 'ask', arguments: { kind: 'sampling', tag: 'x', delay: 300 } })
    await Promise.all([ask(one), ask(other)])
    await until(() => /connections of their own/.test(hub.output()), 'never contested')
    await until(async () => text(await one.call('touch', { uri: 'r://1' })) === 'r://1', 'its own process knows of no subscription')
    await news.wait(({ method, params }) => method === 'notifications/resources/updated' && params?.uri === 'r://1')
    const entries = readFileSync(log, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Json)
    assert.ok(entries.some(({ event, uri }) => event === 'unsubscribe' && uri === 'r://1'), 'the shared one is left')
    assert.deepEqual(await one.ask('resources/unsubscribe', { uri: 'r://1' }), {})
    assert.equal(text(await one.call('touch', { uri: 'r://1' })), '')
    news.close()
  })
})

test('a log level reaches servers that come later, and one that is silent holds nobody up', { timeout }, async (t) => {
  let silent = false
  const [early, late, mute] = [
    await startUpstream(t),
    await startUpstream(t),
    await startUpstream(t, { on: ({ method }) => (silent && method === 'logging/setLevel' ? 'never' : undefined) })
  ]
  const hub = await startHub(t, { settings: settings({ early: http(early.url), mute: http(mute.url) }) })
  await connected(hub, 2)
  const [one, other] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp`)]
  await one.ask('logging/setLevel', { level: 'debug' })
  await api(hub, 'POST', '/servers', { name: 'late', config: http(late.url) })
  await until(async () => (await one.tools()).includes('late-echo'), 'not listed')
  assert.equal(text(await one.call('late-echo', { message: 'x' })), 'x')
  await until(
    () => newest(late).some(({ method, params }) => method === 'logging/setLevel' && params?.level === 'debug'),
    'the later server knows of no level'
  )
  silent = true
  const since = Date.now()
  await within('the level', other.ask('logging/setLevel', { level: 'info' }))
  await one.ask('logging/setLevel', { level: 'warning' })
  assert.ok(Date.now() - since < 5_000)
})

test(
  'log messages outside of calls come once, by the link that serves a client, and at a level that silences nobody',
  { timeout },
  async (t) => {
    const kinds = [
      ['plain', 'auto', {}],
      ['asked', 'auto', { sampling: {} }],
      ['one', 'session', {}],
      ['user', 'user', {}],
      ['all', 'shared', { sampling: {} }]
    ] as const
    const upstreams = new Map<string, Upstream>()
    for (const [name] of kinds) upstreams.set(name, await startUpstream(t))
    const hub = await startHub(t, {
      settings: settings(Object.fromEntries(kinds.map(([name, isolation]) => [name, http(upstreams.get(name)?.url ?? '', { isolation })])))
    })
    await connected(hub, kinds.length)
    await Promise.all(
      kinds.map(async ([name, isolation, capabilities]) => {
        await t.test(`${isolation}, to a client that declares ${JSON.stringify(capabilities)}`, async () => {
          const upstream = upstreams.get(name)
          assert.ok(upstream)
          const session = await Session.open(`${hub.url}/mcp/${name}`, { capabilities })
          const news = await session.listen()
          const tick = async (): Promise<unknown[]> => {
            news.messages.length = 0
            await Promise.all(
              [...upstream.sessions.values()].map(async (each) => {
                await each.notify('notifications/message', { level: 'info', data: each.id })
              })
            )
            await news.wait(({ method }) => method === 'notifications/message')
            await sleep(150)
            return news.messages.map(({ params }) => params?.data)
          }
          assert.deepEqual(await tick(), [[...upstream.sessions.keys()][0]], "it is served nowhere yet: by the gateway's own connection")
          await session.call('echo')
          assert.deepEqual(await tick(), [upstream.received.findLast(({ message }) => message.method === 'tools/call')?.session])
          news.close()
        })
      })
    )

    await t.test('by a link that several principals have used, to none of them', async () => {
      const upstream = await startUpstream(t)
      const shared = { all: http(upstream.url, { isolation: 'shared', visibility: 'public' }) }
      const other = await startHub(t, { settings: settings(shared, { bearerKeys: [bearerKey(), otherKey()] }) })
      await connected(other, 1)
      const [one, again, stranger] = [
        await Session.open(`${other.url}/mcp/all`),
        await Session.open(`${other.url}/mcp/all`),
        await Session.open(`${other.url}/mcp/all`, { key: OTHER })
      ]
      const streams = await Promise.all([one, again, stranger].map(async (session) => await session.listen()))
      /** Whether each of them gets a message of no call. What is sent after it on the same stream shows when it should have come. */
      const heard = async (data: string): Promise<boolean[]> => {
        await upstream.broadcast('notifications/message', { level: 'info', data })
        upstream.options.tools = [tool('echo'), tool(data)]
        await upstream.broadcast('notifications/tools/list_changed')
        return await Promise.all(streams.map(async (stream) => {
          await stream.wait(({ method }) => method === 'notifications/tools/list_changed')
          const isHeard = stream.messages.some(({ params }) => params?.data === data)
          stream.messages.length = 0
          return isHeard
        }))
      }
      await Promise.all([one, again, stranger].map(async (session) => await session.tools()))
      assert.deepEqual(await heard('before'), [true, true, true], 'nobody has called: it is about none of them')
      await one.call('echo')
      await Promise.all([one, again, stranger].map(async (session) => await session.tools()))
      assert.deepEqual(await heard('one'), [true, true, false], 'it may be about the call of one principal')
      const answer = await fetch(`${other.url}/api/tools/all/echo`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
      assert.equal(answer.status, 200)
      await Promise.all([one, again, stranger].map(async (session) => await session.tools()))
      assert.deepEqual(await heard('several'), [false, false, false], 'it may be about a call without credentials')
      for (const stream of streams) stream.close()
    })

    await t.test('the level is the lowest that is wanted, and the usual one for who said nothing', async () => {
      const upstream = upstreams.get('plain')
      assert.ok(upstream)
      const [one, other] = [await Session.open(`${hub.url}/mcp/plain`), await Session.open(`${hub.url}/mcp/plain`)]
      const told = async (level: string): Promise<void> => {
        await until(
          () => upstream.received.findLast(({ message }) => message.method === 'logging/setLevel')?.message.params?.level === level,
          `it was not asked for ${level}`
        )
      }
      await one.ask('logging/setLevel', { level: 'emergency' })
      await told('info')
      await one.ask('logging/setLevel', { level: 'debug' })
      await told('debug')
      await other.call('echo')
      await one.end()
      await told('info')
    })
  }
)

test('what ends a connection, and what does not', { timeout }, async (t) => {
  const answers = new Map([['knows none', 405], ['accepts', 202], ['is away', 503]])
  const slow = await startUpstream(t, {
    on: async ({ method }) => {
      await sleep(method === 'ping' ? 1_500 : method === 'tools/call' ? 2_000 : 0)
      return undefined
    }
  })
  const statuses = new Map<string, Upstream>()
  for (const [name, status] of answers) {
    statuses.set(
      name,
      await startUpstream(t, {
        on: ({ method, res }) => {
          if (method !== 'ping') return undefined
          res.writeHead(status).end()
          return 'taken'
        }
      })
    )
  }
  const guarded = await startUpstream(t, {
    tools: [tool('echo'), tool('no')],
    on: ({ params, res }) => {
      if (params.name !== 'no') return undefined
      res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
      return 'taken'
    }
  })
  const admins = new Set<string>()
  const personal = await startUpstream(t, {
    on: async ({ method, params, session }) => {
      if (method === 'tools/list') return { tools: [tool('login'), tool('echo'), ...(admins.has(session.id) ? [tool('admin')] : [])] }
      if (params.name === 'login') { admins.add(session.id); await session.notify('notifications/tools/list_changed') }
      return undefined
    }
  })
  const watched = (url: string): Json => http(url, { keepAliveInterval: 1_000 })
  const hub = await startHub(t, {
    settings: settings({
      slow: watched(slow.url),
      guarded: http(guarded.url),
      personal: http(personal.url, { isolation: 'session' }),
      ...Object.fromEntries([...statuses].map(([name, { url }]) => [name.replace(' ', '-'), watched(url)]))
    })
  })
  const status = async (name: string): Promise<unknown> => at(await api(hub, 'GET', `/servers/${name.replace(' ', '-')}`), 'data', 'status')
  await connected(hub, 5)
  await Promise.all([
    t.test('a call that begins while a server is slow to answer a ping has its answer', async () => {
      const session = await Session.open(`${hub.url}/mcp/slow`)
      await until(() => slow.count('ping') > 0, 'no ping')
      assert.equal(text(await session.call('echo', { message: 'here' })), 'here')
      assert.equal(slow.count('tools/call'), 1)
    }),

    t.test('an HTTP status for an answer to a ping is a sign of life, one of 500 and more is not', async () => {
      await until(async () => await status('is away') !== 'connected', 'it is still connected')
      for (const name of ['knows none', 'accepts']) {
        await until(() => (statuses.get(name)?.count('ping') ?? 0) > 1, 'no ping')
        assert.deepEqual([await status(name), statuses.get(name)?.count('initialize')], ['connected', 1], name)
      }
    }),

    t.test('one who is refused for want of credentials takes nobody\'s connection along', async () => {
      const session = await Session.open(`${hub.url}/mcp/guarded`)
      assert.match(failure(await session.request('tools/call', { name: 'no', arguments: {} })), /401/)
      assert.deepEqual([guarded.count('initialize'), guarded.count('tools/call')], [1, 1])
    }),

    t.test('a list that was one client\'s own goes with its connection, and the client is told', async () => {
      const session = await Session.open(`${hub.url}/mcp/personal`)
      const news = await session.listen()
      await session.tools()
      await session.call('login')
      await until(async () => (await session.tools()).includes('admin'), 'its own tool is not listed')
      await sleep(200)
      news.messages.length = 0
      personal.expire()
      await session.call('echo')
      await news.wait(({ method }) => method === 'notifications/tools/list_changed')
      assert.deepEqual(await session.tools(), ['login', 'echo'])
      news.close()
    })
  ])
})

test('what is no request of a client\'s own runs nothing', { timeout }, async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('wipe')] })
  const hub = await startHub(t, { settings: settings({ n: http(upstream.url, { tools: { wipe: { enabled: false } } }) }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/n`)
  await session.call('echo')
  upstream.received.length = 0
  for (const [method, params] of [
    ['tools/call', { name: 'wipe', arguments: {} }],
    ['initialize', {}],
    ['resources/read', { uri: 'x' }]
  ] as const) { await session.notify(method, params) }
  for (const method of ['notifications/cancelled', 'notifications/anything', 'initialize']) {
    assert.ok((await session.request(method, { requestId: 1 })).error, method)
  }
  await session.notify('notifications/vendor', { of: 'its own' })
  await until(() => upstream.count('notifications/vendor') === 1, 'a notification is still passed on')
  assert.deepEqual(upstream.received.map(({ message }) => message.method), ['notifications/vendor'])
})

test('a task is its principal\'s, though two have one of the same id', { timeout }, async (t) => {
  const upstream = await startUpstream(t, {
    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    on: ({ method, params, session }) => {
      const task = {
        taskId: 'task-1',
        status: 'working',
        ttl: 60_000,
        pollInterval: 1_000,
        createdAt: '2026-01-01T00:00:00Z',
        lastUpdatedAt: '2026-01-01T00:00:00Z'
      }
      if (method === 'tools/call' && params.task !== undefined) return { task }
      return method.startsWith('tasks/') ? { ...task, statusMessage: session.id } : undefined
    }
  })
  const bobs = bearerKey({ id: '33333333-3333-4333-8333-333333333333', name: 'bobs', token: `thk_${'c'.repeat(64)}` })
  const carols = bearerKey({ id: '44444444-4444-4444-8444-444444444444', name: 'carols', token: `thk_${'d'.repeat(64)}` })
  const hub = await startHub(t, {
    settings: settings({ a: http(upstream.url, { isolation: 'session' }) }, { bearerKeys: [bearerKey(), bobs, carols] })
  })
  await connected(hub, 1)
  const [ann, bob, carol] = [
    await Session.open(`${hub.url}/mcp/a`),
    await Session.open(`${hub.url}/mcp/a`, { key: bobs.token }),
    await Session.open(`${hub.url}/mcp/a`, { key: carols.token })
  ]
  for (const session of [ann, bob]) {
    assert.equal(at(await session.ask('tools/call', { name: 'echo', arguments: {}, task: { ttl: 60_000 } }), 'task', 'taskId'), 'task-1')
  }
  const [anns, his] = [await ann.ask('tasks/get', { taskId: 'task-1' }), await bob.ask('tasks/get', { taskId: 'task-1' })]
  assert.notEqual(anns.statusMessage, his.statusMessage, 'each is answered by its own connection')
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update']) {
    assert.match(failure(await carol.request(method, { taskId: 'task-1' })), /Unknown task/, method)
  }
})

test('an upstream\'s own error is relayed whatever its HTTP status, and a session that is gone is renewed', { timeout }, async (t) => {
  let status = 400
  let error: Json = { code: -32602, message: 'invalid "session" argument' }
  let id: 'own' | null = 'own'
  const upstream = await startUpstream(t, {
    on: ({ method, params, id: own, res }) => {
      if (method !== 'tools/call' || params.name !== 'fail') return undefined
      if (id === null) { upstream.sessions.clear(); upstream.options.on = undefined }
      res
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: id === null ? null : own, error }, undefined, 2))
      return 'taken'
    },
    tools: [tool('fail')]
  })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/a`)
  const initialized = upstream.count('initialize')
  for (status of [400, 404, 422, 500]) {
    const calls = upstream.count('tools/call')
    assert.deepEqual((await session.request('tools/call', { name: 'fail', arguments: {} })).error, error)
    assert.equal(upstream.count('tools/call'), calls + 1, 'it is not repeated')
  }
  assert.equal(upstream.count('initialize'), initialized)
  status = 401
  assert.match(
    failure(await session.request('tools/call', { name: 'fail', arguments: {} })),
    /wants credentials/,
    'what asks for credentials is no answer'
  )
  status = 404
  error = { code: -32001, message: 'Session not found' }
  id = null
  assert.equal(text(await session.call('fail', { message: 'renewed' })), 'renewed')
})

test('names and members that stand in another way', { timeout }, async (t) => {
  const long = 'y'.repeat(70)
  const upstream = await startUpstream(t, {
    tools: [tool(long)],
    resources: [{ uri: 'file:///secret', name: 's' }],
    resourceTemplates: [{ uriTemplate: 'file:///{path}', name: 't' }],
    on: ({ method, params }) => (method === 'resources/read' ? { contents: [{ uri: params.uri, text: 'read' }] } : undefined)
  })
  const hub = await startHub(t, {
    settings: settings(
      { a: http(upstream.url, { resources: { 'file:///secret': { enabled: false } } }) },
      { groups: [{ id: 'g', name: 'twice', servers: ['a', 'a'] }] }
    )
  })
  await connected(hub, 1)
  const [all, single, twice] = await Promise.all(
    ['/mcp', '/mcp/a', '/mcp/twice'].map(async (route) => await Session.open(`${hub.url}${route}`))
  )
  assert.ok(all && single && twice)
  const [cut = ''] = await all.tools()
  assert.equal(cut.length, 64)
  for (const session of [all, single]) assert.equal(text(await session.call(cut, { message: 'x' })), 'x', 'the cut name is good on both')
  assert.deepEqual(await twice.tools(), [cut], 'who stands there twice brings nothing twice')
  for (const uri of ['file:///secret', 'file:///secre%74', 'file:///./secret', 'file:///secret?', 'FILE:///secret', 'file:///secret#x']) {
    for (const session of [all, single]) assert.match(failure(await session.request('resources/read', { uri })), /Resource not found/, uri)
  }
  assert.ok((await single.ask('resources/read', { uri: 'file:///open' })).contents)
})

test('a gateway that is its own server notices', { timeout }, async (t) => {
  const upstream = await startUpstream(t)
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  await api(hub, 'POST', '/servers', { name: 'self', config: http(`${hub.url}/mcp`, { headers: { Authorization: `Bearer ${KEY}` } }) })
  await until(
    async () => /the gateway's own/.test(String(at(await api(hub, 'GET', '/servers/self'), 'data', 'error'))),
    'it says nothing'
  )
  assert.deepEqual(await (await Session.open(`${hub.url}/mcp`)).tools(), ['a-echo'])
})

test('a link that is away for long has its subscriptions when it is back; equal messages stay two', { timeout }, async (t) => {
  const upstream = await startUpstream(t, { resources })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/a`, { capabilities: { sampling: {} } })
  await session.ask('resources/subscribe', { uri: 'fault://r' })
  await upstream.close()
  upstream.sessions.clear()
  await sleep(6_000)
  upstream.received.length = 0
  await upstream.listen()
  await until(() => upstream.count('resources/subscribe') === 1, 'nobody subscribed again')
  const link = [...upstream.sessions.values()].find(({ capabilities }) => capabilities.sampling !== undefined)
  assert.ok(link)
  for (let n = 0; n < 3; n++) await link.notify('notifications/message', { level: 'info', data: 'the same' })
  for (let n = 0; n < 3; n++) await link.notify('notifications/resources/updated', { uri: 'fault://r' })
  await sleep(500)
  const stream = await session.listen()
  await stream.wait(isUpdate)
  await sleep(200)
  assert.deepEqual(
    [stream.messages.filter(({ method }) => method === 'notifications/message').length, stream.messages.filter(isUpdate).length],
    [3, 1]
  )

  // A second stream is opened by a client that has lost the first, whatever the network says.
  const second = await session.listen()
  await link.notify('notifications/resources/updated', { uri: 'fault://r' })
  await second.wait(isUpdate)
  for (const each of [stream, second]) each.close()
})

test('a tool that is shown only to clients that can be asked can be switched off', { timeout }, async (t) => {
  const upstream = await startUpstream(t, {
    on: ({ method, session }) =>
      method === 'tools/list'
        ? { tools: [tool('echo'), ...(session.capabilities.sampling === undefined ? [] : [tool('ask-model')])] }
        : undefined
  })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/a`, { capabilities: { sampling: {} } })
  assert.deepEqual(await session.tools(), ['echo', 'ask-model'])
  const { data } = await api(hub, 'POST', '/servers/a/tools/ask-model/toggle', { enabled: false })
  assert.deepEqual([at(data, 'name'), at(data, 'enabled')], ['ask-model', false])
  assert.deepEqual(await session.tools(), ['echo'])
})

test('a path that leads nowhere below MCP is answered as MCP has it', { timeout }, async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { BASE_PATH: '/hub' } })
  for (const route of ['/mcp/a/b', '/x/mcp/a/b', '/api/mcp/group/a/b']) {
    assert.equal(at(await (await fetch(`${hub.url}${route}`, { method: 'POST' })).json(), 'error', 'code'), -32000, route)
  }
  for (const route of ['/api/nothing', '/nothing', '/mcpx/a']) {
    assert.equal(at(await (await fetch(`${hub.url}${route}`)).json(), 'code'), 'TH_NOT_FOUND', route)
  }
})

test('a server\'s record has its items as the upstream wrote them', { timeout }, async (t) => {
  const item =
    '{"name":"exact","description":"as it came","inputSchema":{"type":"object","properties":{"a":{"default":12345678901234567890},' +
    '"b":{"maximum":1e400}}},"x":"\u00fc\u6f22\ud83d\ude00"}'
  const upstream = await startUpstream(t, {
    on: ({ method }) =>
      method === 'tools/list' ? new Raw(`{"tools":[${item},{"name":"other","inputSchema":{"type":"object"}}]}`) : undefined
  })
  const hub = await startHub(t, {
    settings: settings({ a: http(upstream.url, { tools: { exact: { enabled: false, description: 'ours' } } }) })
  })
  await connected(hub, 1)
  const headers = { authorization: `Bearer ${KEY}` }
  for (const route of ['/servers/a', '/servers', '/servers?fields=name,tools', '/settings']) {
    const answer = await fetch(`${hub.url}/api${route}`, { headers })
    assert.match(String(answer.headers.get('content-type')), /^application\/json/)
    const body = await answer.text()
    assert.ok(body.includes(`${item.slice(0, -1).replace('"as it came"', '"ours"')},"overridden":true,"enabled":false}`), body)
    assert.ok(body.includes('{"name":"other","inputSchema":{"type":"object"},"enabled":true,"description":""}'), body)
    assert.equal(at(JSON.parse(body), 'success'), true)
  }
  const named = await (await fetch(`${hub.url}/api/servers?fields=name,status`, { headers })).json()
  assert.deepEqual(at(named, 'data'), [{ name: 'a', status: 'connected' }])
  assert.equal((await fetch(`${hub.url}/api/servers/nobody`, { headers })).status, 404)
})

test(
  "a removal, and switching off, is answered when the server's process has ended",
  { timeout, skip: process.platform === 'linux' ? false : 'it reads /proc' },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'tool-hub-gone-'))
    t.after(() => {
      rmSync(folder, { recursive: true, force: true })
    })
    const log = join(folder, 'log')
    const stubborn = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')], env: { FAULT_STUBBORN: '1', FAULT_LOG: log } }
    const hub = await startHub(t, { settings: settings({ a: stubborn, b: stubborn }) })
    await connected(hub, 2)
    const started = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { pid: number; event: string; grandchild?: number })
    const pids = started.flatMap(({ pid, event, grandchild }) => (event === 'start' ? [pid] : grandchild === undefined ? [] : [grandchild]))
    assert.equal(pids.length, 4)
    // What has ended and was not waited for by its parent counts as gone.
    const alive = (): number[] =>
      pids.filter((pid) => {
        try {
          return !/^[ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, ''))
        } catch {
          return false
        }
      })
    assert.deepEqual(alive(), pids)
    await api(hub, 'DELETE', '/servers/a')
    assert.equal(alive().length, 2, 'those of the other are left')
    await api(hub, 'POST', '/servers/b/toggle', { enabled: false })
    assert.deepEqual(alive(), [])
  }
)
