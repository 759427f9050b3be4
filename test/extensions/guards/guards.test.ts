// Guards on content: what they find, mask and refuse reaches neither side, and no place that keeps something of calls.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { sql } from 'drizzle-orm'
import { Refusal, startUpstream, tool, type Call, type Answer } from '../../fakes/fault-http.ts'
import { managed, startReplica } from '../../fakes/replica.ts'
import { driverOf } from '../../fakes/store-ports.ts'
import { at, connected, Session, settings, text, type Json } from '../../helpers/client.ts'
import { database } from '../../helpers/database.ts'
import { startHub, until, type Cleanup, type Hub } from '../../helpers/hub.ts'
import { modernRequest } from '../../helpers/modern-request.ts'

const email = 'canary.guard@secret-domain.org'
const card = '4111111111111111'
const token = 'ghp_CaNaRy0123456789abcdefghijklmnopqrst'
const canaries = [email, 'canary.guard', card, token]
const all = ['secrets', 'email', 'card', 'iban', 'phone']

const guard = (more: Json = {}): Json =>
  ({ id: 'g1', name: 'Private', enabled: true, on: 'both', detect: all, action: 'mask', ...more })

function assertClean (content: string, where: string): void {
  for (const each of canaries) {
    for (const form of [each, Buffer.from(each).toString('base64').replace(/=+$/, '').slice(2, -3), encodeURIComponent(each)]) {
      assert.ok(!content.includes(form), `${where} holds ${form}: ${content.slice(0, 2_000)}`)
    }
  }
}

const leaks = `${email} ${card} ${token}`
const long = Array.from({ length: 4_000 }, (_, line) => `line ${line} of ${email}`).join('\n')

/** Results and notifications with canaries wherever MCP has a text. */
function leak ({ method, params, notify }: Call): Answer {
  if (method === 'prompts/get') {
    return { description: leaks, messages: [{ role: 'user', content: { type: 'text', text: leaks } }] }
  }
  if (method === 'resources/read') return { contents: [{ uri: 'test://one', text: leaks }] }
  if (method === 'completion/complete') return { completion: { values: [email] } }
  if (method !== 'tools/call') return undefined
  if (params.name === 'breaks') return new Refusal(-5, `no such user ${email}`, { token })
  if (params.name === 'fails') return { content: [{ type: 'text', text: `failed for ${email}` }], isError: true }
  if (params.name === 'long') return { content: [{ type: 'text', text: long }] }
  if (params.name === 'noisy') {
    notify('notifications/progress', { progressToken: (params._meta as Json).progressToken, progress: 1, message: leaks })
    notify('notifications/message', { level: 'error', data: { leaks, deep: [{ long }] } })
  }
  return {
    content: [
      { type: 'text', text: leaks },
      { type: 'text', text: JSON.stringify({ user: email }).replace('@', '\\u0040') },
      { type: 'resource', resource: { uri: 'test://x', text: leaks } },
      { type: 'resource', resource: { uri: 'test://y', blob: Buffer.from(leaks).toString('base64') } },
      { type: 'resource_link', uri: 'test://z', name: leaks, description: leaks }
    ],
    structuredContent: { user: { email }, card: Number(card), [email]: [token], count: 12 },
    _meta: { 'x/note': leaks }
  }
}

const upstreamOptions = {
  tools: ['echo', 'breaks', 'fails', 'long', 'noisy'].map((name) => tool(name)),
  prompts: [{ name: 'greet', arguments: [{ name: 'who' }] }],
  resources: [{ uri: 'test://one', name: 'one' }],
  resourceTemplates: [{ uriTemplate: 'test://{user}', name: 'user' }],
  capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} },
  on: leak
}

/** All files of a gateway's folder, as text. */
function filesIn (folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n')
}

interface World { hub: Hub, received: () => string }

async function world (t: Cleanup, guards: Json[], more: Json = {}): Promise<World> {
  const upstream = await startUpstream(t, upstreamOptions)
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }, { guards, ...more }), env: { LOG_LEVEL: 'debug' } })
  await connected(hub, 1)
  const isCall = /^(tools|prompts|resources|completion)\/(call|get|read|complete)/
  const calls = (): typeof upstream.received => upstream.received.filter(({ message }) => isCall.test(message.method ?? ''))
  return { hub, received: () => calls().map(({ body, headers }) => body + JSON.stringify(headers)).join('\n') }
}

const nested = { to: email, list: [token, { n: Number(card) }], [email]: `see ${email}`, keep: '12345678901234567890' }

