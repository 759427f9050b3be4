// What a session asked for outlives the connections that it was asked on, and ends with the access to it.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { startUpstream, tool, type Upstream, type UpstreamSession } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { connected, failure, OTHER, otherKey, Session, settings, silence, text, within, type Json, type Message } from '../helpers/client.ts'
import { mockTimers } from '../helpers/clock.ts'
import { bearerKey, startHub, until, type Hub } from '../helpers/hub.ts'

const [uri, second] = ['fault://r', 'fault://s']
const resources = [{ uri, name: 'r' }, { uri: second, name: 's' }]
const http = (url: string, more: Json = {}): Json => ({ type: 'streamable-http', url, ...more })
const request = (method: string, params: Json, id = 'c'): Json => ({ jsonrpc: '2.0', id, method, params })
const toolCall = (name: string, args: Json = {}, id = 'c'): Json => request('tools/call', { name, arguments: args }, id)

/** What arrived upstream on the newest session there. */
const newest = (upstream: Upstream): Message[] => {
  const last = [...upstream.sessions.keys()].at(-1)
  return upstream.received.filter(({ session }) => session === last).map(({ message }) => message)
}
/** The method of the last request about resources there. */
const lastOfResources = (upstream: Upstream): string | undefined =>
  newest(upstream).findLast(({ method }) => method?.startsWith('resources/') === true)?.method
const isUpdate = ({ method, params }: Message): boolean => method === 'notifications/resources/updated' && params?.uri === uri
const isListChanged = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'
const isLog = ({ method }: Message): boolean => method === 'notifications/message'
const updated = async (upstream: Upstream, of = uri): Promise<void> => { await upstream.broadcast('notifications/resources/updated', { uri: of }) }
/** The link for clients that can be asked. */
const askedLink = (upstream: Upstream): UpstreamSession => {
  const link = [...upstream.sessions.values()].find(({ capabilities }) => capabilities.sampling !== undefined)
  assert.ok(link)
  return link
}

test('a new connection is asked for what the former one was', async (t) => {
  const upstream = await startUpstream(t, { resources })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  const sessions = [
    await Session.open(`${hub.url}/mcp`),
    await Session.open(`${hub.url}/mcp/a`),
    await Session.open(`${hub.url}/mcp/a`, { capabilities: { sampling: {} } })
  ] as const
  const streams = await Promise.all(sessions.map(async (session) => await session.listen()))
  for (const session of sessions) {
    await session.ask('resources/subscribe', { uri })
    await session.ask('logging/setLevel', { level: 'error' })
  }
  const stillHears = async (): Promise<void> => {
    const seen = streams.map((stream) => stream.messages.length)
    await until(() => upstream.count('resources/subscribe') >= 2, 'nobody subscribed')
    await until(async () => {
      await updated(upstream)
      return streams.every((stream, n) => stream.messages.slice(seen[n]).some(isUpdate))
    }, 'a session hears nothing any more')
  }
  await stillHears()
  const headers = (value: string): Json => ({ headers: { 'X-Any': value } })
  for (const [what, change] of [
    ['after a reload', async () => await managed(hub, 'POST', '/servers/a/reload')],
    ['after a change of its config', async () => await managed(hub, 'PUT', '/servers/a', { config: http(upstream.url, headers('other')) })]
  ] as const) {
    await t.test(what, async () => {
      const before = [...upstream.sessions.keys()]
      upstream.received.length = 0
      await change()
      await until(() => before.every((id) => !upstream.sessions.has(id)), 'the old links are still there')
      await stillHears()
      const levels = upstream.received.filter(({ message }) => message.method === 'logging/setLevel').map(({ message }) => message.params?.level)
      assert.deepEqual(levels, ['error', 'error'], "one for the shared link, one for the session's own")
    })
  }

  await t.test('an expired upstream session: subscribing is repeated on a new one, and leaving is no error', async () => {
    const [session, other] = sessions
    for (const each of [session, other]) await each.ask('resources/unsubscribe', { uri })
    // The fake keeps its GET streams: only a request finds out.
    upstream.sessions.clear()
    assert.deepEqual(await within('the subscription', session.ask('resources/subscribe', { uri })), {})
    assert.ok(newest(upstream).some(({ method }) => method === 'resources/subscribe'))
    upstream.sessions.clear()
    assert.deepEqual(await session.ask('resources/unsubscribe', { uri }), {})
    upstream.sessions.clear()
    assert.deepEqual(await session.ask('logging/setLevel', { level: 'debug' }), {})
  })
  for (const stream of streams) stream.close()
})

