// Connections by streamable HTTP and by HTTP+SSE: broken streams, streams of news, and what a refusal means.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { mockTimers } from '../helpers/clock.ts'
import type { Dispatcher } from 'undici'
import { errorResponseText, notificationText, requestText, resultResponseText, type Message } from '../../protocol/message.ts'
import { CookieJar } from '../../protocol/transports/cookies.ts'
import { networkFailureMessage } from '../../protocol/transports/http-answer.ts'
import { HttpTransport, type HttpOptions } from '../../protocol/transports/http.ts'
import { SseTransport } from '../../protocol/transports/sse.ts'
import { initializedNotificationTimeout, parseMessages, type Receiver, type SendOptions, type Transport } from '../../protocol/transports/transport.ts'

interface Reply {
  status: number
  type?: string
  text?: string
  /** How it ends; undefined: it stays open. */ end?: 'well' | 'broken'
  headers?: Record<string, string>
}
interface Asked {
  method: string
  path: string
  headers: Record<string, string>
  id: unknown
  /** Says more on a stream that stays open, or ends it. */ say: (text: string, end?: 'well' | 'broken') => void
}

const events = (text: string, end?: 'well' | 'broken'): Reply => ({ status: 200, type: 'text/event-stream', text, end })
const json = (status: number, value: unknown): Reply => ({ status, text: JSON.stringify(value), end: 'well' })

interface Connection<Kind extends Transport> {
  transport: Kind
  asked: Asked[]
  posts: () => Asked[]
  gets: () => Asked[]
  heard: Message[]
  told: string[]
  receiver: Receiver
  tick: (ms: number) => Promise<void>
}

/** A connection to an upstream that answers as it is told, on a clock that goes when it is told. */
function connection<Kind extends Transport> (
  t: Test,
  Kind: new (options: HttpOptions) => Kind,
  reply: (asked: Asked) => Reply | Promise<Reply>,
  authorization?: HttpOptions['authorization']
): Connection<Kind> {
  mockTimers(t, 'setTimeout', 'Date')
  const asked: Asked[] = []
  const heard: Message[] = []
  const told: string[] = []
  const dispatch = ({ method, path, headers, body }: Dispatcher.DispatchOptions, handler: Required<Dispatcher.DispatchHandler>): void => {
    const list = Array.isArray(headers) ? (headers as string[]) : Object.entries(headers as Record<string, string>).flat()
    let aborted = false
    const controller = {
      abort: () => { aborted = true }, pause: () => {}, resume: () => {}
    } as unknown as Dispatcher.DispatchController
    const say: Asked['say'] = (text, end) => {
      if (aborted) return
      if (text !== '') handler.onResponseData(controller, Buffer.from(text))
      if (end === 'well') handler.onResponseEnd(controller, {})
      if (end === 'broken') handler.onResponseError(controller, Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }))
    }
    const one: Asked = {
      method,
      path,
      headers: Object.fromEntries(list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? '']] : []))),
      id: typeof body === 'string' ? JSON.parse(body).id : undefined,
      say
    }
    asked.push(one)
    queueMicrotask(() => {
      handler.onRequestStart(controller, {})
      void Promise.resolve(reply(one)).then(({ status, type = 'application/json', text = '', end, headers: more }) => {
        if (!aborted) handler.onResponseStart(controller, status, { 'content-type': type, 'mcp-session-id': 'session', ...more })
        say(text, end)
      })
    })
  }
  return {
    transport: new Kind({
      url: new URL('http://upstream.example/mcp'), headers: {}, authorization, dispatcher: { dispatch } as unknown as Dispatcher
    }),
    asked,
    posts: () => asked.filter(({ method }) => method === 'POST'),
    gets: () => asked.filter(({ method }) => method === 'GET'),
    heard,
    told,
    receiver: {
      message: (message) => { heard.push(message); return true },
      failed: (id, error) => { told.push(`${id} ${error.fault}: ${error.message}`) },
      paused: (id, retry) => { told.push(`${id} paused ${retry}`) },
      closed: (error) => { told.push(error.fault) }
    },
    tick: async (ms) => {
      mock.timers.tick(ms)
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    }
  }
}

/** One over streamable HTTP, which is initialized. */
async function httpConnection (t: Test, reply: (asked: Asked) => Reply): Promise<Connection<HttpTransport>> {
  const made = connection(t, HttpTransport, (asked) => asked.id === 1 ? json(200, { jsonrpc: '2.0', id: 1, result: {} }) : reply(asked))
  await made.transport.start(made.receiver)
  made.transport.send(requestText(1, 'initialize'), { id: 1 })
  await made.tick(0)
  return made
}

/** One that has also sent a call, with the id 2. */
async function called (t: Test, reply: (asked: Asked) => Reply, options?: Partial<SendOptions>): Promise<Connection<HttpTransport>> {
  const made = await httpConnection(t, reply)
  made.transport.send(requestText(2, 'tools/call'), { id: 2, ...options })
  await made.tick(0)
  return made
}

