// What clients are shown of servers, and what they reach by it: names and lists while servers come and go, errors, records.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test } from 'tap'
import { Raw, Refusal, startUpstream, tool, type Options, type Upstream } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { at, connected, failure, KEY, Session, settings, text, type Json, type Message } from '../helpers/client.ts'
import { startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { alive, stdioFake } from '../helpers/stdio-fake.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'

const http = (url: string, more: Json = {}): Json => ({ type: 'streamable-http', url, ...more })
const statusOf = async (hub: Hub, name: string): Promise<unknown> => (await managed(hub, 'GET', `/servers/${name}`)).status

/** A gateway with one server `a`, connected. */
async function startOne (t: Cleanup, options: Options = {}, config: Json = {}, more: Json = {}): Promise<{ hub: Hub, upstream: Upstream }> {
  const upstream = await startUpstream(t, options)
  const hub = await startHub(t, { settings: settings({ a: http(upstream.url, config) }, more) })
  await connected(hub, 1)
  return { hub, upstream }
}

test('lists that fail', async (t) => {
  await t.test('what was known stays, on disk as well, and it is asked again', async (t) => {
    setLimits(t, upstreamLimits, { listRetry: 100 })
    let broken = false
    const { hub, upstream } = await startOne(t, {
      prompts: [{ name: 'p' }],
      on: ({ method }) => method === 'tools/list' && broken ? new Refusal(-32603, 'database busy') : undefined
    })
    const session = await Session.open(`${hub.url}/mcp/a`)
    const kept = join(hub.folder, '.tool-hub', 'catalogues')
    const isKept = (): boolean =>
      readdirSync(kept).some((file) => file.endsWith('.json') && readFileSync(join(kept, file), 'utf8').includes('"echo'))
    await until(isKept, 'never kept on disk')
    broken = true
    await managed(hub, 'POST', '/servers/a/reload')
    await until(async () => await statusOf(hub, 'a') === 'connected', 'not connected')
    assert.deepEqual(await session.tools(), ['echo'])
    assert.ok(isKept())
    upstream.options.tools = [tool('echo'), tool('more')]
    broken = false
    await until(async () => (await session.tools()).includes('more'), 'never asked again')
  })

  await t.test('one that is never answered does not take the others with it', async (t) => {
    setLimits(t, upstreamLimits, { listTime: 500, listRetry: 100 })
    const { hub } = await startOne(t, {
      resources: [{ uri: 'fault://r', name: 'r' }],
      prompts: [{ name: 'p' }],
      on: ({ method }) => (method === 'prompts/list' ? 'never' : undefined)
    })
    const session = await Session.open(`${hub.url}/mcp/a`)
    await until(async () => (await session.tools()).includes('echo'), 'its tools are not listed')
    assert.equal(text(await session.call('echo', { message: 'here' })), 'here')
  })
})

test('a server without a type that moved to another transport is found there', async (t) => {
  const upstream = await startUpstream(t)
  const sse = new Set<ServerResponse>()
  let old = true
  upstream.options.raw = (req, res) => {
    if (!old) return false
    if (req.method === 'GET') {
      sse.add(res.writeHead(200, { 'content-type': 'text/event-stream' }))
      res.write('event: endpoint\ndata: /messages\n\n')
      return true
    }
    if (req.url !== '/messages') { res.writeHead(405).end(); return true }
    let body = ''
    req.on('data', (chunk) => { body += String(chunk) }).on('end', () => {
      res.writeHead(202).end()
      const { id, method } = JSON.parse(body) as Message
      if (id === undefined) return
      const results: Record<string, Json> = {
        initialize: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } },
        'tools/list': { tools: [tool('by-sse')] }
      }
      const result = results[method ?? ''] ?? {}
      for (const stream of sse) stream.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    })
    return true
  }
  const hub = await startHub(t, { settings: settings({ a: { url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/a`)
  assert.deepEqual(await session.tools(), ['by-sse'])
  old = false
  for (const stream of sse) stream.end()
  await until(async () => (await session.tools()).includes('echo'), () => `not found: ${hub.output()}`)
})

test('what is asked of a server that is still connecting waits for it: on its own route, on merged ones, and over REST', async (t) => {
  let answer = (): void => {}
  const answered = new Promise<void>((resolve) => { answer = resolve })
  const slow = await startUpstream(t, {
    prompts: [{ name: 'greet' }],
    on: async ({ method }) => {
      if (method === 'initialize') await answered
      return method === 'prompts/get' ? { messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }] } : undefined
    }
  })
  const never = await startUpstream(t, { on: ({ method }) => method === 'initialize' ? 'never' : undefined })
  const groups = [{ id: 'g1', name: 'crew', servers: [{ name: 's', alias: 'x' }] }]
  const hub = await startHub(t, { settings: settings({ s: http(slow.url), 'dead-end': http(never.url) }, { groups }) })
  const [session, crew] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp/crew`)]
  const call = async (by: Session, name: string): Promise<Message> => await by.request('tools/call', { name, arguments: { message: 'hello' } })
  const opened = Session.open(`${hub.url}/mcp/s`)
  const calls = [call(session, 's-echo'), call(crew, 'x-echo'), opened.then(async (own) => await call(own, 'echo'))]
  const others = Promise.all([opened.then(async (own) => await own.tools()), managed(hub, 'POST', '/mcp/s/prompts/greet', {})])
  assert.equal((await call(session, 'nothing-echo')).error?.code, -32602)
  answer()
  assert.deepEqual((await Promise.all(calls)).map(({ result }) => text(result)), ['hello', 'hello', 'hello'])
  const [tools, prompt] = await others
  assert.deepEqual([tools, text(prompt)], [['echo'], 'hello'])
  setLimits(t, gatewayLimits, { connectionWait: 100 })
  const dead = await call(session, 'dead-end-echo')
  assert.equal(dead.error?.code, -32001)
  assert.match(failure(dead), /"dead-end" is not connected: it is still connecting/)
})

test('a call that waits for a new server to connect goes on waiting when the server is reloaded or changed', async (t) => {
  for (const how of ['reload', 'change']) {
    let isSilent = true
    const slow = await startUpstream(t, { on: ({ method }) => method === 'initialize' && isSilent ? 'never' : undefined })
    const hub = await startHub(t, { settings: settings({ s: http(slow.url) }) })
    const session = await Session.open(`${hub.url}/mcp`)
    const args = { message: 'hello' }
    const calls = Promise.all([session.call('s-echo', args), managed(hub, 'POST', '/tools/call/s', { toolName: 'echo', arguments: args })])
    await until(() => slow.count('initialize') > 0)
    assert.equal(await statusOf(hub, 's'), 'connecting')
    isSilent = false
    if (how === 'reload') await managed(hub, 'POST', '/servers/s/reload')
    else await managed(hub, 'PUT', '/servers/s', { config: http(slow.url, { headers: { 'x-changed': 'yes' } }) })
    assert.deepEqual((await calls).map(text), ['hello', 'hello'], how)
  }
})

test('what is no request of a client\'s own runs nothing', async (t) => {
  const { hub, upstream } = await startOne(t, { tools: [tool('echo'), tool('wipe')] }, { tools: { wipe: { enabled: false } } })
  const session = await Session.open(`${hub.url}/mcp/a`)
  await session.call('echo')
  upstream.received.length = 0
  await session.notify('tools/call', { name: 'wipe', arguments: {} })
  await session.notify('initialize', {})
  await session.notify('resources/read', { uri: 'x' })
  for (const method of ['notifications/cancelled', 'notifications/anything', 'initialize']) {
    assert.ok((await session.request(method, { requestId: 1 })).error, method)
  }
  await session.notify('notifications/vendor', { of: 'its own' })
  await until(() => upstream.count('notifications/vendor') === 1, 'a notification is still passed on')
  assert.deepEqual(upstream.received.map(({ message }) => message.method), ['notifications/vendor'])
})

test('a gateway that is its own server notices', async (t) => {
  const { hub } = await startOne(t)
  const headers = { Authorization: `Bearer ${KEY}` }
  await managed(hub, 'POST', '/servers', { name: 'self', config: http(`${hub.url}/mcp`, { headers }) })
  await until(async () => /the gateway's own/.test(String((await managed(hub, 'GET', '/servers/self')).error)), 'it says nothing')
  assert.deepEqual(await (await Session.open(`${hub.url}/mcp`)).tools(), ['a-echo'])
})

test('a tool that is shown only to clients that can be asked can be switched off', async (t) => {
  const { hub } = await startOne(t, {
    on: ({ method, session }) => method === 'tools/list'
      ? { tools: [tool('echo'), ...(session.capabilities.sampling === undefined ? [] : [tool('ask-model')])] }
      : undefined
  })
  const session = await Session.open(`${hub.url}/mcp/a`, { capabilities: { sampling: {} } })
  assert.deepEqual(await session.tools(), ['echo', 'ask-model'])
  const data = await managed(hub, 'POST', '/servers/a/tools/ask-model/toggle', { enabled: false })
  assert.deepEqual([data.name, data.enabled], ['ask-model', false])
  assert.deepEqual(await session.tools(), ['echo'])
})

test('a path that leads nowhere below MCP is answered as MCP has it', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { BASE_PATH: '/hub' } })
  for (const route of ['/mcp/a/b', '/x/mcp/a/b', '/api/mcp/group/a/b']) {
    assert.equal(at(await (await fetch(`${hub.url}${route}`, { method: 'POST' })).json(), 'error', 'code'), -32000, route)
  }
  for (const route of ['/api/nothing', '/nothing', '/mcpx/a']) {
    assert.equal(at(await (await fetch(`${hub.url}${route}`)).json(), 'code'), 'TH_NOT_FOUND', route)
  }
})

