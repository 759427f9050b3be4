import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test, type Test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { json, restApi, type RestApi } from '../fakes/rest-api.ts'
import { connected, KEY, Session, settings, text } from '../helpers/client.ts'
import { npmServer, spawnHub, startHub, until, type Hub } from '../helpers/hub.ts'
import { collectorProblem, exporterOf } from '../../plugins/extensions/tracing/index.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const clientSpan = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${clientSpan}-01`

interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: Array<{ key: string, value: { stringValue?: string, intValue?: number } }>
  status: { code: number }
}
interface Exported {
  resourceSpans: Array<{ resource: { attributes: Span['attributes'] }, scopeSpans: Array<{ spans: Span[] }> }>
}

/** The modules of OpenTelemetry's SDK that are loaded. */
const loaded = (): string[] =>
  Object.keys(createRequire(import.meta.url).cache).filter((name) => /@opentelemetry[/\\](sdk|exporter|otlp|resources)/.test(name))

/** A collector: OTLP/JSON over HTTP. */
interface Collector { api: RestApi, spans: () => Span[], named: (name: string) => Promise<Span>, attributes: () => Record<string, unknown> }
async function collector (t: Test): Promise<Collector> {
  const api = await restApi(t)
  api.answer((_request, response) => { json(response, {}) })
  const bodies = (): Exported[] => api.seen.map(({ body }) => JSON.parse(String(body)) as Exported)
  const scopes = (): Exported['resourceSpans'][number]['scopeSpans'] =>
    bodies().flatMap(({ resourceSpans }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans))
  const spans = (): Span[] => scopes().flatMap((each) => each.spans)
  return {
    api,
    spans,
    attributes: () => valuesOf(bodies()[0]?.resourceSpans[0]?.resource.attributes ?? []),
    named: async (name) => {
      await until(() => spans().some((each) => each.name === name), () => `no span ${name}: ${spans().map((each) => each.name).join(', ')}`)
      const span = spans().findLast((each) => each.name === name)
      assert.ok(span)
      return span
    }
  }
}
const valuesOf = (attributes: Span['attributes']): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))

/** A gateway that traces. The SDK reads its variables from the environment of the process. */
async function traced (
  t: Test, servers: Record<string, object>, environment: Record<string, string>, more: Record<string, unknown> = {}
): Promise<Hub> {
  Object.assign(process.env, environment)
  t.after(() => { for (const name of Object.keys(environment)) Reflect.deleteProperty(process.env, name) })
  return await startHub(t, { settings: settings(servers, more), env: environment })
}

test('tracing is on only where a variable asks for it', async () => {
  const none = { OTEL_SDK_DISABLED: false, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' } as const
  const endpoint = { ...none, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }
  assert.equal(exporterOf(none as never), undefined)
  assert.equal(exporterOf(endpoint as never), 'http/protobuf')
  assert.equal(exporterOf({ ...none, OTEL_TRACES_EXPORTER: 'otlp' } as never), 'http/protobuf')
  assert.equal(exporterOf({ ...none, OTEL_TRACES_EXPORTER: 'console' } as never), 'console')
  assert.equal(exporterOf({ ...none, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://x', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' } as never), 'http/json')
  assert.equal(exporterOf({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' } as never), undefined)
  assert.equal(exporterOf({ ...endpoint, OTEL_SDK_DISABLED: true } as never), undefined)
})

test('a collector that is no address', async () => {
  const [address, general] = ['http://127.0.0.1:4318', 'OTEL_EXPORTER_OTLP_ENDPOINT']
  for (const [env, problem] of [
    [{}, undefined],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: address }, undefined],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'nourl', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address }, undefined],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'nourl' }, general],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }, general],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: address, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'grpc://127.0.0.1:4317' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']
  ] as const) assert.equal(collectorProblem(env as never)?.split(' ')[0], problem)
})