const primed = 'id: x-1\nretry: 700\ndata: \n\n'
const result = (id: unknown): string => `id: x-9\ndata: ${resultResponseText(JSON.stringify(id), '{}')}\n\n`
const noSession = { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }

for (const [says, refused, end] of [
  ['404, the session is gone', json(404, noSession), 'expired'],
  ['400, the session is gone', json(400, { ...noSession, error: { code: -32000, message: 'No valid session ID provided' } }), 'expired'],
  ['400, the event is not known', json(400, { ...noSession, error: { code: -32000, message: 'Invalid event ID' } })],
  ['401', json(401, {})],
  ['403', json(403, {})],
  ['405', { status: 405, end: 'well' }],
  ['a redirect to another origin', { status: 307, headers: { location: 'http://elsewhere.example/' }, end: 'well' }]
] as Array<[string, Reply, string?]>) {
  test(`http, an answer by a stream: it broke, and resuming it is answered ${says}: the request may have run`, async (t) => {
    const { tick, told, gets, asked } = await called(t, ({ method }) =>
      method === 'POST' ? events(primed, 'broken') : refused
    )
    assert.deepEqual(told, [])
    await tick(700)
    assert.equal(gets()[0]?.headers['last-event-id'], 'x-1')
    assert.equal(told.length, end === undefined ? 1 : 2, told.join('; '))
    assert.match(told[0] ?? '', /^2 broken: its broken stream could not be resumed: ./)
    assert.equal(told[1], end)
    await tick(60_000)
    assert.equal(asked.length, 3, 'it was asked for again')
  })
}

test('http, an answer by a stream: it broke, and the upstream is busy, or has not missed the former one yet: it is asked for again', async (t) => {
  const refusals: Reply[] = [json(409, { ...noSession, error: { code: -32000, message: 'Conflict' } }), json(503, {}), json(429, {})]
  const { tick, told, heard, gets } = await called(t, ({ method }) =>
    method === 'POST' ? events(primed, 'broken') : (refusals.shift() ?? events(result(2), 'well'))
  )
  for (let n = 0; n < 5; n++) await tick(700)
  assert.deepEqual([told, gets().length, heard.map((message) => message.kind === 'response' && message.id)], [[], 4, [1, 2]])
  assert.deepEqual(gets().map(({ headers }) => headers['last-event-id']), Array.from({ length: 4 }, () => 'x-1'))
})

test('http, an answer by a stream: it breaks again and again: it is given up', async (t) => {
  const { tick, told, gets } = await called(t, ({ method }) =>
    method === 'POST' ? events(primed, 'broken') : events('', 'broken')
  )
  for (let n = 0; n < 20; n++) await tick(700)
  assert.equal(gets().length, 5)
  assert.deepEqual(told, ['2 broken: upstream.example closed the connection'])
})

for (const [says, poll] of [['with an event', 'id: x-2\ndata: \n\n'], ['without a word', '']] as const) {
  test(`http, an answer by a stream: polled as often as the upstream likes, each time ${says}, at the pace that it asked for`, async (t) => {
    let polls = 0
    const { tick, told, heard, gets } = await called(t, ({ method }) =>
      method === 'POST' ? events(primed, 'well') : events(++polls < 12 ? poll : result(2), 'well')
    )
    for (let n = 0; n < 12; n++) await tick(700)
    assert.equal(gets().length, 12)
    assert.deepEqual(heard.map((message) => message.kind === 'response' && message.id), [1, 2])
    assert.deepEqual(told, Array.from({ length: 12 }, () => '2 paused 700'))
  })
}

const news = (n: number): string => `data: ${notificationText(`news/${n}`)}\n\n`
const told = ({ heard }: { heard: Message[] }): string[] =>
  heard.flatMap((message) => (message.kind === 'notification' ? [message.method] : []))
/** A connection with an open stream, on which an event with an id has come. */
const standing = async (
  t: Test,
  later: Reply[],
  call: (asked: Asked) => Reply = () => json(404, {})
): Promise<Connection<HttpTransport>> => {
  const replies = [events('id: e-1\ndata: \n\n'), ...later]
  const made = await httpConnection(t, (asked) =>
    asked.method === 'GET' ? (replies.shift() ?? events('id: e-2\ndata: \n\n')) : call(asked)
  )
  await made.transport.onNegotiated('2025-11-25')
  return made
}

