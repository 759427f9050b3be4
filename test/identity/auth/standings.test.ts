// Who is asking, where that takes a while to find out; and what ends when a credential is revoked.
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { test, type Test } from 'tap'
import { identifyCaller, type IdentifyResult, type AuthStep } from '../../../plugins/identity/auth/chain.ts'
import type { Principal } from '../../../plugins/settings/access/view.ts'
import type { Snapshot } from '../../../db/store.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import { startUpstream, tool, type Upstream } from '../../fakes/fault-http.ts'
import { toy } from '../../fakes/toy.ts'
import { appFor } from '../../helpers/app.ts'
import { initialize, Session, send, silence, within, type Json } from '../../helpers/client.ts'
import { bearerKey, until } from '../../helpers/hub.ts'
import { served } from '../../helpers/served.ts'

const person = (key: string): Principal => ({ key, kind: 'user', user: key, username: key, isAdmin: false })

test('identify: a step may have to wait; the first that knows the caller decides', async (t) => {
  const asked: string[] = []
  const step = (name: string, found: IdentifyResult): AuthStep => () => { asked.push(name); return found }
  const find = (...chain: AuthStep[]): IdentifyResult => {
    asked.length = 0
    return identifyCaller(chain, { headers: {}, query: {} }, 'mcp', {} as unknown as Snapshot)
  }
  const [ann, bob] = [person('ann'), person('bob')]
  const later = async (found: Principal | undefined): Promise<Principal | undefined> => { await turn(); return found }

  await t.test('where none waits the answer is no promise: this is the path of every call', async () => {
    assert.equal(find(step('a', undefined), step('b', ann), step('c', bob)), ann)
    assert.equal(find(step('a', undefined)), undefined)
    assert.equal(find(), undefined)
  })
  const table: Array<[says: string, steps: AuthStep[], found: Principal | undefined, asked: string[]]> = [
    ['a promise that knows', [step('a', undefined), step('b', later(ann)), step('c', bob)], ann, ['a', 'b']],
    [
      'a promise that does not: the chain goes on',
      [step('a', later(undefined)), step('b', undefined), step('c', bob)],
      bob,
      ['a', 'b', 'c']
    ],
    ['several promises', [step('a', later(undefined)), step('b', later(undefined)), step('c', later(ann))], ann, ['a', 'b', 'c']],
    ['promises that do not know', [step('a', later(undefined)), step('b', later(undefined))], undefined, ['a', 'b']],
    ['one before comes first', [step('a', ann), step('b', later(bob))], ann, ['a']]
  ]
  for (const [says, steps, found, order] of table) {
    await t.test(says, async () => { assert.deepEqual([await find(...steps), asked], [found, order]) })
  }
  await t.test('one that cannot tell is no "nobody"', async () => {
    const away: AuthStep = async () => { throw new Error('the database is away') }
    const asking = find(away, step('b', ann))
    await assert.rejects(async () => await asking, /away/)
    assert.deepEqual(asked, [], 'nobody further is asked')
  })
})

const keyOf = (name: string, owner: string, letter: string): ReturnType<typeof bearerKey> => bearerKey({
  id: `55555555-5555-4555-8555-55555555555${letter}`, name, token: `thk_${letter.repeat(64)}`, kind: 'user', owner
})
const laptop = keyOf('laptop', 'ann', 'a')
const phone = keyOf('phone', 'ann', 'b')
const others = keyOf('others', 'bob', 'c')
const password = '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234'

interface World { app: FastifyInstance, url: string, upstream: Upstream }

