// JSON-RPC messages from text and back.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import { rpcCode, RpcError, UpstreamError, type UpstreamFault } from '../../protocol/errors.ts'
import {
  cancelledKeyOf, errorResponseText, notificationText, requestKeyOf, requestText, resultResponseText, parseRpcError,
  type Message, type Notification, type Request, type RequestId, type Response
} from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { parseMessages } from '../../protocol/transports/transport.ts'
import { parseJsonText } from '../../protocol/parse-json-text.ts'
import { holds, jsonText, objectText, space } from '../helpers/json-texts.ts'

const distinct = objectText.filter(({ members = [] }) => new Set(members.map(({ key }) => key)).size === members.length)
const single = (text: string): Message => {
  const message = parseMessage(text, 200)
  assert.ok(!Array.isArray(message))
  return message
}
const requestOf = (text: string): Request => {
  const message = single(text)
  assert.equal(message.kind, 'request')
  return message as Request
}

test('message: every kind', async () => {
  const table: Array<[string, Message]> = [
    ['{"jsonrpc":"2.0","id":1,"method":"ping"}', { kind: 'request', id: 1, idText: '1', method: 'ping', params: {}, paramsText: '{}' }],
    [' {"params" : { "a" : 1.50 } , "method":"m","id":"x","jsonrpc":"2.0"} ', { kind: 'request', id: 'x', idText: '"x"', method: 'm', params: { a: 1.5 }, paramsText: '{ "a" : 1.50 }' }],
    ['{"jsonrpc":"2.0","method":"n","params":{"b":2}}', { kind: 'notification', method: 'n', params: { b: 2 }, paramsText: '{"b":2}' }],
    ['{"jsonrpc":"2.0","method":"n","unknown":[1]}', { kind: 'notification', method: 'n', params: {}, paramsText: '{}' }],
    ['{"jsonrpc":"2.0","id":3,"result":{"n":1e400}}', { kind: 'response', id: 3, resultText: '{"n":1e400}' }],
    ['{"jsonrpc":"2.0","id":3,"result":null}', { kind: 'response', id: 3, resultText: 'null' }],
    ['{"jsonrpc":"2.0","id":3,"result":0}', { kind: 'response', id: 3, resultText: '0' }],
    ['{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"m","data":12345678901234567890}}', { kind: 'response', id: 'a', errorText: '{"code":-1,"message":"m","data":12345678901234567890}' }],
    ['{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}', { kind: 'response', id: null, errorText: '{"code":-1,"message":"m"}' }],
    ['{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}', { kind: 'response', id: null, errorText: '{"code":-1,"message":"m"}' }]
  ]
  for (const [text, message] of table) assert.deepEqual({ ...single(text) }, message, text)
})

