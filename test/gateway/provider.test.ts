// A provider of the program's own, registered in one line: every way of asking knows it, and hides it as it hides a server.
import assert from 'node:assert/strict'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { test, type Test } from 'tap'
import { NonMcpClient } from '../../protocol/exchange.ts'
import type { ProviderSettings } from '../../plugins/gateway/gateway.ts'
import { toy } from '../fakes/toy.ts'
import { appFor } from '../helpers/app.ts'
import { at, initialize, names, text, type Json } from '../helpers/client.ts'
import { bearerKey, until } from '../helpers/hub.ts'
import { openSession } from '../helpers/inject.ts'

const keyOf = (username: string, letter: string): ReturnType<typeof bearerKey> => bearerKey({
  id: `44444444-4444-4444-8444-44444444444${letter}`, name: username, token: `thk_${letter.repeat(64)}`, kind: 'user', owner: username
})
const [ann, bob] = [keyOf('ann', 'a'), keyOf('bob', 'b')]
const system = { ...bearerKey(), token: `thk_${'0'.repeat(64)}` }
const password = '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234'

async function start (t: Test, entry?: ProviderSettings): Promise<FastifyInstance> {
  const users = ['ann', 'bob'].map((username) => ({ username, password, isAdmin: false }))
  const app = await appFor(t, { users, bearerKeys: [system, ann, bob] })
  app.gateway.addProvider(toy, entry)
  return app
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

/** Calls a tool on the management API, which takes a system key only. */
const callTool = async (app: FastifyInstance, toolName: string, server = 'toy'): Promise<LightMyRequestResponse> => await app.inject({
  method: 'POST',
  url: `/api/tools/call/${server}`,
  headers: bearer(system.token),
  payload: { toolName, arguments: { a: 1, b: 2 } }
})

test('a provider that is registered is listed and called in every way', async (t) => {
  const app = await start(t)

  await t.test('on the global route, under its name', async () => {
    const session = await openSession(app, '/mcp', ann.token)
    assert.deepEqual(names(at((await session.request('tools/list')).result, 'tools')), ['toy-add', 'toy-fail'])
    assert.deepEqual(names(at((await session.request('prompts/list')).result, 'prompts')), ['toy-greet'])
    assert.equal(text((await session.request('tools/call', { name: 'toy-add', arguments: { a: 2, b: 5 } })).result), '7')
    assert.equal(text((await session.request('prompts/get', { name: 'toy-greet' })).result), 'Hi')
    assert.equal((await session.request('tools/call', { name: 'add', arguments: {} })).error?.code, -32602)
  })

  await t.test('on a route of its own, under raw names and with its own identity', async () => {
    const begun = await app.inject({
      method: 'POST',
      url: '/mcp/toy',
      headers: { ...bearer(ann.token), accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      payload: JSON.stringify(initialize())
    })
    const result = at(begun.json(), 'result')
    assert.deepEqual(at(result, 'serverInfo'), { name: 'toy', version: '1' })
    assert.deepEqual(at(result, 'capabilities'), { tools: { listChanged: true }, prompts: { listChanged: true } })
    const session = await openSession(app, '/mcp/toy', ann.token)
    assert.deepEqual(names(at((await session.request('tools/list')).result, 'tools')), ['add', 'fail'])
    assert.equal(text((await session.request('tools/call', { name: 'add', arguments: { a: 2, b: 5 } })).result), '7')
    assert.equal(text((await session.request('prompts/get', { name: 'greet' })).result), 'Hi')
    assert.equal((await session.request('resources/list')).error?.code, -32601, 'it has no resources')
  })

  await t.test('by the management API', async () => {
    const answer = await callTool(app, 'add')
    assert.deepEqual([answer.statusCode, text(at(answer.json(), 'data')), at(answer.json(), 'data', 'toolName')], [200, '3', 'add'])
    assert.equal(text(at((await callTool(app, 'toy-add')).json(), 'data')), '3')
    assert.equal((await callTool(app, 'fail')).statusCode, 502)
    const prompt = await app.inject({
      method: 'POST', url: '/api/mcp/toy/prompts/greet', headers: bearer(system.token), payload: {}
    })
    assert.deepEqual([prompt.statusCode, text(at(prompt.json(), 'data'))], [200, 'Hi'])
  })

  await t.test('by the open routes: arguments become what its schema says, and what does not fit is refused', async () => {
    const good = await app.inject('/api/tools/toy/add?a=1&b=2.5')
    assert.deepEqual([good.statusCode, text(good.json())], [200, '3.5'])
    const posted = await app.inject({
      method: 'POST', url: '/api/tools/toy/add', headers: { 'content-type': 'application/json' }, payload: '{"a":40,"b":2}'
    })
    assert.equal(text(posted.json()), '42')
    assert.equal((await app.inject('/api/tools/toy/add?a=one&b=2')).statusCode, 400)
    assert.equal((await app.inject('/api/tools/toy/nothing')).statusCode, 404)
  })

  await t.test('it is documented', async () => {
    for (const url of ['/api/openapi.json', '/api/toy/openapi.json']) {
      const document: unknown = (await app.inject(url)).json()
      assert.deepEqual(Object.keys(at(document, 'paths') as Json), ['/tools/toy/add', '/tools/toy/fail'], url)
      assert.equal(at(document, 'paths', '/tools/toy/add', 'get', 'description'), 'Adds')
    }
    assert.deepEqual((await app.inject('/api/openapi/stats')).json<{ data: unknown }>().data, {
      totalServers: 1, totalTools: 2, serverBreakdown: [{ name: 'toy', toolCount: 2, status: 'connected' }]
    })
  })

  await t.test('its calls are counted', async () => {
    const metrics = async (): Promise<string> =>
      (await app.inject({ url: '/metrics', headers: bearer(system.token) })).body
    const count = async (): Promise<number> =>
      Number(/^toolhub_calls_total\{server="toy",method="tools\/call",outcome="ok"\} (\d+)$/m.exec(await metrics())?.[1])
    const before = await count()
    await callTool(app, 'add')
    assert.equal(await count(), before + 1)
    assert.match(await metrics(), /^toolhub_calls_total\{server="toy",method="tools\/call",outcome="error"\} 1$/m)
  })
})

test('what hides a server hides a provider', async (t) => {
  /** What a caller gets of the toy, on each way: names that are listed, or the status of the refusal. */
  const seenBy = async (app: FastifyInstance, token: string): Promise<unknown> => {
    const session = await openSession(app, '/mcp', token)
    const listed = names(at((await session.request('tools/list')).result, 'tools'))
    const called = await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2 } })
    const own = await app.inject({
      method: 'POST',
      url: '/mcp/toy',
      headers: { ...bearer(token), accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      payload: JSON.stringify(initialize())
    })
    const open = await app.inject({ url: '/api/tools/toy/add?a=1&b=2', headers: bearer(token) })
    const document = await app.inject({ url: '/api/toy/openapi.json', headers: bearer(token) })
    const all: unknown = (await app.inject({ url: '/api/openapi.json', headers: bearer(token) })).json()
    return {
      listed,
      called: called.error?.message ?? text(called.result),
      own: own.statusCode,
      open: open.statusCode,
      document: document.statusCode,
      documented: Object.keys(at(all, 'paths') as Json).length
    }
  }
  const everything = { listed: ['toy-add', 'toy-fail'], called: '3', own: 200, open: 200, document: 200, documented: 2 }
  const nothing = { listed: [], called: 'Unknown tool: toy-add', own: 404, open: 404, document: 404, documented: 0 }

  await t.test('a private one is its owner\'s and the admins\'', async (t) => {
    const app = await start(t, { visibility: 'private', owner: 'ann' })
    assert.deepEqual(await seenBy(app, ann.token), everything)
    assert.deepEqual(await seenBy(app, bob.token), nothing)
    assert.deepEqual(await seenBy(app, system.token), everything)
    assert.equal((await callTool(app, 'add')).statusCode, 200)
    assert.equal((await app.inject('/api/tools/toy/add?a=1&b=2')).statusCode, 404, 'nor is it anybody\'s')
    // A refusal says no more than the one for what is not there.
    const [hidden, missing] = await Promise.all(['toy', 'else'].map(async (name) =>
      (await app.inject({ url: `/api/tools/${name}/add`, headers: bearer(bob.token) })).body))
    assert.equal(hidden?.replaceAll('toy', 'else'), missing)
  })

  await t.test('one that is disabled is nobody\'s', async (t) => {
    const app = await start(t, { visibility: 'public', enabled: false })
    assert.deepEqual(await seenBy(app, system.token), nothing)
    assert.equal((await callTool(app, 'add')).statusCode, 404)
  })
})

test('a provider that comes late is seen through groups that name it, and listeners are notified', async (t) => {
  const app = await appFor(t, { bearerKeys: [system], groups: [{ id: 'g', name: 'team', servers: [{ name: 'toy', tools: ['add'] }] }] })
  const session = await openSession(app, '/mcp', system.token)
  assert.deepEqual(at((await session.request('tools/list')).result, 'tools'), [])
  const heard: string[] = []
  const view = app.access.viewOfRoute({ key: 'listener', kind: 'system-key', user: 'listener', isAdmin: true }, {})
  const client = new NonMcpClient('listener', 'listener')
  app.gateway.addListener({ view, level: undefined, deliver: (method) => { heard.push(method) } }, client)
  app.gateway.addProvider(toy)
  assert.deepEqual(names(at((await session.request('tools/list')).result, 'tools')), ['toy-add', 'toy-fail'])
  const group = await openSession(app, '/mcp/team', system.token)
  assert.deepEqual(names(at((await group.request('tools/list')).result, 'tools')), ['toy-add'])
  await until(() => heard.length === 2)
  assert.deepEqual(heard, ['notifications/tools/list_changed', 'notifications/prompts/list_changed'])
})
