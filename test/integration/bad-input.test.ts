import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import {
  assertPlain, assertRefused, connected, failed, initialize, KEY, listed, plain, send, Session, settings, text, within,
  type Json, type SendOptions, type Stream
} from '../helpers/client.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { startHub, type Cleanup, type Hub } from '../helpers/hub.ts'

const JSON_AND_SSE = 'application/json, text/event-stream'

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
  const { url, session, both } = await start(t)

  await t.test('malformed JSON: 400, -32700', async () => {
    for (const body of [
      '{', '', ' ', 'hello', '{"jsonrpc":"2.0","id":1,"method":"ping"', '{"jsonrpc":"2.0","id":1,"method":"ping"}}',
      '{"jsonrpc":"2.0",}', '[', "{'jsonrpc':'2.0'}", 'NaN', '\u0000', '{"a":"\n"}',
      `${JSON.stringify(ping)}${JSON.stringify(ping)}`
    ]) {
      for (const reply of await both(body)) assertRefused(reply, 400, -32700)
    }
  })

  await t.test('wrong shapes: 400, -32600', async () => {
    for (const body of [
      '{}', '42', '"text"', 'null', 'true', '[]', { jsonrpc: '1.0', id: 1, method: 'ping' },
      { id: 1, method: 'ping' }, { jsonrpc: 2, id: 1, method: 'ping' }, { jsonrpc: '2.0', id: 1 },
      { jsonrpc: '2.0', id: 1, method: 7 }, { jsonrpc: '2.0', id: 1, method: null },
      { jsonrpc: '2.0', id: 1, method: {} }, { jsonrpc: '2.0', id: {}, method: 'ping' },
      { jsonrpc: '2.0', id: [1], method: 'ping' }, { jsonrpc: '2.0', id: true, method: 'ping' },
      { jsonrpc: '2.0', id: null, method: 'ping' }
    ]) {
      const [inside, outside] = (await both(body)) as [Stream, Stream]
      assertRefused(inside, 400, -32600)
      assertRefused(outside, 400)
    }
  })

  await t.test('parameters of a wrong shape: a JSON-RPC error, not more', async () => {
    for (const [method, params] of [
      ['tools/call', undefined],
      ['tools/call', {}],
      ['tools/call', { name: 7 }],
      ['tools/call', { name: null }],
      ['tools/call', { name: ['fake-echo'] }],
      ['tools/call', { name: '' }],
      ['prompts/get', {}],
      ['prompts/get', { name: {} }],
      ['resources/read', {}],
      ['resources/read', { uri: 7 }],
      ['resources/subscribe', {}],
      ['completion/complete', {}],
      ['completion/complete', { ref: null }],
      ['completion/complete', { ref: { type: 'ref/prompt' } }],
      ['completion/complete', { ref: { type: 'nope', name: 'p' }, argument: { name: 'a', value: 'b' } }],
      ['logging/setLevel', {}],
      ['logging/setLevel', { level: 'loudest' }],
      ['tools/list', { cursor: 'nonsense' }],
      ['tools/list', { cursor: '__proto__' }]
    ] as const) {
      const reply = await session.post({ jsonrpc: '2.0', id: 1, method, params })
      assert.ok(reply.status === 200 || reply.status === 400, `${method} ${JSON.stringify(params)}: ${reply.status}`)
      assertPlain(reply.body)
      const message = reply.messages.at(-1) ?? {}
      if (method !== 'tools/list') assert.ok(failed(message), `${method} ${JSON.stringify(params)}: ${reply.body}`)
    }
    for (const params of ['text', 7, true]) {
      const reply = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params })
      assert.ok(reply.status === 200 || reply.status === 400, reply.body)
      assert.ok(reply.messages.at(-1)?.error !== undefined, reply.body)
      assertPlain(reply.body)
    }
    for (const params of [undefined, {}, { protocolVersion: 7 }, { protocolVersion: '2025-11-25', capabilities: 'all' }, null, []]) {
      const reply = await send(url, { body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } })
      assert.ok(reply.status < 500, `${JSON.stringify(params)}: ${reply.status}`)
      assertPlain(reply.body)
    }
  })

  await t.test('unknown methods: -32601 under the request\'s id', async () => {
    for (const method of [
      'nope', '', 'tools/nope', 'constructor', '__proto__', 'toString', 'rpc.discover', 'Tools/List',
      'x'.repeat(5_000)
    ]) {
      const message = await session.request(method, {})
      assert.equal(message.error?.code, -32601, `${method.slice(0, 40)}: ${JSON.stringify(message)}`)
    }
  })
})