test('message: a cancellation names the request whose id is written alike', async () => {
  const ids = ['0', '-7', '1000', '9007199254740992', '9007199254740993', '1.5', '"9007199254740993"', '"a"', '""', '1e30']
  const keys = ids.map((id) => {
    const { id: value, idText } = requestOf(`{"jsonrpc":"2.0","id":${id},"method":"m"}`)
    return requestKeyOf(value, idText)
  })
  assert.equal(new Set(keys).size, ids.length)
  const cancelled = (id: string): RequestId | undefined =>
    cancelledKeyOf(single(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`) as Notification)
  assert.deepEqual(ids.map(cancelled), keys)
  assert.deepEqual(['1e3', '"\\u0061"', 'null', '{}'].map(cancelled), [keys[2], keys[7], undefined, undefined])
})

test('message: an id comes back as it was written', async () => {
  for (const [idText, id] of [
    ['0', 0],
    ['""', ''],
    ['"1"', '1'],
    ['-7', -7],
    ['1.0', 1],
    ['1.5', 1.5],
    ['12345678901234567890', Number('12345678901234567890')],
    ['"\\u0061"', 'a'],
    ['"\\ud83d"', '\ud83d']
  ] as Array<[string, RequestId]>) {
    const request = requestOf(`{"jsonrpc":"2.0", "id" : ${idText} ,"method":"m"}`)
    assert.equal(request.id, id)
    assert.equal(request.idText, idText)
    assert.equal(resultResponseText(request.idText, '{}'), `{"jsonrpc":"2.0","id":${idText},"result":{}}`)
    assert.equal(errorResponseText(request.idText, '{"code":1}'), `{"jsonrpc":"2.0","id":${idText},"error":{"code":1}}`)
  }
})

test('message: of two equal keys value and text are the same one, however they are spelt', async () => {
  const request = requestOf(
    '{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"a","method":"b","params":{"x":1},"p\\u0061rams":{"x":2}}'
  )
  assert.deepEqual({ ...request }, { kind: 'request', id: 2, idText: '2', method: 'b', params: { x: 2 }, paramsText: '{"x":2}' })
})

test('message: params hold each member once, the last one, and so does their `ref`; without repetition they keep their bytes', async () => {
  const table: ReadonlyArray<readonly [string, string]> = [
    ['{"uri":"a","uri":"b"}', '{"uri":"b"}'], ['{"uri":"a", "x":1e400,"\\u0075ri":"b"}', '{"\\u0075ri":"b","x":1e400}'],
    ['{"name":"x","arguments":{"p":1},"arguments":{"p":2}}', '{"name":"x","arguments":{"p":2}}'],
    ['{"ref":{"name":"a","name":"b"},"argument":{}}', '{"ref":{"name":"b"},"argument":{}}'],
    ['{"ref":{"name":"a"},"ref":{"uri":"a","uri":"b"}}', '{"ref":{"uri":"b"}}'],
    ['{"__proto__":1,"__proto__":2}', '{"__proto__":2}'],
    ['{ "arguments" : {"a":1,"a":2},"ref":{ "x" : 1 } }', '{ "arguments" : {"a":1,"a":2},"ref":{ "x" : 1 } }'],
    ['{ }', '{ }']
  ]
  for (const [params, once] of table) {
    const { paramsText } = parseMessage(`{"jsonrpc":"2.0","params":{"uri":0},"id":1,"method":"m","params":${params}}`, 100) as Request
    assert.equal(paramsText, once)
    assert.deepEqual(parseJsonText(paramsText), parseJsonText(params))
  }
})

test('message: `__proto__` is a member like any other, and lends nothing', async () => {
  assert.throws(() => single('{"__proto__":{"jsonrpc":"2.0","id":1,"method":"m"}}'), { code: rpcCode.invalidRequest })
  const request = requestOf('{"jsonrpc":"2.0","id":1,"method":"m","params":{"__proto__":{"name":"x"}}}')
  assert.equal(request.params.name, undefined)
  assert.equal(request.paramsText, '{"__proto__":{"name":"x"}}')
})

test('message: what is refused, and with which code', async () => {
  const table: Array<[string, number]> = [
    ['', rpcCode.parse],
    ['{', rpcCode.parse],
    ['{"jsonrpc":"2.0",}', rpcCode.parse],
    ['null', rpcCode.invalidRequest],
    ['1', rpcCode.invalidRequest],
    ['{}', rpcCode.invalidRequest],
    ['[]', rpcCode.invalidRequest],
    ['[1,2,3,4,5,6]', rpcCode.invalidRequest],
    ['{"id":1,"method":"m"}', rpcCode.invalidRequest],
    ['{"jsonrpc":"1.0","id":1,"method":"m"}', rpcCode.invalidRequest],
    ['{"jsonrpc":2,"id":1,"method":"m"}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":1}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":1,"method":1}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":1,"method":null}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":null,"method":"m"}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":true,"method":"m"}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":{},"method":"m"}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":1e400,"method":"m"}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","method":"m","params":0}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":1,"error":"text"}', rpcCode.invalidRequest],
    ['{"jsonrpc":"2.0","id":1,"error":null}', rpcCode.invalidRequest],
    [`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(199)}${']'.repeat(199)}}}`, rpcCode.invalidRequest]
  ]
  for (const [text, expected] of table) {
    assert.throws(() => parseMessage(text, 200, 5), (error) => error instanceof RpcError && error.code === expected, text.slice(0, 80))
  }
  requestOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(198)}${']'.repeat(198)}}}`)
})

