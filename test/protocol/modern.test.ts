// The upstream side of the modern era: envelope and headers, rounds of questions, the stream of changes, and what is kept of an era.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { type UpstreamError, RpcError } from '../../protocol/errors.ts'
import { ownLinkCapabilities, requireClientCapability } from '../../protocol/capabilities.ts'
import { cachingOf, remainingFreshness, staleAt, combineCaching } from '../../protocol/caching.ts'
import { DualEraSession, WrongEraError } from '../../protocol/dual-era-session.ts'
import type { Era } from '../../protocol/era.ts'
import { toLegacyTool, toLegacyToolResult } from '../../protocol/modern/for-legacy-clients.ts'
import { NonMcpClient } from '../../protocol/exchange.ts'
import type { Message, Notification, Request } from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { ToolParamHeaders } from '../../protocol/modern/param-headers.ts'
import type { Receiver, SendOptions, Transport } from '../../protocol/transports/transport.ts'
import type { SessionHandlers } from '../../protocol/upstream-session.ts'
import { EraMemory } from '../../plugins/upstream/links/connect.ts'
import { mockTimers } from '../helpers/clock.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { legacyParams } from '../../protocol/legacy/outgoing.ts'
import { FakeExchange } from '../fakes/exchange.ts'

interface Sent { readonly message: Request | Notification, readonly options: SendOptions | undefined }
type Reply = { readonly result: unknown } | { readonly error: { code: number, message: string, data?: unknown } } | undefined

const discovered = { supportedVersions: ['2026-07-28'], capabilities: { tools: { listChanged: true }, resources: { subscribe: true } } }
const modern = (request: Request): Reply => {
  if (request.method === 'server/discover') return { result: discovered }
  return request.method === 'subscriptions/listen' ? undefined : { result: { resultType: 'complete' } }
}

/** A server in memory. @param answer undefined: none */
class FakeServer implements Transport {
  readonly hasStreams: boolean
  readonly sent: Sent[] = []
  readonly dropped: number[] = []
  readonly #answer: (request: Request) => Reply
  #receiver: Receiver | undefined

  constructor (answer: (request: Request) => Reply, hasStreams = true) {
    this.#answer = answer
    this.hasStreams = hasStreams
  }

