// What a raw client and a raw server of a single-server route send each other arrives as it was sent, except for what
// each hop must state for itself.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { Raw, Refusal, startUpstream } from '../fakes/fault-http.ts'
import { capabilities, errors, results } from '../fakes/recorded-answers.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { connected, send, Session, settings, type Json, type Message } from '../helpers/client.ts'
import { startHub, tsServer, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { modernRequest } from '../helpers/modern-request.ts'

interface World { readonly hub: Hub, readonly received: () => string[] }

async function overHttp (t: Cleanup): Promise<World> {
  const upstream = await startUpstream(t, {
    on: ({ method }) => {
      const error = errors[method]
      if (error !== undefined) {
        const { code, message, ...rest } = JSON.parse(error) as { code: number, message: string, data: unknown }
        return new Refusal(code, message, rest.data)
      }
      const result = results[method]
      return method === 'vendor/hang' ? 'never' : result === undefined ? undefined : new Raw(result)
    }
  })
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url, isolation: 'session' } }) })
  await connected(hub, 1)
  return { hub, received: () => upstream.received.map(({ body }) => body) }
}

async function overStdio (t: Cleanup, era: 'legacy' | 'modern'): Promise<World> {
  const file = join(await temporaryFolder(t), 'received.jsonl')
  const up = {
    ...tsServer('test/fakes/recorded.ts'), env: { RECORD: file, RECORD_ERA: era }, isolation: 'session'
  }
  const hub = await startHub(t, { settings: settings({ up }) })
  await connected(hub, 1)
  return { hub, received: () => readFileSync(file, 'utf8').trim().split('\n') }
}

/** The params of a received message, as text. @param fits picks one of several of the same method */
function paramsOf ({ received }: World, method: string, fits: (params: Json) => boolean = () => true): string | undefined {
  const found = received().find((text) => {
    const message = JSON.parse(text) as Message
    return message.method === method && fits(message.params ?? {})
  })
  return found === undefined ? undefined : /"params":(\{.*\})\}$/s.exec(found)?.[1]
}

const vendorMeta = '"_meta":{"vendor/x":{"a":[1.0,null]},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'
/** Requests whose params arrive byte for byte. */
const requests: ReadonlyArray<readonly [method: string, params: string]> = [
  ['tools/call', `{"name":"a.tool","arguments":{"n":12345678901234567890,"f":1.0,"s":"\\u00e9"},"vendor":[1.0],${vendorMeta}}`],
  ['prompts/get', `{"name":"p","arguments":{"x":"1"},"vendor":1,${vendorMeta}}`],
  ['resources/read', `{"uri":"r://1","vendor":1.0,${vendorMeta}}`],
  ['completion/complete', `{"ref":{"type":"ref/prompt","name":"p","v":1},"argument":{"name":"x","value":"1","v":2},"context":{"arguments":{"y":"2"}},${vendorMeta}}`],
  ['vendor/method', `{"any":[1.0,{"b":null}],${vendorMeta}}`],
  ['vendor/error', '{}']
]

const resultText = (body: string): string | undefined => /"(?:result|error)":(\{.*\})\}\s*$/s.exec(body)?.[1]

async function checkLegacy (world: World): Promise<void> {
  const session = await Session.open(`${world.hub.url}/mcp/up`)
  const route: Json = { ...capabilities }
  assert.deepEqual(session.init, { ...JSON.parse(results.initialize) as Json, capabilities: route })

  // The first message of the session, before its link is open.
  const first = '{"first":[1.0],"_meta":{"v":1}}'
  await session.post(`{"jsonrpc":"2.0","method":"notifications/vendor","params":${first}}`)
  await until(() => paramsOf(world, 'notifications/vendor') !== undefined, 'the first notification never arrived')
  assert.equal(paramsOf(world, 'notifications/vendor'), first)

  for (const [method, params] of requests) {
    const { body } = await session.post(`{"jsonrpc":"2.0","id":7,"method":"${method}","params":${params}}`)
    assert.equal(paramsOf(world, method), params, method)
    const sent = results[method] ?? errors[method] ?? ''
    if (results[method] !== undefined) assert.equal(resultText(body), sent, method)
    else {
      const { vendor: _, ...expected } = JSON.parse(sent) as Json
      const { vendor: __, ...error } = JSON.parse(resultText(body) ?? '') as Json
      assert.deepEqual(error, expected)
    }
  }
  for (const method of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']) {
    const { body } = await session.post(`{"jsonrpc":"2.0","id":8,"method":"${method}","params":{}}`)
    assert.deepEqual(JSON.parse(resultText(body) ?? ''), JSON.parse(results[method] ?? ''), method)
  }
  const level = `{"level":"error",${vendorMeta}}`
  await session.post(`{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":${level}}`)
  assert.equal(paramsOf(world, 'logging/setLevel', ({ level }) => level === 'error'), level)
  const hanging = await session.start('{"jsonrpc":"2.0","id":10,"method":"vendor/hang","params":{}}')
  await until(() => paramsOf(world, 'vendor/hang') !== undefined, 'the call never arrived')
  await session.notify('notifications/cancelled', { requestId: 10, vendor: 1, _meta: { 'vendor/y': 2 } })
  const cancelled = (): string | undefined => paramsOf(world, 'notifications/cancelled')
  await until(() => cancelled() !== undefined, 'the cancellation never arrived')
  const { requestId: _, ...rest } = JSON.parse(cancelled() ?? '') as Json
  assert.deepEqual(rest, { vendor: 1, _meta: { 'vendor/y': 2 } })
  hanging.close()
}