for (const [status, text, from] of [
  [400, 'Invalid event ID', undefined], [401, '', undefined], [403, '', undefined], [408, '', 'e-1'],
  [409, 'Conflict', 'e-1'], [429, '', 'e-1'], [500, '', 'e-1'], [502, '', 'e-1']
] as const) {
  test(`http, the stream of news: it ended, and is refused with ${status} for a while: it is asked for again`, async (t) => {
    const connection = await standing(t, [{ status, text, end: 'well' }, { status, text, end: 'well' }])
    const { gets, tick } = connection
    gets()[0]?.say('', 'well')
    for (let n = 0; n < 14; n++) await tick(1_000)
    assert.equal(gets().length, 4)
    assert.deepEqual(gets().map(({ headers }) => headers['last-event-id']), [undefined, 'e-1', from, from])
    gets()[3]?.say(news(1))
    assert.deepEqual([told(connection), connection.told], [['news/1'], []])
  })
}

for (const [id, sent] of [['é-日', Buffer.from('é-日').toString('latin1')], ['a\u0001b', undefined]] as const) {
  test(
    `http, the stream of news: an event id that a header takes ${sent === undefined ? 'not' : 'as UTF-8'} keeps no stream from being resumed`,
    async (t) => {
      const made = await httpConnection(t, (asked) => (asked.method === 'GET' ? events(`id: ${id}\ndata: \n\n`) : json(404, {})))
      await made.transport.onNegotiated('2025-11-25')
      made.gets()[0]?.say('', 'well')
      for (let n = 0; n < 4 && made.gets().length < 2; n++) await made.tick(1_000)
      assert.equal(made.gets()[1]?.headers['last-event-id'], sent)
    }
  )
}

for (const [says, refused, end] of [
  ['404', json(404, {}), ['expired']],
  ['400, no such session', { status: 400, text: 'Invalid or missing session ID', end: 'well' }, ['expired']],
  ['405', { status: 405, end: 'well' }, []]
] as Array<[string, Reply, string[]]>) {
  test(`http, the stream of news: it ended, and is refused with ${says}: that is believed`, async (t) => {
    const { gets, tick, told, transport } = await standing(t, [refused])
    gets()[0]?.say('', 'well')
    await tick(2_000)
    assert.equal(gets().length, 2)
    assert.deepEqual(told, end)
    if (end.length > 0) void transport.close()
    await tick(120_000)
    assert.equal(gets().length, 2)
  })
}

test('http, the stream of news: an upstream that says `retry: 0` is not polled without a pause', async (t) => {
  const { transport, gets, tick } = await httpConnection(t, ({ method }) => method === 'GET' ? events('retry: 0\n\n', 'well') : json(404, {}))
  await transport.onNegotiated('2025-11-25')
  for (let n = 0; n < 300; n++) await tick(10)
  assert.ok(gets().length > 1 && gets().length <= 6, `${gets().length} GETs in 3 s`)
})

test('http, the stream of news: an upstream that offers none is not asked again', async (t) => {
  for (const status of [400, 404, 405, 200]) {
    await t.test(`${status}`, async (t) => {
      const { transport, gets, tick, told } = await httpConnection(t, () => ({ status, text: 'no session for you', end: 'well' }))
      await transport.onNegotiated('2025-11-25')
      await tick(120_000)
      assert.deepEqual([gets().length, told], [1, []])
    })
  }
})

test('http, the stream of news: one that cannot be read takes no others with it', async (t) => {
  const connection = await standing(t, [])
  connection.gets()[0]?.say(`${news(1)}data: what?\n\ndata: []\n\n${news(2)}`)
  await connection.tick(60_000)
  assert.deepEqual([told(connection), connection.gets().length], [['news/1', 'news/2'], 1])
})

for (const [says, begin] of [
  ['the stream of news', ({ gets }) => { gets()[0]?.say('', 'well') }],
  ['a notification', ({ transport }) => { transport.send(notificationText('notifications/cancelled')) }],
  ['another call', ({ transport }) => { transport.send(requestText(3, 'tools/call'), { id: 3 }) }]
] as Array<[string, (connection: Connection<HttpTransport>) => void]>) {
  test(`http, the stream of news: the session is gone, as ${says} finds, while a call is on its way: that says for itself what became of it`, async (t) => {
    const connection = await standing(t, [json(404, {})], ({ id }) => id === 2 ? events(': wait\n\n') : json(404, {}))
    const { posts, tick, told, transport, heard } = connection
    transport.send(requestText(2, 'tools/call'), { id: 2 })
    await tick(0)
    begin(connection)
    await tick(2_000)
    assert.deepEqual(told, says === 'another call' ? ['3 expired: the upstream no longer knows the session'] : [])
    posts().find(({ id }) => id === 2)?.say(`data: ${resultResponseText('2', '{}')}\n\n`, 'well')
    assert.equal(heard.length, 2)
    assert.equal(told.at(-1), 'expired')
  })
}

test('http: the session is gone, and the last call on its way is given up: the connection ends', async (t) => {
  const { transport, tick, told } = await standing(t, [], ({ id }) => id === 2 ? events(': wait\n\n') : json(404, {}))
  for (const id of [2, 3]) transport.send(requestText(id, 'tools/call'), { id })
  await tick(0)
  assert.deepEqual(told, ['3 expired: the upstream no longer knows the session'])
  transport.drop(2)
  assert.equal(told.length, 1, 'what is given up is not told as expired')
  await tick(0)
  assert.deepEqual(told.slice(1), ['expired'])
})