  async start (receiver: Receiver): Promise<void> { this.#receiver = receiver }
  drop (id: number): void { this.dropped.push(id) }
  async onNegotiated (): Promise<void> {}
  async close (): Promise<void> {}

  send (text: string, options?: SendOptions): void {
    const message = parseMessage(text, 100)
    assert.ok(!Array.isArray(message) && message.kind !== 'response')
    this.sent.push({ message, options })
    if (message.kind !== 'request') return
    if (message.method === 'subscriptions/listen') this.acknowledge(message)
    const reply = this.#answer(message)
    if (reply) setImmediate(() => { this.say({ id: message.id, ...reply }) })
  }

  say (message: object, origin?: number): void {
    this.#receiver?.message(parseMessage(JSON.stringify({ jsonrpc: '2.0', ...message }), 100) as Message, origin)
  }

  acknowledge ({ id, params: { notifications } }: Request): void {
    const params = { notifications, _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
    setImmediate(() => { this.say({ method: 'notifications/subscriptions/acknowledged', params }, Number(id)) })
  }

  of (method: string): Sent[] { return this.sent.filter(({ message }) => message.method === method) }
}

interface World { session: DualEraSession, heard: Notification[], found: Array<[Era, boolean]>, ended: UpstreamError[] }

function begin (
  t: Cleanup,
  server: FakeServer,
  question: SessionHandlers['question'] = async () => ({ kind: 'response', id: 1, resultText: '{"action":"accept"}' }),
  era?: Era
): World {
  const world: Omit<World, 'session'> = { heard: [], found: [], ended: [] }
  const session = new DualEraSession(
    server,
    { clientInfo: { name: 'hub', version: '1' }, capabilities: { roots: {} }, initTimeout: 5_000, exclusive: true },
    {
      question,
      notification: (notification) => { world.heard.push(notification) },
      callEnded: () => {},
      closed: (error) => { world.ended.push(error) }
    },
    { era, onEra: (...found) => { world.found.push(found) } },
    { tools: new ToolParamHeaders(), warn: () => {}, bounds: { rounds: 4, questions: 3, pause: 1, headerPages: 3 } }
  )
  t.after(async () => { await session.close() })
  return { session, ...world }
}

/** One that is open. */
async function begun (...args: Parameters<typeof begin>): Promise<World> {
  const world = begin(...args)
  await world.session.open(() => {})
  return world
}

const deadlines = { timeout: 60_000, resetTimeoutOnProgress: true, maxTotalTimeout: undefined }

test('a check of the server that is not answered in time leaves no request open', async (t) => {
  let isSilent = false
  const server = new FakeServer((request) => isSilent ? undefined : modern(request))
  const { session } = await begun(t, server)
  isSilent = true
  await assert.rejects(session.ping(1), { fault: 'timeout' })
  assert.deepEqual(server.dropped, server.of('server/discover').slice(1).map(({ options }) => options?.id))
})

test('a call carries the envelope of its hop, and keeps every byte of the rest', async (t) => {
  const server = new FakeServer(modern)
  const { session } = await begun(t, server)
  const own = '"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"other"},"vendor/x":12345678901234567890,"progressToken":"p"}'
  const exchange = new FakeExchange(`{"name":"hub-x","arguments":{"n":1e400,"n2":12345678901234567890},${own}}`)
  await session.call(exchange, { changes: { name: '"x y"' }, deadlines })
  const [sent] = server.of('tools/call')
  const { paramsText, params, id } = sent?.message as Request
  assert.ok(paramsText.startsWith('{"name":"x y","arguments":{"n":1e400,"n2":12345678901234567890},"_meta":{'), paramsText)
  assert.ok(paramsText.includes('"vendor/x":12345678901234567890'), paramsText)
  assert.deepEqual({ ...params._meta as object, 'vendor/x': 0 }, {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'hub', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { roots: {} },
    'vendor/x': 0,
    progressToken: id
  })
  assert.deepEqual(sent?.options?.protocol, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'x y' })
})

/** A server whose every call is answered so. */
const answering = (reply: Reply): FakeServer => new FakeServer((request) => request.method === 'tools/call' ? reply : modern(request))
/** One whose every call requires input. */
const asking = (more: object): FakeServer => answering({ result: { resultType: 'input_required', ...more } })
const elicitation = { inputRequests: { a: { method: 'elicitation/create', params: {} } }, requestState: 's' }
const outcome = async (t: Cleanup, server: FakeServer, question?: SessionHandlers['question']): Promise<unknown> => {
  const { session } = await begun(t, server, question)
  const answer = await session.call(new FakeExchange('{"name":"x"}'), { changes: {}, deadlines }).catch((error: unknown) => error)
  assert.equal(session.busy, false)
  return answer
}

test('rounds of questions are bounded', async (t) => {
  const server = asking(elicitation)
  const error = await outcome(t, server)
  assert.ok(error instanceof RpcError && /requested input more than/.test(error.message), String(error))
  const calls = server.of('tools/call').map(({ message }) => message as Request)
  assert.ok(calls.length > 2 && calls.length < 100, `${calls.length} calls`)
  assert.equal(new Set(calls.map(({ id }) => id)).size, calls.length)
  assert.deepEqual([calls[0]?.params.requestState, calls[1]?.params.requestState], [undefined, 's'])
  assert.deepEqual(calls[1]?.params.inputResponses, { a: { action: 'accept' } })
})

test('rounds of questions end with an error that the client answers', async (t) => {
  const server = asking(elicitation)
  const error = await outcome(t, server, async () => ({ kind: 'response', id: 1, errorText: '{"code":-1,"message":"no thanks"}' }))
  assert.ok(error instanceof RpcError && error.code === -1 && /no thanks/.test(error.message), String(error))
  assert.equal(server.of('tools/call').length, 1)
})

test('rounds of questions end with an error of the call, not of the question, where the client is not asked, or does not know the question', async (t) => {
  const asks = (params: object): FakeServer => asking({ inputRequests: { a: { method: 'elicitation/create', params } } })
  const clients: ReadonlyArray<readonly [Record<string, unknown>, object, string]> = [
    [{}, {}, '{"elicitation":{"form":{}}}'],
    [{ elicitation: { url: {} } }, {}, '{"elicitation":{"form":{}}}'],
    [{ elicitation: {} }, { mode: 'url', url: 'https://example.com/' }, '{"elicitation":{"url":{}}}']
  ]
  for (const [capabilities, params, wanted] of clients) {
    const { session } = await begun(t, asks(params), async (question) => {
      requireClientCapability(capabilities, question)
      throw new Error('asked')
    })
    const client = Object.assign(new NonMcpClient('s', 'u'), { capabilities })
    await assert.rejects(session.call(new FakeExchange('{"name":"x"}', client), { changes: {}, deadlines }), (error: RpcError) => {
      assert.equal(error.code, -32603)
      assert.match(error.message, /The client does not support elicitation/)
      assert.ok(error.message.endsWith(`; the client would have to declare ${wanted}`), error.message)
      return true
    })
  }
  for (const number of [-32601, -32602, -32600]) {
    const error = await outcome(t, asks({}), async () => ({ kind: 'response', id: 1, errorText: `{"code":${number},"message":"Method not found"}` }))
    assert.ok(error instanceof RpcError && error.code === -32603 && /Method not found/.test(error.message), String(error))
  }
  // What says more than that goes on.
  const late = await outcome(t, asks({}), async () => { throw new RpcError(-32603, 'The client did not answer in time') })
  assert.ok(late instanceof RpcError && late.message === 'The client did not answer in time', String(late))
})

test('rounds of questions ask nothing that MCP has not', async (t) => {
  assert.match(String(await outcome(t, asking({ inputRequests: { a: { method: 'tools/list' } } }))), /which MCP does not have/)
})

test('rounds of questions end at once where nothing is asked, and no state says that there is more to come', async (t) => {
  for (const more of [{}, { inputRequests: {} }, { inputRequests: {}, requestState: null }]) {
    const server = asking(more)
    assert.match(String(await outcome(t, server)), /its result requires input, but has no input requests/)
    assert.equal(server.of('tools/call').length, 1)
  }
  assert.match(String(await outcome(t, asking({ inputRequests: [1] }))), /its input requests are invalid/)
})

test('rounds of questions end where they are too many', async (t) => {
  const answered = (inputRequests: object): FakeServer => asking({ inputRequests, requestState: 's' })
  // The pause between two rounds keeps no process alive.
  const alive = setInterval(() => {}, 1_000)
  const endless = answered({})
  assert.match(String(await outcome(t, endless)), /requested input more than 4 times/)
  assert.equal(endless.of('tools/call').length, 5)
  const many = Object.fromEntries(['a', 'b', 'c', 'd'].map((key) => [key, { method: 'roots/list' }]))
  assert.match(String(await outcome(t, answered(many))), /4 input requests at once; at most 3 are allowed/)
  clearInterval(alive)
})

test('rounds of questions end when the call is cancelled: what is asked is withdrawn, and nothing is sent again', async (t) => {
  const server = asking(elicitation)
  const withdrawn: unknown[] = []
  const { session } = await begun(t, server, async ({ signal }) => await new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => { withdrawn.push(signal.reason); reject(new Error('withdrawn')) })
    setImmediate(() => { exchange.cancel('enough') })
  }))
  const exchange = new FakeExchange('{"name":"x"}')
  await assert.rejects(session.call(exchange, { changes: {}, deadlines }), /enough/)
  assert.equal(withdrawn.length, 1)
  assert.deepEqual([session.busy, server.of('tools/call').length], [false, 1])
})

