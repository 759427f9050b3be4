// What plain HTTP callers are told: by the reason of an error, never by its words.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { makeView } from '../../../plugins/settings/access/view.ts'
import { DisconnectSignal, PlainHttpExchange } from '../../../plugins/downstream/tools/exchange.ts'
import { InFlightCalls } from '../../../plugins/downstream/tools/in-flight-calls.ts'
import { rpcCode, RpcError, UpstreamError, type ErrorReason } from '../../../protocol/errors.ts'
import { Refusal, startUpstream, tool, type Answer, type Upstream } from '../../fakes/fault-http.ts'
import { appFor } from '../../helpers/app.ts'
import { KEY, settings } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'

const view = makeView({ key: 'x', kind: 'user', user: 'x', username: 'x', isAdmin: false }, { kind: 'server', name: 'up' })
const exchange = (): PlainHttpExchange => new PlainHttpExchange(view, 'tools/call', { name: 'x' }, { headers: {}, address: '192.0.2.1' })

interface World { app: FastifyInstance, upstream: Upstream, call: () => Promise<LightMyRequestResponse[]> }

/** @param answer what the server says to a call of its only tool @param timeout how long it is waited for, in ms */
async function start (t: Test, answer: () => Answer, timeout?: number): Promise<World> {
  const upstream = await startUpstream(t, { tools: [tool('x')], on: ({ method }) => method === 'tools/call' ? answer() : undefined })
  const app = await appFor(t, settings({ up: { url: upstream.url, visibility: 'public', options: { timeout } } }))
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const call = async (): Promise<LightMyRequestResponse[]> => await Promise.all([
    app.inject({ method: 'POST', url: '/api/tools/call/up', headers, payload: { toolName: 'x' } }),
    app.inject({ method: 'POST', url: '/api/tools/up/x', headers, payload: '{}' }),
    app.inject({ url: '/api/tools/up/x', headers })
  ])
  return { app, upstream, call }
}

test('an error of the server\'s own is never mistaken for one of the gateway', async (t) => {
  let answer: Answer
  const { call } = await start(t, () => answer)
  const table: Array<[number, string, number, string]> = [
    [-32602, 'Unknown tool: x', 400, 'TH_INVALID_INPUT'],
    [-32602, 'MCP error -32602: Invalid arguments', 400, 'TH_INVALID_INPUT'],
    [-32000, 'Unknown tool: x', 502, 'TH_UPSTREAM_FAILED'],
    [-32603, 'Internal error', 502, 'TH_UPSTREAM_FAILED'],
    [-32001, 'Request timed out: server "up" gave no answer within 1 s', 502, 'TH_UPSTREAM_FAILED'],
    [-32002, 'Resource not found: x', 502, 'TH_UPSTREAM_FAILED'],
    [5, 'There is no such tool', 502, 'TH_UPSTREAM_FAILED']
  ]
  for (const [number, message, status, name] of table) {
    await t.test(`${number}, ${message}: ${status}`, async () => {
      answer = new Refusal(number, message)
      for (const reply of await call()) {
        assert.equal(reply.statusCode, status, reply.body)
        // The management API and the open routes have different members for the code.
        const { message: told, code, error } = reply.json<{ message: string, code?: string, error?: string }>()
        assert.deepEqual([told, code ?? error], [message, name])
      }
    })
  }
})

test('an answer that does not come, and a server that is away', async (t) => {
  const { app, upstream, call } = await start(t, () => 'never', 300)
  for (const reply of await call()) assert.equal(reply.statusCode, 504, reply.body)
  await upstream.close()
  for (const reply of await call()) assert.equal(reply.statusCode, 502, reply.body)
  const headers = { authorization: `Bearer ${KEY}` }
  const unknown = await app.inject({ method: 'POST', url: '/api/tools/call/up', headers, payload: { toolName: 'nothing' } })
  assert.equal(unknown.statusCode, 404, 'a tool that is known not to be there')
})

test('a call that waits for a server to connect is told when the server is removed', async (t) => {
  const upstream = await startUpstream(t, { on: ({ method }) => method === 'initialize' ? 'never' : undefined })
  const app = await appFor(t, settings({ up: { url: upstream.url } }))
  let isWaiting = false
  const waitForLists = app.gateway.waitForLists.bind(app.gateway)
  app.gateway.waitForLists = async (...asked) => { isWaiting = true; await waitForLists(...asked) }
  const headers = { authorization: `Bearer ${KEY}` }
  const call = app.inject({ method: 'POST', url: '/api/tools/call/up', headers, payload: { toolName: 'x' } }).then((reply) => reply)
  await until(() => isWaiting)
  assert.equal((await app.inject({ method: 'DELETE', url: '/api/servers/up', headers })).statusCode, 200)
  const { statusCode, body } = await call
  assert.match(`${statusCode} ${body}`, /^502 .*not connected: it was removed/)
})