test('message: a batch keeps order, kinds and digits', async () => {
  const batch = parseMessage(
    ' [ {"jsonrpc":"2.0","id":12345678901234567890,"method":"a","params":{"n":1e400}} ,\n{"jsonrpc":"2.0","method":"b"},' +
    '{"jsonrpc":"2.0","id":"1","result":{"n":0.10}}]',
    200
  )
  assert.ok(Array.isArray(batch))
  assert.deepEqual(batch.map((each) => ({ ...each })), [
    {
      kind: 'request',
      id: Number('12345678901234567890'),
      idText: '12345678901234567890',
      method: 'a',
      params: { n: Infinity },
      paramsText: '{"n":1e400}'
    },
    { kind: 'notification', method: 'b', params: {}, paramsText: '{}' },
    { kind: 'response', id: '1', resultText: '{"n":0.10}' }
  ])
})

test('message: what is no message in a batch is its own error, under its id where it has one', async () => {
  const batch = parseMessage(
    '[1,{"jsonrpc":"2.0","id":1.0,"method":7},[{"jsonrpc":"2.0","method":"m"}],{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0",' +
    '"id":{},"method":"m"}]',
    200,
    5
  )
  assert.ok(Array.isArray(batch))
  assert.deepEqual(batch.map((each) => (each.kind === 'malformed' ? [each.idText, each.error.code] : each.kind)), [
    ['null', rpcCode.invalidRequest], ['1.0', rpcCode.invalidRequest], ['null', rpcCode.invalidRequest], 'notification',
    ['null', rpcCode.invalidRequest]
  ])
  assert.deepEqual(parseMessages('[1,{"jsonrpc":"2.0","method":"m"}]').map(({ kind }) => kind), ['notification'])
})