test('rounds of questions are the client\'s own where it can be suspended', async (t) => {
  const { session } = await begun(t, asking(elicitation), async () => { throw new Error('asked') })
  const exchange = Object.assign(new FakeExchange('{"name":"x"}'), { canSuspend: true })
  const { resultText } = await session.call(exchange, { changes: {}, deadlines })
  assert.match(String(resultText), /input_required/)
})

test('answers and states are those of clients of this era, and of the rounds that are led for others', async (t) => {
  const server = new FakeServer(modern)
  const { session } = await begun(t, server)
  const own = '"requestState":"zz","inputResponses":{"a":{"action":"accept"}}'
  const sent = async (text: string, canSuspend: boolean, method = 'tools/call'): Promise<string> => {
    await session.call(Object.assign(new FakeExchange(text), { canSuspend, method }), { changes: { name: '"x"' }, deadlines })
    const { message } = server.of(method).at(-1) ?? {}
    return String((message as Request).paramsText).replace(/,"_meta":.*/, '}')
  }
  assert.equal(await sent(`{"name":"n",${own},"arguments":{"n":1e400}}`, false), '{"name":"x","arguments":{"n":1e400}}')
  assert.equal(await sent(`{${own},"name":"n","_meta":{"a":1}}`, false), '{"name":"x"}')
  // A server may ask without a state: then the answers come without one.
  for (const each of [own, '"inputResponses":{"a":{}}']) assert.equal(await sent(`{"name":"n",${each}}`, true), `{"name":"x",${each}}`)
  // Elsewhere they are members like any other.
  assert.equal(await sent(`{"name":"n",${own}}`, false, 'vendor/x'), `{"name":"x",${own}}`)
})