// First, since modules stay loaded.
test('while it is off nothing is loaded, and calls are sent as they came', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const hub = await startHub(t, { settings: settings({ fake: { url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  assert.equal(text(await session.call('fake-echo', { message: 'hi' })), 'hi')
  const call = upstream.received.findLast(({ message }) => message.method === 'tools/call')
  assert.ok(call && !String(call.body).includes('traceparent') && call.headers.traceparent === undefined)
  assert.deepEqual(loaded(), [])
})

test('one tree from the client to the upstream', async (t) => {
  const { api, spans, named, attributes } = await collector(t)
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('ping')] })
  const rest = await restApi(t)
  const document = {
    openapi: '3.0.3',
    info: { title: 'API', version: '1' },
    servers: [{ url: rest.url }],
    paths: { '/thing': { get: { operationId: 'thing', responses: { 200: { description: 'ok' } } } } }
  }
  const hub = await traced(t, {
    fake: { url: upstream.url },
    rest: { type: 'openapi', url: rest.url, openapi: { schema: document } },
    everything: npmServer('everything')
  }, {
    OTEL_EXPORTER_OTLP_ENDPOINT: api.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-team=tools',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_SERVICE_NAME: 'hub-under-test',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test'
  })
  await connected(hub, 3)
  assert.ok(loaded().length > 0)
  const lastCall = () => {
    const call = upstream.received.findLast(({ message }) => message.method === 'tools/call')
    assert.ok(call)
    const { params } = JSON.parse(String(call.body)) as { params: { _meta: Record<string, unknown>, arguments: unknown } }
    return { headers: call.headers, ...params }
  }
  const session = await Session.open(`${hub.url}/mcp`)

  await t.test('over MCP, by _meta', async () => {
    const { result } = await session.request('tools/call', {
      name: 'fake-echo',
      arguments: { message: 'hi' },
      _meta: { traceparent, tracestate: 'vendor=1', baggage: 'a=b', progressToken: 7, 'example.com/x': 1.0 }
    })
    assert.equal(text(result), 'hi')
    const span = await named('tools/call echo')
    assert.deepEqual([span.traceId, span.parentSpanId, span.kind], [traceId, clientSpan, 2])
    const { 'mcp.method.name': method, 'gen_ai.tool.name': tool, 'toolhub.server': server, 'toolhub.outcome': outcome } = valuesOf(span.attributes)
    assert.deepEqual([method, tool, server, outcome], ['tools/call', 'echo', 'fake', 'ok'])
    const { headers, _meta } = lastCall()
    const handed = `00-${traceId}-${span.spanId}-01`
    assert.equal(headers.traceparent, handed)
    assert.equal(headers.tracestate, 'vendor=1')
    const { progressToken, ...rest } = _meta
    assert.notEqual(progressToken, 7)
    assert.deepEqual(rest, { traceparent: handed, tracestate: 'vendor=1', baggage: 'a=b', 'example.com/x': 1 })
  })

  await t.test('over MCP, by the headers of the request', async () => {
    const own = await Session.open(`${hub.url}/mcp`, { headers: { traceparent: `00-${traceId}-00000000000000aa-01` } })
    await own.call('fake-ping', {})
    const span = await named('tools/call ping')
    assert.deepEqual([span.traceId, span.parentSpanId], [traceId, '00000000000000aa'])
    assert.equal(lastCall()._meta.traceparent, `00-${traceId}-${span.spanId}-01`)
  })

  await t.test('over REST', async () => {
    const before = spans().length
    await managed(hub, 'POST', '/tools/call/fake', { toolName: 'echo', arguments: { message: 'rest' } }, {
      authorization: `Bearer ${KEY}`, traceparent: `00-${traceId}-00000000000000bb-01`
    })
    await until(() => spans().length > before)
    const span = spans().at(-1)
    assert.deepEqual([span?.name, span?.traceId, span?.parentSpanId], ['tools/call echo', traceId, '00000000000000bb'])
    assert.equal(lastCall().headers.traceparent, `00-${traceId}-${span?.spanId}-01`)
  })

  await t.test('to an API with a description', async () => {
    await session.request('tools/call', { name: 'rest-thing', arguments: {}, _meta: { traceparent } })
    const span = await named('tools/call thing')
    assert.equal(rest.last().headers.traceparent, `00-${traceId}-${span.spanId}-01`)
  })

  await t.test('to a command; without a parent a trace begins here', async () => {
    assert.match(text(await session.call('everything-echo', { message: 'hello' })), /hello/)
    await until(() => spans().some(({ attributes: given }) => valuesOf(given)['toolhub.server'] === 'everything'))
    const span = spans().findLast(({ attributes: given }) => valuesOf(given)['toolhub.server'] === 'everything')
    assert.ok(span && (span.parentSpanId ?? '') === '' && span.traceId !== traceId)
  })

  await t.test('a context that is not valid, or not sampled', async () => {
    const before = spans().length
    await session.request('tools/call', { name: 'fake-echo', arguments: { message: 'x' }, _meta: { traceparent: `00-${traceId}-${clientSpan}-00` } })
    assert.match(String(lastCall()._meta.traceparent), new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
    await session.request('tools/call', { name: 'fake-echo', arguments: { message: 'y' }, _meta: { traceparent: '../../x\r\n', tracestate: 'y' } })
    await until(() => spans().length > before)
    assert.equal(spans().length, before + 1)
    const span = spans().at(-1)
    assert.notEqual(span?.traceId, traceId)
    assert.deepEqual(lastCall()._meta, { traceparent: `00-${span?.traceId}-${span?.spanId}-01` })
  })

  await t.test('failures have their reason, and nothing that was said', async () => {
    await session.request('tools/call', { name: 'everything-echo', arguments: {} })
    await until(() => spans().some(({ attributes: given }) => valuesOf(given)['error.type'] !== undefined))
    const span = spans().findLast(({ attributes: given }) => valuesOf(given)['error.type'] !== undefined)
    assert.equal(span?.status.code, 2)
    assert.ok(!JSON.stringify(spans()).includes('hello'))
  })

  await t.test('the standard variables are honoured', async () => {
    assert.equal(api.last().headers['x-team'], 'tools')
    assert.equal(api.last().url, '/v1/traces')
    const { 'service.name': name, 'service.version': version, 'deployment.environment.name': environment } = attributes()
    assert.deepEqual([name, typeof version, environment], ['hub-under-test', 'string', 'test'])
  })
})

test('a call that a rule refuses has a span, a call of an item that a rule hides has none', async (t) => {
  const { api, spans } = await collector(t)
  const upstream = await startUpstream(t, { tools: [tool('echo')], resources: [] })
  const policies = [
    { id: 'deny', name: 'deny', when: 'tool.name == "echo"', then: 'deny' },
    { id: 'hide', name: 'hide', when: 'tool.kind == "resource"', then: 'hide' }
  ]
  const hub = await traced(t, { fake: { url: upstream.url } }, {
    OTEL_EXPORTER_OTLP_ENDPOINT: api.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_BSP_SCHEDULE_DELAY: '50'
  }, { policies })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/fake`)
  assert.match(String((await session.request('resources/read', { uri: 'test://x' })).error?.message), /not found/)
  assert.match(text((await session.request('tools/call', { name: 'echo', arguments: {}, _meta: { traceparent } })).result), /denies/)
  await until(() => spans().length > 0)
  assert.deepEqual(spans().map((each) => [each.name, each.traceId, each.parentSpanId]), [['tools/call echo', traceId, clientSpan]])
  const { 'error.type': type, 'toolhub.outcome': outcome } = valuesOf(spans()[0]?.attributes ?? [])
  assert.deepEqual([type, outcome], ['refused', 'error'])
})

test('the build starts with it', async (t) => {
  const hub = await spawnHub(t, { settings: { mcpServers: {} }, env: { OTEL_TRACES_EXPORTER: 'console' } })
  assert.equal((await fetch(`${hub.url}/health`)).status, 200)
})

test('protobuf is the default, and the last spans are sent at the end', async (t) => {
  const api = await restApi(t)
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const hub = await traced(t, { fake: { url: upstream.url } }, { OTEL_EXPORTER_OTLP_ENDPOINT: api.url, OTEL_BSP_SCHEDULE_DELAY: '60000' })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp`)
  await session.call('fake-echo', { message: 'hi' })
  assert.equal(api.seen.length, 0)
  await hub.stop()
  assert.equal(api.last().headers['content-type'], 'application/x-protobuf')
  assert.ok(api.last().body.includes('tools/call echo'))
})

test('a sampler of none sends nothing; a collector that is away harms no call', async (t) => {
  const api = await restApi(t)
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const servers = { fake: { url: upstream.url } }
  await t.test('sampler', async (t) => {
    const hub = await traced(t, servers, { OTEL_EXPORTER_OTLP_ENDPOINT: api.url, OTEL_TRACES_SAMPLER: 'always_off' })
    await connected(hub, 1)
    assert.equal(text(await (await Session.open(`${hub.url}/mcp`)).call('fake-echo', { message: 'hi' })), 'hi')
    await hub.stop()
    assert.equal(api.seen.length, 0)
  })
  await t.test('away', async (t) => {
    const hub = await traced(t, servers, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_SCHEDULE_DELAY: '10' })
    await connected(hub, 1)
    const session = await Session.open(`${hub.url}/mcp`)
    for (let count = 0; count < 5; count++) assert.equal(text(await session.call('fake-echo', { message: 'hi' })), 'hi')
    await until(() => hub.output().includes('traces cannot be sent'))
    // Their spans cannot be sent either: at the latest, that is tried when the gateway ends.
    for (let count = 0; count < 5; count++) await session.call('fake-echo', { message: 'hi' })
    await hub.stop()
    assert.equal(hub.output().split('traces cannot be sent').length, 2, hub.output())
    assert.doesNotMatch(hub.output(), /tracing: /)
  })
})