/** Sends a request in a session and answers it so, and a ping that it may cause. @returns the fault, or the kind of the message received */
async function refusedInSession (t: Test, answer: Reply, ping = answer): Promise<string | undefined> {
  const { transport, tick, told, heard, receiver } =
    await httpConnection(t, ({ method, id }) => method === 'GET' ? { status: 405, end: 'well' } : id === 9 ? ping : answer)
  const { message, failed } = receiver
  receiver.restartSuspected = async () => {
    await new Promise<void>((resolve) => {
      receiver.message = (received, origin) => { if (origin === 9) resolve(); return origin === 9 || message(received, origin) }
      receiver.failed = (id, error) => { if (id === 9) resolve(); else failed(id, error) }
      transport.send(requestText(9, 'ping'), { id: 9 })
    })
  }
  void transport.onNegotiated('2025-11-25')
  await tick(0)
  transport.send(requestText(2, 'tools/call'), { id: 2 })
  await tick(0)
  return told[0]?.replace(/^2 (\w+):.*/, '$1') ?? heard[1]?.kind
}

test('http: a server that does not know the session says so by a status, or by words', async (t) => {
  const rpc = (code: number, message: string, id: number | null | string = 2): object =>
    ({ jsonrpc: '2.0', id, error: { code, message } })
  const table: Array<[number, unknown, string]> = [
    [404, rpc(-32601, 'no'), 'response'], [404, 'Not Found', 'expired'], [410, 'Gone', 'expired'],
    [400, rpc(-32600, 'Invalid Request: Session not found'), 'expired'], [400, rpc(-32000, 'No valid session ID provided', null), 'expired'],
    [404, rpc(-32600, 'Session 3f2a not found'), 'expired'], [400, 'Invalid session ID', 'expired'], [422, rpc(-32602, 'no'), 'response'],
    [400, rpc(-32000, 'Bad Request: Server not initialized', null), 'expired'], [400, rpc(-32602, 'Invalid arguments'), 'response'],
    [400, rpc(-32602, 'session_name is missing'), 'response'], [400, rpc(-32602, 'Unknown session'), 'response'], [503, rpc(-32000, 'Unknown or expired session', null), 'expired'],
    [503, 'Service Unavailable', 'refused'], [500, rpc(-32603, 'Session not found'), 'response'],
    [200, rpc(-32001, 'session not found', null), 'expired'], [200, rpc(-32002, 'Server not initialized', null), 'expired'],
    [200, rpc(-32600, 'Session expired', null), 'expired'], [200, rpc(-32602, 'Session "b1" not found'), 'response'],
    [200, rpc(-32000, 'no such page'), 'response']
  ]
  for (const [status, body, outcome] of table) {
    await t.test(`${status} ${JSON.stringify(body)}`, async (t) => {
      assert.equal(await refusedInSession(t, typeof body === 'string' ? { status, text: body, end: 'well' } : json(status, body)), outcome)
    })
  }
  for (const [ping, outcome] of [[{ result: {} }, 'response'], [{ error: { code: -32601, message: 'no ping' } }, 'response']] as const) {
    await t.test(`a tool speaks of a session of its own, and a ping gets ${JSON.stringify(ping)}`, async (t) => {
      const own = json(200, rpc(-32000, 'Chat session 17 not found'))
      assert.equal(await refusedInSession(t, own, json(200, { jsonrpc: '2.0', id: 9, ...ping })), outcome)
    })
  }
  for (const [text, outcome] of [['Unauthorized', 'unauthorized'], ['Unauthorized: Session not found', 'expired'], ['invalid "session" argument', 'unauthorized']] as const) {
    await t.test(`401 ${text}`, async (t) => {
      assert.equal(await refusedInSession(t, { status: 401, text, end: 'well' }), outcome)
    })
  }
})

