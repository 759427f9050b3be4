// Servers of the modern era (MCP 2026-07-28) that do what the official SDK would not, and what clients of both eras are shown of them.
import assert from 'node:assert/strict'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import { withoutResultEnvelope } from '../../plugins/downstream/tools/forwarding.ts'
import { OutgoingEnvelope } from '../../protocol/modern/outgoing.ts'
import { parseParamHeaders, ToolParamHeaders } from '../../protocol/modern/param-headers.ts'
import { FakeExchange } from '../fakes/exchange.ts'
import { startBareModern } from '../fakes/bare-modern.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { manage, managed } from '../fakes/replica.ts'
import { agent, at, settings, silence, text, type Json, type Message } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { askModern, envelope, prefix, version, type ModernAnswer } from '../helpers/modern-request.ts'

const plain = { name: 'plain', inputSchema: { type: 'object' } }

/** One request of a modern client. */
const ask = async (
  url: string, method: string, params: Json = {}, capabilities: Json = {}, meta: Json = {}, headers: Record<string, string> = {}
): Promise<ModernAnswer> => await askModern(url, method, { params, meta: envelope(capabilities, meta), headers })

test('a server that does not say who it is', async (t) => {
  const server = await startBareModern(t, [plain])
  const hub = await served(t, { nameless: { url: server.url } })
  const url = `${hub.url}/mcp/nameless`
  const client = await agent(t, url)
  assert.deepEqual(client.getServerVersion(), { name: 'nameless', version: 'unknown' })
  assert.equal((await client.listTools()).tools.length, 1)
  for (const [method, params] of [['server/discover', {}], ['tools/list', {}], ['tools/call', { name: 'plain' }]] as const) {
    const { message } = await ask(url, method, params)
    assert.equal(at(message, 'result', 'resultType'), 'complete', method)
    assert.equal(at(message, 'result', '_meta'), undefined, method)
  }
  assert.equal(at((await ask(`${hub.url}/mcp`, 'tools/list')).message, 'result', '_meta', `${prefix}serverInfo`, 'name'), 'tool-hub')
})

test('a server that is away: its route is discovered all the same, and its requests say so', async (t) => {
  const hub = await startHub(t, { settings: settings({ away: { url: 'http://127.0.0.1:9/mcp' } }) })
  const url = `${hub.url}/mcp/away`
  const { status, message } = await ask(url, 'server/discover')
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(message.result?.capabilities as Json).sort(), ['completions', 'logging', 'prompts', 'resources', 'tools'])
  for (const [method, params] of [['tools/list', {}], ['tools/call', { name: 'x' }]] as const) {
    const { error } = (await ask(url, method, params)).message
    assert.equal(error?.code, -32001, method)
    assert.match(error.message, /^Server "away" is not connected/)
  }
})

test('a result of an unknown type is an error, unless the client has an extension that may define it', async (t) => {
  const odd = { ...plain, name: 'odd' }
  const server = await startBareModern(t, [odd], ({ method, params }) => method !== 'tools/call'
    ? undefined
    : { result: { content: [{ type: 'text', text: '"resultType":"x"' }], resultType: (params.arguments as Json).type } })
  const hub = await served(t, { s: { url: server.url } })
  const url = `${hub.url}/mcp/s`
  const client = await agent(t, url)
  const extended = { extensions: { 'com.example/own': {} } }
  for (const [type, plainly, withExtension] of [
    ['complete', 'complete', 'complete'], ['com.example/own', -32603, 'com.example/own'], ['task', -32603, -32603],
    [1, -32603, -32603]
  ] as const) {
    const params = { name: 'odd', arguments: { type } }
    const outcome = async (capabilities: Json): Promise<unknown> => {
      const { result, error } = (await ask(url, 'tools/call', params, capabilities)).message
      return result?.resultType ?? error?.code
    }
    assert.deepEqual([await outcome({}), await outcome(extended)], [plainly, withExtension], String(type))
    if (type === 'complete') assert.ok(await client.callTool(params))
    else await assert.rejects(client.callTool(params), { code: -32603, message: /of type .*, which the client does not support/ })
  }
})

