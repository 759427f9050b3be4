// `$smart` as clients see it: two tools in place of all, which find and call them. The ranking is tested by words*.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { CreateMessageRequestSchema, ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { FastifyInstance } from 'fastify'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { test, type Test } from 'tap'
import type { FinishedCall } from '../../../plugins/gateway/hooks.ts'
import { startUpstream, tool, type Upstream } from '../../fakes/fault-http.ts'
import { appFor } from '../../helpers/app.ts'
import { agent, at, failure, KEY, names, Session, settings, text, type Json } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'
import { openSession } from '../../helpers/inject.ts'

const weather = tool('forecast', {
  description: 'Tells the weather of the next days',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  outputSchema: { type: 'object', properties: { degrees: { type: 'number' } }, required: ['degrees'] }
})
const team = [{ name: 'mail', tools: ['send'], alias: 'post' }]
const group = { id: '33333333-3333-4333-8333-333333333333', name: 'team', owner: 'admin', servers: team }

interface World { app: FastifyInstance, url: string, sky: Upstream, mail: Upstream, calls: FinishedCall[] }

async function start (t: Test, smartRouting: Json = {}): Promise<World> {
  const sky = await startUpstream(t, {
    tools: [weather, tool('ask'), tool('slow'), tool('work')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'test://one', name: 'one' }],
    on: async (call) => {
      if (call.method !== 'tools/call') return undefined
      const { name, arguments: args } = call.params as { name: string, arguments: Json }
      if (name === 'forecast') return { content: [{ type: 'text', text: String(args.city) }], structuredContent: { degrees: 21 } }
      if (name === 'slow') return 'never'
      if (name === 'work') {
        const token = at(call.params, '_meta', 'progressToken')
        for (const progress of [1, 2]) call.notify('notifications/progress', { progressToken: token, progress, total: 2 })
      }
      if (name === 'ask') {
        const sampled = await call.ask('sampling/createMessage', { messages: [], maxTokens: 10 })
        const chosen = await call.ask('elicitation/create', { message: 'Which?', requestedSchema: { type: 'object', properties: {} } })
        const said = [at(sampled.result, 'content', 'text'), at(chosen.result, 'content', 'answer')]
        return { content: [{ type: 'text', text: said.join(' ') }] }
      }
      return undefined
    }
  })
  const mail = await startUpstream(t, {
    tools: [tool('send', { description: 'Sends a letter' }), tool('delete', { description: 'Deletes a letter' })]
  })
  const visibility = 'public'
  const app = await appFor(t, settings({
    sky: { type: 'streamable-http', url: sky.url, visibility, isolation: 'session' },
    mail: { type: 'streamable-http', url: mail.url, visibility }
  }, { groups: [group], systemConfig: { smartRouting } }))
  const calls: FinishedCall[] = []
  app.gateway.addHook('onDone', (call) => { calls.push(call) })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  await until(() => ['sky', 'mail'].every((name) => app.upstreams.get(name)?.status === 'connected'))
  return { app, url, sky, mail, calls }
}

interface Found { name: string, description: string, inputSchema?: Json, serverName: string, score: number }
interface Answer { tools: Found[], metadata: Json }

const answerOf = (result: unknown): Answer => {
  const answer = at(result, 'structuredContent') as Answer
  assert.deepEqual(JSON.parse(text(result)), answer, 'the text is the same as structuredContent')
  return answer
}
const found = async (session: Session, query: string): Promise<string[]> =>
  names(answerOf(await session.call('search_tools', { query })).tools)

