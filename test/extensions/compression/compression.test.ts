import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import { test, type Test } from 'tap'
import { Compressor } from '../../../plugins/extensions/compression/compressor.ts'
import { Originals } from '../../../plugins/extensions/compression/originals.ts'
import { conformsToSchema } from '../../../plugins/extensions/compression/output-schema.ts'
import { baseLimits } from '../../../plugins/base/limits/index.ts'
import type { FinishedCall } from '../../../plugins/gateway/hooks.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { startLegacyTasks, startModernTasks } from '../../fakes/task-servers.ts'
import { appFor } from '../../helpers/app.ts'
import { KEY, OTHER, otherKey, settings, text, type Json } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'
import { openSession, type InjectedSession } from '../../helpers/inject.ts'
import { served } from '../../helpers/served.ts'
import { legacyWithTasks, modernWithTasks } from '../../helpers/task-clients.ts'

const long = Array.from({ length: 9_000 }, (_, n) => `line ${n}: größer als ${n * 7} — 😀 naïve`).join('\n')

async function start (t: Test, compression: Json = { enabled: true }, answer = long): Promise<FastifyInstance> {
  const upstream = await startUpstream(t, {
    tools: [tool('long'), tool('short'), tool('fails')],
    on: ({ method, params }) => {
      if (method !== 'tools/call') return undefined
      const said = params.name === 'short' ? 'short' : answer
      return { content: [{ type: 'text', text: said }], ...(params.name === 'fails' ? { isError: true } : {}) }
    }
  })
  const given = settings({ up: { type: 'streamable-http', url: upstream.url, visibility: 'public' } }, {
    systemConfig: { toolResultCompression: compression }
  })
  const app = await appFor(t, { ...given, bearerKeys: [...given.bearerKeys as Json[], otherKey()] })
  await until(() => app.upstreams.get('up')?.status === 'connected')
  return app
}

const call = async (session: InjectedSession, name: string): Promise<Json> => {
  const { result, error } = await session.request('tools/call', { name, arguments: {} })
  assert.equal(error, undefined)
  return result ?? {}
}
const linkOf = (result: Json): string => String((result.content as Json[]).find(({ type }) => type === 'resource_link')?.uri)
const contents = async (session: InjectedSession, uri: string): Promise<{ text: string, _meta: Record<string, number> }> => {
  const { result, error } = await session.request('resources/read', { uri })
  assert.equal(error, undefined, JSON.stringify(error))
  return (result as { contents: Array<{ text: string, _meta: Record<string, number> }> }).contents[0] ?? { text: '', _meta: {} }
}

void test('off by default', async (t) => {
  const app = await start(t, {})
  assert.equal(text(await call(await openSession(app, '/mcp', KEY), 'up-long')), long)
})