test('what a guard masks reaches neither the server nor the client, a record, a log, an original, or a file', async (t) => {
  const upstream = await startUpstream(t, upstreamOptions)
  const { url } = await database(t)
  const given = settings({ up: { url: upstream.url } }, {
    guards: [guard()],
    systemConfig: { toolResultCompression: { enabled: true, minTokens: 100, maxOutputTokens: 200 }, smartRouting: { enabled: true } }
  })
  const hub = await startReplica(t, url, { settings: given, env: { LOG_LEVEL: 'debug' } })
  await connected(hub, 1)
  const seen: string[] = []
  const note = (value: unknown): void => { seen.push(JSON.stringify(value)) }

  const session = await Session.open(`${hub.url}/mcp`)
  await session.request('logging/setLevel', { level: 'debug' })
  for (const name of ['echo', 'breaks', 'fails', 'long']) note(await session.request('tools/call', { name: `up-${name}`, arguments: nested }))
  const noisy = { jsonrpc: '2.0', id: 90, method: 'tools/call', params: { name: 'up-noisy', arguments: nested, _meta: { progressToken: 'p' } } }
  note((await session.post(noisy)).messages)
  note(await session.request('prompts/get', { name: 'up-greet', arguments: { who: email } }))
  note(await session.request('resources/read', { uri: 'test://one' }))
  note(await session.request('resources/read', { uri: `test://${email}` }))
  note(await session.request('completion/complete', {
    ref: { type: 'ref/prompt', name: 'up-greet' }, argument: { name: 'who', value: email }, context: { arguments: { x: token } }
  }))
  const smart = await Session.open(`${hub.url}/mcp/$smart`)
  note(await smart.request('tools/call', { name: 'search_tools', arguments: { query: `echo for ${email}` } }))
  note(await smart.request('tools/call', { name: 'call_tool', arguments: { toolName: 'up-echo', arguments: nested } }))
  const { headers, body } = modernRequest('tools/call', { params: { name: 'up-echo', arguments: nested }, capabilities: {} })
  note(await (await fetch(`${hub.url}/mcp`, { method: 'POST', headers, body })).json())
  const rest = await managed(hub, 'POST', '/tools/call/up', { toolName: 'echo', arguments: nested })
  note({ ...rest, arguments: undefined })
  note(await managed(hub, 'POST', '/resources/read', { uri: 'test://one' }))

  for (const [at, each] of seen.entries()) assertClean(each, `answer ${at}`)
  assert.match(seen.join('\n'), /\[email\].*\[card\].*\[secret\]/s)
  const sent = upstream.received.map(({ body, headers }) => body + JSON.stringify(headers)).join('\n')
  assertClean(sent, 'what the server got')
  assert.ok(sent.includes('"keep":"12345678901234567890"'))

  // Everything that keeps something of calls.
  let rows: Json[] = []
  await until(async () => {
    rows = await managed(hub, 'GET', '/activities?limit=100') as unknown as Json[]
    return rows.length >= 12
  }, () => JSON.stringify(rows).slice(0, 2_000))
  assertClean(JSON.stringify(rows), 'the records')
  const [found] = (rows.find(({ tool }) => tool === 'echo')?.guards ?? []) as Json[]
  assert.deepEqual([found?.id, found?.action, (found?.found as string[]).sort()], ['g1', 'mask', ['card', 'email', 'secrets']])
  const [, link] = (JSON.parse(seen[3] ?? '{}') as { result: { content: Json[] } }).result.content
  assert.equal(link?.type, 'resource_link', seen[3]?.slice(0, 500))
  const original = await session.request('resources/read', { uri: link.uri })
  assert.match(JSON.stringify(original), /line 9 of \[email\]/)
  assertClean(JSON.stringify(original), 'the original')
  assertClean(hub.output(), 'the log')
  assert.match(hub.output(), /a guard found content/)
  assertClean(JSON.stringify(await managed(hub, 'GET', '/logs')), 'the logs of the API')
  const metrics = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: headers.authorization ?? '' } })).text()
  assert.match(metrics, /toolhub_guard_findings_total [1-9]/)
  assertClean(metrics, 'the metrics')
  const driver = await driverOf(t, url)
  const tables = await driver.db.execute(sql`select schemaname, tablename from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`)
  for (const { schemaname, tablename } of tables as unknown as Array<{ schemaname: string, tablename: string }>) {
    const table = sql`${sql.identifier(schemaname)}.${sql.identifier(tablename)}`
    const content = await driver.db.execute(sql`select row_to_json(x)::text as row from ${table} x`)
    assertClean(JSON.stringify(content), `the table ${tablename}`)
  }
  await hub.stop()
  assert.ok(statSync(hub.folder).isDirectory())
  assertClean(filesIn(hub.folder), 'a file')
})

