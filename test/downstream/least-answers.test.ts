// Answers that lack what clients need, or have it in another type: every official client reads the rest, and the record says so.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import type { Client as ModernClient } from '@modelcontextprotocol/client'
import { startBareModern } from '../fakes/bare-modern.ts'
import { Raw, startUpstream, tool } from '../fakes/fault-http.ts'
import { agent, at, KEY, Session, type Json } from '../helpers/client.ts'
import { modernAgent } from '../helpers/modern-client.ts'
import { envelope, modernRequest, prefix } from '../helpers/modern-request.ts'
import { served } from '../helpers/served.ts'

const odd = { sizes: '48x48', src: 'https://x.example/i.png' }
const serverInfo = { name: 'x', version: '1', title: 5, description: {}, icons: [odd] }
const text = (said: string): Json => ({ type: 'text', text: said })
/** By tool: the result, and the content that clients read. */
const results: Record<string, readonly [result: unknown, content: Json[]]> = {
  void: [null, []],
  picture: [{ content: [text('a'), { type: 'image', data: 'eA==', mimeType: null }] }, [text('a'), { type: 'image', data: 'eA==', mimeType: 'application/octet-stream' }]],
  structured: [{ structuredContent: { a: 1 } }, []],
  one: [{ content: text('a') }, [text('a')]],
  words: [{ content: 'a' }, [text('a')]],
  number: [{ content: [{ type: 'text', text: 5 }] }, [text('5')]],
  php: [{ content: { 1: text('a') }, isError: 0 }, [text('a')]],
  'bare-words': ['a', [text('a')]],
  'bare-number': [5, [text('5')]],
  'bare-blocks': [[text('a'), 'b'], [text('a'), text('b')]],
  block: [{ content: [[], text('a')] }, [text(''), text('a')]]
}
const answers: Record<string, Json> = {
  'prompts/list': { prompts: [{ name: 'p' }] },
  'resources/list': { resources: [{ uri: 'a://1', name: 'r' }] },
  'prompts/get': { messages: [{ role: null, content: 'a' }, { role: 'assistant', content: null }] },
  'resources/read': { contents: [{ uri: null, text: 'x' }] }
}
const tools = Object.keys(results).map((name) => tool(name))
const capabilities = { tools: {}, prompts: {}, resources: {} }
const answerTo = (method: string, params: Json): unknown =>
  method === 'tools/call' ? results[String(params.name)]?.[0] : answers[method]

async function readAll (client: LegacyClient | ModernClient): Promise<void> {
  for (const [name, [, content]] of Object.entries(results)) {
    assert.deepEqual((await client.callTool({ name, arguments: {} })).content, content, name)
  }
  assert.deepEqual((await client.getPrompt({ name: 'p' })).messages, [{ role: 'user', content: text('a') }, { role: 'assistant', content: text('') }])
  assert.deepEqual((await client.readResource({ uri: 'a://1' })).contents, [{ uri: 'a://1', text: 'x' }])
}

test('what clients need is there, whatever a server of either era leaves out', async (t) => {
  const legacy = await startUpstream(t, {
    tools,
    capabilities,
    serverInfo,
    on: ({ method, params }) => {
      const result = answerTo(method, params)
      return result === undefined ? undefined : new Raw(JSON.stringify(result))
    }
  })
  const modern = await startBareModern(t, tools, ({ method, params }) => {
    const result = answerTo(method, params)
    if (method === 'server/discover') {
      return { result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities, _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } } }
    }
    return result === undefined ? undefined : { result: result as Json }
  })
  const hub = await served(t, { legacy: { url: legacy.url }, modern: { url: modern.url } })
  const headers = { authorization: `Bearer ${KEY}` }
  for (const name of ['legacy', 'modern']) {
    const url = `${hub.url}/mcp/${name}`
    await readAll(await agent(t, url))
    await readAll((await modernAgent(t, url)).client)
    for (const tool of ['void', 'bare-words', 'bare-number', 'bare-blocks']) {
      const { content } = await (await fetch(`${hub.url}/api/tools/${name}/${tool}`, { headers })).json() as Json
      assert.deepEqual(content, results[tool]?.[1], tool)
    }
    const record = await (await fetch(`${hub.url}/api/servers/${name}`, { headers })).json()
    const sentences = at(record, 'data', 'warnings') as string[]
    for (const expected of [
      /^results of (initialize|server\/discover): .*title.*description.*icons/, /^results of tools\/call: /, /^results of prompts\/get: /,
      /^results of resources\/read: .*"contents\[0\].uri"/
    ]) assert.ok(sentences.some((sentence) => expected.test(sentence)), `${name}: ${String(expected)} in ${sentences.join('; ')}`)
  }
})

