// What may be registered on the gateway, by toys: each shows that a feature is a registration and no change of the program.
import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import { test, type Test } from 'tap'
import { RpcError } from '../../protocol/errors.ts'
import type { FinishedCall } from '../../plugins/gateway/hooks.ts'
import { makeView } from '../../plugins/settings/access/view.ts'
import { toActivity, isRecordableCall } from '../../plugins/extensions/activities/describe.ts'
import { PlainHttpExchange } from '../../plugins/downstream/tools/exchange.ts'
import { Refusal, startUpstream, tool } from '../fakes/fault-http.ts'
import { startBareModern } from '../fakes/bare-modern.ts'
import { toy } from '../fakes/toy.ts'
import { appFor } from '../helpers/app.ts'
import { at, KEY, names, settings, text, type Json } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { modernRequest } from '../helpers/modern-request.ts'
import { openSession, type InjectedSession } from '../helpers/inject.ts'

const ADA = `thk_${'c'.repeat(64)}`
const adaKey = { id: '33333333-3333-4333-8333-333333333333', name: 'ada\'s laptop', token: ADA, kind: 'user', owner: 'ada', enabled: true }

async function start (t: Test, mcpServers: Json = {}): Promise<FastifyInstance> {
  const given = settings(mcpServers)
  const app = await appFor(t, {
    ...given,
    users: [{ username: 'ada', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: false }],
    bearerKeys: [...given.bearerKeys as Json[], adaKey]
  })
  app.gateway.addProvider(toy)
  return app
}

const add = async (session: InjectedSession, a = 1, b = 2): Promise<Json> => {
  const { result, error } = await session.request('tools/call', { name: 'toy-add', arguments: { a, b } })
  assert.equal(error, undefined)
  return result ?? {}
}

/** A request of a client of revision 2026-07-28. */
async function modern (app: FastifyInstance, server: string, method: string, params: Json, capabilities: Json = {}): Promise<Json> {
  const { headers, body: payload } = modernRequest(method, { params, capabilities })
  const { body } = await app.inject({ method: 'POST', url: `/mcp/${server}`, headers, payload })
  return JSON.parse(body) as Json
}

test('onList changes a list, and adds to it', async (t) => {
  const app = await start(t)
  app.gateway.addHook('onList', (_exchange, kind, entries) => {
    if (kind !== 'tools') return entries
    return [...entries.map((entry) => ({ ...entry, description: 'Seen by a hook' })), { text: '{"name":"extra","inputSchema":{}}' }]
  })
  app.gateway.addHook('onList', async (_exchange, _kind, entries) => entries.filter(({ name }) => name !== 'toy-fail'))
  const session = await openSession(app, '/mcp', KEY)
  assert.deepEqual(
    (at((await session.request('tools/list')).result, 'tools') as Json[]).map(({ name, description }) => [name, description]),
    [['toy-add', 'Seen by a hook'], ['extra', undefined]]
  )
  assert.deepEqual(names(at((await session.request('prompts/list')).result, 'prompts')), ['toy-greet'], 'other lists are as they were')
})

test('onResult replaces a result, for every way of asking', async (t) => {
  const app = await start(t)
  app.gateway.addHook('onResult', ({ provider, item }, result) => item === 'add' ? result.replace('"3"', `"3, says ${provider}"`) : result)
  app.gateway.addHook('onResult', async (_call, result) => result.replace('says', 'said'))
  assert.equal(text(await add(await openSession(app, '/mcp', KEY))), '3, said toy')
  assert.equal(text((await app.inject('/api/tools/toy/add?a=1&b=2')).json()), '3, said toy')
})

const watch = async (t: Test): Promise<{ app: FastifyInstance, seen: FinishedCall[], session: InjectedSession }> => {
  const app = await start(t)
  const seen: FinishedCall[] = []
  app.gateway.addHook('onDone', (call) => { seen.push(call) })
  return { app, seen, session: await openSession(app, '/mcp', ADA, '192.0.2.7') }
}
const summary = (seen: FinishedCall[]): unknown[] =>
  seen.map(({ outcome, output, error }) => [outcome, output, error instanceof Error ? error.message : error])
const sum = '{"content":[{"type":"text","text":"3"}]}'