test('a guard flags without changing anything, and its log has no content', async (t) => {
  const { hub, received } = await world(t, [guard({ action: 'flag' })])
  const session = await Session.open(`${hub.url}/mcp`)
  assert.equal(at((await session.request('tools/call', { name: 'up-echo', arguments: { to: email } })).result, 'content', 0, 'text'), leaks)
  assert.ok(received().includes(email))
  assert.match(hub.output(), /a guard found content/)
  assertClean(hub.output(), 'the log')
})

test('a guard refuses: a tool error, a JSON-RPC error, 403; the server is not asked', async (t) => {
  const { hub, received } = await world(t, [guard({ on: 'arguments', action: 'refuse', detect: ['email'] })])
  const session = await Session.open(`${hub.url}/mcp`)
  const refused = await session.request('tools/call', { name: 'up-echo', arguments: { to: email } })
  assert.deepEqual(refused.result, {
    content: [{ type: 'text', text: 'The guard "Private" refuses this call: the arguments contain an e-mail address' }], isError: true
  })
  const prompt = await session.request('prompts/get', { name: 'up-greet', arguments: { who: email } })
  assert.equal(prompt.error?.code, -32000)
  const rest = await fetch(`${hub.url}/api/tools/up/echo?to=${encodeURIComponent(email)}`, { headers: modernRequest('ping', {}).headers })
  assert.equal(rest.status, 403)
  assert.equal(received(), '')
  assertClean(hub.output(), 'the log')
  assert.equal((await session.request('tools/call', { name: 'up-echo', arguments: { to: 'nobody' } })).result?.isError, undefined)
})

test('a refused result is refused as a whole, errors and notifications too', async (t) => {
  const { hub } = await world(t, [guard({ on: 'results', action: 'refuse', detect: ['email'] })])
  const session = await Session.open(`${hub.url}/mcp`)
  for (const name of ['echo', 'breaks', 'fails', 'long']) {
    const { result } = await session.request('tools/call', { name: `up-${name}` })
    assert.deepEqual([result?.isError, text(result)], [true, 'The guard "Private" refuses this call: the results contain an e-mail address'])
  }
  const noisy = { jsonrpc: '2.0', id: 90, method: 'tools/call', params: { name: 'up-noisy', _meta: { progressToken: 'p' } } }
  const { messages } = await session.post(noisy)
  assert.deepEqual(messages.map(({ method, id }) => method ?? id), [90])
  assertClean(hub.output(), 'the log')
})

test('servers and tools narrow a guard; one for tools leaves prompts and resources alone', async (t) => {
  const { hub } = await world(t, [guard({ servers: ['up'], tools: ['fails'] }), guard({ id: 'g2', servers: ['other'] })])
  const session = await Session.open(`${hub.url}/mcp`)
  const said = async (name: string): Promise<string> => String(at((await session.request('tools/call', { name: `up-${name}` })).result, 'content', 0, 'text'))
  assert.equal(await said('fails'), 'failed for [email]')
  assert.equal(await said('echo'), leaks)
  const { result } = await session.request('prompts/get', { name: 'up-greet' })
  assert.equal(at(result, 'messages', 0, 'content', 'text'), leaks)
})

