// The wire of the modern era (MCP 2026-07-28): what a request must have, what answers have, and what ends what.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { mock } from 'node:test'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import type { newWorld } from '../fakes/legacy-bridge.ts'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { Raw, startUpstream, tool } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { appFor } from '../helpers/app.ts'
import {
  failure, KEY, open, OTHER, otherKey, Session, settings, silence, text, within, type Json, type Message, type Stream
} from '../helpers/client.ts'
import { bearerKey, path, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { askModern as ask, envelope, modernRequest, prefix, version, type ModernAnswer as Answer, type ModernCall } from '../helpers/modern-request.ts'
import { setLimits } from '../helpers/patient.ts'
import { errorOutcome } from '../../plugins/downstream/modern/errors.ts'
import { ModernClientPool } from '../../plugins/downstream/modern/leases.ts'
import { parseModernRequest, isModernPost } from '../../plugins/downstream/modern/request.ts'
import { toModernResult } from '../../plugins/downstream/modern/result.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { RpcError } from '../../protocol/errors.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { decodeHeader, encodeHeader } from '../../protocol/modern/envelope.ts'
import { parseParamHeaders, argumentText } from '../../protocol/modern/param-headers.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

const asking = { elicitation: {}, sampling: {}, roots: {} }

const call = async (url: string, name: string, more: ModernCall = {}): Promise<Answer> =>
  await ask(url, 'tools/call', { capabilities: asking, ...more, params: { name, ...more.params } })

/** The next request with the state of an answer. */
const retry = async (url: string, name: string, { message }: Answer, inputResponses: Json, more: ModernCall = {}): Promise<Answer> =>
  await call(url, name, { ...more, params: { ...more.params, requestState: message.result?.requestState, inputResponses } })

const accepted = { action: 'accept', content: { name: 'Ann' } }

async function bridge (t: Cleanup, more: Json = {}): Promise<{ hub: Hub, world: ReturnType<typeof newWorld>, url: string }> {
  const { url, world } = await startLegacyBridge(t)
  const hub = await served(t, { s: { url, isolation: 'shared', ...more } }, { bearerKeys: [bearerKey(), otherKey()] })
  return { hub, world, url: `${hub.url}/mcp/s` }
}

test('the client of a request goes back to its pool if a hook fails before the request begins', async (t) => {
  const [acquire, giveBack] = (['acquire', 'giveBack'] as const).map((name) => mock.method(ModernClientPool.prototype, name))
  t.after(() => { mock.restoreAll() })
  const app = await appFor(t, settings({}))
  app.gateway.addHook('onView', () => {
    if (acquire?.mock.callCount() !== 0) throw new Error('broken')
    return undefined
  })
  for (const method of ['tools/call', 'tools/list']) {
    const { headers, body } = modernRequest(method, { params: method === 'tools/call' ? { name: 'x' } : {} })
    await app.inject({ method: 'POST', url: '/mcp', headers: { ...headers, authorization: `Bearer ${KEY}` }, body })
  }
  assert.deepEqual([acquire?.mock.callCount(), giveBack?.mock.callCount()], [1, 1])
})

test('a client that could not be registered is not used again', async (t) => {
  let begun = 0
  const leases = new ModernClientPool({ onBegin: () => { if (begun++ === 0) throw new Error('broken') }, onEnd: () => {} })
  t.after(() => { leases.close() })
  const principal: Principal = { key: 'user ann', kind: 'user', user: 'ann', username: 'ann', isAdmin: false }
  const request = [{ principal, key: 'view' } as never, '::1', {}, '{}', undefined] as const
  assert.throws(() => leases.acquire(...request), /broken/)
  leases.first(...request)
  assert.equal(begun, 2)
})

test('headers say values as HTTP can carry them', async () => {
  const table: ReadonlyArray<readonly [string, string]> = [
    ['us-west1', 'us-west1'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['', '=?base64??=']
  ]
  for (const [value, header] of table) {
    assert.equal(encodeHeader(value), header)
    assert.equal(decodeHeader(header), value)
  }
  for (const bad of ['=?base64?%%?=', '=?base64?SGVsbG8?=', '=?base64?/w==?=', 'caf\u00e9', ' x', 'a\nb']) assert.equal(decodeHeader(bad), undefined, bad)
})

test('the headers of a tool\'s arguments', async () => {
  const of = (inputSchema: Json): unknown => parseParamHeaders(JSON.stringify({ name: 't', inputSchema }))
  const annotated = (name: unknown, type = 'string'): Json => ({ type, 'x-mcp-header': name })
  assert.deepEqual(of({ properties: { a: annotated('A'), b: { properties: { c: annotated('B-c', 'integer') } } } }), [
    { header: 'mcp-param-a', path: ['a'] }, { header: 'mcp-param-b-c', path: ['b', 'c'] }
  ])
  assert.deepEqual(of({ properties: { 'x-mcp-header': { type: 'string' }, d: { default: { 'x-mcp-header': '' } } } }), [])
  for (const bad of [
    { properties: { a: annotated('') } }, { properties: { a: annotated('a b') } }, { properties: { a: annotated('A', 'number') } },
    { properties: { a: annotated('A'), b: annotated('a') } }, { properties: { a: { items: annotated('A') } } },
    { anyOf: [{ properties: { a: annotated('A') } }] }, { $defs: { a: annotated('A') } }, { ...annotated('A') }
  ]) assert.equal(of(bad), undefined, JSON.stringify(bad))
  assert.equal(argumentText({ a: { b: 42 } }, ['a', 'b']), '42')
  assert.equal(argumentText({ a: true }, ['a']), 'true')
  for (const none of [{}, { a: null }, { a: 1.5 }, { a: {} }, null]) assert.equal(argumentText(none, ['a']), undefined)
})

test('the era of a request', async () => {
  const message = (params: Json): ReturnType<typeof parseMessage> =>
    parseMessage(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'm', params }), 10)
  const table: ReadonlyArray<readonly [Record<string, string>, Json, boolean]> = [
    [{}, {}, false],
    [{ 'mcp-protocol-version': '2025-11-25' }, {}, false],
    [{ 'mcp-protocol-version': version }, {}, true],
    [{ 'mcp-protocol-version': '2025-11-25' }, { _meta: envelope() }, true],
    [{}, { _meta: envelope() }, true],
    [{}, { _meta: { progressToken: 1 } }, false],
    // What belongs to no session, and names a revision where legacy clients name none, or one that nobody knows.
    [{}, { _meta: envelope({}, { [`${prefix}protocolVersion`]: '2025-11-25' }) }, true],
    [{ 'mcp-session-id': 'x' }, { _meta: envelope({}, { [`${prefix}protocolVersion`]: '2025-11-25' }) }, false],
    [{ 'mcp-protocol-version': '2099-01-01' }, {}, true],
    [{ 'mcp-protocol-version': '2099-01-01', 'mcp-session-id': 'x' }, {}, false]
  ]
  for (const [headers, params, modern] of table) {
    assert.equal(isModernPost(headers, message(params)), modern, JSON.stringify([headers, params]))
  }
})

