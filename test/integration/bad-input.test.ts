// What a gateway answers to bad input on MCP, once for each kind; protocol/, auth/requests and downstream/ have the kinds one by one.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import {
  assertPlain, assertRefused, connected, failed, initialize, KEY, listed, plain, send, Session, settings, text, within,
  type Json, type SendOptions, type Stream
} from '../helpers/client.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { startHub, type Cleanup, type Hub } from '../helpers/hub.ts'

/** The gateway still serves, whatever it was just sent. */
async function assertServes (hub: Hub): Promise<void> {
  const session = await Session.open(`${hub.url}/mcp`)
  assert.equal(text(await session.call('fake-echo', { message: 'still here' })), 'still here')
  await session.end()
}

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** A gateway in front of one server, and a session. `both` sends a body in the session and, as a first message would come, without one. */
async function start (t: Cleanup) {
  const upstream = await startUpstream(t, { tools: [tool('echo')], prompts: [{ name: 'p' }], resources: [{ name: 'r', uri: 'fault://r' }] })
  const hub = await startHub(t, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const url = `${hub.url}/mcp`
  const session = await Session.open(url)
  const both = async (body: unknown, options: SendOptions = {}): Promise<Stream[]> => [
    await send(url, { ...options, body, headers: { ...session.headers, ...options.headers } }), await send(url, { ...options, body })
  ]
  return { upstream, hub, url, session, both }
}

const nested = (levels: number): string =>
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake-echo","arguments":{"message":"deep",' +
  `"a":${'['.repeat(levels)}${']'.repeat(levels)}}}}`

test('bad messages', async (t) => {
  const { hub, url, session, both } = await start(t)

  await t.test('malformed JSON, and other shapes than those of messages', async () => {
    for (const [code, ...bodies] of [
      [-32700, '{', `${JSON.stringify(ping)}${JSON.stringify(ping)}`],
      [-32600, '[]', { ...ping, jsonrpc: '1.0' }]
    ] as const) {
      for (const body of bodies) {
        const [inside, outside] = (await both(body)) as [Stream, Stream]
        assertRefused(inside, 400, code)
        assertRefused(outside, 400)
      }
    }
  })

  await t.test('parameters of a wrong shape: a JSON-RPC error, not more', async () => {
    for (const [method, params] of [
      ['tools/call', undefined], ['tools/call', { name: 7 }], ['tools/call', { name: '' }], ['prompts/get', { name: {} }],
      ['resources/read', {}], ['resources/subscribe', { uri: 7 }], ['completion/complete', { ref: null }],
      ['completion/complete', { ref: { type: 'ref/prompt' } }],
      ['completion/complete', { ref: { type: 'nope', name: 'p' }, argument: { name: 'a', value: 'b' } }],
      ['logging/setLevel', { level: 'loudest' }], ['tools/list', 'text']
    ] as const) {
      const reply = await session.post({ jsonrpc: '2.0', id: 1, method, params })
      assert.ok(reply.status === 200 || reply.status === 400, `${method} ${JSON.stringify(params)}: ${reply.status}`)
      assertPlain(reply.body)
      assert.ok(failed(reply.messages.at(-1) ?? {}), `${method} ${JSON.stringify(params)}: ${reply.body}`)
    }
    for (const cursor of ['nonsense', '__proto__']) assertPlain((await session.post({ ...ping, method: 'tools/list', params: { cursor } })).body)
    for (const params of [undefined, {}, { protocolVersion: 7 }, { protocolVersion: '2025-11-25', capabilities: 'all' }, null, []]) {
      const reply = await send(url, { body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } })
      assert.ok(reply.status < 500, `${JSON.stringify(params)}: ${reply.status}`)
      assertPlain(reply.body)
    }
  })

  await t.test('other headers than those of messages', async () => {
    for (const [status, headers] of [
      [406, { accept: 'text/html' }], [406, { accept: 'application/jsonp' }], [415, { 'content-encoding': 'gzip' }],
      [403, { origin: 'https://evil.example' }], [403, { origin: `https://127.0.0.1:${hub.port}` }]
    ] as Array<[number, Record<string, string>]>) {
      const body = 'content-encoding' in headers ? gzipSync(JSON.stringify(ping)) : ping
      for (const reply of await both(body, { headers })) assertRefused(reply, status)
    }
    for (const version of ['1999-01-01', 'nonsense', '__proto__', '2025-06-18, 2025-03-26']) {
      assertRefused(await session.post(ping, { 'mcp-protocol-version': version }), 400)
      assertRefused(await send(url, { method: 'GET', headers: { ...session.headers, 'mcp-protocol-version': version } }), 400)
    }
    assert.equal((await send(url, { key: null, body: '{', headers: { origin: 'null' } })).status, 403, 'whatever else is wrong')
    for (const accept of ['*/*', 'application/json', 'text/event-stream', 'APPLICATION/JSON', 'text/html, */*;q=0.1']) {
      assert.equal((await session.post(ping, { accept })).status, 200, accept)
    }
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/json; profile=x']) {
      assert.equal((await session.post(JSON.stringify(ping), { 'content-type': type })).status, 200, type)
    }
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'mcp-session-id': session.id }
    const bare = await plain(url, { method: 'POST', headers, body: JSON.stringify(ping) })
    assert.equal(bare.status, 200, `neither Accept nor a version: ${bare.body}`)
  })

  await t.test('bodies that are too large, too deep, or no UTF-8', async () => {
    const body = (message: string): Json => ({ ...ping, method: 'tools/call', params: { name: 'fake-echo', arguments: { message } } })
    const bad = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,"method":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])
    for (const [status, ...bodies] of [
      [413, body('x'.repeat(1024 * 1024 + 1))],
      [400, nested(250), '['.repeat(100_000), bad]
    ] as Array<[number, ...unknown[]]>) {
      for (const each of bodies) for (const reply of await both(each)) assertRefused(reply, status)
    }
    assert.equal(text((await session.post(nested(150))).messages.at(-1)?.result), 'deep')
    // Brackets in a text are no levels.
    for (const message of ['x'.repeat(1_000_000), `"${'[{'.repeat(500)}\\`, 'ü€😀\u2028\u0000\ud83d\ude00']) {
      assert.equal(text((await session.post(body(message))).messages.at(-1)?.result), message)
    }
    await assertServes(hub)
  })

  await t.test('answers nobody asked for, and odd notifications', async () => {
    for (const body of [
      { jsonrpc: '2.0', id: 'nobody', result: {} },
      { jsonrpc: '2.0', id: null, error: { code: 1, message: 'x' } },
      { jsonrpc: '2.0', id: 1, result: {}, error: {} },
      { jsonrpc: '2.0', id: 1, method: 'ping', result: {} },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: {} } },
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: [] } },
      initialize()
    ]) {
      const reply = await session.post(body)
      assert.ok(reply.status < 500, `${JSON.stringify(body)}: ${reply.status}`)
      assertPlain(reply.body)
    }
    await assertServes(hub)
  })
})