test('messages that belong to no request are searched, too', async (t) => {
  const upstream = await startUpstream(t, upstreamOptions)
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url, isolation: 'session' } }, { guards: [guard()] }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/up`)
  await session.request('tools/call', { name: 'echo' })
  const stream = await session.listen()
  await upstream.broadcast('notifications/message', { level: 'error', data: leaks })
  const message = await stream.wait(({ method }) => method === 'notifications/message')
  assert.equal(message.params?.data, '[email] [card] [secret]')
})

test('notifications that are searched in a thread come in their order, before the result', async (t) => {
  const upstream = await startUpstream(t, {
    ...upstreamOptions,
    on: ({ method, params, notify }) => {
      if (method !== 'tools/call') return undefined
      const { progressToken } = params._meta as Json
      for (const [index, message] of [long, 'short', long, 'last'].entries()) {
        notify('notifications/progress', { progressToken, progress: index + 1, message })
      }
      return { content: [{ type: 'text', text: 'done' }] }
    }
  })
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }, { guards: [guard()] }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'up-echo', _meta: { progressToken: 'p' } } }
  const { messages } = await session.post(call)
  assert.deepEqual(messages.map(({ id, params }) => id ?? params?.progress), [1, 2, 3, 4, 7])
  assertClean(JSON.stringify(messages), 'the stream')
})

test('what is sent beside the arguments is searched: other members of params, _meta, ref, a subscription', async (t) => {
  const capabilities = { ...upstreamOptions.capabilities, resources: { subscribe: true } }
  const upstream = await startUpstream(t, { ...upstreamOptions, capabilities })
  const given = settings({ up: { url: upstream.url } }, { guards: [guard({ on: 'arguments' })] })
  const hub = await startHub(t, { settings: given })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const params = { name: 'up-noisy', arguments: {}, extra: { note: leaks }, _meta: { progressToken: card, 'x/note': [leaks] } }
  const { messages } = await session.post({ jsonrpc: '2.0', id: 90, method: 'tools/call', params })
  assert.ok(messages.some((each) => each.params?.progressToken === card), 'the progress token is the client\'s own')
  await session.request('prompts/get', { name: 'up-greet', extra: leaks, _meta: { note: leaks } })
  await session.request('resources/read', { uri: 'test://one', extra: leaks, _meta: { note: leaks } })
  const argument = { name: 'who', value: 'bo' }
  await session.request('completion/complete', { ref: { type: 'ref/prompt', name: 'up-greet' }, argument, _meta: { note: leaks } })
  const sent = upstream.received.map(({ body }) => body)
  for (const method of ['tools/call', 'prompts/get', 'resources/read', 'completion/complete']) {
    assert.ok(sent.some((body) => body.includes(`"${method}"`) && body.includes('[email] [card] [secret]')), method)
  }
  const refused = [
    await session.request('completion/complete', { ref: { type: 'ref/prompt', name: 'up-greet', title: email }, argument }),
    await session.request('resources/subscribe', { uri: `test://${email}` }),
    await session.request('resources/subscribe', { uri: 'test://one', _meta: { note: email } })
  ]
  assert.deepEqual(refused.map(({ error }) => error?.message), [
    'The guard "Private" refuses this call: "ref" contains what it masks',
    'The guard "Private" refuses this call: the params contain what it masks',
    'The guard "Private" refuses this call: the params contain what it masks'
  ])
  await session.request('resources/subscribe', { uri: 'test://one', _meta: { progressToken: card } })
  const own = await Session.open(`${hub.url}/mcp/up`)
  await own.request('x/search', { name: leaks })
  const all = upstream.received.map(({ body }) => body).join('\n')
  assertClean(all, 'what the server got')
  assert.match(all, /"resources\/subscribe"/)
  assert.match(all, /"x\/search","params":\{"name":"\[email\] \[card\] \[secret\]"/)
})

test('what another member gets a call refused for leaves the records of its arguments masked', async (t) => {
  const guards = [guard({ on: 'arguments', action: 'refuse', detect: ['secrets'] }), guard({ id: 'g2', on: 'arguments' })]
  const upstream = await startUpstream(t, upstreamOptions)
  const { url } = await database(t)
  const hub = await startReplica(t, url, { settings: settings({ up: { url: upstream.url } }, { guards }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const { result } = await session.request('tools/call', { name: 'up-echo', arguments: nested, _meta: { note: token } })
  assert.match(text(result), /refuses this call: the arguments contain a secret/)
  let rows: Json[] = []
  await until(async () => {
    rows = await managed(hub, 'GET', '/activities?limit=10') as unknown as Json[]
    return rows.length > 0
  }, 'no record')
  assertClean(JSON.stringify(rows), 'the records')
  assert.ok(upstream.received.every(({ message }) => message.method !== 'tools/call'))
})

test('many members of params are searched as one text, their names too', async (t) => {
  const upstream = await startUpstream(t, upstreamOptions)
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }, { guards: [guard({ on: 'arguments' })] }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`m${n}`, { data: [...'A'.repeat(2_000), email] }]))
  const params = JSON.stringify({ name: 'up-echo', ...many, [email]: 1 }).replace(/\}$/, `,"__proto__":"${email}"}`)
  await session.post({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: JSON.parse(params) as Json })
  const sent = upstream.received.findLast(({ message }) => message.method === 'tools/call')?.body ?? ''
  assert.equal(sent.split('[email]').length, 23)
  assertClean(sent, 'what the server got')
})

test('what a client says when it cancels is searched', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('waits')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url } }, { guards: [guard({ on: 'arguments' })] }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  const has = (method: string): string | undefined => upstream.received.find(({ message }) => message.method === method)?.body
  const cancel = async (params: Json): Promise<void> => {
    const open = session.start({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'up-waits', arguments: {} } })
    await until(() => has('tools/call') !== undefined, 'no call')
    await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9, ...params } })
    await open
  }
  await cancel({ reason: `stop ${email}`, _meta: { 'x/note': leaks } })
  await until(() => has('notifications/cancelled') !== undefined, 'no cancellation')
  assert.match(has('notifications/cancelled') ?? '', /"reason":"stop \[email\]".*\[email\] \[card\] \[secret\]/)
  assertClean(JSON.stringify(upstream.received.map(({ body }) => body)) + hub.output(), 'what the server got, and the log')
})