const bobs = bearerKey({ id: '33333333-3333-4333-8333-333333333333', name: 'bobs', token: `thk_${'c'.repeat(64)}`, kind: 'user', owner: 'bob' })

/** A gateway with a server that all see, a group of it, and a user bob. */
async function startWithdrawable (t: Test): Promise<{ upstream: Upstream, hub: Hub }> {
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
  const hub = await startHub(t, {
    settings: settings({ a: http(upstream.url, { visibility: 'public' }) }, {
      bearerKeys: [bearerKey(), bobs],
      users: [{ username: 'admin', isAdmin: true, password: 'x' }, { username: 'bob', isAdmin: false, password: 'x' }],
      groups: [{ id: 'g1', name: 'crew', servers: ['a'] }]
    })
  })
  await connected(hub, 1)
  return { upstream, hub }
}

test('a server that is private now: no news, no questions, and the call in flight ends', async (t) => {
  const { upstream, hub } = await startWithdrawable(t)
  const asked: Message[] = []
  const bob = await Session.open(`${hub.url}/mcp`, { key: bobs.token, capabilities: { sampling: {} } })
  const own = await Session.open(`${hub.url}/mcp`)
  const [stream, ours] = [await bob.listen(), await own.listen()]
  for (const session of [bob, own]) await session.ask('resources/subscribe', { uri })
  const call = await bob.start(toolCall('a-slow'))
  await call.wait(isLog)
  const link = askedLink(upstream)
  void link.ask('sampling/createMessage', { messages: [], maxTokens: 1 }).then((answer) => { asked.push(answer) })
  await call.wait(({ method }) => method === 'sampling/createMessage')
  const seen = stream.messages.length
  await managed(hub, 'PUT', '/servers/a', { config: http(upstream.url, { visibility: 'private' }) })
  await call.wait(({ id }) => id === 'c')
  await until(() => !upstream.sessions.has(link.id), 'the session\'s own link lives on')
  assert.ok(upstream.cancelled.length > 0, 'the upstream is told')
  await updated(upstream)
  await ours.wait(isUpdate)
  // Its answer comes after what the other session has got.
  assert.match(failure(await bob.request('tools/call', { name: 'a-echo', arguments: {} })), /Unknown tool/)
  assert.deepEqual(stream.messages.slice(seen).filter(isUpdate), [])
  assert.deepEqual(asked, [])
  for (const each of [stream, ours]) each.close()
})

