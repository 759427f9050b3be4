// Members of params that servers with other parsers take for those that the gateway checks or replaces: they are not passed on, while all
// other members keep their bytes.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { membersOf } from '../../protocol/json.ts'
import type { Notification, Request } from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { largeTextLength } from '../../protocol/text.ts'
import { changesWithTrace } from '../../protocol/trace-context.ts'
import { startBareModern } from '../fakes/bare-modern.ts'
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { at, KEY, Session, type Json, type Message } from '../helpers/client.ts'
import { prefix } from '../helpers/modern-request.ts'
import { served } from '../helpers/served.ts'

/** Params as they are passed on, whether or not the message is large. */
async function passedOn (method: string, params: string): Promise<string> {
  const message = (more: string): string =>
    `{"jsonrpc":"2.0",${method.startsWith('notifications/') ? '' : '"id":1,'}"method":${JSON.stringify(method)},"params":${more}}`
  const { paramsText } = parseMessage(message(params), 100) as Request | Notification
  // The same in a large message.
  const filler = `"x-filler":"${'x'.repeat(largeTextLength)}"`
  const large = parseMessage(message(`${params.trimEnd().slice(0, -1)},${filler}}`), 100) as Request | Notification
  assert.equal(large.paramsText.replace(`,${filler}`, '').replace(filler, ''), paramsText, `large: ${params}`)
  return paramsText
}