test('onDone sees each call once, with who asked and what came of it', async (t) => {
  const { app, seen, session } = await watch(t)

  await t.test('a result: who, from where, what, with what, and what came of it', async () => {
    seen.length = 0
    const before = performance.now()
    await add(session)
    const after = performance.now()
    await session.request('tools/list')
    const [call, ...more] = seen
    assert.ok(call)
    const { exchange, duration, startedAt, ...rest } = call
    assert.deepEqual(rest, { provider: 'toy', item: 'add', outcome: 'ok', output: sum, answer: sum, isToolError: false, error: undefined, trace: undefined, policy: undefined, guards: undefined })
    assert.equal(more.length, 0, 'lists are no calls')
    const times = [before, startedAt, startedAt + duration, after]
    assert.deepEqual(times.toSorted((one, other) => one - other), times)
    assert.deepEqual(
      [exchange.view.principal.username, exchange.view.principal.credential, exchange.address, exchange.method, exchange.paramsText],
      ['ada', { id: adaKey.id, name: 'ada\'s laptop' }, '192.0.2.7', 'tools/call', '{"name":"toy-add","arguments":{"a":1,"b":2}}']
    )
  })

  await t.test('a call over REST, of a person who has no key', async () => {
    seen.length = 0
    await app.inject({ url: '/api/tools/toy/add?a=1&b=2', remoteAddress: '192.0.2.8' })
    assert.deepEqual(summary(seen), [['ok', sum, undefined]])
    const { view: { principal }, address, method, params } = seen[0]?.exchange ?? assert.fail()
    assert.deepEqual([principal.kind, principal.credential, address, method], ['anonymous', undefined, '192.0.2.8', 'tools/call'])
    assert.deepEqual(params, { name: 'add', arguments: { a: 1, b: 2 } })
  })

  await t.test('an exchange of the program\'s own', async () => {
    seen.length = 0
    const principal = { key: 'x', kind: 'guest', user: 'guest', isAdmin: true } as const
    const view = app.access.viewOfRoute(principal, {})
    const exchange = new PlainHttpExchange(view, 'tools/call', { name: 'toy-add', arguments: { a: 1, b: 2 } }, { headers: {}, address: 'here' })
    assert.equal(await app.gateway.handle(exchange), sum)
    assert.equal(seen[0]?.exchange, exchange)
  })

  await t.test('no answer at all', async () => {
    seen.length = 0
    const { error } = await session.request('tools/call', { name: 'toy-fail', arguments: { why: 'away' } })
    assert.equal(error?.code, -32001)
    assert.deepEqual(summary(seen), [['failure', undefined, 'Server "toy" is not connected']])
  })
})

test('onDone: of a server that has never connected, whichever way it is asked', async (t) => {
  const app = await start(t, { dead: { type: 'streamable-http', url: 'http://127.0.0.1:9/mcp', visibility: 'public' } })
  const calls: Array<Promise<unknown>> = []
  const seen: FinishedCall[] = []
  app.gateway.addHook('onCall', ({ provider }) => { calls.push(Promise.resolve(provider)) })
  app.gateway.addHook('onDone', (call) => { seen.push(call) })
  const headers = { authorization: `Bearer ${KEY}` }
  const payload = { arguments: { a: 1 } }
  assert.equal((await app.inject({ method: 'POST', url: '/api/tools/call/dead', headers, payload: { toolName: 'x', ...payload } })).statusCode, 502)
  assert.equal((await app.inject({ url: '/api/tools/dead/x?a=1' })).statusCode, 502)
  assert.equal((await app.inject({ method: 'POST', url: '/api/tools/dead/x', payload: { a: 1 } })).statusCode, 502)
  for (const [method, params] of [
    ['tools/call', { name: 'x', ...payload }], ['prompts/get', { name: 'x' }], ['resources/read', { uri: 'test://x' }]
  ] as const) { assert.equal(at(await modern(app, 'dead', method, params), 'error', 'code'), -32001) }
  assert.deepEqual(seen.map(({ provider, item, outcome, exchange: { method } }) => [provider, method, item, outcome]), [
    ...Array<unknown>(4).fill(['dead', 'tools/call', 'x', 'failure']),
    ['dead', 'prompts/get', 'x', 'failure'],
    ['dead', 'resources/read', 'test://x', 'failure']
  ])
  assert.equal(calls.length, 6, 'each has begun, too')
  assert.deepEqual(seen.slice(0, 4).map(({ exchange: { params } }) => params.arguments), [{ a: 1 }, { a: '1' }, { a: 1 }, { a: 1 }])
})