test('a server gets the log level of the request, and none if the request has none', async (t) => {
  const server = await startBareModern(t, [plain], undefined, { tools: {}, logging: {} })
  const hub = await served(t, { s: { url: server.url } })
  const url = `${hub.url}/mcp/s`
  const level = `${prefix}logLevel`
  for (const [method, params] of [['vendor/do', {}], ['tools/call', { name: 'plain' }]] as const) {
    for (const meta of [{}, { [level]: 'error' }]) {
      await ask(url, method, params, {}, meta)
      const { params: { _meta: sent } = {} } = server.seen.findLast((one) => one.method === method) ?? {}
      assert.equal(at(sent, level), meta[level], method)
    }
  }
})

test('the same answers again attach to the call that the first ones began, or get its answer', async (t) => {
  let runs = 0
  let pay = (): void => {}
  const isPaid = new Promise<void>((resolve) => { pay = resolve })
  const server = await startBareModern(t, [{ ...plain, name: 'pay' }], async ({ method, params }) => {
    if (method !== 'tools/call') return undefined
    const message = 'Pay?'
    const requestedSchema = { type: 'object', properties: {} }
    if (params.requestState !== 'its own') {
      const inputRequests = { a: { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } } }
      return { result: { resultType: 'input_required', inputRequests, requestState: 'its own' } }
    }
    runs++
    await isPaid
    return { result: { resultType: 'complete', content: [{ type: 'text', text: `paid ${runs}` }] } }
  })
  const hub = await served(t, { s: { url: server.url } })
  const call = async (more: Json = {}): Promise<Message> =>
    (await ask(`${hub.url}/mcp/s`, 'tools/call', { name: 'pay', ...more }, { elicitation: {} })).message
  const { requestState } = (await call()).result ?? {}
  const answers = { requestState, inputResponses: { a: { action: 'accept', content: {} } } }
  const calls = [call(answers), call(answers), call(answers)]
  await until(() => runs > 0, 'it does not run')
  // Those that would run beside it have time to.
  await silence(50)
  pay()
  const paid = (await Promise.all(calls)).map(({ result }) => text(result))
  assert.deepEqual([...paid, text((await call(answers)).result), runs], ['paid 1', 'paid 1', 'paid 1', 'paid 1', 1])
  const other = await call({ ...answers, inputResponses: { a: { action: 'decline' } } })
  assert.match(String(other.error?.message), /already answered/)
  // A new call is another one.
  const next = await call({ ...answers, requestState: (await call()).result?.requestState })
  assert.equal(text(next.result), 'paid 2')
})

// What clients of earlier revisions are told: protocol/modern.test.ts.
test('a server that asks what a modern client did not declare, or does not say what it asks', async (t) => {
  const form = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } } }
  const server = await startBareModern(t, [{ ...plain, name: 'ask' }], ({ method, params }) => method !== 'tools/call'
    ? undefined
    : { result: { resultType: 'input_required', inputRequests: (params.arguments as Json).form === true ? { form } : {} } })
  const hub = await served(t, { s: { url: server.url } })
  const call = async (args: Json, capabilities: Json): Promise<ModernAnswer> =>
    await ask(`${hub.url}/mcp/s`, 'tools/call', { name: 'ask', arguments: args }, capabilities)
  const undeclared = await call({ form: true }, { elicitation: { url: {} } })
  assert.deepEqual([undeclared.status, undeclared.message.error?.code], [400, -32021])
  assert.deepEqual(undeclared.message.error?.data, { requiredCapabilities: { elicitation: { form: {} } } })
  const { error } = (await call({}, { elicitation: {} })).message
  assert.equal(error?.code, -32603, JSON.stringify(error))
  assert.match(error.message, /has no input requests/)
})

