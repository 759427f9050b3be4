// What belongs to one call, session or user reaches nobody else who shares a server with it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool, type Call } from '../fakes/fault-http.ts'
import { appFor } from '../helpers/app.ts'
import {
  at, failed, failure, KEY, open, OTHER, otherKey, send, Session, settings, text, within, type Json, type Message
} from '../helpers/client.ts'
import { bearerKey, until, type Cleanup } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'
import { served } from '../helpers/served.ts'
import { setLimits } from '../helpers/patient.ts'
import { answerAndStay, call, gate, log, methods, question, startSse } from '../helpers/wire.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

/** The URL of the route of a gateway's only server, whose keys are those of the admins alice and bob. */
async function routeTo (t: Cleanup, server: Json): Promise<string> {
  const more = {
    users: ['alice', 'bob'].map((username) => ({ username, password: '-', isAdmin: true })),
    bearerKeys: [bearerKey({ owner: 'alice' }), otherKey({ owner: 'bob' })],
    systemConfig: { enableSessionRebuild: true }
  }
  const hub = await served(t, { server }, more)
  return `${hub.url}/mcp/server`
}

for (const [isolation, capabilities] of [['shared', { elicitation: {} }], ['auto', {}]] as const) {
  test(`what comes on the stream of an answered call reaches no other call: isolation "${isolation}"`, async (t) => {
    const asked = gate<Message>()
    const release = gate()
    const server = await startUpstream(t, {
      tools: [tool('a'), tool('b')],
      on: async (one: Call) => {
        if (one.method !== 'tools/call') return undefined
        if (one.params.name === 'a') {
          const taken = answerAndStay(one)
          // At once: the gateway keeps the stream for a second after the answer.
          one.notify(...log('a secret of A'))
          void one.ask(...question).then(asked.open)
          return taken
        }
        await release.promise
        one.notify(...log('for B'))
        return undefined
      }
    })
    const url = await routeTo(t, { url: server.url, isolation })
    const a = await Session.open(url, { capabilities })
    const b = await Session.open(url, { capabilities, key: OTHER })
    const opened = b.start(call('b'))
    await until(() => server.received.some(({ message }) => message.params?.name === 'b'))
    await a.call('a')
    // B, who would be asked instead, never answers. The question came behind the secret.
    const { error } = await within('the end of a question that belongs to no call', asked.promise)
    assert.ok(error !== undefined, 'the question was answered')
    release.open()
    const stream = await opened
    await stream.done
    assert.deepEqual(methods(stream.messages), ['notifications/message', 'response'], stream.body)
    assert.doesNotMatch(stream.body, /secret/)
  })
}

test('another key with the id of a session gets a session and a connection of its own', async (t) => {
  const remembered = new Map<string, string>()
  const server = await startUpstream(t, {
    tools: [tool('remember'), tool('recall')],
    on: ({ method, params, session }) => {
      if (method !== 'tools/call') return undefined
      if (params.name === 'remember') remembered.set(session.id, String(at(params, 'arguments', 'value')))
      return { content: [{ type: 'text', text: remembered.get(session.id) ?? 'nothing' }] }
    }
  })
  const a = await Session.open(await routeTo(t, { url: server.url, isolation: 'session' }))
  await a.call('remember', { value: 'a secret of A' })
  const lastCalled = (): NonNullable<ReturnType<typeof server.sessions.get>> =>
    server.sessions.get(server.received.findLast(({ message }) => message.method === 'tools/call')?.session ?? '') ?? assert.fail()
  const ofA = lastCalled()
  const heardByA = await a.listen()
  const stolen = { key: OTHER, headers: a.headers }
  const recalled = await send(a.url, { ...stolen, body: call('recall') })
  assert.equal(recalled.status, 200, recalled.body)
  assert.equal(text(recalled.messages[0]?.result), 'nothing')
  const ofB = lastCalled()
  const heardByB = await open(a.url, { ...stolen, method: 'GET', headers: { ...a.headers, accept: 'text/event-stream' } })
  assert.equal(heardByB.status, 200)
  for (const [owner, session, heard] of [['A', ofA, heardByA], ['B', ofB, heardByB]] as const) {
    await session.notify(...log(`news for ${owner}`))
    await heard.wait(({ method }) => method === 'notifications/message')
  }
  assert.doesNotMatch(heardByB.body, /news for A/)
  heardByB.close()
  assert.equal((await send(a.url, { ...stolen, method: 'DELETE' })).status, 200)
  await until(() => !server.sessions.has(ofB.id), 'the connection of B is not ended')
  assert.ok(server.sessions.has(ofA.id), 'the connection of A was ended')
  assert.equal(text(await a.call('recall')), 'a secret of A')
  assert.equal(heardByA.ended, false)
  heardByA.close()
})