test('bad headers of a message', async (t) => {
  const { url, session, both } = await start(t)

  await t.test('Accept: 406 only where neither JSON nor SSE is taken', async () => {
    for (const accept of ['text/html', 'image/*', 'text/plain, application/xml', 'application/jsonp']) {
      for (const reply of await both(ping, { headers: { accept } })) assertRefused(reply, 406)
      assertRefused(await send(url, { method: 'GET', headers: { ...session.headers, accept } }), 406)
    }
    for (const accept of [
      '*/*',
      'application/json',
      'text/event-stream',
      'application/*',
      'APPLICATION/JSON',
      JSON_AND_SSE,
      'application/json;q=0.9, text/event-stream;q=0.1',
      'text/html, */*;q=0.1'
    ]) {
      const reply = await session.post(ping, { accept })
      assert.equal(reply.status, 200, `${accept}: ${reply.body}`)
      assert.deepEqual(reply.messages.at(-1)?.result, {})
    }
    const absent = await plain(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...session.headers },
      body: JSON.stringify(ping)
    })
    assert.equal(absent.status, 200, absent.body)
  })

  await t.test('Content-Type: 415 for anything but JSON', async () => {
    for (const type of [
      'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/xml',
      'text/json', 'application/jsonx', '\tapplication/json\tx'
    ]) {
      for (const reply of await both(JSON.stringify(ping), { headers: { 'content-type': type } })) assertRefused(reply, 415)
    }
    const absent = await plain(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, accept: JSON_AND_SSE, ...session.headers },
      body: JSON.stringify(ping)
    })
    assert.equal(absent.status, 415, absent.body)
    for (const type of [
      'application/json; charset=utf-8', 'Application/JSON', 'application/json;charset="UTF-8"',
      'application/json; Charset=UTF8', 'application/json; profile=x'
    ]) {
      assert.equal((await session.post(JSON.stringify(ping), { 'content-type': type })).status, 200, type)
    }
    for (const reply of await both(gzipSync(JSON.stringify(ping)), { headers: { 'content-encoding': 'gzip' } })) assertRefused(reply, 415)
  })
})

test('bad bodies', async (t) => {
  const { hub, url, session, both } = await start(t)

  await t.test('a body over jsonBodyLimit: 413; one under it passes', async () => {
    const body = (size: number): Json => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'fake-echo', arguments: { message: 'x'.repeat(size) } }
    })
    for (const reply of await both(body(1024 * 1024 + 1))) assertRefused(reply, 413)
    assert.equal(text((await session.post(body(1_000_000))).messages.at(-1)?.result).length, 1_000_000)
    const chunked = await plain(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        accept: JSON_AND_SSE,
        'content-type': 'application/json',
        'transfer-encoding': 'chunked',
        ...session.headers
      },
      body: JSON.stringify(body(2 * 1024 * 1024))
    }).catch(() => ({ status: 413 }))
    assert.equal(chunked.status, 413)
    await assertServes(hub)
  })

  await t.test('JSON deeper than 200 levels: 400', async () => {
    for (const body of [nested(250), '['.repeat(100_000), '{"a":'.repeat(50_000) + '1' + '}'.repeat(50_000)]) {
      for (const reply of await both(body)) assertRefused(reply, 400)
    }
    const shallow = await session.post(nested(150))
    assert.equal(text(shallow.messages.at(-1)?.result), 'deep', shallow.body)
    // brackets in a text are no levels
    const brackets = await session.post({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'fake-echo', arguments: { message: `"${'[{'.repeat(500)}\\` } }
    })
    assert.equal(text(brackets.messages.at(-1)?.result), `"${'[{'.repeat(500)}\\`)
  })

  await t.test('invalid UTF-8: 400', async () => {
    for (const bytes of [[0xff], [0xc3, 0x28], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf8, 0x88, 0x80, 0x80, 0x80]]) {
      const body = Buffer.concat([
        Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake-echo","arguments":{"message":"'),
        Buffer.from(bytes),
        Buffer.from('"}}}')
      ])
      for (const reply of await both(body)) assertRefused(reply, 400)
    }
    const fine = 'ü€😀\u2028\u0000\ud83d\ude00'
    assert.equal(text(await session.call('fake-echo', { message: fine })), fine)
  })
})