test('whatever JSON comes: never a 500, never a stack trace', async (t) => {
  const { hub, url, session } = await start(t)
  const method = fc.oneof(
    fc.constantFrom(
      'tools/call', 'tools/list', 'prompts/get', 'resources/read', 'completion/complete', 'logging/setLevel',
      'initialize', 'ping', 'notifications/cancelled', 'notifications/initialized', 'resources/subscribe'
    ),
    fc.string()
  )
  const params = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(
      fc.constantFrom(
        'name', 'arguments', 'uri', 'ref', 'argument', 'cursor', 'level', 'requestId', '_meta',
        'capabilities', 'protocolVersion', '__proto__', 'task', 'context'
      ),
      fc.jsonValue()
    )
  )
  const message = fc.record(
    {
      jsonrpc: fc.oneof({ weight: 9, arbitrary: fc.constant<unknown>('2.0') }, { weight: 1, arbitrary: fc.jsonValue() }),
      id: fc.oneof(fc.integer(), fc.string(), fc.jsonValue()),
      method,
      params
    },
    { requiredKeys: [] }
  )
  await fc.assert(
    fc.asyncProperty(fc.oneof(message, fc.jsonValue(), fc.array(message, { maxLength: 4 })), fc.boolean(), async (body, inside) => {
      const reply = await send(url, { body: JSON.stringify(body), headers: inside ? session.headers : {} })
      assert.ok(reply.status < 500, `${reply.status} ${reply.body}`)
      assertPlain(reply.body)
    }),
    { numRuns: 100 }
  )
  await assertServes(hub)
})

test('a settings file with odd entries serves the rest, and is left as it is', async (t) => {
  const upstream = await startUpstream(t)
  const good = JSON.stringify({ type: 'streamable-http', url: upstream.url })
  const bad = ['__proto__', 'constructor', 'call', 'toString', '.hidden', '$smart', 'a/b', '', 'mcp'].map(
    (name) => `${JSON.stringify(name)}: ${good}`
  )
  const content = `{"x-unknown": {"kept": 12345678901234567890}, "mcpServers": {${bad.join(', ')}, "good": ${good}, "wrong": 42,
    "none": null, "list": [], "typed": {"type": "carrier-pigeon"}, "args": {"command": "node", "args": "no array"}},
    "bearerKeys": ${JSON.stringify(settings({}).bearerKeys)},
    "groups": [{"id": "x", "name": "ghosts", "servers": ["gone", "good"]}], "systemConfig": {"routing": {"unknown": true}}}`
  const hub = await startHub(t, { settings: content })
  await listed(hub, ['good'])
  const session = await Session.open(`${hub.url}/mcp`)
  assert.deepEqual(await session.tools(), ['good-echo'])
  assert.equal(text(await session.call('good-echo', { message: 'm' })), 'm')
  for (const name of ['__proto__', 'constructor', 'call', 'wrong']) {
    const reply = await within(name, send(`${hub.url}/mcp/${name}`, { body: initialize() }))
    assert.ok(reply.status >= 400 && reply.status !== 500, `${name}: ${reply.status}`)
  }
  const ghosts = await Session.open(`${hub.url}/mcp/ghosts`)
  assert.deepEqual(await ghosts.tools(), ['good-echo'])
  assert.equal(await hub.stop(), 0)
  const after = readFileSync(hub.settingsPath, 'utf8')
  for (const entry of [...bad, '"x-unknown"', '"carrier-pigeon"', '"ghosts"']) {
    assert.ok(after.includes(entry.split(':')[0] ?? ''), `${entry} was dropped`)
  }
})