test('a user is not listed what a server lists on the connection of another user', async (t) => {
  const privates = new Map<string, string>()
  const server = await startUpstream(t, {
    on: ({ method, session }) => {
      if (method === 'initialize') privates.set(session.id, `private-${privates.size}`)
      return method === 'tools/list' ? { tools: [tool('common'), tool(privates.get(session.id) ?? 'none')] } : undefined
    }
  })
  const url = await routeTo(t, { url: server.url, isolation: 'user' })
  const alice = await Session.open(url)
  await alice.tools()
  await alice.call('common')
  const own = [...server.sessions.values()].slice(1)
  assert.ok(own.length > 0, 'alice has no connection of her own')
  for (const session of own) await session.notify('notifications/tools/list_changed')
  const hers = own.map(({ id }) => privates.get(id) ?? '')
  await until(async () => (await alice.tools()).some((name) => hers.includes(name)), 'alice is not listed her own tool')
  const bobs = await (await Session.open(url, { key: OTHER })).tools()
  assert.ok(bobs.includes('common'))
  assert.deepEqual(bobs.filter((name) => hers.includes(name)), [])
})

test('news of a task or of a question reach nobody on an idle shared connection, those of an extension its own route', async (t) => {
  const server = await startUpstream(t)
  const url = await routeTo(t, { url: server.url })
  const stream = await (await Session.open(url, { key: OTHER })).listen()
  const merged = await (await Session.open(url.replace('/server', ''), { key: OTHER })).listen()
  await server.broadcast('notifications/tasks/status', { taskId: '1', status: 'completed', statusMessage: 'a secret of A' })
  await server.broadcast('notifications/elicitation/complete', { elicitationId: 'a secret of A' })
  await server.broadcast('notifications/roots/list_changed', {})
  await server.broadcast('notifications/x/news', { a: 1 })
  await server.broadcast(...log('for all'))
  for (const [heard, seen] of [[stream, ['notifications/x/news', 'notifications/message']], [merged, ['notifications/message']]] as const) {
    await heard.wait(({ method }) => method === 'notifications/message')
    assert.deepEqual(methods(heard.messages), seen, heard.body)
    heard.close()
  }
})

test('what an answered call asked is withdrawn, and counts no more in the bound of questions', async (t) => {
  setLimits(t, downstreamLimits, { questionsPerSession: 3 })
  const most = 5
  const refusals: Message[] = []
  let answered = gate()
  const server = await startUpstream(t, {
    tools: [tool('ask')],
    on: async (one) => {
      if (one.method !== 'tools/call') return undefined
      void one.ask(...question).then((message) => { refusals.push(message) })
      await answered.promise
      return { content: [] }
    }
  })
  const session = await Session.open(await routeTo(t, { url: server.url }), { capabilities: { elicitation: {} } })
  const news = await session.listen()
  for (let n = 0; n < most; n++) {
    answered = gate()
    const stream = await session.start(call('ask', {}, n))
    const asked = await stream.wait(({ method }) => method === 'elicitation/create')
    answered.open()
    await stream.wait(({ id }) => id === n)
    const withdrawn = ({ method, params }: Message): boolean => method === 'notifications/cancelled' && params?.requestId === asked.id
    await until(() => [...stream.messages, ...news.messages].some(withdrawn), () => `question ${n} was not withdrawn: ${stream.body}`)
    await until(() => refusals.length === n + 1, () => `question ${n} has not ended`)
  }
  assert.ok(refusals.every(({ error }) => error !== undefined))
  news.close()
})