test('a server\'s record has its items as the upstream wrote them', async (t) => {
  const item =
    '{"name":"exact","description":"as it came","inputSchema":{"type":"object","properties":{"a":{"default":12345678901234567890},' +
    '"b":{"maximum":1e400}}},"x":"\u00fc\u6f22\ud83d\ude00"}'
  const lists = new Raw(`{"tools":[${item},{"name":"other","inputSchema":{"type":"object"}}]}`)
  const overridden = { tools: { exact: { enabled: false, description: 'ours' } } }
  const { hub } = await startOne(t, { on: ({ method }) => method === 'tools/list' ? lists : undefined }, overridden)
  const headers = { authorization: `Bearer ${KEY}` }
  for (const route of ['/servers/a', '/servers', '/servers?fields=name,tools', '/settings']) {
    const answer = await fetch(`${hub.url}/api${route}`, { headers })
    assert.match(String(answer.headers.get('content-type')), /^application\/json/)
    const body = await answer.text()
    assert.ok(body.includes(`${item.slice(0, -1).replace('"as it came"', '"ours"')},"overridden":true,"enabled":false}`), body)
    assert.ok(body.includes('{"name":"other","inputSchema":{"type":"object"},"enabled":true,"description":""}'), body)
    assert.equal(at(JSON.parse(body), 'success'), true)
  }
  const named = await (await fetch(`${hub.url}/api/servers?fields=name,status`, { headers })).json()
  assert.deepEqual(at(named, 'data'), [{ name: 'a', status: 'connected' }])
  assert.equal((await fetch(`${hub.url}/api/servers/nobody`, { headers })).status, 404)
})

const onLinux = { skip: process.platform === 'linux' ? false : 'it reads /proc' }

test('a removal, and switching off, is answered when the server\'s process has ended', onLinux, async (t) => {
  const [a, b] = [stdioFake(t, { FAULT_STUBBORN: '1' }), stdioFake(t, { FAULT_STUBBORN: '1' })]
  const hub = await startHub(t, { settings: settings({ a: a.config, b: b.config }) })
  await connected(hub, 2)
  const pids = [a, b].flatMap(({ log }) => log().flatMap(({ pid, event, grandchild = pid }) => /^(start|grandchild)$/.test(event) ? [grandchild] : []))
  assert.equal(pids.length, 4)
  const living = (): number[] => pids.filter(alive)
  assert.deepEqual(living(), pids)
  await managed(hub, 'DELETE', '/servers/a')
  assert.equal(living().length, 2, 'those of the other are left')
  await managed(hub, 'POST', '/servers/b/toggle', { enabled: false })
  assert.deepEqual(living(), [])
})
