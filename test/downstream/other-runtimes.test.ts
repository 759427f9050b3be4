// Servers of other runtimes, seen by the official clients of both lines: `null` and `[]` for what is absent, what is missing or of another
// type, marks, no version. protocol/mending.test.ts has the tables.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test, type Test } from 'tap'
import type { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import type { Client as ModernClient } from '@modelcontextprotocol/client'
import { startBareModern } from '../fakes/bare-modern.ts'
import { Raw, startUpstream, tool } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { agent, at, KEY, Session, text as said, type Json, type Message } from '../helpers/client.ts'
import { until, type Hub } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { modernAgent } from '../helpers/modern-client.ts'
import { askModern, envelope, prefix as mcp } from '../helpers/modern-request.ts'
import { served } from '../helpers/served.ts'

const php = { type: 'object', properties: [], required: [] }
const tools: Json[] = [
  tool('plain'), tool('php', { inputSchema: php, annotations: [], _meta: [] }), tool('none', { inputSchema: null }),
  tool('deep', { inputSchema: { type: 'object', properties: { filter: { type: 'object', properties: [], title: null } } } }),
  tool('out', { outputSchema: { type: 'object', properties: [], description: null } }),
  tool('net', { title: null, icons: [{ src: 'https://x.example/i.png', mimeType: null, sizes: null }], execution: { taskSupport: null } }),
  tool('java', { annotations: { title: null, readOnlyHint: true, destructiveHint: null }, outputSchema: null }),
  tool('void'), tool('bare')
]
const lists: Json = {
  prompts: [{ name: 'p', title: null, arguments: [{ name: 'code', description: null, required: null }] }, { name: 'q', arguments: null }],
  resources: [{ uri: 'a://1', name: 'r', mimeType: null, size: null, annotations: { audience: null, priority: null } }],
  resourceTemplates: [{ uriTemplate: 'a://{x}', name: 't', icons: null, annotations: { priority: null } }]
}
const methods: Record<string, string> = {
  'prompts/list': 'prompts', 'resources/list': 'resources', 'resources/templates/list': 'resourceTemplates'
}
const capabilities: Json = { tools: [], prompts: { listChanged: null }, resources: [], logging: null, experimental: { x: null } }
const serverInfo = { name: 'php', version: null, title: 5, description: {}, icons: [{ sizes: '48x48', src: 'https://x.example/i.png' }] }
const text = { type: 'text', text: 'hi', annotations: null, _meta: null }
/** By tool: what a call is answered with. */
const results: Record<string, unknown> = {
  plain: { content: [text], structuredContent: { kept: null, list: [] }, isError: null, _meta: null, 'x-own': null },
  php: { content: [text], _meta: [] },
  none: { content: null },
  deep: { content: [{ type: 'resource_link', uri: 'a://1', name: 'n', description: null, mimeType: null, size: null }] },
  net: { content: [{ type: 'text', text: null }, { type: 'image', data: 'eA==', mimeType: null, text: null, annotations: [] }] },
  java: { content: [{ type: 'resource', resource: { uri: 'a://1', text: 'x', blob: null, mimeType: null } }] },
  void: null,
  bare: [{ type: 'text', text: 5 }, 'b']
}
const words = (...all: string[]): Json[] => all.map((each) => ({ type: 'text', text: each }))
const answers: Record<string, Json> = {
  'prompts/get': { description: null, messages: [{ role: null, content: 'a' }, { role: 'assistant', content: null }] },
  'resources/read': { contents: [{ uri: null, text: 'x', mimeType: null, _meta: null }] },
  'completion/complete': { completion: { values: ['v'], total: null, hasMore: null } }
}
const answerTo = (method: string, params: Json): unknown => {
  const list = methods[method]
  if (list !== undefined) return { [list]: lists[list], nextCursor: null, _meta: null }
  return method === 'tools/call' ? results[String(params.name)] : answers[method]
}

const startServer = {
  legacy: async (t: Test) => await startUpstream(t, {
    tools,
    capabilities,
    serverInfo,
    on: ({ method, params }) => {
      if (method === 'ping') return new Raw('[]')
      const result = answerTo(method, params)
      return result === undefined ? undefined : new Raw(JSON.stringify(result))
    }
  }),
  modern: async (t: Test) => await startBareModern(t, tools, ({ method, params }) => {
    const result = method === 'server/discover'
      ? { supportedVersions: ['2026-07-28'], capabilities: { ...capabilities, completions: {} }, _meta: { [`${mcp}serverInfo`]: serverInfo } }
      : answerTo(method, params)
    if (result === undefined) return undefined
    return { result: (result === null || Array.isArray(result) ? result : { resultType: null, ...result as Json }) as Json }
  })
}

/** Everything that a client of the official SDK can ask of the server. It throws where the client refuses an answer. */
async function useAll (client: LegacyClient | ModernClient, prefix: string): Promise<void> {
  const { tools: shown } = await client.listTools()
  assert.deepEqual(shown.map(({ name }) => name), tools.map(({ name }) => prefix + String(name)))
  for (const { name, inputSchema } of shown) assert.equal(inputSchema.type, 'object', name)
  assert.deepEqual((await client.listPrompts()).prompts.map(({ name }) => name), ['p', 'q'].map((name) => prefix + name))
  assert.deepEqual((await client.listResources()).resources.map(({ name }) => name), ['r'])
  assert.deepEqual((await client.listResourceTemplates()).resourceTemplates.map(({ name }) => name), ['t'])
  const contents = new Map<string, unknown>()
  for (const name of Object.keys(results)) contents.set(name, (await client.callTool({ name: prefix + name, arguments: {} })).content)
  assert.deepEqual(['void', 'bare'].map((name) => contents.get(name)), [[], words('5', 'b')])
  assert.deepEqual((await client.getPrompt({ name: `${prefix}p`, arguments: { code: 'x' } })).messages, [
    { role: 'user', content: { type: 'text', text: 'a' } }, { role: 'assistant', content: { type: 'text', text: '' } }
  ])
  assert.deepEqual((await client.readResource({ uri: 'a://1' })).contents, [{ uri: 'a://1', text: 'x' }])
}

const warningsOf = async (hub: Hub): Promise<string[]> => (await managed(hub, 'GET', '/servers/up')).warnings as string[]

const post = async (hub: Hub, path: string, body: string, more: Record<string, string> = {}): Promise<Json> => {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more }
  return await (await fetch(`${hub.url}${path}`, { method: 'POST', headers, body })).json() as Json
}