test('onDone: a call whose server asks its client: each round, and the call once', async (t) => {
  const server = await startBareModern(t, [{ name: 'pay', inputSchema: { type: 'object' } }], ({ method, params }) => {
    if (method !== 'tools/call' && method !== 'prompts/get') return undefined
    const inputRequests = { a: { method: 'elicitation/create', params: { mode: 'form', message: 'Pay?', requestedSchema: {} } } }
    const sampling = { b: { method: 'sampling/createMessage', params: {} } }
    const round = { resultType: 'input_required', inputRequests, requestState: 'RAW-STATE' }
    if (params.requestState === 'RAW-STATE') return { result: { resultType: 'complete', content: [], messages: [] } }
    return { result: Object(params.arguments).bad === true ? { ...round, inputRequests: sampling } : round }
  }, { tools: {}, prompts: {} })
  const app = await start(t, { bank: { url: server.url } })
  const seen: FinishedCall[] = []
  const results: string[] = []
  app.gateway.addHook('onResult', (_call, result) => { results.push(result); return result })
  app.gateway.addHook('onDone', (call) => { seen.push(call) })
  await until(() => app.gateway.catalogue('bank') !== undefined)
  const post = async (params: Json): Promise<Json> => await modern(app, 'bank', 'tools/call', params, { elicitation: {} })
  const first = at(await post({ name: 'pay', arguments: { n: 1 } }), 'result') as Json
  assert.equal(first.resultType, 'input_required')
  const answers = { inputResponses: { a: { action: 'accept', content: {} } }, requestState: first.requestState }
  const last = at(await post({ name: 'pay', arguments: { n: 1 }, ...answers }), 'result') as Json
  assert.equal(last.resultType, 'complete')
  // What its client cannot be asked ends it, and what the server asked is no output.
  assert.equal(at(await post({ name: 'pay', arguments: { bad: true } }), 'error', 'code'), -32021)
  assert.deepEqual(seen.map(({ outcome }) => outcome), ['input_required', 'ok', 'error'])
  assert.equal(results.length, 1)
  assert.deepEqual(seen.map(isRecordableCall), [false, true, true])
  const metrics = await app.metrics.read({ key: 'x', kind: 'guest', user: 'guest', isAdmin: true })
  const counted = metrics.split('\n').filter((line) => line.startsWith('toolhub_calls_total{') && line.includes('"bank"'))
  assert.deepEqual(counted.map((line) => line.split(' ').at(-1)), ['1', '1'])
  const records = seen.map((call) => JSON.stringify(toActivity(call, { includesPayloads: true, redact: (_server, text) => text })))
  assert.ok(!records.join().includes('RAW-STATE'))
  assert.equal(JSON.parse(records[1] ?? '').input, '{"n":1}')
})

test('onDone: the params of a prompt are recorded without a state', async () => {
  const paramsText = '{"name":"greet","arguments":{"a":1},"requestState":"RAW-STATE","inputResponses":{"a":{}},"_meta":{}}'
  const { view } = new PlainHttpExchange(makeView({ key: 'x', kind: 'guest', user: 'guest', isAdmin: true }, {
    kind: 'global', open: false
  }), 'prompts/get', {}, { headers: {}, address: 'here' })
  const exchange = { view, method: 'prompts/get', address: undefined, paramsText }
  const call = { exchange, provider: 's', item: 'greet', duration: 1, output: '{}', error: undefined } as unknown as FinishedCall
  const { input } = toActivity(call, { includesPayloads: true, redact: (_server, text) => text })
  assert.equal(input, '{"name":"greet","arguments":{"a":1}}')
})

test('onDone: the provider\'s own error, relayed to the byte', async (t) => {
  const { seen, session } = await watch(t)
  const answer = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'toy-fail', arguments: {} } })
  assert.equal(answer.body, '{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"It failed","data":1e400}}')
  assert.deepEqual(summary(seen), [['error', undefined, 'It failed']])
})

