// Servers of the modern era (2026-07-28) behind the gateway, and a client of an earlier revision, on the official SDK, in front of it.
// eras.test.ts has what every client does with every server.
import assert from 'node:assert/strict'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, type ClientCapabilities
} from '@modelcontextprotocol/sdk/types.js'
import { test } from 'tap'
import { Refusal, startUpstream, tool, type Answer, type Options } from '../fakes/fault-http.ts'
import { startModern } from '../fakes/modern-server.ts'
import { managed } from '../fakes/replica.ts'
import { agent, at, connected, Session, settings, text, type Json } from '../helpers/client.ts'
import { startHub, tsServer, until, type Cleanup, type Hub } from '../helpers/hub.ts'

const capable: ClientCapabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} }

/** An SDK client that answers all questions, and notes them. */
async function answering (t: Cleanup, url: string): Promise<{ client: Client, asked: Json[] }> {
  const asked: Json[] = []
  const client = await agent(t, url, {
    capabilities: capable,
    prepare: (client) => {
      client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
        asked.push(params)
        return { action: 'accept', ...(params.mode !== 'url' && { content: { name: 'Ada' } }) }
      })
      client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => {
        asked.push(params)
        return { role: 'assistant', model: 'm', content: { type: 'text', text: '42' } }
      })
      client.setRequestHandler(ListRootsRequestSchema, async () => {
        asked.push({ roots: true })
        return { roots: [{ uri: 'file:///home' }] }
      })
    }
  })
  return { client, asked }
}

const call = async (client: Client, name: string, args: Json = {}): Promise<string> =>
  text(await client.callTool({ name, arguments: args }))

const record = async (hub: Hub, name: string): Promise<Json> => await managed(hub, 'GET', `/servers/${name}`)

test('servers of the modern era behind the gateway', async (t) => {
  const http = await startModern(t)
  const strict = await startModern(t, { modern: true })
  const pipe = tsServer('test/fakes/modern-server.ts')
  const hub = await startHub(t, { settings: settings({ http: { url: http.url }, strict: { url: strict.url }, pipe }) })
  await connected(hub, 3)

  await t.test('a process that speaks both eras is spoken to in the modern one', async () => {
    assert.equal((await record(hub, 'pipe')).era, 'modern')
    assert.equal(text(await (await Session.open(`${hub.url}/mcp`)).call('pipe-echo', { message: 'hi' })), 'hi')
  })

  await t.test('questions come as the requests that a legacy client knows, and their answers go with the request', async (t) => {
    const { client, asked } = await answering(t, `${hub.url}/mcp/http`)
    assert.deepEqual(client.getServerVersion(), { name: 'modern', version: '1.2.3' })
    assert.equal(client.getInstructions(), 'Ask it anything.')
    const answered = JSON.parse(await call(client, 'ask', { kinds: ['sampling', 'elicitation', 'roots', 'url'] })) as Json
    assert.equal(answered.state, 'state of ask')
    assert.deepEqual(answered.answers, {
      sampling: { role: 'assistant', model: 'm', content: { type: 'text', text: '42' } },
      elicitation: { action: 'accept', content: { name: 'Ada' } },
      roots: { roots: [{ uri: 'file:///home' }] },
      url: { action: 'accept' }
    })
    assert.equal(asked.length, 4)
    assert.ok(asked.some((params) => params.mode === 'url' && typeof params.elicitationId === 'string'))
    assert.equal(await call(client, 'twice'), 'after 2 rounds')
    assert.match(text(await client.getPrompt({ name: 'greet' })), /Ada/)
  })

  await t.test('a call that is cancelled is cancelled upstream: over HTTP by the end of its stream', async (t) => {
    const { client } = await answering(t, `${hub.url}/mcp/http`)
    const gone = new AbortController()
    const calling = client.callTool({ name: 'stall' }, undefined, { signal: gone.signal })
    await until(() => http.seen.some(({ headers }) => headers['mcp-name'] === 'stall'), 'the call did not arrive')
    gone.abort()
    await assert.rejects(calling)
    await until(async () => http.world.cancelled.length === 1, 'it is not cancelled upstream')
    assert.ok(!http.seen.some(({ body }) => body?.method === 'notifications/cancelled'), 'a notification was sent')
  })

  await t.test('a client is asked only for what it declares', async (t) => {
    const client = await agent(t, `${hub.url}/mcp/http`, { capabilities: { roots: {} } })
    const { envelope } = JSON.parse(await call(client, 'meta')) as { envelope: Json }
    assert.deepEqual(envelope['io.modelcontextprotocol/clientCapabilities'], { roots: {} })
    await assert.rejects(client.callTool({ name: 'ask', arguments: { kinds: ['sampling'] } }), /needs a capability|does not support/)
  })

  await t.test('the envelope and the headers are of this hop, and the rest of _meta is the client\'s', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    const meta = { 'example.com/x': 12345678901234567890n.toString(), traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01' }
    const told = JSON.parse(text(await session.ask('tools/call', { name: 'http-meta', arguments: {}, _meta: meta }))) as Record<string, Json>
    assert.deepEqual(told.meta, meta)
    assert.equal(told.envelope?.['io.modelcontextprotocol/protocolVersion'], '2026-07-28')
    assert.equal(at(told.envelope, 'io.modelcontextprotocol/clientInfo', 'name'), 'tool-hub')
    assert.equal(text(await session.call('http-where', { region: 'Zürich', at: { zone: 7 } })), '{"region":"Zürich","at":{"zone":7}}')
    const headers: Json = http.seen.at(-1)?.headers ?? {}
    assert.deepEqual(
      ['mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-param-region', 'mcp-param-zone', 'mcp-session-id'].map((name) => headers[name]),
      ['2026-07-28', 'tools/call', 'where', '=?base64?WsO8cmljaA==?=', '7', undefined]
    )
  })

  await t.test('what a server refuses because of its tools\' headers is sent again with those that it names now', async () => {
    const session = await Session.open(`${hub.url}/mcp/strict`)
    const where = strict.world.tools.find(({ name }) => name === 'where')
    assert.ok(where)
    where.inputSchema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Country' } } }
    assert.equal(text(await session.call('where', { region: 'CH' })), '{"region":"CH"}')
    const headers: Json = strict.seen.at(-1)?.headers ?? {}
    assert.deepEqual([headers['mcp-param-country'], headers['mcp-param-region']], ['CH', undefined])
  })
})