test('foreign versions, origins and hosts', async (t) => {
  const { upstream, hub, url, session, both } = await start(t)

  await t.test('MCP-Protocol-Version: 400 for what is not supported', async () => {
    for (const version of ['1999-01-01', '2025-13-45', 'nonsense', '1', '__proto__', '2025-06-18, 2025-03-26']) {
      assertRefused(await session.post(ping, { 'mcp-protocol-version': version }), 400)
      assertRefused(await send(url, { method: 'GET', headers: { ...session.headers, 'mcp-protocol-version': version } }), 400)
    }
    const absent = await send(url, { body: ping, headers: { 'mcp-session-id': session.id } })
    assert.equal(absent.status, 200, absent.body)
  })

  await t.test('a foreign Origin: 403, whatever else is right or wrong', async () => {
    for (const origin of [
      'https://evil.example', 'null', `http://evil.example:${hub.port}`, `https://127.0.0.1:${hub.port}`,
      `http://127.0.0.1.evil.example:${hub.port}`, 'http://127.0.0.1:1', `http://127.0.0.1:${hub.port}@evil.example`,
      'nonsense'
    ]) {
      for (const reply of await both(ping, { headers: { origin } })) assertRefused(reply, 403)
      for (const method of ['GET', 'DELETE']) assertRefused(await send(url, { method, headers: { ...session.headers, origin } }), 403)
      assert.equal((await send(url, { key: null, body: '{', headers: { origin } })).status, 403)
    }
    assert.equal((await session.post(ping, { origin: `http://127.0.0.1:${hub.port}` })).status, 200)
  })

  await t.test('a foreign Host on loopback: 403', async () => {
    const headers = { authorization: `Bearer ${KEY}`, accept: JSON_AND_SSE, 'content-type': 'application/json', ...session.headers }
    const with_ = async (host: string): Promise<number> => {
      const reply = await plain(url, { method: 'POST', headers: { ...headers, host }, body: JSON.stringify(ping) })
      assertPlain(reply.body)
      return reply.status
    }
    for (const host of [
      'evil.example', `evil.example:${hub.port}`, '169.254.169.254', `127.0.0.1.evil.example:${hub.port}`,
      `localhost.evil.example:${hub.port}`, '0.0.0.0.evil'
    ]) { assert.equal(await with_(host), 403, host) }
    for (const host of [`127.0.0.1:${hub.port}`, `localhost:${hub.port}`, `[::1]:${hub.port}`]) assert.equal(await with_(host), 200, host)
  })

  await t.test('ALLOWED_ORIGINS and ALLOWED_HOSTS widen them; a smaller jsonBodyLimit holds', async (t) => {
    const hub = await startHub(t, {
      env: { ALLOWED_ORIGINS: 'https://app.example', ALLOWED_HOSTS: 'mcp.example' },
      settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }, { systemConfig: { routing: { jsonBodyLimit: '10kb' } } })
    })
    const url = `${hub.url}/mcp`
    assert.equal((await send(url, { body: initialize(), headers: { origin: 'https://app.example' } })).status, 200)
    assertRefused(await send(url, { body: initialize(), headers: { origin: 'https://app.example.evil' } }), 403)
    const headers = { authorization: `Bearer ${KEY}`, accept: JSON_AND_SSE, 'content-type': 'application/json' }
    assert.equal(
      (await plain(url, { method: 'POST', headers: { ...headers, host: 'mcp.example' }, body: JSON.stringify(initialize()) })).status,
      200
    )
    assert.equal(
      (await plain(url, { method: 'POST', headers: { ...headers, host: 'evil.example' }, body: JSON.stringify(initialize()) })).status,
      403
    )
    const padded = (size: number): Json => initialize('2025-11-25', { experimental: { padding: 'x'.repeat(size) } })
    assertRefused(await send(url, { body: padded(11 * 1024) }), 413)
    assert.equal((await send(url, { body: padded(8 * 1024) })).status, 200)
  })
})

test('bad requests that are no messages', async (t) => {
  const { hub, url, session } = await start(t)

  await t.test('other methods and other paths', async () => {
    const headers = { authorization: `Bearer ${KEY}` }
    for (const method of ['PUT', 'PATCH', 'PROPFIND', 'HEAD', 'OPTIONS']) {
      const reply = await plain(url, { method, headers })
      assert.ok(reply.status >= 200 && reply.status < 500 && !(method.startsWith('P') && reply.status < 400), `${method}: ${reply.status}`)
      assertPlain(reply.body)
    }
    for (const name of [
      '/nope', '/mcp/%', '/mcp/%E0%A4%A', '/mcp/%00', '/mcp/..%2f..%2fetc%2fpasswd', '/mcp/a/b/c/d',
      `/mcp/${'a'.repeat(3_000)}`, '/MCP', '/api/nope', '/api/mcp/%zz', '/mcp/$nothing', '/mcp/%24%7B7*7%7D'
    ]) {
      for (const method of ['GET', 'POST']) {
        const reply = await plain(`http://127.0.0.1:${hub.port}${name}`, {
          method,
          headers: { ...headers, ...(method === 'POST' ? { 'content-type': 'application/json', accept: JSON_AND_SSE } : {}) },
          body: method === 'POST' ? JSON.stringify(initialize()) : undefined
        })
        assert.ok(reply.status >= 400 && reply.status < 500, `${method} ${name.slice(0, 60)}: ${reply.status} ${reply.body.slice(0, 300)}`)
        assertPlain(reply.body)
        assert.match(String(reply.headers['content-type']), /json/, `${method} ${name.slice(0, 60)}`)
      }
    }
    await assertServes(hub)
  })

  await t.test('odd headers', async () => {
    for (const headers of [
      { 'mcp-session-id': 'x'.repeat(3_000) }, { 'mcp-session-id': '' }, { 'mcp-session-id': '../../etc' },
      { 'mcp-session-id': '__proto__' }, { 'last-event-id': 'nonsense' }, { 'last-event-id': 'x'.repeat(3_000) }
    ] as Record<string, string>[]) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const reply = await send(url, { method, body: method === 'POST' ? ping : undefined, headers })
        assert.ok(reply.status >= 400 && reply.status < 500, `${method} ${Object.keys(headers).join()}: ${reply.status}`)
        assertPlain(reply.body)
      }
    }
    const stream = await session.listen('nonsense')
    assert.ok(stream.status < 500, String(stream.status))
    stream.close()
    await assertServes(hub)
  })
})