for (const era of ['legacy', 'modern'] as const) {
  test(`a ${era} server that writes null and [], or not what MCP says: every official client reads all of it, on every route`, async (t) => {
    const hub = await served(t, { up: { url: (await startServer[era](t)).url } })
    for (const [path, prefix] of [['/mcp/up', ''], ['/mcp', 'up-']] as const) {
      await t.test(`${path}, SDK 1.x`, async (t) => { await useAll(await agent(t, `${hub.url}${path}`), prefix) })
      await t.test(`${path}, SDK 2.x, legacy`, async (t) => { await useAll((await modernAgent(t, `${hub.url}${path}`, { mode: 'auto' })).client, prefix) })
      await t.test(`${path}, SDK 2.x, modern`, async (t) => { await useAll((await modernAgent(t, `${hub.url}${path}`)).client, prefix) })
    }
    await t.test('what is the author\'s own keeps its bytes, also over plain HTTP', async () => {
      const raw = await Session.open(`${hub.url}/mcp/up`)
      assert.deepEqual(await raw.call('plain'), { content: words('hi'), structuredContent: { kept: null, list: [] }, 'x-own': null })
      const answer = await post(hub, '/api/tools/call/up', '{"toolName":"plain","arguments":{}}')
      assert.deepEqual(at(answer, 'data', 'structuredContent'), { kept: null, list: [] })
      assert.deepEqual((await post(hub, '/api/tools/up/bare', '{}')).content, words('5', 'b'))
    })
    await t.test('the record says so, once for each kind of message', async () => {
      const sentences = await warningsOf(hub)
      const begin = era === 'legacy' ? 'initialize' : 'server/discover'
      const expected = [
        /^tools: null, or \[\] for an object, is treated as absent in "php" \("inputSchema\.properties"\) and in 5 more items$/, /^prompts: .* in "p"/,
        /^resources: /, /^resourceTemplates: /, /^results of tools\/call: .*"content\[0\]\.annotations"/, /^results of prompts\/get: /,
        /^results of resources\/read: .*"contents\[0\].uri"/, new RegExp(`^results of ${begin}: .*capabilities\\.tools`)
      ]
      for (const each of expected) assert.equal(sentences.filter((sentence) => each.test(sentence)).length, 1, `${String(each)} in ${sentences.join('; ')}`)
    })
  })
}

