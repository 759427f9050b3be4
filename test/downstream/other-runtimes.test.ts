// Servers of other runtimes, seen by the official clients of both lines: `null` and `[]` for what is absent, marks, no version.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import type { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import type { Client as ModernClient } from '@modelcontextprotocol/client'
import { startBareModern } from '../fakes/bare-modern.ts'
import { Raw, startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { agent, at, connected, KEY, Session, settings, text as said, type Json, type Message } from '../helpers/client.ts'
import { startHub, until, type Hub } from '../helpers/hub.ts'
import { modernAgent } from '../helpers/modern-client.ts'

const php = { type: 'object', properties: [], required: [] }
const tools: Json[] = [
  tool('plain'), tool('php', { inputSchema: php, annotations: [], _meta: [] }), tool('none', { inputSchema: null }),
  tool('deep', { inputSchema: { type: 'object', properties: { filter: { type: 'object', properties: [], title: null } } } }),
  tool('out', { outputSchema: { type: 'object', properties: [], description: null } }),
  tool('net', { title: null, icons: [{ src: 'https://x.example/i.png', mimeType: null, sizes: null }], execution: { taskSupport: null } }),
  tool('java', { annotations: { title: null, readOnlyHint: true, destructiveHint: null }, outputSchema: null })
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
const text = { type: 'text', text: 'hi', annotations: null, _meta: null }
/** By tool: what a call is answered with. */
const results: Record<string, Json> = {
  plain: { content: [text], structuredContent: { kept: null, list: [] }, isError: null, _meta: null, 'x-own': null },
  php: { content: [text], _meta: [] },
  none: { content: null },
  deep: { content: [{ type: 'resource_link', uri: 'a://1', name: 'n', description: null, mimeType: null, size: null }] },
  net: { content: [{ type: 'text', text: null }, { type: 'image', data: 'eA==', mimeType: 'image/png', text: null, annotations: [] }] },
  java: { content: [{ type: 'resource', resource: { uri: 'a://1', text: 'x', blob: null, mimeType: null } }] }
}
const answers: Record<string, Json> = {
  'prompts/get': { description: null, messages: [{ role: 'user', content: text }] },
  'resources/read': { contents: [{ uri: 'a://1', text: 'x', mimeType: null, _meta: null }] },
  'completion/complete': { completion: { values: ['v'], total: null, hasMore: null } }
}
const answerTo = (method: string, params: Json): Json | undefined => {
  const list = methods[method]
  if (list !== undefined) return { [list]: lists[list], nextCursor: null, _meta: null }
  return method === 'tools/call' ? results[String(params.name)] : answers[method]
}

async function legacyServer (t: Test): Promise<Upstream> {
  return await startUpstream(t, {
    tools,
    capabilities,
    serverInfo: { name: 'php', version: null, title: null, icons: [] },
    on: ({ method, params }) => method === 'ping' ? new Raw('[]') : answerTo(method, params)
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
  for (const name of Object.keys(results)) await client.callTool({ name: prefix + name, arguments: {} })
  assert.equal((await client.getPrompt({ name: `${prefix}p`, arguments: { code: 'x' } })).messages.length, 1)
  assert.equal((await client.readResource({ uri: 'a://1' })).contents.length, 1)
}

const recordOf = async (hub: Hub, name: string): Promise<Json> => {
  const answer = await fetch(`${hub.url}/api/servers/${name}`, { headers: { authorization: `Bearer ${KEY}` } })
  return at(await answer.json(), 'data') as Json
}

const post = async (hub: Hub, path: string, body: string, more: Record<string, string> = {}): Promise<Json> => {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more }
  return await (await fetch(`${hub.url}${path}`, { method: 'POST', headers, body })).json() as Json
}

for (const era of ['legacy', 'modern'] as const) {
  test(`a ${era} server that writes null and []: every official client reads all of it, on every route`, async (t) => {
    const own = era === 'legacy'
      ? (await legacyServer(t)).url
      : (await startBareModern(t, tools, ({ method, params }) => {
          const result = answerTo(method, params)
          return result && { result: { resultType: null, ...result } }
        }, { ...capabilities, completions: {} })).url
    const hub = await startHub(t, { settings: settings({ up: { url: own } }) })
    await connected(hub, 1)
    for (const [path, prefix] of [['/mcp/up', ''], ['/mcp', 'up-']] as const) {
      await t.test(`${path}, SDK 1.x`, async (t) => { await useAll(await agent(t, `${hub.url}${path}`), prefix) })
      await t.test(`${path}, SDK 2.x, legacy`, async (t) => { await useAll((await modernAgent(t, `${hub.url}${path}`, { mode: 'auto' })).client, prefix) })
      await t.test(`${path}, SDK 2.x, modern`, async (t) => { await useAll((await modernAgent(t, `${hub.url}${path}`)).client, prefix) })
    }
    await t.test('what is the author\'s own keeps its bytes, also over plain HTTP', async () => {
      const raw = await Session.open(`${hub.url}/mcp/up`)
      assert.deepEqual(await raw.call('plain'), { content: [{ type: 'text', text: 'hi' }], structuredContent: { kept: null, list: [] }, 'x-own': null })
      const answer = await post(hub, '/api/tools/call/up', '{"toolName":"plain","arguments":{}}')
      assert.deepEqual(at(answer, 'data', 'structuredContent'), { kept: null, list: [] })
    })
    await t.test('the record says so, once for each kind of message', async () => {
      const { warnings } = await recordOf(hub, 'up')
      const sentences = warnings as string[]
      const expected = [
        /^tools: null, or \[\] for an object, is treated as absent in "php" \("inputSchema\.properties"\) and in 5 more items$/, /^prompts: .* in "p"/,
        /^resources: /, /^resourceTemplates: /, /^results of tools\/call: .*"content\[0\]\.annotations"/, /^results of prompts\/get: /,
        /^results of resources\/read: /, era === 'legacy' ? /^results of initialize: .*capabilities\.tools/ : /^results of server\/discover: .*capabilities\.tools/
      ]
      for (const each of expected) assert.equal(sentences.filter((sentence) => each.test(sentence)).length, 1, `${String(each)} in ${sentences.join('; ')}`)
    })
  })
}

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
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }) })
  await connected(hub, 1)
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
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    t.after(async () => { server.closeAllConnections(); await new Promise((resolve) => { server.close(resolve) }) })
    servers[name] = { type: 'streamable-http', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` }
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
  const hub = await startHub(t, { settings: settings(servers) })
  await connected(hub, Object.keys(servers).length)
  for (const name of Object.keys(servers)) {
    const session = await Session.open(`${hub.url}/mcp/${name}`)
    assert.deepEqual([await session.tools(), said(await session.call('t'))], [['t'], 'ran'], name)
  }
})

test('clients: params that are null, a mark before the body', async (t) => {
  const upstream = await startUpstream(t)
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/up`)
  const inSession = { 'mcp-session-id': session.id }
  for (const [method, member] of [['tools/list', 'tools'], ['ping', undefined]] as const) {
    const answer = await post(hub, '/mcp/up', `\ufeff{"jsonrpc":"2.0","id":5,"method":"${method}","params":null}`, inSession)
    assert.ok(member === undefined ? at(answer, 'result') : at(answer, 'result', member), JSON.stringify(answer))
  }
  assert.equal(at(await post(hub, '/api/tools/call/up', '\ufeff{"toolName":"echo","arguments":{"message":"x"}}'), 'data', 'content', 0, 'text'), 'x')
  await until(() => upstream.count('tools/call') === 1)
})