async function start (t: Test, { isAnswering = false } = {}): Promise<World> {
  const upstream = await startUpstream(t, {
    tools: [tool('wait')], on: ({ method }) => method === 'tools/call' && !isAnswering ? 'never' : undefined
  })
  const app = await appFor(t, {
    mcpServers: { up: { url: upstream.url, visibility: 'public' } },
    users: ['ann', 'bob'].map((username) => ({ username, password, isAdmin: false })),
    bearerKeys: [laptop, phone, others]
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  await until(() => app.upstreams.get('up')?.status === 'connected')
  return { app, upstream, url }
}

test('MCP routes wait for who has to be waited for', async (t) => {
  const { app, url } = await start(t)
  const { identifyMcpCaller: transport } = app.auth
  app.auth.identifyMcpCaller = async (...args) => { await turn(); return await transport(...args) }
  const session = await Session.open(`${url}/mcp/up`, { key: laptop.token })
  assert.deepEqual(await session.tools(), ['wait'])
  for (const [path, key, status] of [['/mcp', 'nonsense', 401], ['/mcp', null, 401], ['/mcp/none', laptop.token, 404]] as const) {
    const refused = await send(`${url}${path}`, { key, body: initialize() })
    assert.equal(refused.status, status, path)
  }
})

/** An SSE stream that has begun no session yet. */
async function openSse (url: string, token: string): Promise<{ done: Promise<unknown>, ended: boolean }> {
  const { body } = await fetch(`${url}/sse`, { headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' } })
  const stream = { done: new Response(body).text().catch(() => {}).finally(() => { stream.ended = true }), ended: false }
  return stream
}

test('a credential that is revoked ends what hangs on it, and nothing of anybody else', async (t) => {
  await t.test('MCP sessions: their streams close, their calls end, and their ids are unknown', async (t) => {
    const { app, url, upstream } = await start(t)
    const keys = [laptop, phone, others]
    const held = await Promise.all(keys.map(async ({ token }) => {
      const session = await Session.open(`${url}/mcp`, { key: token })
      return {
        session,
        news: await session.listen(),
        call: session.request('tools/call', { name: 'up-wait', arguments: {} }),
        sse: await openSse(url, token)
      }
    }))
    for (const { call } of held) call.catch(() => {})
    await until(() => upstream.count('tools/call') === 3)

    app.auth.accessChanges.announceRevocation(laptop.id)
    const [revoked, ...rest] = held
    assert.ok(revoked)
    await within('the streams of the revoked key', Promise.all([revoked.news.done, revoked.sse.done]))
    await until(() => upstream.cancelled.length > 0, 'the call of the revoked key went on upstream')
    const next = await revoked.session.post({ jsonrpc: '2.0', id: 9, method: 'tools/list' })
    assert.deepEqual([next.status, typeof next.messages[0]?.error?.code], [404, 'number'], next.body)

    await silence(100)
    for (const { session, news, sse } of rest) {
      assert.deepEqual([news.ended, sse.ended], [false, false])
      assert.deepEqual(await session.tools(), ['up-wait'])
    }
    assert.equal(upstream.cancelled.length, 1, 'calls of others go on')
    // Others may be revoked, too, and what is revoked twice is gone already.
    app.auth.accessChanges.announceRevocation(others.id)
    app.auth.accessChanges.announceRevocation(laptop.id)
    await within('the stream of the other', rest[1]?.news.done ?? Promise.reject(new Error('none')))
    assert.equal(rest[0]?.news.ended, false)
  })

  await t.test('a session that is just beginning does not begin', async (t) => {
    const { app, url } = await start(t)
    let learnt = (): void => {}
    let asked = false
    app.gateway.addProvider({
      ...toy,
      catalogue: (): Catalogue | undefined => undefined,
      loadLists: () => {
        asked = true
        return [{ done: new Promise<void>((resolve) => { learnt = resolve }), maxWait: 10_000 }]
      }
    })
    const beginning = send(`${url}/mcp`, { key: laptop.token, body: initialize() })
    await until(() => asked)
    app.auth.accessChanges.announceRevocation(laptop.id)
    learnt()
    const begun = await beginning
    assert.equal(begun.headers.get('mcp-session-id'), null)
    assert.equal(begun.messages[0]?.error?.code, -32001, begun.body)
    assert.equal(app.downstream.sessions.size, 0)
  })

  await t.test('calls in flight over REST', async (t) => {
    const { app, url, upstream } = await start(t)
    const call = async (token: string, headers: Record<string, string> = {}): Promise<{ status: number, body: Json }> => {
      const answer = await fetch(`${url}/api/tools/up/wait`, { headers: { authorization: `Bearer ${token}`, ...headers } })
      return { status: answer.status, body: await answer.json() as Json }
    }
    const ended: string[] = []
    const note = async (name: string, calling: ReturnType<typeof call>): Promise<Awaited<ReturnType<typeof call>>> => {
      const answer = await calling
      ended.push(name)
      return answer
    }
    const calls = {
      plain: note('plain', call(laptop.token)),
      inSession: note('in a session', call(laptop.token, { 'x-session-id': 'one' })),
      phone: note('phone', call(phone.token)),
      others: note('others', call(others.token))
    }
    await until(() => upstream.count('tools/call') === 4)
    app.auth.accessChanges.announceRevocation(laptop.id)
    for (const calling of [calls.plain, calls.inSession]) {
      const { status, body } = await within('a call of the revoked key', calling)
      assert.deepEqual([status, body.message], [401, 'Your access was withdrawn while the call ran'])
    }
    await until(() => upstream.cancelled.length === 2, 'the calls went on upstream')
    await silence(100)
    assert.deepEqual([ended.sort(), upstream.cancelled.length], [['in a session', 'plain'], 2])
    for (const { id } of [phone, others]) app.auth.accessChanges.announceRevocation(id)
    await within('the calls of the others', Promise.all(Object.values(calls)))
  })
})

test('a result that a hook holds does not reach a REST caller whose key is revoked', async (t) => {
  const { app, url } = await start(t, { isAnswering: true })
  app.gateway.addHook('onOutput', async (_call, result) => { app.auth.accessChanges.announceRevocation(laptop.id); return result })
  for (const [{ token }, status] of [[laptop, 401], [phone, 200]] as const) {
    assert.equal((await fetch(`${url}/api/tools/up/wait`, { headers: { authorization: `Bearer ${token}` } })).status, status)
  }
})

test('a key that has expired counts as disabled', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('slow')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const expired = { ...keyOf('expired', 'ann', 'c'), kind: 'system', owner: undefined, expiresAt: '2020-01-01T00:00:00Z' }
  const unreadable = { ...keyOf('unreadable', 'ann', 'd'), kind: 'system', owner: undefined, expiresAt: 'garbage' }
  // The clock stands until the key is to expire.
  let now = Date.now()
  t.intercept(Date, 'now', { value: () => now })
  const soon = { ...keyOf('soon', 'ann', 'e'), kind: 'system', owner: undefined, expiresAt: new Date(now + 500).toISOString() }
  const hub = await served(t, { up: { url: upstream.url } }, { bearerKeys: [bearerKey(), expired, unreadable, soon] })
  const api = async (
    method: string, path: string, key: string, body?: Json
  ): Promise<{ status: number, message?: string, data?: Json }> => {
    const reply = await fetch(`${hub.url}/api/auth/keys${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body)
    })
    return { status: reply.status, ...await reply.json() as Json }
  }
  for (const { token } of [expired, unreadable]) {
    assert.equal((await api('GET', '', token)).status, 401)
    assert.equal((await send(`${hub.url}/mcp`, { key: token, body: initialize() })).status, 401)
  }

  const session = await Session.open(`${hub.url}/mcp`, { key: soon.token })
  const stream = await session.listen()
  const call = session.request('tools/call', { name: 'up-slow', arguments: {} })
  await until(() => upstream.count('tools/call') === 1)
  now += 1_000
  const answer = await within('the answer to the call', call)
  assert.match(answer.error?.message ?? '', /access was withdrawn/, 'the call is answered, and not left to its time limit')
  await within('the end of the stream', stream.done)
  assert.equal((await api('GET', '', soon.token)).status, 401)

  const key = bearerKey().token
  for (const expiresAt of ['garbage', '2030-01-01', '2030-01-01T00:00:00', '2030-01-01T25:00:00Z', '2030-02-31T00:00:00Z']) {
    const { status, message } = await api('POST', '', key, { name: 'x', accessType: 'all', owner: 'admin', expiresAt })
    const says = expiresAt.includes('-31T') ? /^400 .*the day 2030-02-31 does not exist/ : /^400 .*must be a date and time with a time zone/
    assert.match(`${status} ${message}`, says, expiresAt)
  }
  const made = await api('POST', '', key, { name: 'x', accessType: 'all', owner: 'admin', expiresAt: '2099-01-01T01:00:00+01:00' })
  assert.deepEqual([made.status, made.data?.expiresAt], [201, '2099-01-01T00:00:00.000Z'])
  const path = `/${String(made.data?.id)}`
  assert.equal((await api('GET', '', String(made.data?.token))).status, 200)
  assert.equal((await api('PUT', path, key, { expiresAt: '2000-01-01T00:00:00Z' })).data?.expiresAt, '2000-01-01T00:00:00.000Z')
  assert.equal((await api('GET', '', String(made.data?.token))).status, 401)
  assert.equal((await api('PUT', path, key, { expiresAt: null })).data?.expiresAt, undefined)
  assert.equal((await api('GET', '', String(made.data?.token))).status, 200)
})

test('sessions that were opened by the name of a group end with enableGroupNameRoute, those by its id do not', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const id = '33333333-3333-4333-8333-333333333333'
  const hub = await served(t, { up: { url: upstream.url } }, { groups: [{ id, name: 'daily', servers: ['up'] }] })
  const [byName, byId] = [await Session.open(`${hub.url}/mcp/daily`), await Session.open(`${hub.url}/mcp/${id}`)]
  const stream = await byName.listen()
  const reply = await fetch(`${hub.url}/api/system-config`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${bearerKey().token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ routing: { enableGroupNameRoute: false } })
  })
  assert.equal(reply.status, 200)
  await within('the end of the stream', stream.done)
  assert.deepEqual(await byId.tools(), ['up-echo'])
})