test('the envelope is taken off, and everything else keeps its bytes', async () => {
  const meta = JSON.stringify(envelope({ roots: {} }))
  const headers = { 'mcp-protocol-version': version, 'mcp-method': 'm' }
  const rest = (params: string): string => {
    const message = parseMessage(`{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`, 10)
    assert(!Array.isArray(message) && message.kind === 'request')
    const { paramsText, capabilitiesText } = parseModernRequest(message, headers)
    assert.equal(capabilitiesText, '{"roots":{}}', params)
    return paramsText
  }
  const table = [
    [`{"_meta":${meta}}`, '{}'],
    [`{"a":1.0,"_meta":${meta}}`, '{"a":1.0}'],
    [`{"_meta":${meta}, "a":1}`, '{"a":1}'],
    [`{"a":{"_meta":${meta}},"_meta":${meta}}`, `{"a":{"_meta":${meta}}}`],
    [`{"_meta":${meta},"a":{"b":1,"_meta":${meta}}}`, `{"a":{"b":1,"_meta":${meta}}}`],
    [`{"_meta":${meta},"a":${JSON.stringify(`,"_meta":${meta}}`)}}`, `{"a":${JSON.stringify(`,"_meta":${meta}}`)}}`],
    [`{"a":1,"_m\\u0065ta":${meta}}`, '{"a":1}'],
    [`{"a":1,"_meta":${meta.slice(0, -1)},"x/y":2.50}}`, '{"a":1,"_meta":{"x/y":2.50}}'],
    [`{"a":1,"_meta":${meta}\n}`, '{"a":1\n}']
  ] as const
  // Twice, since the envelope of the last request is known.
  for (const [params, text] of [...table, ...table.toReversed()]) assert.equal(rest(params), text)
})