test('bad traffic within a session', async (t) => {
  const { hub, session } = await start(t)

  await t.test('answers nobody asked for, and odd notifications', async () => {
    for (const body of [
      { jsonrpc: '2.0', id: 'nobody', result: {} },
      { jsonrpc: '2.0', id: 0, error: { code: 1, message: 'x' } },
      { jsonrpc: '2.0', id: null, error: { code: 1, message: 'x' } },
      { jsonrpc: '2.0', id: 1, result: null },
      { jsonrpc: '2.0', id: 1, result: {}, error: {} },
      { jsonrpc: '2.0', id: 1, method: 'ping', result: {} },
      { jsonrpc: '2.0', method: 'notifications/cancelled' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: {} } },
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: [] } },
      { jsonrpc: '2.0', method: 'tools/call', params: { name: 'fake-echo' } },
      { jsonrpc: '2.0', method: 'initialize' },
      { jsonrpc: '2.0', id: 1, method: 'notifications/initialized' },
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'twice', version: '1' } }
      }
    ]) {
      const reply = await session.post(body)
      assert.ok(reply.status < 500, `${JSON.stringify(body)}: ${reply.status}`)
      assertPlain(reply.body)
    }
    await assertServes(hub)
  })

  await t.test('bodies and bytes that stop half-way', async () => {
    const half = [
      'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"json',
      'POST /mcp HT',
      'GET / HTTP/9.9\r\n\r\n',
      '\u0000\u0001\u0002\r\n\r\n',
      'POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nHost: a\r\n\r\nzzz\r\n',
      `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n\r\n`
    ]
    for (const bytes of half) {
      const socket = createConnection(hub.port, '127.0.0.1')
      let answer = ''
      socket.on('data', (chunk) => { answer += String(chunk) }).on('error', () => {})
      const closed = new Promise((resolve) => { socket.once('close', resolve) })
      socket.end(bytes)
      await within('the end of the connection', closed)
      assert.doesNotMatch(answer, /^HTTP\/1\.1 5/, answer)
      assertPlain(answer)
    }
    await assertServes(hub)
  })
})

test('whatever JSON comes: never a 500, never a stack trace', async (t) => {
  const { hub, url, session } = await start(t)
  const method = fc.oneof(
    fc.constantFrom(
      'tools/call',
      'tools/list',
      'prompts/get',
      'resources/read',
      'completion/complete',
      'logging/setLevel',
      'initialize',
      'ping',
      'notifications/cancelled',
      'notifications/initialized',
      'resources/subscribe'
    ),
    fc.string()
  )
  const params = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(
      fc.constantFrom(
        'name',
        'arguments',
        'uri',
        'ref',
        'argument',
        'cursor',
        'level',
        'requestId',
        '_meta',
        'capabilities',
        'protocolVersion',
        '__proto__',
        'task',
        'context'
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

test('a settings file that is none', async (t) => {
  for (const [what, content] of Object.entries({
    'does not parse': '{"mcpServers": {',
    'has a trailing comma': '{"mcpServers": {},}\n',
    'is an array': '[]',
    'is empty': '',
    'is null': 'null',
    'is a text': '"mcpServers"',
    'is cut in the middle': JSON.stringify(settings({ one: { url: 'http://127.0.0.1:1' } })).slice(0, -10),
    'is binary': Buffer.from([0, 1, 2, 0xff, 0xfe])
  })) {
    await t.test(what, async (t) => {
      const folder = await temporaryFolder(t)
      await assert.rejects(startHub(t, { settings: content, folder }), ({ message }: Error) => {
        assert.ok(message.includes('mcp_settings.json'), `the file is not named: ${message}`)
        assert.doesNotMatch(message, /^\s+at .+:\d+:\d+\)?$/m)
        return true
      })
      assert.deepEqual(readFileSync(join(folder, 'mcp_settings.json')), Buffer.from(content))
    })
  }
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