test('a session has a bounded number of subscriptions', async (t) => {
  setLimits(t, gatewayLimits, { subscriptionsPerSession: 5 })
  const server = await startUpstream(t, { tools: [], resources: [] })
  const session = await Session.open(await routeTo(t, { url: server.url }))
  const subscribe = async (n: number): Promise<Message> => await session.request('resources/subscribe', { uri: `r://${n}` })
  for (let n = 0; n < 5; n++) assert.equal((await subscribe(n)).error, undefined)
  const refused = await subscribe(5)
  assert.ok(refused.error !== undefined, 'the sixth was taken')
  assert.match(failure(refused), /\w/)
  await session.ask('resources/unsubscribe', { uri: 'r://0' })
  assert.equal((await subscribe(5)).error, undefined, 'there is no room after an unsubscribe')
})

test('an answer that is nested too deep fails its call, and not the HTTP+SSE connection that others share', async (t) => {
  const held = gate()
  const called: string[] = []
  const server = await startSse(t, {
    tools: ['slow', 'deep', 'echo'],
    on: ({ params }, answer) => {
      called.push(String(params?.name))
      if (params?.name === 'deep') answer(`{"content":[],"x":${'['.repeat(1_500)}${']'.repeat(1_500)}}`)
      else void (params?.name === 'slow' ? held.promise : Promise.resolve()).then(() => { answer('{"content":[{"type":"text","text":"well"}]}') })
    }
  })
  const url = await routeTo(t, { type: 'sse', url: server.url })
  const [a, b] = [await Session.open(url), await Session.open(url, { key: OTHER })]
  const slow = a.request('tools/call', { name: 'slow', arguments: {} })
  await until(() => called.includes('slow'))
  assert.ok(failed(await within('the failure of what cannot be read', b.request('tools/call', { name: 'deep', arguments: {} }))))
  held.open()
  assert.equal(text((await slow).result), 'well')
  assert.equal(text(await b.call('echo')), 'well')
})

test('a call that waits for a connection ends when access to the server is withdrawn', async (t) => {
  let opening = Promise.resolve()
  const server = await startUpstream(t, { tools: [tool('a')], on: async ({ method }) => { if (method === 'initialize') await opening } })
  const config = { type: 'streamable-http', url: server.url }
  const bob = { username: 'bob', password: '-' }
  const bearerKeys = [bearerKey(), otherKey({ kind: 'user', owner: 'bob' })]
  const app = await appFor(t, settings({ up: { ...config, visibility: 'public' } }, { users: [bob], bearerKeys }))
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const session = await openSession(app, '/mcp', OTHER)
  const opened = gate()
  opening = opened.promise
  const headers = { authorization: `Bearer ${KEY}` }
  await app.inject({ method: 'POST', url: '/api/servers/up/reload', headers })
  await until(() => server.count('initialize') === 2)
  const waiting = session.request('tools/call', { name: 'up-a', arguments: {} })
  await until(() => app.gateway.inFlight === 1)
  await app.inject({ method: 'PUT', url: '/api/servers/up', headers, payload: { config: { ...config, visibility: 'private' } } })
  assert.match((await within('the end of the call', waiting)).error?.message ?? '', /not connected: .* access was withdrawn$/)
  opened.open()
  await until(() => app.upstreams.get('up')?.status === 'connected')
  assert.equal(server.count('tools/call'), 0)
})