test('toHttpError: each reason has its status', async () => {
  const calls = new InFlightCalls({ handle: async () => '{}', redact: (_server, text) => text.replaceAll('secret', '***') })
  const table: Record<ErrorReason, [number, status: number]> = {
    request: [rpcCode.invalidRequest, 502],
    'unknown-tool': [rpcCode.invalidParams, 404],
    'unknown-prompt': [rpcCode.invalidParams, 404],
    'unknown-resource': [rpcCode.resourceNotFound, 404],
    'not-connected': [rpcCode.unavailable, 502],
    timeout: [rpcCode.unavailable, 504],
    'no-answer': [rpcCode.unavailable, 502],
    upstream: [-5, 502],
    cancelled: [rpcCode.unavailable, 502],
    limit: [rpcCode.unavailable, 503],
    share: [rpcCode.unavailable, 429],
    refused: [rpcCode.badRequest, 403],
    quota: [rpcCode.badRequest, 429],
    internal: [rpcCode.internal, 502]
  }
  for (const [reason, [number, status]] of Object.entries(table)) {
    const error = calls.toHttpError(new RpcError(number, 'the secret', reason as ErrorReason), 'up', exchange()) as { statusCode: number, message: string }
    assert.equal(error.statusCode, status, reason)
    assert.ok(!error.message.includes('secret'), reason)
  }
  assert.equal((calls.toHttpError(new RpcError(rpcCode.invalidParams, 'what'), 'up', exchange()) as { statusCode: number }).statusCode, 400)
  const other = new Error('the secret')
  assert.equal(calls.toHttpError(other, 'up', exchange()), other, 'what is no JSON-RPC error is somebody else\'s to answer')
})

test('a caller that goes away cancels its call; one that had gone before the call began, too', async () => {
  const reasons: string[] = []
  const calls = new InFlightCalls({
    handle: async (each) => await new Promise((_resolve, reject) => {
      each.onCancel((reason) => { reasons.push(reason); reject(new RpcError(rpcCode.unavailable, reason, 'cancelled')) })
    }),
    redact: (_server, text) => text
  })
  const leaving = new DisconnectSignal()
  const running = calls.run(exchange(), 'up', leaving)
  leaving.trigger()
  await assert.rejects(running, { statusCode: 502 })
  const gone = new DisconnectSignal()
  gone.trigger()
  await assert.rejects(calls.run(exchange(), 'up', gone), { statusCode: 502 })
  assert.deepEqual(reasons, ['the caller went away', 'the caller went away'])

  const twice = exchange()
  twice.onCancel((reason) => { reasons.push(reason) })
  twice.cancel('first')
  twice.cancel('second')
  assert.deepEqual([twice.cancelled, reasons.slice(2)], ['first', ['first']])
})

test('clients are told of failures without addresses, paths and DNS answers', async () => {
  for (const [error, said] of [
    [new UpstreamError('unreachable', 'cannot reach 10.1.2.3:8080: connection refused; is the server running?'), 'it cannot be reached'],
    [new UpstreamError('unreachable', 'h.example resolves to 10.1.2.3, which is private'), 'it cannot be reached'],
    [new UpstreamError('unreachable', 'cannot start "/opt/secret/run": no such command'), 'it cannot be reached'],
    [new UpstreamError('refused', 'http://10.1.2.3/mcp answered HTTP 503', { status: 503 }), 'it answered HTTP 503'],
    [new UpstreamError('refused', 'it redirects to another origin (http://10.1.2.3), which is not followed'), 'it refused the request'],
    [new UpstreamError('broken', 'intranet closed the connection'), 'the connection to it was lost'],
    [new UpstreamError('broken', 'its broken stream could not be resumed: intranet closed it'), 'the connection to it was lost'],
    [new UpstreamError('timeout', 'intranet did not answer within 5 s'), 'no answer in time'],
    [new UpstreamError('timeout', 'no answer to tools/list within 5 s', { isPublic: true }), 'no answer to tools/list within 5 s'],
    [
      new UpstreamError('broken', 'the process ended with exit code 3', { detail: '; its last lines: x', isPublic: true }),
      'the process ended with exit code 3'
    ],
    [new UpstreamError('broken', 'the process at intranet ended'), 'the connection to it was lost']
  ] as const) assert.equal(error.messageForClients, said)
})

test('arguments are read in the same way, however long a text beside them is', async (t) => {
  const inputSchema = {
    type: 'object',
    properties: {
      id: { anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^[a-z]+$' }] },
      pad: { type: 'string' },
      rows: { type: 'array', items: { type: 'array', items: { type: 'string' } } }
    }
  }
  const seen: unknown[] = []
  const upstream = await startUpstream(t, {
    tools: [tool('x', { inputSchema })],
    on: ({ method, params }) => {
      if (method !== 'tools/call') return undefined
      seen.push((params as { arguments: unknown }).arguments)
      return { content: [] }
    }
  })
  const app = await appFor(t, settings({ up: { url: upstream.url, visibility: 'public' } }))
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const post = async (payload: object): Promise<LightMyRequestResponse> =>
    await app.inject({ method: 'POST', url: '/api/tools/up/x', headers, payload })
  for (const length of [3, 500, 3_000]) {
    assert.equal((await post({ id: '123', pad: 'p'.repeat(length) })).statusCode, 200, `${length}`)
    assert.deepEqual(seen.pop(), { id: 123, pad: 'p'.repeat(length) })
  }
  // A row that comes after a thousand that are no JSON is that of its text, or refused, but never another one.
  const json = '["p","q"]'
  for (const count of [20, 999, 1_000, 1_001]) {
    const { statusCode } = await post({ rows: [...Array.from({ length: count }, () => 'a,b'), json] })
    const last = (seen.pop() as { rows: unknown[] } | undefined)?.rows.at(-1)
    assert.ok(count < 1_000 ? statusCode === 200 : [200, 400].includes(statusCode), `${count}: ${statusCode}`)
    if (statusCode === 200) assert.deepEqual(last, ['p', 'q'])
  }
  // Large arguments arrive as they are, too.
  const many = Array.from({ length: 100_000 }, (_, n) => n)
  assert.equal((await post({ many, text: 'é'.repeat(1_000) })).statusCode, 200)
  assert.deepEqual(seen.pop(), { many, text: 'é'.repeat(1_000) })
})