test('headers of arguments that are not known here go on to the server, beside those that are made here', async (t) => {
  const where = {
    name: 'where',
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }
  }
  const server = await startBareModern(t, [where])
  const hub = await served(t, { s: { url: server.url } })
  const headers = { 'mcp-param-region': 'eu', 'mcp-param-other': '=?base64?w7w=?=', 'mcp-param-long': 'x'.repeat(9_000), 'x-other': 'y' }
  const { message } = await ask(`${hub.url}/mcp`, 'tools/call', { name: 's-where', arguments: { region: 'eu' } }, {}, {}, headers)
  assert.equal(message.error, undefined, JSON.stringify(message))
  const sent = server.seen.find(({ method }) => method === 'tools/call')?.headers ?? {}
  const shown = ['mcp-name', 'mcp-param-region', 'mcp-param-other', 'mcp-param-long', 'x-other'].map((name) => sent[name])
  assert.deepEqual(shown, ['where', 'eu', '=?base64?w7w=?=', undefined, undefined])
  // What is made here counts.
  const outgoing = new OutgoingEnvelope(version, {
    clientInfo: { name: 'x', version: '1' }, capabilities: {}, initTimeout: 1, exclusive: false
  }, Object.assign(new ToolParamHeaders(), { of: () => parseParamHeaders(JSON.stringify(where)) }))
  const exchange = Object.assign(new FakeExchange('{"name":"where"}'), { paramHeaders: { 'mcp-param-region': 'us', 'mcp-param-b': 'b' } })
  assert.deepEqual(outgoing.headers(exchange, { arguments: '{"region":"eu"}' })['mcp-param-region'], 'eu')
  const made = outgoing.headers(exchange, {})
  assert.deepEqual([made['mcp-param-region'], made['mcp-param-b']], [undefined, 'b'])
})

test('a tool that no longer declares headers has none once its list is read; until then, it has the former ones', async () => {
  const headers = new ToolParamHeaders()
  const annotated = (name: string): Json => ({ name, inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } })
  const page = (tools: Json[], more: Json = {}): string => JSON.stringify({ tools, ...more })
  const known = (): boolean[] => ['a', 'b'].map((name) => headers.of(name) !== undefined)
  const none = (): void => {}
  headers.record(page([annotated('a'), annotated('b')]), true, none)
  assert.deepEqual(known(), [true, true])
  headers.record(page([{ name: 'a', inputSchema: { type: 'object' } }], { nextCursor: '1' }), true, none)
  assert.deepEqual(known(), [true, true])
  headers.record(page([annotated('b')]), false, none)
  assert.deepEqual(known(), [false, true])
  headers.record(page([]), true, none)
  assert.deepEqual(known(), [false, false])
})

test('a resource that is not there has the code of the client\'s era', async (t) => {
  const errors: Record<string, Json> = {
    'r://none': { code: -32602, message: 'Resource not found', data: { uri: 'r://none' } },
    'r://more': { code: -32602, message: 'Invalid params', data: { uri: 'r://more', x: 1 } },
    'r://bare': { code: -32602, message: 'Invalid params' }
  }
  const server = await startBareModern(t, [], ({ method, params }) =>
    method === 'resources/read' ? { error: errors[String(params.uri)] ?? {} } : undefined)
  const hub = await served(t, { s: { url: server.url } })
  const url = `${hub.url}/mcp/s`
  const client = await agent(t, url)
  for (const [uri, legacy] of [['r://none', -32002], ['r://more', -32602], ['r://bare', -32602]] as const) {
    await assert.rejects(client.readResource({ uri }), { code: legacy, data: errors[uri]?.data }, uri)
    assert.deepEqual((await ask(url, 'resources/read', { uri })).message.error, errors[uri])
  }
})

test('plain HTTP callers get the result without what it says of its way here', async (t) => {
  const hop = { resultType: 'complete', ttlMs: 5, cacheScope: 'public' }
  let _meta: Json = { [`${prefix}serverInfo`]: { name: 's', version: '1' } }
  const server = await startBareModern(t, [plain], ({ method }) =>
    method === 'tools/call' ? { result: { ...hop, content: [], extra: 1, _meta } } : undefined)
  const hub = await served(t, { s: { url: server.url } })
  for (const left of [undefined, { x: 1 }]) {
    const own = { content: [], extra: 1, ...(left && { _meta: left }) }
    assert.deepEqual((await manage(hub, 'POST', '/tools/s/plain', {})).body, own)
    const told = await managed(hub, 'POST', '/tools/call/s', { toolName: 'plain', arguments: {} })
    assert.deepEqual(told, { ...own, toolName: 'plain', arguments: {} })
    _meta = { ..._meta, x: 1 }
  }
  // Of servers of earlier revisions they are the server's own.
  assert.equal(withoutResultEnvelope('{"ttlMs":1, "_meta":{}}'), '{"ttlMs":1, "_meta":{}}')
})