void test('a client lists two tools, finds others and calls them', async (t) => {
  const { app, url, calls } = await start(t)
  const client = await agent(t, `${url}/mcp/$smart`)
  const { tools } = await client.listTools()
  assert.deepEqual(names(tools), ['search_tools', 'call_tool'])
  assert.match(String(tools[0]?.description), /Servers: sky, mail\.$/)
  assert.deepEqual(tools[0]?.inputSchema.properties?.limit, { type: 'integer', minimum: 1, maximum: 100, default: 10 })
  const { tools: results, metadata } = answerOf(await client.callTool({ name: 'search_tools', arguments: { query: 'weather' } }))
  assert.equal(results[0]?.name, 'sky-forecast')
  assert.equal(results[0].serverName, 'sky')
  assert.equal(results[0].description, weather.description)
  assert.deepEqual(results[0].inputSchema, weather.inputSchema, 'as it is, where there is room')
  assert.ok(results.every(({ score }) => score > 0 && score <= 1))
  assert.deepEqual(metadata, { mode: 'words' })

  const result = await client.callTool({ name: 'call_tool', arguments: { toolName: 'sky-forecast', arguments: { city: 'Bern' } } })
  assert.deepEqual([text(result), result.structuredContent], ['Bern', { degrees: 21 }])
  assert.deepEqual(
    calls.filter(({ exchange }) => exchange.method === 'tools/call').map(({ provider, item, outcome }) => [provider, item, outcome]),
    [['$smart', 'search_tools', 'ok'], ['sky', 'forecast', 'ok']],
    'each call is observed once, that of call_tool as the call that it names'
  )
  await app.settings.change(({ system }) => [{ entity: 'systemConfig', value: { ...system, toolResultCompression: { enabled: true, minTokens: 10, maxOutputTokens: 20 } } }])
  const again = await client.callTool({ name: 'search_tools', arguments: { query: 'weather' } })
  assert.equal(answerOf(again).tools.length, results.length, 'what was found is not compressed')
  assert.deepEqual(names((await client.listPrompts()).prompts), ['sky-greet'])
  assert.deepEqual((await client.listResources()).resources.map(({ uri }) => uri), ['test://one'])
})

void test('progress, cancellation and questions are those of the named tool', async (t) => {
  const { url, sky, calls } = await start(t)
  const client = await agent(t, `${url}/mcp/$smart`, {
    capabilities: { sampling: {}, elicitation: { form: {} } },
    prepare: (client) => {
      const sampled = { model: 'm', role: 'assistant' as const, content: { type: 'text' as const, text: 'sampled' } }
      client.setRequestHandler(CreateMessageRequestSchema, () => sampled)
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { answer: 'chosen' } }))
    }
  })
  const run = (toolName: string) => ({ name: 'call_tool', arguments: { toolName, arguments: {} } })
  assert.equal(text(await client.callTool(run('sky-ask'))), 'sampled chosen')
  const steps: number[] = []
  await client.callTool(run('sky-work'), undefined, { onprogress: ({ progress }) => { steps.push(progress) } })
  assert.deepEqual(steps, [1, 2])
  const ending = new AbortController()
  const slow = client.callTool(run('sky-slow'), undefined, { signal: ending.signal })
  await until(() => sky.received.some(({ message }) => message.params?.name === 'slow'))
  ending.abort('enough')
  await assert.rejects(slow)
  await until(() => sky.cancelled.length === 1)
  await until(() => calls.some(({ item, outcome }) => item === 'slow' && outcome === 'failure'))
})

void test('arguments keep their bytes, and names that are unknown are refused with a hint', async (t) => {
  const { url, mail } = await start(t)
  const session = await Session.open(`${url}/mcp/$smart`)
  const body = '{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"call_tool","arguments":' +
    '{"toolName":"mail-send","arguments":{"n":12345678901234567890,"__proto__":{"a":1e400}}}}}'
  assert.equal((await session.post(body)).messages[0]?.error, undefined)
  assert.ok(mail.received.at(-1)?.body.includes('{"n":12345678901234567890,"__proto__":{"a":1e400}}'))
  assert.equal(text(await session.call('call_tool', { toolName: 'mail-send', arguments: '{"message":"as a text"}' })), 'as a text')
  assert.equal(text(await session.call('call_tool', { toolName: 'mail-send' })), 'send')

  const unknown = await session.request('tools/call', { name: 'call_tool', arguments: { toolName: 'mail-nothing', arguments: {} } })
  assert.equal(unknown.error?.code, -32602)
  assert.equal(unknown.error.message, 'Unknown tool: mail-nothing. search_tools finds the names of tools, and call_tool calls them')
  const direct = await session.request('tools/call', { name: 'mail-send', arguments: {} })
  assert.equal(direct.error?.message, 'Unknown tool: mail-send. search_tools finds the names of tools, and call_tool calls them')
  const flat = await session.request('tools/call', { name: 'call_tool', arguments: { toolName: 'mail-send', message: 'flat' } })
  assert.equal(flat.error?.message, 'Invalid params: put "message" into "arguments", beside "toolName"')
  for (const args of [{}, { toolName: 7 }, { toolName: '' }, { toolName: 'mail-send', arguments: [] }, { toolName: 'mail-send', arguments: 'x' }]) {
    const message = await session.request('tools/call', { name: 'call_tool', arguments: args })
    assert.equal(message.error?.code, -32602, JSON.stringify(args))
  }
  for (const args of [{}, { query: 1 }, ...[0, 101, 1.5, '0', '101', '1.5', 'two', ''].map((limit) => ({ query: 'x', limit }))]) {
    assert.equal((await session.request('tools/call', { name: 'search_tools', arguments: args })).error?.code, -32602, JSON.stringify(args))
  }
  assert.equal((await session.request('tools/call', { name: 'call_tool', arguments: { toolName: 'call_tool' } })).error?.code, -32602)
})