test('secrets of a server\'s config are masked in its errors, in both eras', async (t) => {
  const secret = 'S3cret-"quoted"\\Value'
  const upstream = await startUpstream(t, {
    tools: [tool('echo')],
    resources: [{ uri: 'a:b', name: 'b' }],
    on: ({ method, headers }) => method === 'tools/call' || method === 'resources/subscribe'
      ? new Refusal(-32000, `no access with ${String(headers.authorization)}`, { sent: headers.authorization, n: 1 })
      : undefined
  })
  const app = await start(t, { up: { url: upstream.url, visibility: 'public', headers: { Authorization: `Bearer ${secret}` } } })
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const params = { name: 'echo', arguments: {} }
  const session = await openSession(app, '/mcp/up', ADA)
  const { error } = await session.request('tools/call', params)
  const sent = '••••alue'
  assert.deepEqual(error, { code: -32000, message: `no access with ${sent}`, data: { sent, n: 1 } })
  assert.equal(at(await modern(app, 'up', 'tools/call', params), 'error', 'message'), error?.message)
  assert.deepEqual((await session.request('resources/subscribe', { uri: 'a:b' })).error, error)
})

test('secrets of a server\'s config are masked in the error of a failed task', async (t) => {
  const capabilities = { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const common = { taskId: 'a', createdAt: '2026-11-01T00:00:00Z', lastUpdatedAt: '2026-11-01T00:00:00Z', ttlMs: 60_000 }
  const server = await startBareModern(t, [{ name: 'pay', inputSchema: { type: 'object' } }], ({ method, headers }) => {
    if (method === 'tools/call') return { result: { resultType: 'task', status: 'working', ...common } }
    if (method !== 'tasks/get') return undefined
    const message = `no access with ${String(headers.authorization)}`
    return { result: { resultType: 'complete', status: 'failed', ...common, error: { code: -32000, message }, statusMessage: message } }
  }, capabilities)
  const app = await start(t, { bank: { url: server.url, headers: { Authorization: 'Bearer S3cret-Value' } } })
  await until(() => app.upstreams.get('bank')?.status === 'connected')
  const client = { extensions: capabilities.extensions }
  const { taskId } = at(await modern(app, 'bank', 'tools/call', { name: 'pay', arguments: {} }, client), 'result') as Json
  const answer = await modern(app, 'bank', 'tasks/get', { taskId }, client)
  const message = 'no access with ••••alue'
  assert.deepEqual([at(answer, 'result', 'error'), at(answer, 'result', 'statusMessage')], [{ code: -32000, message }, message])
})

test('onDone: an upstream server that went away', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const app = await start(t, { up: { url: upstream.url, visibility: 'public' } })
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const seen: FinishedCall[] = []
  app.gateway.addHook('onDone', (call) => { seen.push(call) })
  const session = await openSession(app, '/mcp', KEY)
  await upstream.close()
  const { error } = await session.request('tools/call', { name: 'up-echo', arguments: {} })
  assert.equal(error?.code, -32001)
  assert.deepEqual(seen.map(({ provider, item, outcome }) => [provider, item, outcome]), [['up', 'echo', 'failure']])
})

test('onDone: onCall refuses: the provider is not asked', async (t) => {
  const { app, seen, session } = await watch(t)
  app.gateway.addHook('onCall', () => {})
  app.gateway.addHook('onCall', async ({ item }) => { if (item === 'fail') throw new RpcError(-32099, 'Not today') })
  const { error } = await session.request('tools/call', { name: 'toy-fail', arguments: {} })
  assert.deepEqual([error?.code, error?.message], [-32099, 'Not today'])
  await add(session)
  assert.deepEqual(summary(seen), [['error', undefined, 'Not today'], ['ok', sum, undefined]])
})