test('what a request must have', async (t) => {
  const { hub, url } = await bridge(t)
  const bare = { [`${prefix}clientCapabilities`]: {} }
  const table: ReadonlyArray<readonly [string, string, ModernCall, number, number | undefined]> = [
    ['all of it', 'tools/list', {}, 200, undefined],
    ['no envelope', 'tools/list', { meta: {} }, 400, -32602],
    ['no version', 'tools/list', { meta: bare }, 400, -32602],
    ['no capabilities', 'tools/list', { meta: { [`${prefix}protocolVersion`]: version } }, 400, -32602],
    ['capabilities that take too much memory', 'tools/list', { capabilities: { experimental: { x: { y: Array(200).fill({}) } } } }, 400, -32602],
    ['the same of a subscription', 'subscriptions/listen',
      { params: { notifications: {} }, capabilities: { experimental: { x: { y: 'ж'.repeat(4_200) } } } }, 400, -32602],
    ['an unknown log level', 'tools/list', { meta: envelope({}, { [`${prefix}logLevel`]: 'loud' }) }, 400, -32602],
    ['a progress token that is no integer', 'tools/list', { meta: envelope({}, { progressToken: 1.5 }) }, 400, -32602],
    ['a progress token of another type', 'tools/list', { meta: envelope({}, { progressToken: {} }) }, 400, -32602],
    ['a client that is no object', 'tools/list', { meta: envelope({}, { [`${prefix}clientInfo`]: 'me' }) }, 400, -32602],
    ['a client without a version', 'tools/list', { meta: envelope({}, { [`${prefix}clientInfo`]: { name: 'me' } }) }, 400, -32602],
    ['a client', 'tools/list', { meta: envelope({}, { [`${prefix}clientInfo`]: { name: 'me', version: '1' } }) }, 200, undefined],
    ['no version header', 'tools/list', { headers: { 'mcp-protocol-version': undefined } }, 400, -32020],
    ['another version header', 'tools/list', { headers: { 'mcp-protocol-version': '2025-11-25' } }, 400, -32020],
    ['no method header', 'tools/list', { headers: { 'mcp-method': undefined } }, 400, -32020],
    ['another method header', 'tools/list', { headers: { 'mcp-method': 'tools/call' } }, 400, -32020],
    ['no name header', 'tools/call', { params: { name: 'echo' }, headers: { 'mcp-name': undefined } }, 400, -32020],
    ['another name header', 'tools/call', { params: { name: 'echo' }, headers: { 'mcp-name': 'hang' } }, 400, -32020],
    ['an encoded name header', 'tools/call', { params: { name: 'echo' }, headers: { 'mcp-name': '=?base64?ZWNobw==?=' } }, 200, undefined],
    ['no param header', 'tools/call', { params: { name: 'echo', arguments: { message: 'x' } } }, 400, -32020],
    ['another param header', 'tools/call',
      { params: { name: 'echo', arguments: { message: 'x' } }, headers: { 'mcp-param-message': 'y' } }, 400, -32020],
    ['a param header without a param', 'tools/call', { params: { name: 'echo' }, headers: { 'mcp-param-message': 'y' } }, 400, -32020],
    ['the param header', 'tools/call',
      { params: { name: 'echo', arguments: { message: 'x' } }, headers: { 'mcp-param-message': 'x' } }, 200, undefined],
    ['param headers that nobody knows', 'tools/list', { headers: { 'mcp-param-other': 'y', 'mcp-session-id': 'x' } }, 200, undefined],
    ['a name header that is not encoded well, and no name', 'tools/call', { headers: { 'mcp-name': '=?base64?%?=' } }, 400, -32020],
    ['an unknown method', 'unknown/method', {}, 404, -32601],
    ...['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'notifications/x',
      'tasks/list', 'tasks/result', 'tasks/later'].map(
      (method) => [`${method}, which is gone`, method, {}, 404, -32601] as const),
    ['an unknown tool', 'tools/call', { params: { name: 'none' } }, 200, -32602],
    ['an unknown resource', 'resources/read', { params: { uri: 'r://none' } }, 200, -32602],
    ['no filter', 'subscriptions/listen', {}, 200, -32602],
    ['a state that is no text', 'tools/call', { params: { name: 'form', requestState: 1 } }, 200, -32602],
    ['answers that are no object', 'tools/call', { params: { name: 'form', requestState: 'x', inputResponses: [] } }, 200, -32602]
  ]
  await Promise.all(table.map(async ([what, method, more, status, code]) => {
    const { message, headers, ...answer } = await ask(url, method, more)
    const told = [answer.status, message.error?.code, message.id, headers.get('mcp-session-id')]
    assert.deepEqual(told, [status, code, 1, null], `${what}: ${JSON.stringify(message)}`)
  }))
  const other = 'v999.0.0'
  const unsupported = await ask(url, 'server/discover', {
    meta: envelope({}, { [`${prefix}protocolVersion`]: other }), headers: { 'mcp-protocol-version': other }
  })
  assert.equal(unsupported.status, 400)
  assert.equal(unsupported.message.error?.code, -32022)
  const { supported, requested } = unsupported.message.error?.data as { supported: string[], requested: string }
  assert.deepEqual([supported[0], requested], [version, other])
  for (const [header, meta, versions] of [
    ['2025-11-25', '2025-11-25', [version]], [undefined, '2025-11-25', [version]], ['2099-01-01', undefined, supported]
  ] as const) {
    const { status, message } = await ask(url, 'tools/list', {
      meta: meta === undefined ? {} : envelope({}, { [`${prefix}protocolVersion`]: meta }), headers: { 'mcp-protocol-version': header }
    })
    assert.deepEqual([status, message.id, message.error?.code], [400, 1, -32022])
    assert.deepEqual(message.error?.data, { supported: versions, requested: header ?? meta })
  }
  const legacy = await Session.open(url)
  const named = { _meta: { [`${prefix}protocolVersion`]: '2025-11-25' } }
  assert.equal((await legacy.request('tools/list', named)).error, undefined)
  // Ids come back as they were written, in errors too.
  for (const [id, meta, code] of [['1.5', envelope(), -32600], ['9007199254740993', {}, -32602], [`1${'0'.repeat(29)}`, {}, -32602]] as const) {
    const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{"_meta":${JSON.stringify(meta)}}}`
    const answer = await fetch(url, { method: 'POST', headers: modernRequest('tools/list', {}).headers, body })
    const told = await answer.text()
    assert.ok(told.startsWith(`{"jsonrpc":"2.0","id":${id},"error":{"code":${code}`), told)
    assert.equal(answer.status, 400)
  }
  const post = async (body: string): Promise<number> =>
    (await fetch(url, { method: 'POST', headers: modernRequest('x', {}).headers, body })).status
  assert.equal(await post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}'), 202)
  assert.equal(await post('[]'), 400)
  assert.equal(await post('[{"jsonrpc":"2.0","id":1,"method":"ping"}]'), 400)
  assert.equal(await post('{"jsonrpc":"2.0","id":1,"result":{}}'), 400)
  for (const method of ['GET', 'DELETE']) {
    const { status, headers } = await fetch(url, { method, headers: modernRequest('x', {}).headers })
    assert.deepEqual([status, headers.get('allow')], [405, 'POST'])
  }
  // Of several _meta, none goes to the server unseen: its progress token would be another call's.
  const twice = JSON.stringify(envelope({}, { x: 1 }))
  for (const [params, seen] of [
    [`"_meta":{"progressToken":7},"name":"echo","_meta":${JSON.stringify(envelope())}`, {}],
    [`"_meta":{"progressToken":7},"name":"echo","_meta":${twice}`, { x: 1 }]
  ] as const) {
    const { headers } = modernRequest('tools/call', { params: { name: 'echo' } })
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${params}}}`
    const { result } = await (await fetch(url, { method: 'POST', headers, body })).json() as Message
    assert.deepEqual(JSON.parse(text(result)), seen)
  }
  // Beside it, sessions are served as ever.
  assert.ok((await (await Session.open(`${hub.url}/mcp/s`)).tools()).includes('echo'))
})

test('what answers have', async (t) => {
  const { hub, url } = await bridge(t)
  const discovered = (await ask(url, 'server/discover')).message.result ?? {}
  assert.equal((discovered.supportedVersions as string[])[0], version)
  assert.deepEqual(Object.keys(discovered.capabilities as Json).sort(), ['logging', 'prompts', 'resources', 'tools'])
  assert.equal(discovered.instructions, 'Ask me anything')
  const info = { name: 'legacy-bridge', version: '1' }
  for (const [method, params, isKept] of [
    ['server/discover', {}, true], ['tools/list', {}, true], ['prompts/list', {}, true], ['resources/list', {}, true],
    ['resources/templates/list', {}, true], ['resources/read', { uri: 'r://one' }, true], ['tools/call', { name: 'log' }, false]
  ] as const) {
    const { result = {} } = (await ask(url, method, { params })).message
    assert.equal(result.resultType, 'complete', method)
    assert.deepEqual((result._meta as Json)[`${prefix}serverInfo`], info, method)
    assert.deepEqual([result.ttlMs, result.cacheScope], isKept ? [0, 'private'] : [undefined, undefined], method)
  }
  const merged = (await ask(`${hub.url}/mcp`, 'tools/list')).message.result ?? {}
  assert.equal(((merged._meta as Json)[`${prefix}serverInfo`] as Json).name, 'tool-hub')
  const texts = await Promise.all(Array.from({ length: 3 }, async () => JSON.stringify((await ask(url, 'tools/list')).message)))
  assert.equal(new Set(texts).size, 1)
})

test('the bytes of a result are those of its server', async (t) => {
  const results = [
    '{"content":[],"x":12345678901234567890,"resultTypes":1e400}', '{ }',
    '{"_meta":{"a":1.0},"content":[{"type":"text","text":"\\"resultType\\""}]}',
    '{"content":[],"structuredContent":{"resultType":"mine"}}', '{"resultType":"complete","content":[]}',
    '{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other"}}}',
    ' {"resultType":"vendor/x" }', '{"resultType":"input_required","inputRequests":{},"content":[]}'
  ]
  const head = '"resultType":"complete"'
  const info = '"io.modelcontextprotocol/serverInfo":{"name":"raw","version":"1"}'
  let next = 0
  const upstream = await startUpstream(t, {
    tools: [tool('raw')],
    serverInfo: { name: 'raw', version: '1' },
    on: ({ method }) => {
      if (method === 'tools/call') return new Raw(results[next++] ?? '{}')
      return method === 'tools/list'
        ? new Raw('{"tools":[{"name":"raw","inputSchema":{"type":"object"}}],"ttlMs":600000,"cacheScope":"public"}')
        : undefined
    }
  })
  const hub = await served(t, { s: { url: upstream.url } })
  const bodies: string[] = []
  while (next < results.length) {
    bodies.push(await (await fetch(`${hub.url}/mcp/s`, { method: 'POST', ...modernRequest('tools/call', { params: { name: 'raw' } }) })).text())
  }
  const answer = (result: string): string => `{"jsonrpc":"2.0","id":1,"result":${result}}`
  assert.deepEqual(bodies, [
    answer(`{${head},"_meta":{${info}},"content":[],"x":12345678901234567890,"resultTypes":1e400}`),
    answer(`{${head},"_meta":{${info}},"content":[]}`),
    answer(`{${head},"_meta":{"a":1.0,${info}},"content":[{"type":"text","text":"\\"resultType\\""}]}`),
    answer(`{${head},"_meta":{${info}},"content":[],"structuredContent":{"resultType":"mine"}}`),
    answer(`{"_meta":{${info}},${head},"content":[]}`),
    answer(`{${head},"content":[],"_meta":{${info}}}`),
    answer(`{${head},"_meta":{${info}}}`), answer(`{${head},"_meta":{${info}},"inputRequests":{},"content":[]}`)
  ])
  // How long a list may be kept is told to those whose era has that; what needs a key is nobody else's.
  for (const route of ['/mcp/s', '/mcp']) {
    const { ttlMs, cacheScope } = (await ask(hub.url + route, 'tools/list')).message.result ?? {}
    assert.ok(Number(ttlMs) > 0 && Number(ttlMs) <= 600_000, `${route}: ${String(ttlMs)}`)
    assert.equal(cacheScope, 'private')
    const { ttlMs: none } = await (await Session.open(hub.url + route)).ask('tools/list')
    assert.equal(none, undefined)
  }
})

test('a question parks a call; its answers resume it', async (t) => {
  const { world, url, hub } = await bridge(t)
  const asked = await call(url, 'form')
  assert.equal(asked.status, 200)
  assert.equal(asked.message.result?.resultType, 'input_required')
  assert.equal(world.running, 1)
  const requests = asked.message.result.inputRequests as Record<string, { method: string, params: Json }>
  const [name = ''] = Object.keys(requests)
  assert.equal(requests[name]?.method, 'elicitation/create')

  await t.test('not for another principal, tool or route, nor changed', async () => {
    for (const answer of [
      await retry(url, 'form', asked, { [name]: accepted }, { key: OTHER }),
      await retry(url, 'sample', asked, { [name]: accepted }),
      await retry(url, 'form', asked, { [name]: accepted }, { params: { arguments: { x: 1 } } }),
      await retry(`${hub.url}/mcp`, 's-form', asked, { [name]: accepted }),
      await call(url, 'form', { params: { requestState: `${String(asked.message.result?.requestState)}x`, inputResponses: {} } })
    ]) {
      assert.equal(answer.message.error?.code, -32602)
      assert.match(String(answer.message.error?.message), /requestState is not valid for this request/)
    }
    assert.equal(world.running, 1)
  })
  await t.test('with the answers, once; the same again recovers the answer', async () => {
    const missing = await retry(url, 'form', asked, {})
    assert.deepEqual(missing.message.result?.inputRequests, requests)
    const done = await retry(url, 'form', missing, { [name]: accepted })
    assert.equal(text(done.message.result), 'accept Ann')
    assert.deepEqual((await retry(url, 'form', missing, { [name]: accepted })).message, done.message)
    const replayed = await retry(url, 'form', missing, { [name]: { action: 'decline' } })
    assert.match(String(replayed.message.error?.message), /already answered/)
    assert.match(String((await retry(url, 'form', asked, { [name]: accepted })).message.error?.message), /already answered/)
    assert.equal(world.running, 0)
  })
  await t.test('a client that left before the answer of a retry fetches it with the same answers', async () => {
    const asked = await call(url, 'slow')
    const [key = ''] = Object.keys(asked.message.result?.inputRequests as Json)
    const answers = { [key]: accepted }
    // Two at once: both get it.
    const both = await Promise.all([retry(url, 'slow', asked, answers), retry(url, 'slow', asked, answers)])
    assert.deepEqual(both.map(({ message }) => text(message.result)), ['accept Ann', 'accept Ann'])
  })
})

test('a call whose tool is not shown any more is not taken up, and its answer is not told again', async (t) => {
  const { world, hub } = await bridge(t)
  const toggle = async (path: string, enabled: boolean): Promise<void> => {
    await managed(hub, 'POST', `/servers/s${path}/toggle`, { enabled })
  }
  const answersTo = ({ message }: Answer): Json =>
    ({ [Object.keys(message.result?.inputRequests as Json)[0] ?? '']: accepted })
  for (const [route, name, args] of [
    ['/mcp/s', 'form', {}], ['/mcp', 's-form', {}], ['/mcp/$smart', 'call_tool', { toolName: 's-form', arguments: {} }]
  ] as const) {
    const url = `${hub.url}${route}`
    const more = { params: { arguments: args } }
    const asked = await call(url, name, more)
    const done = await retry(url, name, asked, answersTo(asked), more)
    assert.equal(text(done.message.result), 'accept Ann', route)
    const parked = await call(url, name, more)
    assert.equal(world.running, 1)
    await toggle('/tools/form', false)
    for (const [each, answers] of [[asked, answersTo(asked)], [parked, answersTo(parked)]] as const) {
      const { message, status } = await retry(url, name, each, answers, more)
      assert.deepEqual([status, message.error?.code, message.id], [200, -32602, 1], route)
      assert.match(String(message.error?.message), /^Unknown tool: (s-)?form/)
    }
    await until(() => world.running === 0, () => 'the parked call goes on')
    await toggle('/tools/form', true)
    // It does not come back with the tool.
    assert.match(failure((await retry(url, name, asked, answersTo(asked), more)).message), /has ended/)
  }
  const url = `${hub.url}/mcp`
  const asked = await call(url, 's-form')
  assert.equal(text((await retry(url, 's-form', asked, answersTo(asked))).message.result), 'accept Ann')
  await toggle('', false)
  assert.match(String((await retry(url, 's-form', asked, answersTo(asked))).message.error?.message), /^Unknown tool/)
})

test('a subscription is acknowledged first, and ends with the access to its route', async (t) => {
  const { hub, url, world } = await bridge(t)
  const { headers, body } = modernRequest('subscriptions/listen', {
    params: { notifications: { toolsListChanged: true, resourceSubscriptions: ['r://one'] } }
  })
  const stream = await open(url, { headers, body })
  t.after(() => { stream.close() })
  const first = await stream.wait(() => true)
  assert.equal(first.method, 'notifications/subscriptions/acknowledged')
  assert.deepEqual(first.params, {
    notifications: { toolsListChanged: true, resourceSubscriptions: ['r://one'] }, _meta: { [`${prefix}subscriptionId`]: 1 }
  })
  assert.ok(world.subscribed.has('r://one'))
  await call(url, 'touch')
  const updated = await stream.wait(({ method }) => method === 'notifications/resources/updated')
  assert.deepEqual(updated.params, { uri: 'r://one', _meta: { [`${prefix}subscriptionId`]: 1 } })
  await within('the end of the gateway', hub.stop())
  const last = await stream.wait(({ result }) => result !== undefined)
  assert.equal(last.id, 1)
  assert.equal(last.result?.resultType, 'complete')
})

test('what a listener wants to hear of is subscribed to again once its view shows that again', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')], resources: [{ uri: 'r://one', name: 'one' }] })
  const ada = `thk_${'c'.repeat(64)}`
  const adaKey = { id: '33333333-3333-4333-8333-333333333333', name: 'a', token: ada, kind: 'user', owner: 'ada', enabled: true }
  const users = [{ username: 'ada', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: false }]
  const config = { url: upstream.url, visibility: 'public' }
  const hub = await served(t, { s: config }, { users, bearerKeys: [bearerKey(), adaKey] })
  const toggle = async (path: string, enabled: boolean): Promise<void> => {
    await managed(hub, 'POST', `/servers/s${path}/toggle`, { enabled })
  }
  const change = async (visibility: string): Promise<void> => {
    await managed(hub, 'PUT', '/servers/s', { config: { ...config, visibility } })
  }
  const modern = await open(`${hub.url}/mcp`, modernRequest('subscriptions/listen', {
    key: ada, params: { notifications: { resourceSubscriptions: ['r://one'] } }
  }))
  t.after(() => { modern.close() })
  await modern.wait(({ method }) => method === 'notifications/subscriptions/acknowledged')
  const session = await Session.open(`${hub.url}/mcp`, { key: ada })
  await session.ask('resources/subscribe', { uri: 'r://one' })
  const other = await Session.open(`${hub.url}/mcp`, { key: ada })
  await other.ask('resources/subscribe', { uri: 'r://one' })
  const legacy = await session.listen()
  const gone = await other.listen()
  t.after(() => { legacy.close(); gone.close() })
  const told = (stream: Stream): number => stream.messages.filter(({ method }) => method === 'notifications/resources/updated').length
  const update = async (): Promise<void> => { await upstream.broadcast('notifications/resources/updated', { uri: 'r://one' }) }
  const hears = async (what: string): Promise<void> => {
    const [before, toldBefore] = [told(modern), told(legacy)]
    await until(async () => {
      await update()
      return told(modern) > before && told(legacy) > toldBefore
    }, () => `${what}: told ${told(modern) - before} and ${told(legacy) - toldBefore} times`)
  }
  await hears('at first')
  const isSeen = async (): Promise<boolean> => {
    const { resources } = (await ask(`${hub.url}/mcp`, 'resources/list', { key: ada })).message.result as { resources: Json[] }
    return resources.some(({ uri }) => uri === 'r://one')
  }
  const resource = `/resources/${encodeURIComponent('r://one')}`
  const ways: ReadonlyArray<readonly [string, hide: () => Promise<void>, show: () => Promise<void>, isUp: boolean]> = [
    ['the server is disabled and enabled', async () => { await toggle('', false) }, async () => { await toggle('', true) }, false],
    ['the server is made private and public', async () => { await change('private') }, async () => { await change('public') }, true],
    ['the resource is disabled and enabled', async () => { await toggle(resource, false) }, async () => { await toggle(resource, true) }, true]
  ]
  for (const [what, hide, show, isUp] of ways) {
    await hide()
    await until(async () => !await isSeen(), `${what}: still shown`)
    if (isUp) {
      const before = [told(modern), told(legacy)]
      await update()
      await isSeen()
      await silence(50)
      assert.deepEqual([told(modern), told(legacy)], before, `${what}: told while it is not shown`)
    }
    // Who does not want it any more may say so meanwhile.
    assert.equal((await other.request('resources/unsubscribe', { uri: 'r://one' })).error, undefined)
    const toldBefore = told(gone)
    await show()
    await hears(what)
    assert.equal(told(gone), toldBefore)
    await other.ask('resources/subscribe', { uri: 'r://one' })
  }
  // With the last listener, the subscription ends.
  const ended = upstream.count('resources/unsubscribe')
  modern.close()
  await session.end()
  await other.end()
  await until(() => upstream.count('resources/unsubscribe') > ended, 'it is subscribed to for nobody')
})