void test('a question that finds nothing is told what to do, and which servers there are', async (t) => {
  const { url } = await start(t)
  const session = await Session.open(`${url}/mcp/$smart`)
  const hintFor = async (query: string): Promise<unknown> => {
    const { tools, metadata } = answerOf(await session.call('search_tools', { query }))
    assert.deepEqual(tools, [])
    return metadata.hint
  }
  for (const query of ['', ' \t\n']) {
    assert.equal(await hintFor(query), 'Describe the task in "query", in a few words. Servers: sky, mail.')
  }
  assert.equal(await hintFor('qqqqqqqq'), 'No tool matches these words. Try other words, preferably in English. Servers: sky, mail.')
  assert.equal(answerOf(await session.call('search_tools', { query: 'letter' })).metadata.hint, undefined)
  const inGroup = await Session.open(`${url}/mcp/$smart/team`)
  assert.match(String(answerOf(await inGroup.call('search_tools', { query: 'weather' })).metadata.hint), /Servers: mail\.$/, 'of the view only')
})

void test('groups, servers, users, aliases and SSE', async (t) => {
  const { url } = await start(t)
  const inGroup = await Session.open(`${url}/mcp/$smart/team`)
  assert.match(String(at(await inGroup.list('tools/list', 'tools'), 0, 'description')), /Servers: mail\.$/)
  assert.deepEqual(await found(inGroup, 'letter'), ['post-send'])
  assert.equal(text(await inGroup.call('call_tool', { toolName: 'post-send', arguments: { message: 'hi' } })), 'hi')
  assert.match(failure(await inGroup.request('tools/call', { name: 'call_tool', arguments: { toolName: 'post-delete' } })), /^Unknown tool/)

  const onServer = await Session.open(`${url}/mcp/$smart/mail`)
  assert.deepEqual((await found(onServer, 'letter')).sort(), ['mail-delete', 'mail-send'])
  assert.equal(at(onServer.init, 'serverInfo', 'name'), 'tool-hub')
  for (const path of [
    '/admin/mcp/$smart', '/admin/mcp/$smart/team', '/api/mcp/$smart', '/api/mcp/$smart/mail', '/mcp/%24smart', '/mcp/%24smart/mail'
  ]) {
    assert.ok((await found(await Session.open(`${url}${path}`), 'sends a letter')).length > 0, path)
  }
  for (const path of ['/sse/$smart', '/sse/$smart/team', '/admin/sse/$smart', '/sse/%24smart']) {
    const client = new Client({ name: 'sse', version: '1' })
    const authorization = `Bearer ${KEY}`
    const authorized: typeof fetch = async (address, init) =>
      await fetch(address, { ...init, headers: { ...init?.headers as Record<string, string>, authorization } })
    await client.connect(new SSEClientTransport(new URL(`${url}${path}`), {
      requestInit: { headers: { authorization } },
      eventSourceInit: { fetch: authorized }
    }))
    t.after(async () => { await client.close() })
    assert.deepEqual(names((await client.listTools()).tools), ['search_tools', 'call_tool'], path)
    const [first] = answerOf(await client.callTool({ name: 'search_tools', arguments: { query: 'sends a letter' } })).tools
    assert.equal(text(await client.callTool({ name: 'call_tool', arguments: { toolName: first?.name, arguments: { message: 'x' } } })), 'x')
  }
  for (const path of ['/mcp/$smart/nothing', '/mcp/$smart/$smart']) {
    const reply = await fetch(`${url}${path}`, { method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body: '{}' })
    assert.equal(reply.status, 404, path)
  }
})