test('an error that is a text, or has no message, is told with what it had', async (t) => {
  const noneTold = 'The server returned this error without a message (-32000)'
  const errors: Record<string, unknown> = { text: 'it broke', list: ['a', 1], none: { code: -32000, message: null } }
  const expected: Record<string, Json> = {
    text: { code: -32603, message: 'it broke' }, list: { code: -32603, message: '["a",1]' }, none: { code: -32000, message: noneTold }
  }
  const upstream = await startUpstream(t, {
    tools: Object.keys(errors).map((name) => tool(name)),
    capabilities: { tools: {}, prompts: {} },
    on: ({ method, id, params, res }) => {
      if (method !== 'tools/call' && method !== 'prompts/list') return undefined
      const error = errors[String(params.name ?? 'none')]
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: null, error }))
      return 'taken'
    }
  })
  const hub = await served(t, { up: { url: upstream.url } })
  const session = await Session.open(`${hub.url}/mcp/up`)
  for (const [name, error] of Object.entries(expected)) {
    assert.deepEqual((await session.request('tools/call', { name, arguments: {} })).error, error)
  }
  assert.ok((await warningsOf(hub)).includes(`prompts/list failed: ${noneTold}`))
})

test('questions and notifications with null: the client is asked, and hears', async (t) => {
  const asked: Message[] = []
  const upstream = await startUpstream(t, {
    on: async ({ method, ask, notify, params }) => {
      if (method !== 'tools/call') return undefined
      notify('notifications/progress', { progressToken: at(params, '_meta', 'progressToken'), progress: 1, total: null, message: null })
      const sampled = await ask('sampling/createMessage', {
        messages: [{ role: 'user', content: text }], maxTokens: 5, systemPrompt: null, modelPreferences: { hints: null }, stopSequences: null
      })
      const filled = await ask('elicitation/create', {
        message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string', title: null, default: null } }, required: [] }
      })
      const rooted = await ask('roots/list', null as unknown as Json)
      asked.push(sampled, filled, rooted)
      return { content: [{ type: 'text', text: 'asked' }] }
    }
  })
  const hub = await served(t, { up: { url: upstream.url } })
  const { client } = await modernAgent(t, `${hub.url}/mcp/up`, { mode: 'auto' })
  let progress = 0
  await client.callTool({ name: 'echo', arguments: {} }, { onprogress: () => { progress++ } })
  assert.ok(progress > 0)
  assert.deepEqual(asked.map(({ result, error }) => [typeof result, error]), [['object', undefined], ['object', undefined], ['object', undefined]])
})