/** A stdio server of 2025-11-25. @param before JavaScript that is run for a request before `initialize`, with `say(answer)` */
const oldChild = (before: string): Json => ({
  command: process.execPath,
  args: ['-e', `
    let begun = false
    const say = (id, more) => { console.log(JSON.stringify({ jsonrpc: '2.0', id, ...more })) }
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      console.error('got ' + method)
      if (id === undefined) return
      if (method === 'initialize') {
        begun = true
        const serverInfo = { name: 'old', version: '1' }
        say(id, { result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } })
      } else if (!begun) { ${before} }
      else if (method === 'tools/list') say(id, { result: { tools: [{ name: 'pid', inputSchema: { type: 'object' } }] } })
      else if (method === 'tools/call') say(id, { result: { content: [{ type: 'text', text: String(process.pid) }] } })
      else say(id, { error: { code: -32601, message: 'unknown' } })
    })
  `]
})

/** An HTTP server of 2025-11-25 that answers `server/discover` with a status and a body, or within its protocol. */
const oldServer = (status: number, body: string): Options => ({
  tools: [tool('echo')],
  on: ({ method, res }): Answer => {
    if (method !== 'server/discover') return undefined
    res.writeHead(status, { 'content-type': 'application/json' }).end(body)
    return 'taken'
  }
})

test('servers of earlier revisions are found out, however they take the question', async (t) => {
  const error = (code: number): string => JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message: 'no' } })
  const supported = { supported: ['2025-11-25'], requested: '2026-07-28' }
  const manners: Record<string, Options> = {
    'empty-400': oldServer(400, ''),
    // A proxy that forbids methods which it does not know.
    'forbidden-403': oldServer(403, 'Forbidden'),
    'html-404': oldServer(404, '<html></html>'),
    'empty-405': oldServer(405, ''),
    'error-500': oldServer(500, ''),
    'unknown-method': { tools: [tool('echo')], on: ({ method }) => method === 'server/discover' ? new Refusal(-32601, 'no') : undefined },
    'bad-request': oldServer(400, error(-32000)),
    'invalid-params': oldServer(400, error(-32602)),
    'legacy-only': oldServer(400, JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32022, message: 'no', data: supported } })),
    'empty-result': oldServer(200, '{"jsonrpc":"2.0","id":1,"result":{}}')
  }
  const children: Record<string, Json> = {
    answers: oldChild('say(id, { error: { code: -32602, message: "not yet" } })'),
    silent: oldChild(''),
    dies: oldChild('process.exit(3)')
  }
  const servers: Record<string, Json> = { ...children }
  for (const [name, options] of Object.entries(manners)) servers[name] = { url: (await startUpstream(t, options)).url }
  const hub = await startHub(t, { settings: settings(servers), env: { LOG_LEVEL: 'debug' } })
  await connected(hub, Object.keys(servers).length)
  const session = await Session.open(`${hub.url}/mcp`)
  for (const name of Object.keys(manners)) {
    assert.equal(text(await session.call(`${name}-echo`, { message: name })), name)
    assert.equal((await record(hub, name)).era, 'legacy')
  }
  for (const name of Object.keys(children)) {
    const pid = Number(text(await session.call(`${name}-pid`)))
    assert.equal((await record(hub, name)).protocolVersion, '2025-06-18')
    const asked = (): number => hub.output().split(`"${name}: got server/discover"`).length - 1
    const before = asked()
    assert.equal(before, 1, `${name} was asked ${before} times`)
    // What cannot be asked is not asked again at once.
    process.kill(pid, 'SIGKILL')
    await until(async () => {
      const answer = await session.request('tools/call', { name: `${name}-pid`, arguments: {} })
      return answer.error === undefined && text(answer.result) !== String(pid)
    }, `${name} does not come back`)
    assert.equal(asked(), name === 'answers' ? 2 : 1, name)
  }
})

test('a server that goes back to the legacy era is spoken to in it', async (t) => {
  const old = await startUpstream(t, { tools: [tool('echo')] })
  await old.close()
  const modern = await startModern(t, { modern: true, port: old.port })
  const hub = await startHub(t, { settings: settings({ changes: { type: 'streamable-http', url: old.url } }) })
  await connected(hub, 1)
  assert.equal((await record(hub, 'changes')).era, 'modern')
  const session = await Session.open(`${hub.url}/mcp/changes`)
  assert.equal(text(await session.call('echo', { message: 'hi' })), 'hi')
  await modern.stop()
  await old.listen()
  await until(async () => {
    const answer = await session.request('tools/call', { name: 'echo', arguments: { message: 'hi' } })
    return answer.error === undefined && text(answer.result) === 'hi'
  }, 'it is not spoken to in the legacy era')
  await until(async () => (await record(hub, 'changes')).era === 'legacy')
})