test('structured content that is no object is text for clients of earlier revisions', async () => {
  const block = (value: string): string => JSON.stringify({ type: 'text', text: value })
  const big = '[12345678901234567890, {"a b": "\\" c"}]'
  const table: ReadonlyArray<readonly [value: string, content: string[], told: string[]]> = [
    ['[1,2]', [], [block('[1,2]')]],
    ['[1,2]', [block('Two numbers')], [block('Two numbers'), block('[1,2]')]],
    ['[1,2]', [block('[1,2]')], [block('[1,2]')]],
    ['[1,2]', [block(' [ 1,\n 2 ] ')], [block(' [ 1,\n 2 ] ')]],
    [big, [block(big)], [block(big)]],
    [big, [block(big.replace(/67890/, '67891'))], [block(big.replace(/67890/, '67891')), block(big)]],
    [big, [block(big.replace('a b', 'ab'))], [block(big.replace('a b', 'ab')), block(big)]],
    ['"it"', [block('it'), '{"type":"image","text":"\\"it\\""}', '7'], [block('it'), '{"type":"image","text":"\\"it\\""}', '7', block('"it"')]],
    ['null', [block('never closed "  ')], [block('never closed "  '), block('null')]]
  ]
  for (const [value, content, told] of table) {
    assert.equal(
      toLegacyToolResult(`{"content":[${content.join()}],"structuredContent":${value},"n":1e400}`),
      `{"content":[${told.join()}],"n":1e400}`, value
    )
  }
  assert.equal(toLegacyToolResult('{"structuredContent":[1]}'), `{"content":[${block('[1]')}]}`)
  for (const same of ['{"content":[],"structuredContent":{"a":[1]}}', '{"content":[{"type":"text","text":"\\"structuredContent\\""}]}']) {
    assert.equal(toLegacyToolResult(same), same)
  }
})