test('message: whatever object stands in params or result is kept to the byte', async () => {
  holds(fc.property(distinct, jsonText, space, (params, result, gap) => {
    assert.equal(requestOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":${gap}${params.text}${gap}}`).paramsText, params.text)
    const response = single(`{"jsonrpc":"2.0","id":1,"result":${gap}${result.text}${gap}}`) as Response
    assert.equal(response.resultText, result.text)
  }))
})

test('message: whatever comes: a message or an RpcError', async () => {
  const odd = fc.record(
    {
      jsonrpc: fc.constantFrom<unknown>('2.0', '1.0', 2),
      id: fc.jsonValue(),
      method: fc.oneof(fc.string(), fc.jsonValue()),
      params: fc.jsonValue(),
      result: fc.jsonValue(),
      error: fc.jsonValue()
    },
    { requiredKeys: [] }
  )
  holds(
    fc.property(
      fc.oneof(
        odd.map((value) => JSON.stringify(value)),
        fc.array(odd, { maxLength: 3 }).map((value) => JSON.stringify(value)), fc.json(), fc.string()
      ),
      (text) => {
        try { parseMessage(text, 200) } catch (error) {
          assert.ok(error instanceof RpcError && [rpcCode.parse, rpcCode.invalidRequest].some((each) => each === error.code), String(error))
        }
      }
    ),
    1_000
  )
})

test('message: the writers write what the parser reads', async () => {
  holds(fc.property(fc.oneof(fc.string(), fc.integer()), fc.string(), distinct, (id, method, { text }) => {
    assert.deepEqual(
      { ...single(requestText(id, method, text)) },
      { kind: 'request', id, idText: JSON.stringify(id), method, params: parseJsonText(text), paramsText: text }
    )
    assert.deepEqual(
      { ...single(notificationText(method, text)) },
      { kind: 'notification', method, params: parseJsonText(text), paramsText: text }
    )
    assert.deepEqual({ ...single(resultResponseText(JSON.stringify(id), text)) }, { kind: 'response', id, resultText: text })
    assert.deepEqual({ ...single(errorResponseText(JSON.stringify(id), text)) }, { kind: 'response', id, errorText: text })
  }))
  assert.equal(requestText(1, 'ping'), '{"jsonrpc":"2.0","id":1,"method":"ping"}')
  assert.equal(notificationText('n'), '{"jsonrpc":"2.0","method":"n"}')
})

test('message: an error that came as text goes out to the byte', async () => {
  const text = '{ "code" : -32042, "message":"need a URL", "data":{"n":12345678901234567890} }'
  const error = parseRpcError(text)
  assert.deepEqual([error.code, error.message, error.toText()], [-32042, 'need a URL', text])
  const odd = parseRpcError('{"code":"x"}')
  assert.deepEqual([odd.code, odd.toText()], [rpcCode.internal, '{"code":"x"}'])
  assert.equal(new RpcError(-1, 'a "b"').toText(), '{"code":-1,"message":"a \\"b\\""}')
})

test('message: which failures say that a request did not run', async () => {
  const table: Record<UpstreamFault, boolean> = {
    unreachable: true,
    expired: true,
    unauthorized: true,
    refused: false,
    broken: false,
    timeout: false,
    closed: false,
    'no-room': false,
    'share-used': false
  }
  for (const [fault, didNotRun] of Object.entries(table)) {
    assert.equal(new UpstreamError(fault as UpstreamFault, '').didNotRun, didNotRun, fault)
  }
})

test('message: a large one is read as a small one is', async () => {
  const filler = 'é'.repeat(300_000)
  const texts = [
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":"#"},"_meta":{"progressToken":1}}}',
    '{"jsonrpc":"2.0","id":"7","result":{"content":["#"]}}',
    '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"#"}}',
    '{"jsonrpc":"2.0","method":"notifications/x","params":{"name":"#"}}',
    '{"jsonrpc":"2.0","id":7,"method":"x","params":{"name":"x","arguments":"#","name":"y","ref":{"uri":"a","uri":"b"}}}',
    '[{"jsonrpc":"2.0","id":1,"result":"#"},{"jsonrpc":"2.0","id":1},{"jsonrpc":"2.0","id":2,"result":{}}]'
  ]
  for (const text of texts) {
    const read = JSON.stringify(parseMessage(text.replace('#', filler), 200, 10)).replaceAll(filler, '#')
    assert.equal(read, JSON.stringify(parseMessage(text, 200, 10)), text)
  }
  const wrong = ['["#"', `[${'1,'.repeat(20)}"#"]`, '"#"', `{"params":${'['.repeat(300)}${']'.repeat(300)},"x":"#"}`]
  for (const text of wrong) {
    const expected = ((): unknown => { try { parseMessage(text, 200, 10); return undefined } catch (error) { return error } })()
    assert.throws(() => parseMessage(text.replace('#', filler), 200, 10), expected as Error)
  }
})

test('message: what servers write for what is absent', async () => {
  const read = (text: string): Message | undefined => {
    const [message, ...others] = parseMessages(text)
    assert.equal(others.length, 0)
    if (message?.kind !== 'response') return message && { ...message }
    const { value, ...response } = message
    assert.deepEqual(value, response.resultText === undefined ? undefined : JSON.parse(response.resultText))
    return response
  }
  const answer: Response = { kind: 'response', id: 1, resultText: '{}' }
  const told: Message = { kind: 'notification', method: 'n', params: {}, paramsText: '{}' }
  const table: Array<[string, Message]> = [
    ['{"id":1,"result":{}}', answer], ['{"jsonrpc":null,"id":1,"result":{},"error":null}', answer],
    ['{"jsonrpc":"2.0","id":1,"method":null,"params":null,"result":{}}', answer], ['\ufeff{"jsonrpc":"2.0","id":1,"result":{}}', answer],
    ['{"jsonrpc":"2.0","id":1,"result":null}', { ...answer, resultText: 'null' }],
    ['{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1}}', { kind: 'response', id: 1, errorText: '{"code":-1}' }],
    ['{"jsonrpc":"2.0","method":"n","params":null}', told], ['{"jsonrpc":"2.0","method":"n","params":[]}', told],
    ['{"jsonrpc":"2.0","id":null,"method":"n"}', told], ['{"method":"n","params":{}}', told],
    ['{"jsonrpc":"2.0","id":2,"method":"ask","params":null}', { kind: 'request', id: 2, idText: '2', method: 'ask', params: {}, paramsText: '{}' }]
  ]
  const pad = `,"x":"${'x'.repeat(300_000)}"}`
  for (const [text, message] of table) {
    assert.deepEqual(read(text), message, text)
    // The same of a large text.
    const large = parseMessage(text.replace(/\}$/, pad), 200, 10, 'server')
    const { hasNullOrEmptyArray, ...others } = large as Message
    assert.deepEqual([others, hasNullOrEmptyArray], [message, /null|\[\]/.test(text)], text)
  }
  for (const text of [
    '{"result":{}}', '{"error":{"code":1,"message":"no JSON-RPC"}}', '{"jsonrpc":"1.0","id":1,"result":{}}', '{"jsonrpc":2,"method":"n"}',
    '{"jsonrpc":"2.0","method":"n","params":[1]}', '{"jsonrpc":"2.0","method":"n","params":"x"}', '{"jsonrpc":"2.0","method":5}', 'null'
  ]) assert.throws(() => parseMessages(text), { code: rpcCode.invalidRequest }, text)
})