test('an error that is a text, or has no message, is told with what it had', async (t) => {
  const errors: Record<string, unknown> = { text: 'it broke', list: ['a', 1], none: { code: -32000, message: null }, number: { code: '-32001', message: 5 } }
  const expected: Record<string, Json> = {
    text: { code: -32603, message: 'it broke' },
    list: { code: -32603, message: '["a",1]' },
    none: { code: -32000, message: 'The server returned this error without a message (-32000)' },
    number: { code: -32001, message: '5' }
  }
  const upstream = await startUpstream(t, {
    tools: Object.keys(errors).map((name) => tool(name)),
    capabilities: { tools: {}, prompts: {} },
    on: ({ method, id, params, res }) => {
      if (method !== 'tools/call' && method !== 'prompts/list') return undefined
      const error = method === 'prompts/list' ? errors.none : errors[String(params.name)]
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: null, error }))
      return 'taken'
    }
  })
  const hub = await served(t, { up: { url: upstream.url } })
  const session = await Session.open(`${hub.url}/mcp/up`)
  for (const [name, error] of Object.entries(expected)) {
    const { messages } = await session.post({ jsonrpc: '2.0', id: name, method: 'tools/call', params: { name, arguments: {} } })
    assert.deepEqual(messages[0]?.error, error)
  }
  const record = await (await fetch(`${hub.url}/api/servers/up`, { headers: { authorization: `Bearer ${KEY}` } })).json()
  assert.ok((at(record, 'data', 'warnings') as string[]).includes('prompts/list failed: The server returned this error without a message (-32000)'))
})

test('null for a cursor, a progress token or a log level is none, in both eras', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const metas: unknown[] = []
  const modern = await startBareModern(t, [tool('echo')], ({ method, params }) => {
    if (method === 'tools/call') metas.push(params._meta)
    return undefined
  })
  const hub = await served(t, { up: { url: upstream.url }, modern: { url: modern.url } })
  const session = await Session.open(`${hub.url}/mcp`)
  for (const isModern of [false, true]) {
    const ask = async (method: string, params: Json, meta: Json = {}): Promise<unknown> => {
      if (!isModern) return (await session.post({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } })).messages[0]
      const request = modernRequest(method, { params, meta: envelope({}, { [`${prefix}clientInfo`]: null, ...meta }) })
      const response = await fetch(`${hub.url}/mcp`, { method: 'POST', ...request })
      return await response.json()
    }
    for (const cursor of [null, '']) assert.equal((at(await ask('tools/list', { cursor }), 'result', 'tools') as Json[])[0]?.name, 'up-echo')
    assert.equal(at(await ask('tools/list', { cursor: 'x' }), 'error', 'code'), -32602)
    for (const name of ['up-echo', 'modern-echo']) {
      const called = await ask('tools/call', { name, arguments: { message: 'hi' } }, { progressToken: null, [`${prefix}logLevel`]: null })
      assert.notEqual(at(called, 'result'), undefined, JSON.stringify(called))
    }
    const call = upstream.received.findLast(({ message }) => message.method === 'tools/call')
    for (const meta of [at(call?.message, 'params', '_meta'), metas.at(-1)]) {
      assert.equal(at(meta, 'progressToken'), undefined)
      assert.notEqual(at(meta, `${prefix}logLevel`), null)
    }
  }
})