test('a subscription hears what changes on the connection of its principal\'s calls, which nobody shares', async (t) => {
  const file = { type: 'stdio', command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')], env: { FAULT_LIVELY: '1' } }
  const hub = await served(t, { s: { ...file, isolation: 'session' } })
  const url = `${hub.url}/mcp/s`
  const listen = async (resourceSubscriptions: string[]): Promise<Stream> => {
    const stream = await open(url, modernRequest('subscriptions/listen', { params: { notifications: { toolsListChanged: true, resourceSubscriptions } } }))
    t.after(() => { stream.close() })
    await stream.wait(() => true)
    return stream
  }
  const touched = async (): Promise<string> =>
    text((await call(url, 'touch', { capabilities: {}, params: { arguments: { uri: 'r://1' } } })).message.result)
  const [one, other] = [await listen(['r://1']), await listen(['r://1'])]
  // Several at a time have connections of their own; what is listed, and heard, is that of the first.
  await Promise.all([1, 2, 3].map(async () => await call(url, 'echo', { capabilities: {} })))
  await call(url, 'grow', { capabilities: {}, params: { arguments: { name: 'new' } } })
  for (const stream of [one, other]) await stream.wait(({ method }) => method === 'notifications/tools/list_changed')
  const listed = (await ask(url, 'tools/list')).message.result?.tools as Array<{ name: string }>
  assert.ok(listed.some(({ name }) => name === 'new'))
  assert.equal(await touched(), 'r://1')
  for (const stream of [one, other]) await stream.wait(({ method }) => method === 'notifications/resources/updated')
  one.close()
  await silence(100)
  assert.equal(await touched(), 'r://1', 'the other still wants it')
  other.close()
  await until(async () => await touched() === '', 'it is subscribed to for nobody')
})

test('with its key, a principal loses what it has open', async (t) => {
  const { hub, url, world } = await bridge(t)
  const asked = await call(url, 'form', { key: OTHER })
  const mine = await call(url, 'form')
  const { headers, body } = modernRequest('subscriptions/listen', { key: OTHER, params: { notifications: { toolsListChanged: true } } })
  const stream = await open(url, { headers, body })
  t.after(() => { stream.close() })
  await stream.wait(() => true)
  assert.equal(world.running, 2)
  const stored = JSON.parse(await readFile(hub.settingsPath, 'utf8')) as { bearerKeys: unknown[] }
  await writeFile(hub.settingsPath, JSON.stringify({ ...stored, bearerKeys: stored.bearerKeys.slice(0, 1) }))
  await until(() => world.running === 1, () => 'the parked call of the other key goes on')
  assert.equal((await stream.wait(({ result }) => result !== undefined)).result?.resultType, 'complete')
  assert.equal((await retry(url, 'form', asked, {}, { key: OTHER })).status, 401)
  const [name = ''] = Object.keys(mine.message.result?.inputRequests as Json)
  assert.equal(text((await retry(url, 'form', mine, { [name]: accepted })).message.result), 'accept Ann')
})

test('a bound that is reached is told by the status: 503 for all, 429 for one\'s own share', async (t) => {
  // Of two places, the last one is for those that hold none.
  for (const [places, status, retryAfter, says] of [[0, 503, '5', /reached its limit/], [2, 429, '60', /reached your share/]] as const) {
    setLimits(t, gatewayLimits, { calls: places })
    const { url, world } = await bridge(t)
    const leaves = new AbortController()
    if (places > 0) {
      fetch(url, { method: 'POST', ...modernRequest('tools/call', { params: { name: 'hang' } }), signal: leaves.signal }).catch(() => {})
      await until(() => world.running === 1, () => 'the call does not run')
    }
    const answer = await call(url, 'echo')
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [status, retryAfter])
    assert.equal(answer.message.error?.code, -32001)
    assert.match(failure(answer.message), says)
    leaves.abort()
  }
  // What a server says of its own bounds is an answer.
  assert.equal(errorOutcome(new RpcError(-32001, 'busy', 'upstream'), {}).status, 200)
})