test('what a modern client says to its own hop does not go to a server of an earlier revision', async () => {
  const level = '"io.modelcontextprotocol/logLevel":"info"'
  const own = '"requestState":"zz","inputResponses":{"a":{"action":"accept"}}'
  const sent = (text: string, canSuspend: boolean, changes: Record<string, string> = { name: '"x"' }): string =>
    legacyParams(Object.assign(new FakeExchange(text), { canSuspend }), changes, 5)
  assert.equal(sent(`{"name":"n",${own},"_meta":{${level},"a":1e400,"progressToken":"p"}}`, true), '{"name":"x","_meta":{"a":1e400,"progressToken":5}}')
  assert.equal(sent(`{"name":"n","inputResponses":{},"_meta":{${level}}}`, true), '{"name":"x"}')
  assert.equal(sent(`{"name":"n","_meta":{${level}}}`, false, { _meta: `{${level},"traceparent":"t"}` }), '{"name":"n","_meta":{"traceparent":"t"}}')
  // To clients of this era, those are members like any other.
  assert.equal(sent(`{"name":"n",${own},"_meta":{"a":1}}`, false), `{"name":"x",${own},"_meta":{"a":1}}`)
  assert.equal(sent('{ "name":"n" }', true, {}), '{ "name":"n" }')
})

test('tools as clients of earlier revisions can read them', async () => {
  const object = '{"type":"object"}'
  const table: ReadonlyArray<readonly [string, string | undefined]> = [
    [`{"name":"a","inputSchema":${object},"outputSchema":{"type":"object","properties":{"n":{"const":1e400}}}}`, 'same'],
    [
      '{"name":"b","inputSchema":{"type":"object","properties":{"x":true,"y":false,"__proto__":true,"z":{"items":true}},"$x":1e400}}',
      '{"name":"b","inputSchema":{"type":"object","properties":{"x":{},"y":{"not":{}},"__proto__":{},"z":{"items":true}},"$x":1e400}}'
    ],
    [`{"outputSchema":{"type":"array"},"name":"c","inputSchema":${object}}`, `{"name":"c","inputSchema":${object}}`],
    [`{"name":"d","inputSchema":${object},"outputSchema":true}`, `{"name":"d","inputSchema":${object}}`],
    [`{"name":"e","inputSchema":${object},"outputSchema":{"anyOf":[${object}]}}`, `{"name":"e","inputSchema":${object}}`],
    [
      `{"name":"f","inputSchema":${object},"outputSchema":{"type":"object","properties":{"x":{"$ref":"https://x.test/s"}}}}`,
      `{"name":"f","inputSchema":${object}}`
    ],
    [`{"name":"g","inputSchema":${object},"outputSchema":{"type":"object","$ref":"#/$defs/a"}}`, 'same'],
    ['{"name":"h","inputSchema":{}}', '{"name":"h","inputSchema":{"type":"object"}}'],
    ['{"name":"i","inputSchema":{"type":"array"}}', undefined],
    ['{"name":"j","inputSchema":{"type":"object","properties":{"x":1}}}', undefined],
    ['{"name":"k","inputSchema":{"type":"object","required":true}}', undefined],
    ['{"name":"l"}', undefined]
  ]
  for (const [text, expected] of table) assert.equal(toLegacyTool(text), expected === 'same' ? text : expected, text)
})

test('errors about the gateway\'s own hop are told in other words', async (t) => {
  for (const [code, expected] of [[-32020, -32603], [-32021, -32600], [-32022, -32603], [-32099, -32099]] as const) {
    const data = { supported: ['2026-07-28'], requiredCapabilities: { sampling: {} } }
    const { session } = await begun(t, answering({ error: { code, message: 'm', data } }))
    const { errorText } = await session.call(new FakeExchange('{"name":"x"}'), { changes: {}, deadlines })
    const error = JSON.parse(String(errorText)) as { code: number, data?: { requiredCapabilities?: unknown } }
    assert.deepEqual([error.code, error.data?.requiredCapabilities], [expected, { sampling: {} }])
  }
})

test('a task is not taken, which was not offered', async (t) => {
  const task = { result: { resultType: 'task', taskId: 't', status: 'working' } }
  const { session } = await begun(t, answering(task))
  const answer = await session.call(new FakeExchange('{"name":"x"}'), { changes: {}, deadlines })
  assert.equal(answer.resultText, undefined)
  assert.match(String(answer.errorText), /-32603.*of type \\"task\\"/)
  const extensions = { 'io.modelcontextprotocol/tasks': {}, 'example.com/x': {} }
  assert.deepEqual(ownLinkCapabilities({ extensions, tasks: {} }), { extensions: { 'example.com/x': {} } })
})