test('what a group selects no more reaches its sessions no more', async (t) => {
  const { upstream, hub } = await startWithdrawable(t)
  const select = async (...selected: string[]): Promise<Json> =>
    await managed(hub, 'PUT', '/groups/crew', { servers: [{ name: 'a', tools: 'all', prompts: 'all', resources: selected }] })

  await t.test('a resource: no news, and it can be left', async () => {
    const session = await Session.open(`${hub.url}/mcp/crew`)
    const stream = await session.listen()
    for (const each of [uri, second]) await session.ask('resources/subscribe', { uri: each })
    await select(second)
    await until(() => newest(upstream).some(({ method }) => method === 'resources/unsubscribe'), 'nobody unsubscribed')
    await updated(upstream)
    await updated(upstream, second)
    await stream.wait(({ params }) => params?.uri === second)
    assert.deepEqual(stream.messages.filter(isUpdate), [])
    await session.ask('resources/unsubscribe', { uri })
    stream.close()
    await session.end()
  })

  await t.test('a resource that a result links to is read where it comes from, by whom it was given to, as far as that may be', async () => {
    await managed(hub, 'PUT', '/groups/crew', { servers: [{ name: 'a' }] })
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
    await select(uri)
    assert.equal(await read(session), -32002)
  })

  await t.test('a resource that another server has now: subscribed there, and at the first no more', async (t) => {
    const another = await startUpstream(t, { resources })
    await managed(hub, 'POST', '/servers', { name: 'b', config: http(another.url, { visibility: 'public' }) })
    await managed(hub, 'PUT', '/groups/crew', { servers: ['a', 'b'] })
    await connected(hub, 2)
    const session = await Session.open(`${hub.url}/mcp/crew`)
    const stream = await session.listen()
    await session.ask('resources/subscribe', { uri })
    await managed(hub, 'PUT', '/groups/crew', { servers: ['b', 'a'] })
    await until(() => another.count('resources/subscribe') === 1, 'nobody subscribed at the second')
    await until(() => lastOfResources(upstream) === 'resources/unsubscribe', 'nobody unsubscribed at the first')
    await updated(another)
    await stream.wait(isUpdate)
    await managed(hub, 'PUT', '/groups/crew', { servers: ['a'] })
    await until(() => lastOfResources(upstream) === 'resources/subscribe', 'nobody subscribed at the first again')
    stream.close()
  })
})