test('members that may be taken for checked ones are left out, all others keep their bytes', async () => {
  const table: ReadonlyArray<readonly [method: string, params: string, passed: string]> = [
    ['tools/call', '{"NAME":"b","name":"a","arguments":{"Name":"c","n":1.0}}', '{"name":"a","arguments":{"Name":"c","n":1.0}}'],
    ['tools/call', '{"name":"a","n\\u0041me":"b","\\u006eame\\u0000":"c"}', '{"name":"a"}'],
    ['tools/call', '{"name":"a","name\\u0000\\u0000":"b","name\\u0000x":"c"}', '{"name":"a"}'],
    ['tools/call', `{"name":"a","name${'\\u0000'.repeat(1_000)}":"b"}`, '{"name":"a"}'],
    ['tools/call', '{"name":"a","\uff4e\uff41\uff4d\uff45":"b","na\u200bme":"c","name\ufeff":"d"}', '{"name":"a"}'],
    ['tools/call', '{"name":"a","argument\u017f":{"x":1},"Arguments":{},"ta\u017f\u212a":{}}', '{"name":"a"}'],
    ['tools/call', '{"name":"a","RequestState":"s","inputre\u017fpon\u017fes":{}}', '{"name":"a"}'],
    ['tools/call', '{"name":"a","n_ame":"b","NAM_E":"c","_name":1,"request_state":"s","input_responses":{}}', '{"name":"a","_name":1}'],
    ['tools/call', `{"name":"a","${'\u200b'.repeat(300)}name":"b","na${'\u200b'.repeat(300)}me":"c"}`, '{"name":"a"}'],
    ['tools/call', `{"name":"a","${'\\u200b'.repeat(3_000)}name":"b","${'\u200b'.repeat(9_000)}name":"c","${'y'.repeat(20_000)}":1}`, '{"name":"a"}'],
    ['tools/call', '{"Name":"b"}', '{}'],
    ['tools/call', '{"\\u006eame":"a","Name":"b"}', '{"\\u006eame":"a"}'],
    ['tools/call', '{"name":"b","name":"a","Name":"c"}', '{"name":"a"}'],
    ['tools/call', '{"name":"a","uri":"u","Uri":"v","names":1,"nam":2,"n\u00e4me":3}', '{"name":"a","uri":"u","Uri":"v","names":1,"nam":2,"n\u00e4me":3}'],
    ['prompts/get', '{"name":"a", "Name":"b","ARGUMENTS":{} ,"x":12345678901234567890}', '{"name":"a","x":12345678901234567890}'],
    ['resources/read', '{"uri":"a","URI":"b","Name":"c"}', '{"uri":"a","Name":"c"}'],
    ['resources/read', '{"uri":"a","ur\u0131":"b","ur\u0130":"c"}', '{"uri":"a"}'],
    ['resources/subscribe', '{"Uri":"b","uri":"a"}', '{"uri":"a"}'],
    ['resources/unsubscribe', '{"uri":"a","uRi":"b"}', '{"uri":"a"}'],
    ['tasks/result', '{"taskId":"a","taskid":"b","tas\u212aId":"c"}', '{"taskId":"a"}'],
    ['tasks/get', '{"taskId":"a","task_id":"b","TASK_ID":"c"}', '{"taskId":"a"}'],
    ['tasks/later', '{"TaskId":"b","taskId":"a"}', '{"taskId":"a"}'],
    ['completion/complete', '{"ref":{"type":"ref/prompt","name":"a","Name":"b","TYPE":"ref/resource"},"Ref":{}}', '{"ref":{"type":"ref/prompt","name":"a"}}'],
    ['completion/complete', '{"ref":{"uri":"a","Uri":"b","x": 1},"argument":{"Name":"n"}}', '{"ref":{"uri":"a","x": 1},"argument":{"Name":"n"}}'],
    ['notifications/progress', '{"progressToken":1,"ProgressToken":2,"progress":1}', '{"progressToken":1,"progress":1}'],
    ['events/poll', '{"name":"a","Name":"b","CURSOR":"c","maxEvents":1.0,"Arguments":{}}', '{"name":"a","maxEvents":1.0}'],
    ['events/stream', '{"NAME":"b","name":"a"}', '{"name":"a"}'],
    ['events/subscribe', '{"name":"a","delivery":{"url":"u"},"Delivery":{"url":"v"},"ttl_ms":1}', '{"name":"a","delivery":{"url":"u"}}'],
    ['notifications/cancelled', '{"requestId":5,"RequestID":17,"reason":"r"}', '{"requestId":5,"reason":"r"}'],
    ['notifications/tasks/status', '{"taskId":"a","TaskId":"b"}', '{"taskId":"a"}'],
    ['logging/setLevel', '{"level":"error","Level":"debug"}', '{"level":"error"}'],
    // Of every method: the token of another call of the same server would be told of this one's progress.
    ['x/y', '{"_meta":{"progressToken":1,"ProgressToken":2,"a/b":1.0},"Name":"n"}', '{"_meta":{"progressToken":1,"a/b":1.0},"Name":"n"}'],
    ['x/y', '{"_meta":{"progressToken":1,"progress_token":2},"meta":{"progressToken":3}}', '{"_meta":{"progressToken":1},"meta":{"progressToken":3}}'],
    ['x/y', '{"_Meta":{"progressToken":2},"_META":{}}', '{}'],
    ['x/y', '{"_meta":{"Progre\u017fsToken":2}}', '{"_meta":{}}'],
    ['x/y', `{"_meta":{"${prefix}ProtocolVersion":"1","IO.modelcontextprotocol/loglevel":"debug","io.x/loglevel":1}}`, '{"_meta":{"io.x/loglevel":1}}'],
    ['x/y', '{ "_meta" : {"a": 1e400} , "Uri":"u"}', '{ "_meta" : {"a": 1e400} , "Uri":"u"}'],
    ['x/y', '{"_meta":["ProgressToken"],"constructor":1,"toString":2}', '{"_meta":["ProgressToken"],"constructor":1,"toString":2}']
  ]
  for (const [method, params, passed] of table) assert.equal(await passedOn(method, params), passed, `${method} ${params}`)
})

test('what is read of params is what is passed on', async () => {
  const { params } = parseMessage(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"b","name":"a","_meta":{"PROGRESSTOKEN":1,"x":1}}}', 100
  ) as Request
  assert.deepEqual(params, { name: 'a', _meta: { x: 1 } })
})