test('an item that its caller loses while a hook waits is not called, in any era', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')], prompts: [{ name: 'hi' }], resources: [{ uri: 'test://r', name: 'r' }] })
  const config = { type: 'streamable-http', url: upstream.url, visibility: 'public' }
  const app = await start(t, { up: config })
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const switchAll = (enabled: boolean): Json => ({ tools: { echo: { enabled } }, prompts: { hi: { enabled } }, resources: { 'test://r': { enabled } } })
  const change = async (more: Json): Promise<void> => {
    const headers = { authorization: `Bearer ${KEY}` }
    const payload = { config: { ...config, ...switchAll(true), ...more } }
    const { statusCode, body } = await app.inject({ method: 'PUT', url: '/api/servers/up', headers, payload })
    assert.equal(statusCode, 200, body)
  }
  let withdraw: Json = {}
  app.gateway.addHook('onCall', async () => { await change(withdraw) })
  app.gateway.addHook('onSubscribe', async () => { await change(withdraw) })
  const session = await openSession(app, '/mcp', ADA)
  const call = { name: 'up-echo', arguments: {} }
  const callModern = async (): Promise<Json> => {
    const { headers, body: payload } = modernRequest('tools/call', { params: call, key: ADA })
    return JSON.parse((await app.inject({ method: 'POST', url: '/mcp', headers, payload })).body) as Json
  }
  for (withdraw of [{ visibility: 'private' }, switchAll(false)]) {
    for (const [method, params, unknown] of [
      ['tools/call', call, /^Unknown tool/],
      ['prompts/get', { name: 'up-hi' }, /^Unknown prompt/],
      ['completion/complete', { ref: { type: 'ref/prompt', name: 'up-hi' }, argument: { name: 'a', value: '' } }, /^Unknown prompt/],
      ['completion/complete', { ref: { type: 'ref/resource', uri: 'test://r' }, argument: { name: 'a', value: '' } }, /^Unknown resource/],
      ['resources/read', { uri: 'test://r' }, /^Resource not found/],
      ['resources/subscribe', { uri: 'test://r' }, /^Resource not found/]
    ] as const) {
      await change({})
      assert.match(String((await session.request(method, params)).error?.message), unknown, method)
    }
    await change({})
    assert.match(String(at(await callModern(), 'error', 'message')), /^Unknown tool/)
  }
  withdraw = {}
  await change({})
  const reached = upstream.received.filter(({ body }) => /"(tools\/call|prompts\/get|resources\/(read|subscribe)|completion\/complete)"/.test(body))
  assert.equal(reached.length, 0)
  let answered: Json = {}
  app.gateway.addHook('onOutput', async (_call, result) => { await change(answered); return result })
  const askLegacy = async (): Promise<Json> => await session.request('tools/call', call) as Json
  for (const ask of [askLegacy, callModern]) {
    answered = { visibility: 'private' }
    await change({})
    assert.match(String(at(await ask(), 'error', 'message')), /is not delivered: .* The request has run$/)
    // What only becomes unlisted, as a tool that a server lists until it has run, has its result.
    answered = switchAll(false)
    await change({})
    assert.equal(at(await ask(), 'error'), undefined)
  }
  answered = {}
  await change({})
  assert.equal((await session.request('tools/call', call)).error, undefined)
  assert.equal(at(await callModern(), 'error'), undefined)
})

test('onDone: onResult: the output is the provider\'s, also when a later hook throws', async (t) => {
  const { app, seen, session } = await watch(t)
  let refuses = false
  app.gateway.addHook('onResult', () => '{"content":[]}')
  app.gateway.addHook('onResult', async (_call, result) => {
    if (refuses) throw new RpcError(-32098, 'Too long')
    return result
  })
  assert.deepEqual(await add(session), { content: [] })
  refuses = true
  const { error } = await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2 } })
  assert.equal(error?.code, -32098)
  assert.deepEqual(summary(seen), [['ok', sum, undefined], ['error', sum, 'Too long']])
})

test('onDone: a hook that is broken: an internal error for the caller, and a failure', async (t) => {
  const { app, seen, session } = await watch(t)
  app.gateway.addHook('onResult', () => { throw new TypeError('not a function: secret') })
  const { error } = await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2 } })
  assert.deepEqual([error?.code, error?.message], [-32603, 'Internal error'])
  assert.deepEqual(summary(seen), [['failure', sum, 'not a function: secret']])
})

test('onDone: onDone itself throws, or rejects: it is logged, and the call and other hooks are unharmed', async (t) => {
  const app = await start(t)
  const seen: FinishedCall[] = []
  const logged: string[] = []
  const { error } = app.log
  app.log.error = (more: unknown, sentence?: unknown) => { logged.push(`${String(sentence)}: ${String(at(more, 'err', 'message'))}`) }
  t.after(() => { app.log.error = error })
  app.gateway.addHook('onDone', () => { throw new Error('thrown') })

  app.gateway.addHook('onDone', async () => { throw new Error('rejected') })
  app.gateway.addHook('onDone', (call) => { seen.push(call) })
  assert.equal(text(await add(await openSession(app, '/mcp', KEY))), '3')
  assert.deepEqual(summary(seen), [['ok', sum, undefined]])
  assert.deepEqual(logged, ['thrown', 'rejected'].map((message) => `a hook that observes calls failed: ${message}`))
})