void test('tools and settings that change: lists follow, and what is off is not there', async (t) => {
  const { app, url, mail } = await start(t)
  let changes = 0
  const client = await agent(t, `${url}/mcp/$smart`, {
    prepare: (client) => { client.setNotificationHandler(ToolListChangedNotificationSchema, () => { changes++ }) }
  })
  const search = async (query: string): Promise<string[]> =>
    names(answerOf(await client.callTool({ name: 'search_tools', arguments: { query } })).tools)
  assert.deepEqual(await search('parcel'), [])
  mail.options.tools = [tool('ship', { description: 'Ships a parcel' })]
  await mail.broadcast('notifications/tools/list_changed')
  await until(async () => (await search('parcel')).join() === 'mail-ship')
  assert.ok(!(await search('letter')).includes('mail-send'))
  assert.equal(changes, 0, 'the list of tools is the same')

  const set = async (smartRouting: Json | undefined): Promise<void> => {
    await app.settings.change(({ system }) => [{ entity: 'systemConfig', value: { ...system, smartRouting } }])
  }
  await set({ progressiveDisclosure: true })
  await until(() => changes === 1)
  const { tools } = await client.listTools()
  assert.deepEqual(names(tools), ['search_tools', 'describe_tool', 'call_tool'])
  const [first] = answerOf(await client.callTool({ name: 'search_tools', arguments: { query: 'parcel' } })).tools
  assert.deepEqual(Object.keys(first ?? {}), ['name', 'description', 'serverName', 'score'])
  const described = await client.callTool({ name: 'describe_tool', arguments: { toolName: 'mail-ship' } })
  assert.deepEqual(described.structuredContent, { ...tool('ship', { description: 'Ships a parcel' }), name: 'mail-ship' })
  await assert.rejects(client.callTool({ name: 'describe_tool', arguments: { toolName: 'mail-nothing' } }), /Unknown tool: mail-nothing\. search_tools/)
  const server = app.settings.current.servers.get('mail')
  await app.settings.change(() => [{ entity: 'mcpServers', key: 'mail', value: { ...server?.config, enabled: false } }])
  await until(() => changes === 2)
  assert.match(String((await client.listTools()).tools[0]?.description), /Servers: sky\.$/)

  await set({ enabled: false })
  await assert.rejects(client.listTools())
  await assert.rejects(agent(t, `${url}/mcp/$smart`), /no such group or server/)
  assert.deepEqual((await (await Session.open(`${url}/mcp`)).tools()).filter((name) => name.endsWith('_tool')), [])
  await set(undefined)
  assert.deepEqual(names((await (await agent(t, `${url}/mcp/$smart`)).listTools()).tools), ['search_tools', 'call_tool'])
})

/** A tool as large as those of real servers are: some sentences, and a schema of described parameters. */
const largeTool = (verb: string, noun: string): Json => tool(`${verb}_${noun}`, {
  title: `${verb} ${noun}`,
  description: `${verb.replace(/^./, (first) => first.toUpperCase())}s one or several of the ${noun}s in a project that the user has ` +
    'access to, and returns what has changed since. Use this when the user asks for it explicitly. Do not use it for archived projects.',
  inputSchema: {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    additionalProperties: false,
    properties: {
      project: { type: 'string', description: `The id of the project that holds the ${noun}, as list_projects returned it` },
      [`${noun}_ids`]: { type: 'array', items: { type: 'string' }, description: `Ids of the ${noun}s, at most one hundred of them` },
      state: { type: 'string', enum: ['open', 'closed', 'all'], default: 'open', description: 'Which of them, by their state' },
      fields: {
        type: 'object',
        description: 'What to change of each of them; what is left out stays as it is',
        properties: { title: { type: 'string' }, body: { type: 'string', description: 'Markdown' }, labels: { type: 'array', items: { type: 'string' } } }
      },
      page: { type: 'integer', minimum: 1, description: 'The page, from 1' },
      per_page: { type: 'integer', minimum: 1, maximum: 100, description: 'Results on a page, at most 100' }
    },
    required: ['project', `${noun}_ids`]
  },
  annotations: { readOnlyHint: false, openWorldHint: true }
})