test('the stream of changes', async (t) => {
  for (const hasStreams of [true, false]) {
    const server = new FakeServer(modern, hasStreams)
    const { session, heard } = await begun(t, server)
    const filters = (): unknown[] => server.of('subscriptions/listen').map(({ message }) => message.params.notifications)
    assert.deepEqual(filters(), [{ toolsListChanged: true }])
    await Promise.all([session.subscribe('r://1'), session.subscribe('r://2'), session.subscribe('r://3')])
    assert.deepEqual(filters().at(-1), { toolsListChanged: true, resourceSubscriptions: ['r://1', 'r://2', 'r://3'] })
    const ids = server.of('subscriptions/listen').map(({ message }) => Number((message as Request).id))
    const last = ids.at(-1)
    // Those before it are ended: by closing them, or by a notification.
    assert.deepEqual(hasStreams ? server.dropped : server.of('notifications/cancelled').map(({ message }) => message.params.requestId), ids.slice(0, -1))
    const tell = (id: number | undefined, uri: string): void => {
      const params = { uri, _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
      server.say({ method: 'notifications/resources/updated', params }, hasStreams ? id : undefined)
    }
    tell(ids[0], 'r://old')
    tell(last, 'r://1')
    assert.deepEqual(heard.map(({ paramsText }) => paramsText), ['{"uri":"r://1"}'])
    // It is lost, and opened again: what may have changed meanwhile is looked at.
    server.say({ id: last, result: { resultType: 'complete' } }, last)
    await until(async () => server.of('subscriptions/listen').length > ids.length, 'it is not opened again')
    await until(async () => heard.some(({ method }) => method === 'notifications/tools/list_changed'), 'lists are not read again')
    assert.deepEqual(filters().at(-1), { toolsListChanged: true, resourceSubscriptions: ['r://1', 'r://2', 'r://3'] })
  }
})

test('a stream of changes that ends soon is opened again ever later', async (t) => {
  mockTimers(t, 'setTimeout', 'Date')
  const server = new FakeServer(modern)
  await begun(t, server)
  const turns = async (): Promise<void> => {
    for (let n = 0; n < 5; n++) await new Promise((resolve) => { setImmediate(resolve) })
  }
  const waits: number[] = []
  for (const openFor of [0, 0, 0, 4_000, 0]) {
    await turns()
    mock.timers.tick(openFor)
    const opened = server.of('subscriptions/listen')
    const { id } = opened.at(-1)?.message as Request
    server.say({ id, result: { resultType: 'complete' } }, Number(id))
    await turns()
    let wait = 0
    for (; server.of('subscriptions/listen').length === opened.length && wait < 60_000; wait += 500) {
      mock.timers.tick(500)
      await turns()
    }
    waits.push(wait)
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 1_000, 1_000])
})

test('a process that starts slowly', async (t) => {
  /** Answers nothing for longer than the question is waited for, and then in order. */
  const slow = (answer: (request: Request) => Reply): FakeServer => {
    const waiting: Request[] = []
    const server = new FakeServer((request) => {
      waiting.push(request)
      if (request.method === 'initialize') {
        setImmediate(() => {
          for (const each of waiting) {
            const reply = answer(each)
            if (reply) server.say({ id: each.id, ...reply })
          }
        })
      }
      return undefined
    }, false)
    return server
  }
  const old = { result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'old', version: '1' } } }
  const refusal = { error: { code: -32601, message: 'no' } }
  const legacy = begin(t, slow(({ method }) => method === 'initialize' ? old : refusal))
  const silent = begin(t, slow(({ method }) => method === 'initialize' ? old : undefined))
  const strict = begin(t, slow(({ method }) => method === 'initialize' ? refusal : { result: { ...discovered, capabilities: {} } }))
  const both = begin(t, slow(({ method }) => method === 'initialize' ? old : { result: discovered }))
  await Promise.all([
    ...[legacy, silent, strict].map(async ({ session }) => { await session.open(() => {}) }),
    assert.rejects(both.session.open(() => {}), (error) => error instanceof WrongEraError && error.era === 'modern')
  ])
  for (const [{ session, found }, version, beginning] of [
    [legacy, '2025-11-25', ['legacy', false]], [silent, '2025-11-25', ['legacy', true]], [strict, '2026-07-28', ['modern', false]]
  ] as const) assert.deepEqual([session.identity.version, found], [version, [beginning]])
})