test('a legacy client and a legacy server over HTTP', async (t) => { await checkLegacy(await overHttp(t)) })
test('a legacy client and a legacy server over stdio', async (t) => { await checkLegacy(await overStdio(t, 'legacy')) })

/** Members that each modern hop states for itself. */
function withoutHop (value: Json): Json {
  const { resultType: _, ttlMs: __, cacheScope: ___, _meta: meta, ...rest } = value
  const own = Object.entries((meta ?? {}) as Json).filter(([key]) => !key.startsWith('io.modelcontextprotocol/'))
  return own.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(own) }
}

async function checkModern (world: World, identity: 'initialize' | 'server/discover'): Promise<void> {
  const ask = async (method: string, params: Json): Promise<Message> => {
    const meta = modernRequest(method, { params })
    const body = JSON.parse(meta.body) as { params: { _meta: Json } }
    Object.assign(body.params._meta, params._meta)
    const { messages } = await send(`${world.hub.url}/mcp/up`, { headers: meta.headers, body, key: null })
    return messages.find(({ id }) => id === 1) ?? assert.fail(method)
  }
  const { supportedVersions: _, ...discovered } = (await ask('server/discover', {})).result ?? {}
  const { protocolVersion: __, supportedVersions: ___, serverInfo: ____, ...expected } = JSON.parse(results[identity] ?? '') as Json
  const { capabilities: shown, ...others } = withoutHop(discovered)
  const { capabilities: own, ...stated } = withoutHop(expected)
  assert.deepEqual(others, stated)
  assert.deepEqual(shown, own)
  for (const [method, text] of requests) {
    const params = JSON.parse(text) as Json
    const { result, error } = await ask(method, params)
    const seen = JSON.parse(paramsOf(world, method) ?? '{}') as Json
    assert.deepEqual(withoutHop(seen), withoutHop(params), method)
    if (results[method] !== undefined) assert.deepEqual(withoutHop(result ?? {}), withoutHop(JSON.parse(results[method] ?? '') as Json), method)
    else assert.equal(error?.code, -32123)
  }
  for (const method of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']) {
    const { result } = await ask(method, {})
    assert.deepEqual(withoutHop(result ?? {}), withoutHop(JSON.parse(results[method] ?? '') as Json), method)
  }
}

test('a modern client and a modern server over stdio', async (t) => { await checkModern(await overStdio(t, 'modern'), 'server/discover') })
test('a modern client and a legacy server over HTTP', async (t) => { await checkModern(await overHttp(t), 'initialize') })

test('what a server sends on its own', async (t) => {
  const upstream = await startUpstream(t, { on: ({ method }) => method === 'vendor/hang' ? 'never' : undefined })
  const hub = await startHub(t, { settings: settings({ up: { url: upstream.url, isolation: 'session' } }) })
  await connected(hub, 1)
  const client = await Session.open(`${hub.url}/mcp/up`, { capabilities: { sampling: { vendor: 1 }, vendor: {} } })
  const stream = await client.listen()
  await client.call('echo', { message: 'x' })
  const own = [...upstream.sessions.values()].find((session) => session.capabilities.vendor !== undefined) ?? assert.fail('no link')
  assert.deepEqual(own.capabilities, { sampling: { vendor: 1 }, vendor: {} })
  const params = { vendor: [1, null, { a: 'x' }], _meta: { 'vendor/z': 1 } }
  for (const method of ['notifications/vendor', 'notifications/message']) {
    const more = { ...params, level: 'error', data: 'x' }
    await own.notify(method, more)
    assert.deepEqual((await stream.wait((message) => message.method === method)).params, more, method)
  }
  const question = { messages: [], maxTokens: 1, ...params }
  const answer = own.ask('sampling/createMessage', question)
  const asked = await stream.wait(({ method }) => method === 'sampling/createMessage')
  assert.deepEqual(asked.params, question)
  const result = { role: 'assistant', model: 'm', content: { type: 'text', text: 'y', v: 1 }, ...params }
  await client.post({ jsonrpc: '2.0', id: asked.id, result })
  assert.deepEqual((await answer).result, result)
  const withdrawn = own.ask('sampling/createMessage', { ...question, second: true })
  const open = await stream.wait(({ params: { second } = {} }) => second === true)
  await own.notify('notifications/cancelled', { requestId: own.lastQuestion, ...params })
  const { requestId, ...rest } = (await stream.wait(({ method }) => method === 'notifications/cancelled')).params ?? {}
  assert.deepEqual([requestId, rest], [open.id, params])
  withdrawn.catch(() => {})
  stream.close()
})