test('a place in a trace is told once', async () => {
  const trace = { traceparent: '00-a', tracestate: undefined }
  const { _meta } = changesWithTrace('{"_meta":{"TraceParent":"00-b","traceparent":"00-c","trace\u017ftate":"s","x":1.0}}', {}, trace)
  assert.equal(_meta, '{"traceparent":"00-a","x":1.0}')
})

/** Lookalikes of a name: of other case, of compatibility characters, with a NUL, escaped. */
const lookalikesOf = (name: string): string[] => [
  name.toUpperCase(), name.charAt(0).toUpperCase() + name.slice(1), `${name}\\u0000`, name.replaceAll('k', '\u212a').replaceAll('s', '\u017f'),
  name.replace(/^./, (first) => String.fromCodePoint(first.charCodeAt(0) + 0xfee0)),
  name.replace(/[a-z]/, (first) => `\\u00${first.toUpperCase().charCodeAt(0).toString(16)}`)
].filter((each) => each !== name)

/** What a server without regard to case reads: the values of all members that it takes for this one. */
function readBy (text: string, name: string): string[] {
  const plain = (key: string): string => (key.split('\0')[0] ?? '').normalize('NFKC').toLowerCase()
  return membersOf(text).filter(({ key }) => plain(key) === name.toLowerCase()).map(({ start, end }) => text.slice(start, end))
}

interface Attempt {
  readonly method: string
  readonly path: readonly string[]
  readonly params: (lookalike: string) => string
  readonly value: string
}

const secret = '"secret"'
const attempts: readonly Attempt[] = [
  { method: 'tools/call', path: ['name'], value: '"open"', params: (name) => `{"name":"s-open",${name}:${secret}}` },
  { method: 'tools/call', path: ['arguments'], value: '{"n":1.0}', params: (name) => `{"name":"s-open","arguments":{"n":1.0},${name}:{"n":2}}` },
  { method: 'prompts/get', path: ['name'], value: '"hello"', params: (name) => `{${name}:${secret},"name":"s-hello"}` },
  { method: 'resources/read', path: ['uri'], value: '"r://open"', params: (name) => `{"uri":"r://open",${name}:${secret}}` },
  { method: 'completion/complete', path: ['ref', 'name'], value: '"hello"', params: (name) => `{"ref":{"type":"ref/prompt","name":"s-hello",${name}:${secret}},"argument":{"name":"a","value":""}}` },
  { method: 'completion/complete', path: ['ref', 'uri'], value: '"r://open"', params: (name) => `{"ref":{"type":"ref/resource","uri":"r://open",${name}:${secret}},"argument":{"name":"a","value":""}}` }
]

/** What reached the server last of a method: the members below a path, as it may read them. */
function reached (bodies: readonly string[], path: readonly string[]): string[] {
  let text = readBy(bodies.at(-1) ?? '{}', 'params').at(-1) ?? '{}'
  for (const name of path.slice(0, -1)) text = readBy(text, name).at(-1) ?? '{}'
  return readBy(text, path.at(-1) ?? '')
}

async function upstreamWithSecrets (t: Parameters<typeof startUpstream>[0]): Promise<Upstream> {
  return await startUpstream(t, {
    tools: [tool('open'), tool('secret')],
    prompts: [{ name: 'hello' }, { name: 'secret' }],
    resources: [{ uri: 'r://open', name: 'open' }, { uri: 'secret', name: 'secret' }],
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {} },
    on: ({ method }) => {
      if (method === 'prompts/get') return { messages: [] }
      if (method === 'resources/read') return { contents: [] }
      return method === 'completion/complete' ? { completion: { values: [] } } : undefined
    }
  })
}