void test('a long result is short, its original is its caller\'s, whole and in parts, on every route', async (t) => {
  const app = await start(t)
  const finished: FinishedCall[] = []
  app.gateway.addHook('onDone', (each) => { if (each.exchange.method === 'tools/call') finished.push(each) })
  const session = await openSession(app, '/mcp', KEY)
  const result = await call(session, 'up-long')
  assert.match(text(result), /^\[compressed, strategy text: /)
  assert.match(String(finished[0]?.output), /line 8999/, 'observers see what came before the compression')
  const uri = linkOf(result)
  assert.equal((await contents(session, uri)).text, long)

  let read = ''
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const part = await contents(session, `${uri}?offset=${offset}&length=1001`)
    assert.ok(Buffer.byteLength(part.text) <= 1_001)
    read += part.text
    offset = part._meta['tool-hub/next']
  }
  assert.equal(read, long)

  assert.equal((await contents(await openSession(app, '/mcp/up', KEY), uri)).text, long)
  const { error } = await (await openSession(app, '/mcp', OTHER)).request('resources/read', { uri })
  assert.equal(error?.code, -32002)
  assert.equal((await session.request('resources/read', { uri: `${uri}?offset=x` })).error?.code, -32602)
  assert.deepEqual((await session.request('resources/list')).result?.resources ?? [], [], 'originals stand in no list')

  assert.match(text(await call(await openSession(app, '/mcp/up', KEY), 'long')), /^\[compressed/)
  const asked = { url: '/api/tools/up/long', headers: { authorization: `Bearer ${KEY}` } }
  assert.match((await app.inject(asked)).body, /\[compressed/)
  assert.match((await app.inject(asked.url)).body, /line 8999/, 'who has no credentials could not read the original')
})

void test('structuredContent that would not conform to the output schema stays whole', async (t) => {
  const words = 'word '.repeat(20_000)
  const schemas: Record<string, [shortened: boolean, schema: Json, value: unknown]> = {
    any: [true, { type: 'string' }, words],
    length: [false, { type: 'string', minLength: 9_000 }, words],
    pattern: [false, { type: 'string', pattern: '^[a-z ]+$' }, words],
    format: [false, { type: 'string', format: 'uri' }, `https://example.com/${'abc/'.repeat(20_000)}`],
    items: [false, { type: 'array', minItems: 4_000 }, Array.from({ length: 5_000 }, (_, n) => `item ${n}`)]
  }
  const upstream = await startUpstream(t, {
    tools: Object.entries(schemas).map(([name, [, v]]) => ({ ...tool(name), outputSchema: { type: 'object', properties: { v }, required: ['v'] } })),
    on: ({ method, params }) => method === 'tools/call'
      ? { content: [{ type: 'text', text: long }], structuredContent: { v: schemas[String(params.name)]?.[2] } }
      : undefined
  })
  const app = await appFor(t, settings({ up: { url: upstream.url } }, {
    systemConfig: { toolResultCompression: { enabled: true, structuredContent: true } }
  }))
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const session = await openSession(app, '/mcp', KEY)
  for (const [name, [isShortened, , value]] of Object.entries(schemas)) {
    const result = await call(session, `up-${name}`)
    assert.match(text(result).slice(0, 100), /^\[compressed/, name)
    assert.equal(JSON.stringify(result.structuredContent) !== JSON.stringify({ v: value }), isShortened, name)
  }
})

void test('what cannot be checked against the output schema, or conforms only after conversion, does not conform', async () => {
  const failures: unknown[] = []
  const conforms = async (v: unknown, schema: string): Promise<boolean> =>
    await conformsToSchema(JSON.stringify({ v }), schema, 'ann', (reason) => { failures.push(reason) })
  const schemaOf = (v: object): string => JSON.stringify({ properties: { v } })
  assert.equal(await conforms(['a'], schemaOf({ type: 'array' })), true)
  assert.equal(await conforms('a', schemaOf({ type: 'array' })), false)
  assert.equal(await conforms('12', schemaOf({ type: ['string', 'number'], maxLength: 1 })), false)
  assert.equal(await conforms('long', schemaOf({ maxLength: 3, description: 'x'.repeat(baseLimits.checkedSchema) })), false)
  assert.equal(failures.length, 0)
  assert.equal(await conforms('a', '{'), false)
  assert.equal(failures.length, 1)
})

void test('the result of a task is short, too, whichever era the server and the client have', async (t) => {
  for (const server of [await startLegacyTasks(t), await startModernTasks(t)]) {
    const hub = await served(t, { up: { url: server.url } }, { systemConfig: { toolResultCompression: { enabled: true } } })
    for (const caller of [legacyWithTasks, modernWithTasks]) {
      const { text: said } = await caller(t, `${hub.url}/mcp/up`, 'long', long)
      assert.match(said, /^\[compressed, strategy text: /, caller.name)
    }
  }
})

void test('short results, and results that are errors, stay as they are', async (t) => {
  const app = await start(t)
  const session = await openSession(app, '/mcp', KEY)
  assert.equal(text(await call(session, 'up-short')), 'short')
  assert.equal(text(await call(session, 'up-fails')), long)
})

void test('settings count at once, and what other programs wrote in them is not trusted', async (t) => {
  const app = await start(t, { enabled: true, minTokens: 'many', maxOutputTokens: 100 })
  const session = await openSession(app, '/mcp', KEY)
  assert.ok(text(await call(session, 'up-long')).length < 1_000)
  const headers = { authorization: `Bearer ${KEY}` }
  const put = await app.inject({ method: 'PUT', url: '/api/system-config', headers, payload: { toolResultCompression: { minTokens: 10_000_000 } } })
  assert.equal(put.statusCode, 200, put.body)
  assert.equal(text(await call(session, 'up-long')), long)
})

void test('the event loop turns while a large result is compressed', async (t) => {
  const app = await start(t, { enabled: true }, long.repeat(4))
  const session = await openSession(app, '/mcp', KEY)
  let turns = 0
  let isDone = false
  const turn = (): void => { turns++; if (!isDone) setImmediate(turn) }
  setImmediate(turn)
  const result = await call(session, 'up-long')
  isDone = true
  // Not `match`, which would print all of it.
  assert.equal(text(result).slice(0, 11), '[compressed')
  assert.ok(turns > 20, `${turns} turns`)
})

void test('the heap of the thread that compresses is enough for a result of 6 MB', async (t) => {
  const options = { strategy: 'auto', minTokens: 2_000, maxOutputTokens: 1_200, structuredContent: false, uriPrefix: 'x://' } as const
  const failures: unknown[] = []
  const compressor = new Compressor((reason) => { failures.push(reason) })
  t.after(() => { compressor.close() })
  for (const unit of ['@@ -1,1 +1,1 @@\n+a\n-b\n', 'a.c:1:b\n']) {
    const result = JSON.stringify({ content: [{ type: 'text', text: unit.repeat(6_000_000 / unit.length) }] })
    const answer = await compressor.compress({ result, options }, 'ann')
    assert.deepEqual(failures, [], unit)
    assert.match(answer?.result ?? '', /\[compressed/, unit)
  }
})

void test('originals: an hour, a bound in bytes, and who holds most loses first', async () => {
  let now = 0
  const originals = new Originals({ originalsSize: 100, originalsLifetime: 1_000, partSize: 30 }, () => now)
  const keep = (uri: string, principal: string, size: number): boolean =>
    originals.keep(uri, principal, { bytes: new Uint8Array(size).fill(0x61), mimeType: 'text/plain' })
  assert.equal(keep('large', 'ann', 101), false)
  keep('a1', 'ann', 40)
  keep('b1', 'bob', 20)
  keep('a2', 'ann', 40)
  keep('b2', 'bob', 20)
  assert.equal(originals.read('a1', 'ann'), undefined)
  assert.deepEqual(['a2', 'b1', 'b2'].map((uri) => originals.read(uri, uri.startsWith('a') ? 'ann' : 'bob')?.size), [40, 20, 20])
  assert.equal(originals.read('a2', 'bob'), undefined)
  assert.deepEqual(originals.read('a2', 'ann', 35), { text: 'aaaaa', mimeType: 'text/plain', offset: 35, end: 40, size: 40 })
  assert.equal(originals.read('a2', 'ann')?.end, 30, 'a part has a bound')
  assert.equal(originals.read('a2', 'ann', 1_000)?.text, '')
  now = 1_000
  assert.equal(originals.read('b1', 'bob'), undefined)
  keep('b3', 'bob', 60)
  keep('a3', 'ann', 40)
  assert.ok(originals.read('b3', 'bob') && originals.read('a3', 'ann'), 'an expired original counts no more')
})