test('http: an error to a modern request is its answer, unless it is that of a legacy server', async (t) => {
  const rpc = (code: number, message: string, id: number | null | string = 2): object =>
    ({ jsonrpc: '2.0', id, error: { code, message } })
  const table: Array<[number, object, string]> = [
    [400, rpc(-32000, 'Tenant is suspended'), 'response'], [400, rpc(-32000, 'Tenant is suspended', null), 'response'],
    [400, rpc(-32700, 'Parse error: boom', null), 'response'], [400, rpc(-32602, 'No such session'), 'response'],
    [400, rpc(-32022, 'Unsupported protocol version', null), 'response'], [400, rpc(-32000, 'for another', 3), 'expired'],
    [409, rpc(-32000, 'Session 5 is locked'), 'response'], [500, rpc(-32055, 'Unknown session of the browser'), 'response'],
    [400, rpc(-32000, 'Bad Request: Server not initialized', null), 'expired'], [503, rpc(-32000, 'Down', null), 'refused'],
    [400, rpc(-32000, 'Bad Request: Unsupported protocol version (supported versions: 2025-11-25)', null), 'expired'],
    [400, rpc(-32600, 'Bad Request: Missing session ID', 'server-error'), 'expired'], [404, rpc(-32001, 'Session not found', null), 'expired'],
    [400, rpc(-32000, 'Chat session 17 not found'), 'response']
  ]
  for (const [status, body, outcome] of table) {
    await t.test(JSON.stringify([status, body]), async (t) => {
      const { told, heard } = await called(t, () => json(status, body), { protocol: { 'mcp-protocol-version': '2026-07-28' } })
      assert.equal(told[0]?.replace(/^2 (\w+):.*/, '$1') ?? heard[1]?.kind, outcome)
    })
  }
})

test('http: a 401 that speaks of the session asks for no login, unless it has a challenge', async (t) => {
  for (const [headers, expected] of [[{}, 0], [{ 'www-authenticate': 'Bearer error="invalid_token"' }, 1]] as const) {
    await t.test(`${expected}`, async (t) => {
      let refusals = 0
      const refusal: Reply = { status: 401, text: 'Unauthorized: Session not found', headers, end: 'well' }
      const { transport, receiver, tick } = connection(
        t, HttpTransport, ({ id }) => id === 1 ? json(200, { jsonrpc: '2.0', id, result: {} }) : refusal,
        { header: () => undefined, refused: async () => { refusals++; return false } }
      )
      await transport.start(receiver)
      for (const id of [1, 2]) {
        transport.send(requestText(id, 'tools/call'), { id })
        await tick(0)
      }
      assert.equal(refusals, expected)
    })
  }
})

test('transports: requests do not overtake notifications/initialized', async (t) => {
  for (const [says, Kind] of [['http', HttpTransport], ['sse', SseTransport]] as Array<[string, new (options: HttpOptions) => Transport]>) {
    for (const status of [202, 500, undefined]) {
      await t.test(`${says}: answered ${status ?? 'never'}`, async (t) => {
        let accept = (_reply: Reply): void => {}
        const { transport, receiver, tick } = connection(t, Kind, ({ method }) => {
          if (method === 'POST') return new Promise<Reply>((resolve) => { accept = resolve })
          return says === 'sse' ? events('event: endpoint\ndata: /m\n\n') : { status: 405, end: 'well' }
        })
        await transport.start(receiver)
        transport.send(notificationText('notifications/initialized'))
        let negotiated = false
        void transport.onNegotiated('2025-11-25').then(() => { negotiated = true })
        await tick(initializedNotificationTimeout - 1)
        assert.equal(negotiated, false)
        if (status === undefined) await tick(1)
        else accept({ status, end: 'well' })
        await tick(0)
        assert.equal(negotiated, true)
      })
    }
  }
})

test('http: a POST that is answered as the GET of HTTP+SSE is at once known for the wrong transport', async (t) => {
  const { transport, receiver, tick, told } =
    connection(t, HttpTransport, () => events('event: endpoint\ndata: /messages?id=1\n\n'))
  await transport.start(receiver)
  transport.send(requestText(1, 'initialize'), { id: 1 })
  await tick(0)
  assert.deepEqual(told, ['1 refused: the upstream uses HTTP+SSE at this address: set "type" to "sse"'])
})

test('http: configured headers replace none of the connection\'s own, and are not sent beside them', async (t) => {
  const names: string[][] = []
  const headers = { accept: 'a/b', 'content-type': 'c/d', 'mcp-session-id': 'mine', 'mcp-protocol-version': '1', 'x-own': 'kept' }
  const dispatch = ({ headers: sent = [] }: Dispatcher.DispatchOptions): boolean => { names.push(sent as string[]); return true }
  const transport = new HttpTransport({ url: new URL('http://upstream.example/'), headers, dispatcher: { dispatch } as unknown as Dispatcher })
  await transport.start(undefined as unknown as Receiver)
  transport.send(requestText(1, 'initialize'), { id: 1 })
  transport.send(requestText(2, 'server/discover'), { id: 2, protocol: { 'mcp-protocol-version': '2026-07-28' } })
  void transport.onNegotiated('2025-11-25')
  transport.send(requestText(3, 'ping'), { id: 3 })
  const own = { accept: 'application/json, text/event-stream', 'content-type': 'application/json', 'user-agent': 'tool-hub', 'x-own': 'kept' }
  const asObject = (sent: string[] | undefined): Record<string, string> => {
    const pairs = (sent ?? []).flatMap((name, at, all) => at % 2 === 0 ? [[name, all[at + 1] ?? ''] as const] : [])
    assert.equal(new Set(pairs.map(([name]) => name)).size, pairs.length, 'a header twice')
    return Object.fromEntries(pairs)
  }
  const [begin, discover, , ping] = names.map(asObject)
  assert.deepEqual(begin, { ...own, 'mcp-session-id': 'mine', 'mcp-protocol-version': '1' })
  assert.deepEqual(discover, { ...own, 'mcp-session-id': 'mine', 'mcp-protocol-version': '2026-07-28' })
  assert.deepEqual(ping, { ...own, 'mcp-session-id': 'mine', 'mcp-protocol-version': '2025-11-25' })
})