test('how long lists may be kept', async () => {
  assert.equal(cachingOf('{"tools":[]}'), undefined)
  assert.equal(cachingOf('{"tools":[{"ttlMs":5}]}'), undefined)
  assert.deepEqual(cachingOf('{"ttlMs":5.9,"cacheScope":"public"}'), { ttlMs: 5, isPublic: true })
  for (const odd of ['-1', '"5"', 'null', '1e400', '{}']) assert.equal(cachingOf(`{"ttlMs":${odd}}`)?.ttlMs, 0, odd)
  assert.deepEqual(combineCaching({ ttlMs: 5, isPublic: true }, { ttlMs: 9, isPublic: false }), { ttlMs: 5, isPublic: false })
  assert.equal(combineCaching({ ttlMs: 5, isPublic: true }, undefined), undefined)

  const bounds = { least: 5_000, most: 3_600_000 }
  const of = (ttlMs: number): { ttlMs: number, isPublic: boolean } => ({ ttlMs, isPublic: true })
  const changing = { tools: { listChanged: true }, prompts: {} }
  const table = [
    [{}, Infinity],
    [{ tools: of(60_000) }, 61_000],
    [{ tools: of(60_000), prompts: of(30_000) }, 31_000],
    [{ tools: of(10) }, 6_000],
    [{ tools: of(1e12) }, 3_601_000],
    // Whoever tells of changes need not be asked over and over.
    [{ tools: of(0) }, Infinity],
    [{ prompts: of(0) }, 6_000]
  ] as const
  for (const [lists, expected] of table) {
    assert.equal(staleAt({ learnedAt: 1_000, lists }, changing, bounds), expected, JSON.stringify(lists))
  }

  const left = (ttlMs: number, age: number): number => remainingFreshness(ttlMs, 0, age, bounds)
  const ages = [0, 1, 30_500, 59_000, 60_000, 99_000]
  assert.deepEqual(ages.map((age) => left(60_000, age)), [60_000, 54_000, 24_000, 0, 0, 0])
  assert.deepEqual([left(1e12, 0), left(0, 0), left(900, 0), left(900, 1)], [3_600_000, 0, 900, 0])
})

test('what is kept of an era', async () => {
  let now = 0
  const eras = new EraMemory(() => now)
  assert.equal(eras.eraKnowledge(true).era, undefined)
  eras.eraKnowledge(true).onEra('legacy', false)
  // The gateway's own connection asks whenever it is opened; the others take its verdict, for an hour.
  assert.deepEqual([eras.eraKnowledge(true).era, eras.eraKnowledge(false).era], [undefined, 'legacy'])
  now += 3_600_001
  assert.equal(eras.eraKnowledge(false).era, undefined)
  eras.eraKnowledge(true).onEra('modern', false)
  assert.deepEqual([eras.eraKnowledge(true).era, eras.eraKnowledge(false).era], [undefined, 'modern'])
  eras.forget()
  assert.equal(eras.eraKnowledge(false).era, undefined)
  // A server that cannot be asked is not asked again for an hour, whatever fails.
  eras.markLegacy()
  eras.forget()
  now += 1_800_000
  const known = eras.eraKnowledge(true)
  assert.equal(known.era, 'legacy')
  known.onEra('legacy', false)
  now += 1_800_001
  assert.equal(eras.eraKnowledge(true).era, undefined)
})