test('errors of servers, as a modern client may see them', async () => {
  for (const odd of ['[{}]', 'null', '"{"']) assert.throws(() => toModernResult(odd, '{}'), { code: -32603 }, odd)
  const upstream = (code: number, data?: Json): RpcError =>
    new RpcError(code, 'no', 'upstream', JSON.stringify({ code, message: 'no', data }))
  const needs = { requiredCapabilities: { sampling: {} } }
  const opens = { requiredCapabilities: { elicitation: { url: {} } } }
  const table: ReadonlyArray<readonly [RpcError, Json, number, number, unknown]> = [
    [upstream(-32002, { uri: 'x' }), {}, -32602, 200, { uri: 'x' }],
    [upstream(-32042, { elicitations: [] }), {}, -32021, 400, opens],
    [upstream(-32042, { elicitations: [] }), { elicitation: { form: {} } }, -32021, 400, opens],
    [upstream(-32042, { elicitations: [] }), { elicitation: { url: {} } }, -32603, 200, { elicitations: [] }],
    // Of those that only MCP may define.
    [upstream(-32050, { x: 1 }), {}, -32603, 200, { x: 1 }],
    [upstream(-32020), {}, -32603, 200, undefined],
    [upstream(-32022, { supported: [] }), {}, -32603, 200, { supported: [] }],
    [upstream(-32021, needs), {}, -32021, 400, needs],
    [upstream(-32600, needs), {}, -32021, 400, needs],
    [upstream(-32021, needs), { sampling: {} }, -32603, 200, needs],
    [upstream(-32600), {}, -32600, 400, undefined],
    [upstream(-32601), {}, -32601, 404, undefined],
    [upstream(-1, { x: 1 }), {}, -1, 200, { x: 1 }]
  ]
  for (const [error, capabilities, code, status, data] of table) {
    const outcome = errorOutcome(error, capabilities)
    const shown = JSON.parse(String(outcome.text)) as { code: number, data?: unknown }
    assert.deepEqual([shown.code, outcome.status, shown.data], [code, status, data], error.toText())
  }
})