test('http: a request that is accepted is answered on the standalone stream; without one it has failed', async (t) => {
  for (const hasStream of [true, false]) {
    await t.test(hasStream ? 'with a stream' : 'without', async (t) => {
      const { transport, tick, told, heard, gets } = await httpConnection(t, ({ method }) => {
        if (method === 'POST') return { status: 202, end: 'well' }
        return hasStream ? events(': ok\n\n') : { status: 405, end: 'well' }
      })
      void transport.onNegotiated('2025-06-18')
      await tick(0)
      transport.send(requestText(2, 'tools/call'), { id: 2 })
      await tick(0)
      assert.deepEqual(told, hasStream ? [] : ['2 refused: the upstream answered HTTP 202'])
      gets()[0]?.say(`data: ${resultResponseText('2', '{}')}\n\n`)
      assert.equal(heard.length, hasStream ? 2 : 1)
    })
  }
})

test('transports: every request names its sender: the gateway, the client whose header is passed on, or as configured', async () => {
  const names: string[] = []
  const dispatch = ({ headers = [] }: Dispatcher.DispatchOptions): boolean => {
    const pairs = Array.isArray(headers) ? (headers as string[]) : Object.entries(headers as Record<string, string>).flat()
    return names.push(pairs[pairs.indexOf('user-agent') + 1] ?? '') > 0
  }
  const cases: Array<[Record<string, string>, Record<string, string>?]> =
    [[{}], [{}, { 'user-agent': 'client' }], [{ 'user-agent': 'own' }]]
  for (const [headers, passed] of cases) {
    const options = { url: new URL('http://upstream.example/'), headers, dispatcher: { dispatch } as unknown as Dispatcher }
    const transport = new HttpTransport({ ...options, clientHeaders: passed && (() => passed) })
    await transport.start(undefined as unknown as Receiver)
    transport.send(requestText(1, 'initialize'), { id: 1 })
    transport.send(requestText(2, 'server/discover'), { id: 2, protocol: { 'mcp-protocol-version': '2026-07-28' } })
    void new SseTransport({ ...options, headers: { ...passed, ...headers } }).start(undefined as unknown as Receiver)
  }
  assert.deepEqual(names, ['tool-hub', 'client', 'own'].flatMap((name) => [name, name, name]))
})

test('transports: cookies that a server sets are sent back on the same connection', async (t) => {
  const cookies = (lines: string[]): Record<string, string> => ({ 'set-cookie': lines as unknown as string })
  const first = ['AWSALB=a%2B=; Expires=Fri, 31 Dec 9999 00:00:00 GMT; Path=/', 'route= x1 ;Secure', 'no pair', '=none', 'gone=1; Max-Age=0']
  await t.test('streamable HTTP', async (t) => {
    const later = [['AWSALB=b; Path=/'], ['route=; Expires=Thu, 01 Jan 1970 00:00:00 GMT', `big=${'x'.repeat(8_192)}`], []]
    const { transport, receiver, asked, tick } = connection(t, HttpTransport, ({ id }) => id === 1
      ? { ...json(200, { jsonrpc: '2.0', id, result: {} }), headers: cookies(first) }
      : { ...json(200, { jsonrpc: '2.0', id, result: {} }), headers: cookies(later.shift() ?? []) })
    await transport.start(receiver)
    for (const id of [1, 2, 3, 4]) {
      transport.send(requestText(id, 'ping'), { id })
      await tick(0)
    }
    assert.deepEqual(asked.map(({ headers }) => headers.cookie), [undefined, 'AWSALB=a%2B=; route=x1', 'AWSALB=b; route=x1', 'AWSALB=b'])
  })
  await t.test('HTTP+SSE', async (t) => {
    const { transport, receiver, posts, tick } = connection(t, SseTransport, ({ method }) => method === 'GET'
      ? { ...events('event: endpoint\ndata: /m\n\n'), headers: cookies(first) }
      : { status: 202, end: 'well' })
    await transport.start(receiver)
    transport.send(requestText(1, 'initialize'), { id: 1 })
    await tick(0)
    assert.equal(posts()[0]?.headers.cookie, 'AWSALB=a%2B=; route=x1')
  })
  const beside = new CookieJar('own=1')
  beside.store('a=b')
  assert.equal(beside.header, 'own=1; a=b')
  const past = 'Expires=Thu, 01 Jan 1970 00:00:00 GMT'
  for (const [attributes, kept] of [
    [`${past}; Max-Age=60`, true], [`Max-Age=60; ${past}`, true], ['Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT', false],
    [past, false], [`${past}; Max-Age=soon`, false], ['Expires=soon', true], ['Max-Age=-1', false], ['Secure; Path=/', true]
  ] as const) {
    const cookies = new CookieJar(undefined)
    cookies.store(['a=b', `a=c; ${attributes}`])
    assert.equal(cookies.header, kept ? 'a=c' : undefined, attributes)
  }
})