test('a log level reaches servers that come later, and one that is silent holds nobody up', async (t) => {
  let silent = false
  const [early, late, mute] = [
    await startUpstream(t),
    await startUpstream(t),
    await startUpstream(t, { on: ({ method }) => (silent && method === 'logging/setLevel' ? 'never' : undefined) })
  ]
  // Who waited for the silent one would wait for longer than a test does.
  const hub = await startHub(t, { settings: settings({ early: http(early.url), mute: http(mute.url) }), env: { REQUEST_TIMEOUT: '1h' } })
  await connected(hub, 2)
  const [one, other] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp`)]
  await one.ask('logging/setLevel', { level: 'debug' })
  await managed(hub, 'POST', '/servers', { name: 'late', config: http(late.url) })
  await until(async () => (await one.tools()).includes('late-echo'), 'not listed')
  assert.equal(text(await one.call('late-echo', { message: 'x' })), 'x')
  const hasLevel = ({ method, params }: Message): boolean => method === 'logging/setLevel' && params?.level === 'debug'
  await until(() => newest(late).some(hasLevel), 'the later server knows of no level')
  silent = true
  await within('the level', other.ask('logging/setLevel', { level: 'info' }))
  await within('another level', one.ask('logging/setLevel', { level: 'warning' }))
})

test('log messages outside of calls', async (t) => {
  const kinds = [
    ['plain', 'auto', {}], ['asked', 'auto', { sampling: {} }], ['one', 'session', {}], ['user', 'user', {}],
    ['all', 'shared', { sampling: {} }]
  ] as const
  const upstreams = new Map<string, Upstream>()
  for (const [name] of kinds) upstreams.set(name, await startUpstream(t))
  const upstreamOf = (name: string): Upstream => upstreams.get(name) ?? assert.fail(name)
  const hub = await startHub(t, {
    settings: settings(Object.fromEntries(kinds.map(([name, isolation]) => [name, http(upstreamOf(name).url, { isolation })])))
  })
  await connected(hub, kinds.length)

  for (const [name, isolation, capabilities] of kinds) {
    await t.test(`${isolation}, to a client that declares ${JSON.stringify(capabilities)}: once, by the link that serves it`, async () => {
      const upstream = upstreamOf(name)
      const session = await Session.open(`${hub.url}/mcp/${name}`, { capabilities })
      const news = await session.listen()
      /** The links whose messages come. What is sent after them shows when all have come. */
      const tick = async (): Promise<unknown[]> => {
        news.messages.length = 0
        for (const data of ['first', 'last']) {
          for (const each of upstream.sessions.values()) await each.notify('notifications/message', { level: 'info', data: `${data} ${each.id}` })
        }
        await news.wait(({ params }) => String(params?.data).startsWith('last'))
        return news.messages.map(({ params }) => String(params?.data)).filter((data) => data.startsWith('first'))
      }
      const first = `first ${[...upstream.sessions.keys()][0]}`
      assert.deepEqual(await tick(), [first], "it is served nowhere yet: by the gateway's own connection")
      await session.call('echo')
      const serving = upstream.received.findLast(({ message }) => message.method === 'tools/call')?.session
      assert.deepEqual(await tick(), [`first ${serving}`])
      news.close()
    })
  }
})

test('log messages outside of calls, by a link that several principals have used, come to none of them', async (t) => {
  const upstream = await startUpstream(t)
  const shared = { all: http(upstream.url, { isolation: 'shared', visibility: 'public' }) }
  const hub = await startHub(t, { settings: settings(shared, { bearerKeys: [bearerKey(), otherKey()] }) })
  await connected(hub, 1)
  const sessions = await Promise.all([undefined, undefined, OTHER].map(async (key) => await Session.open(`${hub.url}/mcp/all`, { key })))
  const streams = await Promise.all(sessions.map(async (session) => await session.listen()))
  /** Whether each of them gets a message of no call. What is sent after it on the same stream shows when it should have come. */
  const heard = async (data: string): Promise<boolean[]> => {
    await Promise.all(sessions.map(async (session) => await session.tools()))
    await upstream.broadcast('notifications/message', { level: 'info', data })
    upstream.options.tools = [tool('echo'), tool(data)]
    await upstream.broadcast('notifications/tools/list_changed')
    return await Promise.all(streams.map(async (stream) => {
      await stream.wait(isListChanged)
      const isHeard = stream.messages.some(({ params }) => params?.data === data)
      stream.messages.length = 0
      return isHeard
    }))
  }
  assert.deepEqual(await heard('before'), [true, true, true], 'nobody has called: it is about none of them')
  await sessions[0]?.call('echo')
  assert.deepEqual(await heard('one'), [true, true, false], 'it may be about the call of one principal')
  const answer = await fetch(`${hub.url}/api/tools/all/echo`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
  assert.equal(answer.status, 200)
  assert.deepEqual(await heard('several'), [false, false, false], 'it may be about a call without credentials')
  for (const stream of streams) stream.close()
})

test('checks of a connection, and what ends it', async (t) => {
  // The checks come when the test says so.
  mockTimers(t, 'setInterval')
  const interval = 60_000
  const answers = new Map([['knows-none', 405], ['accepts', 202], ['is-away', 503]])
  const statuses = new Map<string, Upstream>()
  for (const [name, status] of answers) {
    statuses.set(name, await startUpstream(t, {
      on: ({ method, res }) => {
        if (method !== 'ping') return undefined
        res.writeHead(status).end()
        return 'taken'
      }
    }))
  }
  const slow = await startUpstream(t, {
    on: async ({ method }) => {
      if (method === 'ping') return 'never'
      // The check, which came before, is given up meanwhile.
      if (method === 'tools/call') await silence(1_500)
      return undefined
    }
  })
  const hub = await startHub(t, {
    settings: settings({
      slow: http(slow.url, { keepAliveInterval: 1_000 }),
      ...Object.fromEntries([...statuses].map(([name, { url }]) => [name, http(url, { keepAliveInterval: interval })]))
    })
  })
  await connected(hub, 4)

  await t.test('a call that begins while a server is slow to answer a ping has its answer', async () => {
    const session = await Session.open(`${hub.url}/mcp/slow`)
    mock.timers.tick(1_000)
    await until(() => slow.count('ping') > 0, 'no ping')
    assert.equal(text(await session.call('echo', { message: 'here' })), 'here')
    assert.equal(slow.count('tools/call'), 1)
  })

  await t.test('an HTTP status for an answer to a ping is a sign of life, one of 500 and more is not', async () => {
    const status = async (name: string): Promise<unknown> => (await managed(hub, 'GET', `/servers/${name}`)).status
    for (let round = 1; round <= 2; round++) {
      mock.timers.tick(interval)
      for (const name of ['knows-none', 'accepts']) await until(() => statuses.get(name)?.count('ping') === round, `no ping of ${name}`)
    }
    await until(() => (statuses.get('is-away')?.count('initialize') ?? 0) > 1, 'it is still connected')
    for (const name of ['knows-none', 'accepts']) {
      assert.deepEqual([await status(name), statuses.get(name)?.count('initialize')], ['connected', 1], name)
    }
  })
})

test('what ends one client\'s connection leaves those of others', async (t) => {
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
  const hub = await startHub(t, {
    settings: settings({ guarded: http(guarded.url), personal: http(personal.url, { isolation: 'session' }) })
  })
  await connected(hub, 2)

  await t.test('one who is refused for want of credentials takes nobody\'s connection along', async () => {
    const session = await Session.open(`${hub.url}/mcp/guarded`)
    assert.match(failure(await session.request('tools/call', { name: 'no', arguments: {} })), /401/)
    assert.deepEqual([guarded.count('initialize'), guarded.count('tools/call')], [1, 1])
  })

  await t.test('a list that was one client\'s own goes with its connection, and the client is told', async () => {
    const session = await Session.open(`${hub.url}/mcp/personal`)
    const news = await session.listen()
    await session.tools()
    await session.call('login')
    await news.wait(isListChanged)
    await until(async () => (await session.tools()).includes('admin'), 'its own tool is not listed')
    news.messages.length = 0
    personal.expire()
    await session.call('echo')
    await news.wait(isListChanged)
    assert.deepEqual(await session.tools(), ['login', 'echo'])
    news.close()
  })
})

test('a link that is away for long has its subscriptions when it is back; equal messages stay two', async (t) => {
  const upstream = await startUpstream(t, { resources })
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url) }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/a`, { capabilities: { sampling: {} } })
  await session.ask('resources/subscribe', { uri })
  await upstream.close()
  upstream.sessions.clear()
  let tries = 0
  upstream.options.raw = (_req, res) => { tries++; res.writeHead(503).end(); return true }
  await upstream.listen()
  await until(() => tries >= 4, 'it is given up')
  upstream.received.length = 0
  delete upstream.options.raw
  await until(() => upstream.count('resources/subscribe') === 1, 'nobody subscribed again')
  const link = askedLink(upstream)
  const log = async (data: string): Promise<void> => { await link.notify('notifications/message', { level: 'info', data }) }
  for (let n = 0; n < 3; n++) await log('the same')
  for (let n = 0; n < 3; n++) await link.notify('notifications/resources/updated', { uri })
  // Answered once all that was sent before it has been read.
  await within('a ping', link.ask('ping', {}))
  const stream = await session.listen()
  const isLast = ({ params }: Message): boolean => params?.data === 'last'
  await log('last')
  await stream.wait(isLast)
  const counts = [stream.messages.filter((message) => isLog(message) && !isLast(message)), stream.messages.filter(isUpdate)]
  assert.deepEqual(counts.map(({ length }) => length), [3, 1])

  // A second stream is opened by a client that has lost the first, whatever the network says.
  const another = await session.listen()
  await link.notify('notifications/resources/updated', { uri })
  await another.wait(isUpdate)
  for (const each of [stream, another]) each.close()
})