void test('400 tools: the list and an answer of five are less than 1,320 tokens', async (t) => {
  const verbs = ['create', 'update', 'delete', 'list', 'get', 'move', 'copy', 'share', 'archive', 'export']
  const nouns = [
    'issue', 'page', 'file', 'row', 'ticket', 'event', 'contact', 'invoice', 'branch', 'release', 'comment', 'label', 'channel', 'message',
    'task', 'board', 'sprint', 'customer', 'order', 'product', 'payment', 'refund', 'campaign', 'segment', 'dashboard', 'alert', 'metric',
    'deployment', 'container', 'cluster', 'bucket', 'queue', 'secret', 'table', 'index', 'query', 'template', 'form', 'survey', 'webhook'
  ]
  const upstreams = await Promise.all(nouns.map(async (noun) =>
    [`${noun}hub`, await startUpstream(t, { tools: verbs.map((verb) => largeTool(verb, noun)) })] as const))
  const app = await appFor(t, settings(Object.fromEntries(upstreams.map(([name, { url }]) => [name, { type: 'streamable-http', url, visibility: 'public' }]))))
  await until(() => upstreams.every(([name]) => app.upstreams.get(name)?.status === 'connected'))
  const tokens = (value: unknown): number => encode(JSON.stringify(value)).length
  const [merged, smart] = await Promise.all([openSession(app, '/mcp', KEY), openSession(app, '/mcp/$smart', KEY)])
  const all = (await merged.request('tools/list')).result
  assert.equal((all?.tools as Json[]).length, 400)
  const list = (await smart.request('tools/list')).result
  const { result } = await smart.request('tools/call', { name: 'search_tools', arguments: { query: 'create an issue in a project', limit: 5 } })
  assert.equal(answerOf(result).tools.length, 5)
  t.comment(`tokens: all ${tokens(all)}, list of $smart ${tokens(list)}, five found ${encode(text(result)).length}, with structuredContent ${tokens(result)}`)
  assert.ok(tokens(list) + tokens(result) < 1_320, 'also if a client shows its model both forms of the answer')
  for (const { inputSchema } of answerOf(result).tools) {
    assert.deepEqual(Object.keys(at(inputSchema, 'properties') as Json).length, 6, 'no parameter is left out')
    assert.equal((at(inputSchema, 'required') as string[]).length, 2)
  }
  assert.match(String(answerOf(result).metadata.shortened), /limit 1/)
  const whole = (await smart.request('tools/call', { name: 'search_tools', arguments: { query: 'issuehub create_issue', limit: 1 } })).result
  const [only] = answerOf(whole).tools
  const named = (all?.tools as Json[]).find(({ name }) => name === only?.name)
  assert.deepEqual([only?.description, only?.inputSchema], [named?.description, named?.inputSchema], 'the only one is whole')
})

void test('hostile tools: large, deep and odd ones are found, and hold nothing up', async (t) => {
  const deep = JSON.parse(`${'{"type":"object","properties":{"a":'.repeat(150)}{"type":"string"}${'}}'.repeat(150)}`) as Json
  const odd = 'a zebra\u0000\u202e 动物 \u{1f993}'
  const upstream = await startUpstream(t, {
    tools: [
      tool('huge', { description: `${odd} ${'zebra '.repeat(3_000)}`, inputSchema: { type: 'object', properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`p${n}`, { type: 'string', description: 'zebra '.repeat(10) }])) } }),
      tool('deep', { description: odd, inputSchema: deep }),
      tool('none', { description: odd, inputSchema: { type: 'object', properties: [], required: 7, enum: 'x', $defs: null, description: 9 } }),
      tool('plain', { description: 'A zebra' })
    ]
  })
  const app = await appFor(t, settings({ zoo: { type: 'streamable-http', url: upstream.url, visibility: 'public' } }))
  await until(() => app.upstreams.get('zoo')?.status === 'connected')
  const session = await openSession(app, '/mcp/$smart', KEY)
  for (const limit of [1, 2, 10]) {
    const { result } = await session.request('tools/call', { name: 'search_tools', arguments: { query: 'zebra', limit } })
    assert.equal(answerOf(result).tools.length, Math.min(limit, 4))
    assert.ok(text(result).length < 32 * 1024, String(text(result).length))
  }
  const many = 'zebra '.repeat(100_000)
  assert.ok(answerOf((await session.request('tools/call', { name: 'search_tools', arguments: { query: many } })).result).tools.length > 0)
  const { result } = await session.request('tools/call', { name: 'search_tools', arguments: { query: 'zebra', limit: '2' } })
  assert.equal(answerOf(result).tools.length, 2, 'a number that a model wrote as a text')
})