test('http: what answers a request is read with any status of success', async (t) => {
  for (const status of [200, 201, 202]) {
    for (const reply of [json(status, { jsonrpc: '2.0', id: 2, result: {} }), { ...events(result(2), 'well'), status }]) {
      await t.test(`${status} ${reply.type ?? 'JSON'}`, async (t) => {
        const { told, heard } = await called(t, () => reply)
        assert.deepEqual([told, heard.length], [[], 2])
      })
    }
  }
})

test('http, an answer by a stream: its last event needs no empty line, if it is whole', async (t) => {
  for (const end of ['\n', '', '\nid: x-9\n']) {
    await t.test(JSON.stringify(end), async (t) => {
      const { told, heard } = await called(t, () => events(`data: ${resultResponseText('2', '{}')}${end}`, 'well'))
      assert.deepEqual([told, heard.length], [[], 2])
    })
  }
  await t.test('a part of one is fetched again', async (t) => {
    const { transport, tick, told, heard } = await httpConnection(t, ({ method }) =>
      events(method === 'POST' ? `${primed}id: x-2\ndata: {"jsonrpc":"2.0","id":2,` : result(2), 'well')
    )
    transport.send(requestText(2, 'tools/call'), { id: 2 })
    await tick(0)
    await tick(700)
    assert.deepEqual([told, heard.length], [['2 paused 700'], 2])
  })
})

test('http, an answer by a stream: events that are no messages do not take its place', async (t) => {
  for (const [text, said, count] of [
    [`data: ping\n\ndata: {}\n\nevent: error\ndata: busy\n\n${result(2)}`, [], 2],
    [`event: error\ndata: ${errorResponseText('2', '{"code":-32000,"message":"boom"}')}\n\n`, [], 2],
    [`event: pong\ndata: ${resultResponseText('2', '{}')}\n\n${result(2)}`, [], 2],
    ['data: ping\n\ndata: {}\n\n', ['2 broken: the upstream ended its stream without an answer'], 1]
  ] as Array<[string, string[], number]>) {
    await t.test(JSON.stringify(text), async (t) => {
      const { told, heard } = await called(t, () => events(text, 'well'))
      assert.deepEqual([told, heard.length], [said, count])
    })
  }
  await t.test('one that is meant as the answer is refused at once', async (t) => {
    const { told } = await called(t, () => events('data: {"jsonrpc":"2.0","result":{"a":NaN},"id":2}\n\n'))
    assert.deepEqual(told, ['2 broken: the upstream\'s answer cannot be read: Parse error: the body is not valid JSON'])
  })
})

test('http: a connection that is closed before it is initialized ends the session that is being made', async (t) => {
  for (const [says, answer, left] of [['answers soon', 1_500, 'ended'], ['does not answer', 60_000, 'given up']] as const) {
    await t.test(`the upstream ${says}`, async (t) => {
      const { transport, receiver, asked, tick } = connection(t, HttpTransport, async ({ method, id }) => {
        if (method === 'POST') await new Promise((resolve) => { setTimeout(resolve, answer) })
        return json(200, { jsonrpc: '2.0', id, result: {} })
      })
      await transport.start(receiver)
      transport.send(requestText(1, 'initialize'), { id: 1 })
      await tick(100)
      let closed = false
      void transport.close().then(() => { closed = true })
      for (let n = 0; n < 21; n++) await tick(100)
      assert.deepEqual(
        asked.map(({ method, headers }) => `${method} ${headers['mcp-session-id']}`),
        ['POST undefined', ...(left === 'ended' ? ['DELETE session'] : [])]
      )
      assert.ok(closed)
    })
  }
})

test('transports: an id that comes back as a string is the number that we gave', async () => {
  const ids = (text: string): unknown[] => parseMessages(text).map((message) => message.kind === 'notification' ? undefined : message.id)
  assert.deepEqual(ids('{"jsonrpc":"2.0","id":"17","result":{}}'), [17])
  assert.deepEqual(
    ids(
      '[{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"x"}},{"jsonrpc":"2.0","id":"2","method":"ping"},{"jsonrpc":"2.0",' +
      '"id":"x1","result":{}},{"jsonrpc":"2.0","id":null,"error":{}}]'
    ),
    [1, '2', 'x1', null]
  )
})