test('message: the answers of servers in every order are the same', async () => {
  const orders = [['jsonrpc', 'id', 'result'], ['result', 'jsonrpc', 'id'], ['id', 'result', 'jsonrpc']]
  const more = ['', ',"id":2', ',"result":{}', ',"x":{}', ',"error":{"code":1}', '}', ',"id":', '{']
  await holds(fc.property(
    jsonText, fc.constantFrom(...orders), fc.constantFrom('', ' '), fc.constantFrom(...more), fc.boolean(), (result, order, gap, end, isFirst) => {
      const members = Object.entries({ jsonrpc: '"2.0"', id: '7', result })
        .sort(([a], [b]) => order.indexOf(a) - order.indexOf(b)).map(([key, value]) => `"${key}":${gap}${value}`)
      const text = isFirst ? `{${members.join(`,${gap}`)}${end}}` : `{${members.join()}}${end}`
      const read = (written: string): unknown => {
        try {
          return parseMessages(written)
        } catch (error) {
          return error instanceof RpcError ? error.code : error
        }
      }
      // White space at its beginning takes the other way through the parser.
      assert.deepEqual(read(text), read(` ${text}`), text)
    }
  ))
  for (const text of ['{"jsonrpc":"2.0","id":01,"result":{}}', '{"jsonrpc":"2.0","id":1,"result":{},"result":{}', '{"result":{}},"jsonrpc":"2.0","id":1}']) {
    assert.throws(() => parseMessages(text), { code: rpcCode.parse }, text)
  }
})

test('message: of clients, params that are null are absent, a mark is nothing, and nothing else is different', async () => {
  const ping: Request = { kind: 'request', id: 1, idText: '1', method: 'ping', params: {}, paramsText: '{}' }
  for (const text of ['{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', '\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}']) {
    assert.deepEqual({ ...requestOf(text) }, ping)
    assert.deepEqual({ ...single(text.replace(/\}$/, `,"x":"${'x'.repeat(300_000)}"}`)) }, ping)
  }
  for (const text of [
    '{"id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":null,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    '{"jsonrpc":null,"id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"method":null}', '\ufeff\ufeff{}'
  ]) assert.throws(() => single(text), RpcError, text)
})