test('bytes that other runtimes put around JSON: marks, nulls in the envelope, no version', async (t) => {
  const result = (id: unknown, method: string): Json => method === 'initialize'
    ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'n', version: '1' } }
    : method === 'tools/list' ? { tools: [tool('t')] } : { content: [{ type: 'text', text: 'ran' }] }
  const wraps: Record<string, (answer: Json) => string> = {
    mark: (answer) => `\ufeff${JSON.stringify(answer)}`,
    sseStart: (answer) => `\ufeffevent: message\ndata: ${JSON.stringify(answer)}\n\n`,
    sseMark: (answer) => `data: \ufeff${JSON.stringify(answer)}\n\n`,
    nulls: (answer) => JSON.stringify({ ...answer, error: null, method: null, params: null }),
    bare: ({ jsonrpc: _, ...answer }) => JSON.stringify(answer)
  }
  const servers: Json = {}
  for (const [name, wrap] of Object.entries(wraps)) {
    const server = createServer((req, res) => {
      const chunks: Buffer[] = []
      req.on('data', (chunk: Buffer) => { chunks.push(chunk) }).on('end', () => {
        if (req.method !== 'POST') { res.writeHead(405).end(); return }
        const { id, method } = JSON.parse(Buffer.concat(chunks).toString()) as { id?: number, method: string }
        if (id === undefined) { res.writeHead(202).end(); return }
        const refused = method === 'server/discover'
        const answer = { jsonrpc: '2.0', id, ...(refused ? { result: null, error: { code: -32601, message: null } } : { result: result(id, method) }) }
        res.writeHead(200, { 'content-type': name.startsWith('sse') ? 'text/event-stream' : 'application/json' }).end(wrap(answer))
      })
    })
    servers[name] = { type: 'streamable-http', url: `http://127.0.0.1:${await listen(t, server)}/mcp` }
  }
  const script = `
    let first = '\\ufeff'
    const tool = (name) => ({ name, inputSchema: { type: 'object' } })
    const say = (value) => { process.stdout.write(first + JSON.stringify(value) + '\\n'); first = '' }
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      const result = (${String(result)})(id, method)
      if (id === undefined) return
      if (method === 'server/discover') say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } })
      else say({ jsonrpc: '2.0', id, result })
      say({ jsonrpc: '2.0', id: null, method: 'notifications/message', params: null })
    })`
  servers.stdio = { command: process.execPath, args: ['-e', script] }
  const hub = await served(t, servers)
  for (const name of Object.keys(servers)) {
    const session = await Session.open(`${hub.url}/mcp/${name}`)
    assert.deepEqual([await session.tools(), said(await session.call('t'))], [['t'], 'ran'], name)
  }
})

test('clients: params that are null, a mark before the body; null for a cursor, a progress token or a log level, in both eras', async (t) => {
  const upstream = await startUpstream(t)
  const metas: unknown[] = []
  const modern = await startBareModern(t, [tool('echo')], ({ method, params }) => {
    if (method === 'tools/call') metas.push(params._meta)
    return undefined
  })
  const hub = await served(t, { up: { url: upstream.url }, modern: { url: modern.url } })
  const session = await Session.open(`${hub.url}/mcp`)
  for (const [method, member] of [['tools/list', 'tools'], ['ping', undefined]] as const) {
    const answer = await post(hub, '/mcp', `\ufeff{"jsonrpc":"2.0","id":5,"method":"${method}","params":null}`, { 'mcp-session-id': session.id })
    assert.ok(member === undefined ? at(answer, 'result') : at(answer, 'result', member), JSON.stringify(answer))
  }
  assert.equal(at(await post(hub, '/api/tools/call/up', '\ufeff{"toolName":"echo","arguments":{"message":"x"}}'), 'data', 'content', 0, 'text'), 'x')
  await until(() => upstream.count('tools/call') === 1)
  for (const isModern of [false, true]) {
    const ask = async (method: string, params: Json, meta: Json = {}): Promise<Message> => isModern
      ? (await askModern(`${hub.url}/mcp`, method, { params, meta: envelope({}, { [`${mcp}clientInfo`]: null, ...meta }) })).message
      : await session.request(method, { ...params, _meta: meta })
    for (const cursor of [null, '']) assert.equal((at(await ask('tools/list', { cursor }), 'result', 'tools') as Json[])[0]?.name, 'up-echo')
    assert.equal((await ask('tools/list', { cursor: 'x' })).error?.code, -32602)
    for (const name of ['up-echo', 'modern-echo']) {
      const { result } = await ask('tools/call', { name, arguments: { message: 'hi' } }, { progressToken: null, [`${mcp}logLevel`]: null })
      assert.notEqual(result, undefined, name)
    }
    const call = upstream.received.findLast(({ message }) => message.method === 'tools/call')
    for (const meta of [at(call?.message, 'params', '_meta'), metas.at(-1)]) {
      assert.equal(at(meta, 'progressToken'), undefined)
      assert.notEqual(at(meta, `${mcp}logLevel`), null)
    }
  }
})