test('sse: a POST that is refused: at the first message the endpoint is the wrong one, later the session may be over', async (t) => {
  for (const [status, first, later] of [
    [400, 'refused', 'expired'], [404, 'refused', 'expired'], [410, 'refused', 'expired'], [401, 'unauthorized', 'unauthorized'], [403, 'refused', 'refused'],
    [405, 'refused', 'refused'], [500, 'refused', 'refused'], [502, 'broken', 'broken'], [504, 'broken', 'broken']
  ] as const) {
    for (const [isLater, fault] of [[false, first], [true, later]] as const) {
      await t.test(`${status}: ${isLater ? 'later' : 'first'}: ${fault}`, async (t) => {
        const { transport, receiver, told, tick } = connection(t, SseTransport, ({ method, id }) => {
          if (method === 'GET') return events('event: endpoint\ndata: /api/messages?sid=secret\n\n')
          return { status: id === 0 ? 202 : status, end: 'well' }
        })
        await transport.start(receiver)
        if (isLater) transport.send(requestText(0, 'initialize'), { id: 0 })
        await tick(0)
        transport.send(requestText(1, 'tools/call'), { id: 1 })
        await tick(0)
        assert.deepEqual(told.map((each) => each.split(':')[0]), [`1 ${fault}`])
        const names = new RegExp(`HTTP ${status} at http://\\S+/api/messages, the endpoint in its event stream$`)
        if (isLater || status === 401) assert.doesNotMatch(told.join(), /endpoint/)
        else assert.match(told.join(), names)
      })
    }
  }
})

test('sse: an endpoint that is no address, or another origin, ends the connection with that reason', async (t) => {
  for (const [data, reason] of [['http://[', /not a valid address/], ['http://elsewhere.example/m', /another origin/]] as const) {
    await t.test(data, async (t) => {
      const { transport, receiver } = connection(t, SseTransport, () => events(`event: endpoint\ndata: ${data}\n\n`))
      await assert.rejects(transport.start(receiver), { fault: 'refused', message: reason })
    })
  }
})

test('sse: an endpoint is relative to the address to which the stream was redirected', async (t) => {
  const { transport, receiver, posts } = connection(t, SseTransport, ({ path, method }) => {
    if (method === 'GET' && path === '/mcp') return { status: 307, headers: { location: '/app/sse' }, end: 'well' }
    return events('event: endpoint\ndata: messages?s=1\n\n')
  })
  await transport.start(receiver)
  transport.send(requestText(1, 'initialize'), { id: 1 })
  assert.deepEqual(posts().map(({ path }) => path), ['/app/messages?s=1'])
})

test('transports: a certificate of an unknown authority is told with what to do', async () => {
  for (const code of ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY']) {
    const error = Object.assign(new Error('fetch failed'), { cause: Object.assign(new Error('no'), { code }) })
    const message = networkFailureMessage(error, new URL('https://upstream.example/mcp'))
    assert.match(message, new RegExp(`^the certificate of upstream.example is .*${code}.* NODE_EXTRA_CA_CERTS`))
  }
})

test('http: an error page that cannot be read is told by its status', async (t) => {
  const pages: Array<[string, Record<string, string>]> = [
    ['not gzip', { 'content-encoding': 'gzip' }], ['not deflate', { 'content-encoding': 'deflate' }], ['[{"a":', {}], ['<html>', {}], ['\ufeff{}', {}]
  ]
  for (const [text, headers] of pages) {
    for (const [status, fault] of [[502, 'broken'], [503, 'refused'], [403, 'refused']] as const) {
      await t.test(`${status} ${text}`, async (t) => {
        const { transport, receiver, told } = connection(t, HttpTransport, () => ({ status, text, headers, end: 'well' }))
        await new Promise<void>((resolve) => {
          void transport.start({ ...receiver, failed: (...args) => { receiver.failed(...args); resolve() } })
          transport.send(requestText(1, 'initialize'), { id: 1 })
        })
        assert.deepEqual(told, [`1 ${fault}: the upstream answered HTTP ${status}`])
      })
    }
  }
})

test('http: an answer that is no message is told by its media type', async (t) => {
  for (const [type, reason] of [
    ['text/html; charset=utf-8', 'the upstream answered with text/html instead of JSON'],
    ['text/plain', 'the upstream answered with text/plain instead of JSON'],
    ['application/json', 'the upstream\'s answer cannot be read: Parse error: the body is not valid JSON'],
    ['<script>', 'the upstream\'s answer cannot be read: Parse error: the body is not valid JSON']
  ] as const) {
    await t.test(type, async (t) => {
      const { transport, receiver, told, tick } = connection(t, HttpTransport, () => ({ status: 200, type, text: '<html>', end: 'well' }))
      await transport.start(receiver)
      transport.send(requestText(1, 'initialize'), { id: 1 })
      await tick(0)
      assert.deepEqual(told, [`1 broken: ${reason}`])
    })
  }
})