test('a server without regard to case is asked for what was checked, by clients of both eras', async (t) => {
  const upstream = await upstreamWithSecrets(t)
  const hidden = { secret: { enabled: false } }
  const hub = await served(t, { s: { url: upstream.url, tools: hidden, prompts: hidden, resources: hidden } })
  const session = await Session.open(`${hub.url}/mcp`)
  const bodiesOf = (method: string): string[] =>
    upstream.received.filter(({ message }) => message.method === method).map(({ body }) => body)
  const legacy = async (method: string, params: string): Promise<Message | undefined> =>
    (await session.post(`{"jsonrpc":"2.0","id":"q","method":${JSON.stringify(method)},"params":${params}}`)).messages.at(-1)
  const modern = async (method: string, params: string): Promise<Message> => await askModern(`${hub.url}/mcp`, method, params)
  for (const [era, ask] of [['legacy', legacy], ['modern', modern]] as const) {
    for (const { method, path, params, value } of attempts) {
      for (const name of lookalikesOf(path.at(-1) ?? '')) {
        const before = bodiesOf(method).length
        const answer = await ask(method, params(`"${name}"`))
        assert.equal(answer?.error, undefined, `${era} ${method} ${name}: ${JSON.stringify(answer)}`)
        assert.equal(bodiesOf(method).length, before + 1, `${era} ${method} ${name}`)
        assert.deepEqual(reached(bodiesOf(method), path), [value], `${era} ${method} ${name}`)
      }
    }
  }
  // Subscriptions are of legacy clients; their text is the client's own.
  for (const name of lookalikesOf('uri')) {
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
      assert.equal((await legacy(method, `{"uri":"r://open","${name}":${secret}}`))?.error, undefined)
      assert.deepEqual(reached(bodiesOf(method), ['uri']), ['"r://open"'])
    }
  }
})

test('a call over plain HTTP has its own arguments, and one name', async (t) => {
  const upstream = await upstreamWithSecrets(t)
  const hub = await served(t, { s: { url: upstream.url } })
  const args = '{"Name":"x","name\\u0000":"y","_Meta":{"n":1.0}}'
  const response = await fetch(`${hub.url}/api/tools/s/open`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body: args
  })
  assert.equal(response.status, 200, await response.text())
  const { body = '' } = upstream.received.findLast(({ message }) => message.method === 'tools/call') ?? {}
  assert.deepEqual(reached([body], ['name']), ['"open"'])
  assert.deepEqual(JSON.parse(reached([body], ['arguments'])[0] ?? ''), JSON.parse(args))
})

test('a server of the modern era gets one envelope and one token', async (t) => {
  const server = await startBareModern(t, [{ name: 'open', inputSchema: { type: 'object' } }])
  const hub = await served(t, { s: { url: server.url } })
  const meta = `{"progressToken":"mine","ProgressToken":7,"${prefix}CLIENTINFO":{"name":"x"},"x/y":{"ProgressToken":1}}`
  const session = await Session.open(`${hub.url}/mcp/s`)
  await session.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","_meta":${meta},"_Meta":{"progressToken":9}}}`)
  await askModern(`${hub.url}/mcp/s`, 'tools/call', '{"name":"open","_Meta":{"progressToken":9}}', meta)
  const calls = server.seen.filter(({ method }) => method === 'tools/call')
  assert.equal(calls.length, 2)
  for (const { params } of calls) {
    assert.deepEqual(Object.keys(params).sort(), ['_meta', 'name'])
    const keys = Object.keys(params._meta as Json)
    assert.equal(new Set(keys.map((key) => key.toLowerCase())).size, keys.length, keys.join())
    assert.equal(typeof at(params, '_meta', 'progressToken'), 'number')
    assert.deepEqual(at(params, '_meta', 'x/y'), { ProgressToken: 1 })
    assert.equal(at(params, '_meta', `${prefix}clientInfo`, 'name'), 'tool-hub')
  }
})

/** A request of a modern client. @param params @param meta as JSON text */
async function askModern (url: string, method: string, params: string, meta = '{}'): Promise<Message> {
  const { name, uri } = JSON.parse(params) as Json
  const envelope = `"${prefix}protocolVersion":"2026-07-28","${prefix}clientCapabilities":{}`
  const rest = meta === '{}' ? '' : `,${meta.slice(1, -1)}`
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${KEY}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(method === 'completion/complete' ? {} : { 'mcp-name': String(name ?? uri) })
    },
    body: `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params.slice(0, -1)},"_meta":{${envelope}${rest}}}}`
  })
  return await response.json() as Message
}