test('tools that clients of earlier revisions cannot read', async (t) => {
  const server = await startBareModern(t, [
    plain,
    { name: 'booleans', inputSchema: { type: 'object', properties: { any: true, none: false } } },
    { name: 'list', inputSchema: { type: 'object' }, outputSchema: { type: 'array', items: { type: 'integer' } } },
    { name: 'odd', inputSchema: { type: 'object', properties: { x: 1 } } }
  ], ({ method }) => method === 'tools/call' ? { result: { resultType: 'complete', content: [], structuredContent: [1, 2] } } : undefined)
  const hub = await served(t, { s: { url: server.url } })
  for (const [path, prefix] of [['/mcp', 's-'], ['/mcp/s', '']] as const) {
    const client = await agent(t, `${hub.url}${path}`)
    const { tools } = await client.listTools()
    assert.deepEqual(tools.map(({ name }) => name), ['plain', 'booleans', 'list'].map((name) => `${prefix}${name}`))
    assert.deepEqual(tools[1]?.inputSchema.properties, { any: {}, none: { not: {} } })
    assert.equal(tools[2]?.outputSchema, undefined)
    // What is no object is told as text.
    const result = await client.callTool({ name: `${prefix}list` })
    assert.deepEqual([result.content, result.structuredContent], [[{ type: 'text', text: '[1,2]' }], undefined])
    const modern = (await ask(`${hub.url}${path}`, 'tools/list')).message.result?.tools as Json[]
    assert.deepEqual(modern.map(({ inputSchema, outputSchema }) => [inputSchema, outputSchema]), [
      [{ type: 'object' }, undefined],
      [{ type: 'object', properties: { any: true, none: false } }, undefined],
      [{ type: 'object' }, { type: 'array', items: { type: 'integer' } }],
      [{ type: 'object', properties: { x: 1 } }, undefined]
    ])
    assert.deepEqual(at((await ask(`${hub.url}${path}`, 'tools/call', { name: `${prefix}list` })).message, 'result', 'structuredContent'), [1, 2])
  }
  assert.match((await manage(hub, 'GET', '/servers/s')).text, /\\"odd\\" was omitted for clients of revisions before 2026-07-28, which/)
  // Plain HTTP callers are told all.
  assert.deepEqual(at((await manage(hub, 'GET', '/tools/s/list')).body, 'structuredContent'), [1, 2])
})

test('structured content of a legacy server that is not an object: clients of its era get it as text', async (t) => {
  const on = ({ method }: { method: string }): Json | undefined =>
    method === 'tools/call' ? { content: [], structuredContent: [1, 2] } : undefined
  const server = await startUpstream(t, { tools: [tool('plain')], on })
  const hub = await served(t, { s: { url: server.url } })
  const url = `${hub.url}/mcp/s`
  assert.deepEqual((await (await agent(t, url)).callTool({ name: 'plain' })).content, [{ type: 'text', text: '[1,2]' }])
  assert.deepEqual(at((await ask(url, 'tools/call', { name: 'plain' })).message, 'result', 'structuredContent'), [1, 2])
})

test('a state for a tool that is disabled meanwhile', async (t) => {
  const asks = { resultType: 'input_required', inputRequests: { a: { method: 'roots/list' } }, requestState: 'own' }
  const server = await startBareModern(t, [plain], ({ method, params }) =>
    method === 'tools/call' && params.requestState === undefined ? { result: asks } : undefined)
  const hub = await served(t, { s: { url: server.url } })
  const url = `${hub.url}/mcp/s`
  const asked = await ask(url, 'tools/call', { name: 'plain' }, { roots: {} })
  const { requestState } = asked.message.result ?? {}
  assert.equal(typeof requestState, 'string')
  await managed(hub, 'POST', '/servers/s/tools/plain/toggle', { enabled: false })
  const refused = await ask(url, 'tools/call', { name: 'plain', requestState, inputResponses: { a: { roots: [] } } }, { roots: {} })
  assert.deepEqual(refused.message.error, { code: -32602, message: 'Unknown tool: plain' })
})
