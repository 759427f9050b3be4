// What servers say is passed on as it came: lists, results, errors, arguments and news.
import assert from 'node:assert/strict'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import { at, KEY, names, Session, type Json, type Message } from '../helpers/client.ts'
import { Raw, Refusal, startUpstream, tool } from '../fakes/fault-http.ts'
import { path, until } from '../helpers/hub.ts'
import { call } from '../helpers/wire.ts'

test('what is passed on is passed on as it came', async (t) => {
  const result =
    '{"content":[{"type":"text","text":"x","odd":12345678901234567890}],"structuredContent":{"big":12345678901234567890,"huge":1e400,' +
    '"one":1.0},"messages":[],"contents":[],"x-unknown":{"deep":[1e400,null]},"_meta":{"vendor/a":9007199254740993}}'
  const odd = tool('odd', {
    title: 'Odd',
    icons: [{ src: 'https://example.com/i.png', 'x-icon': 1 }],
    outputSchema: { type: 'object', 'x-schema': true },
    annotations: { readOnlyHint: true, 'x-hint': 'kept' },
    execution: { taskSupport: 'optional' },
    _meta: { 'vendor/b': { c: [1] } },
    'x-tool': { nested: [true, null, 'ü'] }
  })
  const many = (kind: string): Json[] => Array.from({ length: 5 }, (_, index) => ({ name: `${kind}-${index}`, 'x-item': index }))
  const sent = {
    capabilities: {
      tools: { listChanged: true, 'x-tools': 1 },
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      logging: {},
      completions: {},
      experimental: { 'vendor/c': { d: 1 } }
    },
    serverInfo: { name: 'exact', title: 'Exact', version: '9.9.9', websiteUrl: 'https://example.com', 'x-info': [1] },
    instructions: 'Use the exact tools exactly.'
  }
  const upstream = await startUpstream(t, {
    ...sent,
    pageSize: 2,
    tools: [odd, tool('raw'), tool('streamed'), tool('refused'), tool('talk'), tool('slow')],
    prompts: many('prompt'),
    resources: many('resource').map((one) => ({ ...one, uri: `exact://${String(one.name)}` })),
    resourceTemplates: many('template').map((one) => ({ ...one, uriTemplate: `exact://${String(one.name)}/{id}` })),
    on: async ({ method, params, notify }) => {
      if (method === 'prompts/get' || method === 'resources/read') return new Raw(result)
      if (method === 'completion/complete') return new Raw('{"completion":{"values":["a"],"total":12345678901234567890},"x-unknown":1.0}')
      if (method === 'vendor/unknown') return new Raw('{"vendor":1e400}')
      if (method !== 'tools/call') return undefined
      if (params.name === 'raw') return new Raw(result)
      if (params.name === 'refused') return new Refusal(-32055, 'nope', { why: ['because', 1] })
      if (params.name === 'streamed') {
        const progressToken = at(params, '_meta', 'progressToken')
        notify('notifications/progress', { progressToken, progress: 1, total: 2, message: 'half', 'x-progress': [1] })
        return new Raw(result)
      }
      if (params.name === 'talk') {
        notify('notifications/message', { level: 'info', logger: 'l', data: { said: 'info' } })
        notify('notifications/message', { level: 'error', logger: 'l', data: { said: 'error' } })
        return undefined
      }
      return undefined
    }
  })
  const other = await startUpstream(t)
  const hub = await served(t, {
    exact: { type: 'streamable-http', url: upstream.url, headers: { 'x-static': 'yes' } },
    other: { type: 'streamable-http', url: other.url },
    child: { type: 'stdio', command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
  })
  const global = await Session.open(`${hub.url}/mcp`)
  const single = await Session.open(`${hub.url}/mcp/exact`)

  await t.test('a single-server route\'s initialize: capabilities, serverInfo and instructions, unknown fields included', async () => {
    assert.deepEqual(
      { capabilities: single.init.capabilities, serverInfo: single.init.serverInfo, instructions: single.init.instructions },
      sent
    )
    assert.ok(String(global.init.instructions).includes(sent.instructions), String(global.init.instructions))
  })
  await t.test('every page of an upstream\'s lists is followed, and nothing of an item is lost', async () => {
    const kinds = [
      ['tools/list', 'tools', 6],
      ['prompts/list', 'prompts', 5],
      ['resources/list', 'resources', 5],
      ['resources/templates/list', 'resourceTemplates', 5]
    ] as const
    for (const [method, key, count] of kinds) {
      const expected = upstream.options[key] ?? []
      assert.equal(expected.length, count)
      assert.deepEqual(await single.list(method, key), expected, method)
      const merged = (await global.list(method, key)).filter(
        (item) => /exact/.test(String(item.name)) || /^exact:/.test(String(item.uri ?? item.uriTemplate))
      )
      const qualified = key === 'tools' || key === 'prompts'
      assert.deepEqual(merged, expected.map((item) => qualified ? { ...item, name: `exact-${String(item.name)}` } : item), method)
    }
  })
  await t.test('big numbers and unknown fields of results', async () => {
    for (const [session, prefix] of [[global, 'exact-'], [single, '']] as const) {
      for (const [method, params] of [
        ['tools/call', { name: `${prefix}raw`, arguments: {} }],
        ['prompts/get', { name: `${prefix}prompt-1` }],
        ['resources/read', { uri: 'exact://resource-3' }]
      ] as const) {
        const reply = await session.post({ jsonrpc: '2.0', id: 'r', method, params })
        assert.equal(reply.status, 200)
        assert.ok(reply.body.includes(result), `${method}: ${reply.body}`)
      }
      const streaming = { name: `${prefix}streamed`, arguments: {}, _meta: { progressToken: 0 } }
      const streamed = await session.post({ jsonrpc: '2.0', id: 's', method: 'tools/call', params: streaming })
      assert.ok(streamed.sse && streamed.body.includes(result), streamed.body)
      const progress = streamed.messages.find((one) => one.method === 'notifications/progress')
      assert.deepEqual(progress?.params, { progressToken: 0, progress: 1, total: 2, message: 'half', 'x-progress': [1] })
    }
    const completed = { ref: { type: 'ref/prompt', name: 'prompt-1' }, argument: { name: 'a', value: '' } }
    const completion = await single.post({ jsonrpc: '2.0', id: 'c', method: 'completion/complete', params: completed })
    assert.ok(completion.body.includes('{"completion":{"values":["a"],"total":12345678901234567890},"x-unknown":1.0}'), completion.body)
    const child = await global.post(call('child-raw', { json: result }))
    assert.ok(child.body.includes(result), child.body)
  })
  await t.test('big numbers and unknown fields of arguments', async () => {
    const args = '{"n":12345678901234567890,"huge":1e400,"nested":{"x-unknown":[1e-400,{"__proto__":{"a":1}}]},"text":"ü"}'
    for (const [session, name] of [[global, 'exact-raw'], [single, 'raw'], [single, 'exact-raw']] as const) {
      await session.post(
        `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":${JSON.stringify(name)},"arguments":${args},` +
        '"_meta":{"vendor/key":{"z":9007199254740993}},"x-param":[1e400]}}'
      )
      const { body, message } = upstream.received.filter((one) => one.message.method === 'tools/call').at(-1) ?? {
        body: '',
        message: {} as Message
      }
      assert.equal(message.params?.name, 'raw')
      for (const piece of [args, '"vendor/key":{"z":9007199254740993}', '"x-param":[1e400]']) {
        assert.ok(body.includes(piece), `${piece} is not in ${body}`)
      }
    }
  })
  await t.test('an upstream\'s error: code, message and data', async () => {
    for (const [session, name] of [[global, 'exact-refused'], [single, 'refused']] as const) {
      const { error } = await session.request('tools/call', { name, arguments: {} })
      assert.deepEqual(error, { code: -32055, message: 'nope', data: { why: ['because', 1] } })
    }
  })
  await t.test('ping is answered, an unknown method refused on merged routes and handed on by single-server ones', async () => {
    assert.deepEqual(await global.ask('ping'), {})
    assert.deepEqual(await single.ask('ping'), {})
    assert.equal((await global.request('vendor/unknown', {})).error?.code, -32601)
    const reply = await single.post({ jsonrpc: '2.0', id: 1, method: 'vendor/unknown', params: {} })
    assert.ok(reply.body.includes('{"vendor":1e400}'), reply.body)
    assert.equal((await single.request('vendor/else', {})).error?.code, -32601)
  })
  await t.test('subscribing and levels: what goes up and what comes down, errors too', async () => {
    const on = upstream.options.on
    upstream.options.on = (call) => {
      if (call.method === 'logging/setLevel' && call.params.level === 'alert') return new Refusal(-32099, 'no alerts here', { a: 1 })
      if (call.method === 'resources/subscribe') {
        return call.params.uri === 'exact://none' ? new Refusal(-32098, 'no such thing', 7) : new Raw('{"_meta":{"n":1.0}}')
      }
      return call.method === 'resources/unsubscribe' ? new Raw('{"x":1e400}') : on?.(call)
    }
    const own = await Session.open(`${hub.url}/mcp/exact`, { capabilities: { sampling: {} } })
    const raw = async (method: string, params: string): Promise<string> =>
      (await own.post(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`)).body
    const params = '{"uri":"exact://resource-3","n":1.0,"_meta":{"my":1e400}}'
    assert.match(await raw('resources/subscribe', params), /"result":\{"_meta":\{"n":1\.0\}\}/)
    assert.match(await raw('resources/unsubscribe', params.replace('"my"', '"progressToken":1,"my"')), /"result":\{"x":1e400\}/)
    for (const method of ['subscribe', 'unsubscribe']) {
      assert.ok(
        upstream.received.some(({ message, body }) => message.method === `resources/${method}` && body.includes(`"params":${params}`)),
        method
      )
    }
    const errorOf = async (method: string, params: Json): Promise<unknown> => (await own.request(method, params)).error
    assert.deepEqual(await errorOf('resources/subscribe', { uri: 'exact://none' }), { code: -32098, message: 'no such thing', data: 7 })
    assert.deepEqual(await errorOf('logging/setLevel', { level: 'alert' }), { code: -32099, message: 'no alerts here', data: { a: 1 } })
    const talk = await own.start(call('talk'))
    await talk.done
    assert.deepEqual(
      talk.messages.flatMap(({ method, params }) => (method === 'notifications/message' ? [params?.level] : [])),
      ['info', 'error'],
      'a level that was refused is none'
    )
    await own.end()
    upstream.options.on = on
  })
  await t.test('the level a client set is the level it hears', async () => {
    const quiet = await Session.open(`${hub.url}/mcp/exact`)
    const loud = await Session.open(`${hub.url}/mcp/exact`)
    await loud.ask('logging/setLevel', { level: 'debug' })
    await quiet.ask('logging/setLevel', { level: 'error' })
    assert.ok(upstream.received.some(({ message }) => message.method === 'logging/setLevel' && message.params?.level === 'debug'))
    for (const [session, expected] of [[quiet, ['error']], [loud, ['error', 'info']]] as const) {
      const stream = await session.listen()
      const reply = await session.post(call('talk'))
      const levels = (): string[] => [...reply.messages, ...stream.messages]
        .flatMap(({ method, params }) => method === 'notifications/message' ? [String(params?.level)] : [])
      // Of what the server says, the error is the last.
      await until(() => levels().includes('error'), 'no message')
      assert.deepEqual([...new Set(levels())].sort(), expected)
      stream.close()
    }
  })
  await t.test('list_changed reaches the sessions it concerns, and the list has changed', async () => {
    const elsewhere = await (await Session.open(`${hub.url}/mcp/other`)).listen()
    const stream = await global.listen()
    const one = await single.listen()
    upstream.options.tools = [...upstream.options.tools ?? [], tool('new')]
    await upstream.broadcast('notifications/tools/list_changed')
    await stream.wait((message) => message.method === 'notifications/tools/list_changed')
    await one.wait((message) => message.method === 'notifications/tools/list_changed')
    assert.ok((await global.tools()).includes('exact-new'))
    assert.ok((await single.tools()).includes('new'))
    for (const kind of ['prompts', 'resources'] as const) {
      upstream.options[kind] = upstream.options[kind]?.slice(1)
      await upstream.broadcast(`notifications/${kind}/list_changed`)
      await stream.wait(({ method }) => method === `notifications/${kind}/list_changed`)
    }
    assert.ok(!names(await global.list('prompts/list', 'prompts')).includes('exact-prompt-0'))
    assert.ok(!names(await global.list('resources/list', 'resources')).includes('resource-0'))
    await global.call('child-grow', { name: 'grown' })
    await until(async () => (await global.tools()).includes('child-grown'), 'the stdio server\'s new tool never showed')
    assert.equal(elsewhere.messages.length, 0, JSON.stringify(elsewhere.messages))
    for (const opened of [elsewhere, stream, one]) opened.close()
  })
  await t.test('a tool that is new is there at once, whatever its server said before', async () => {
    const grow = async (name: string, session: Session): Promise<void> => {
      upstream.options.tools = [...upstream.options.tools ?? [], tool(name)]
      await upstream.broadcast('notifications/tools/list_changed')
      // The answer of a call is behind the news.
      await session.call(session === global ? 'exact-raw' : 'raw', {})
    }
    // News that are none make the gateway slow to believe the next.
    for (let n = 0; n < 5; n++) {
      const read = upstream.count('tools/list')
      await upstream.broadcast('notifications/tools/list_changed')
      await until(() => upstream.count('tools/list') > read, 'the list is not read again')
    }
    await grow('called', single)
    assert.equal((await single.request('tools/call', { name: 'called', arguments: {} })).error, undefined)
    await grow('listed', global)
    assert.ok((await global.tools()).includes('exact-listed'))
    await grow('both', global)
    const [called, listed] = await Promise.all([global.request('tools/call', { name: 'exact-both', arguments: {} }), global.tools()])
    assert.deepEqual([called.error, listed.includes('exact-both')], [undefined, true])
  })
  await t.test('configured headers go upstream, the caller\'s key never does', async () => {
    assert.ok(upstream.received.every(({ headers }) => headers['x-static'] === 'yes'))
    for (const { headers, body } of [...upstream.received, ...other.received]) {
      assert.ok(!JSON.stringify(headers).includes(KEY) && !body.includes(KEY))
    }
  })
})
