import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { mockTimers } from '../helpers/clock.ts'
import fc from 'fast-check'
import type { Dispatcher } from 'undici'
import { Call, type Deadlines } from '../../protocol/call.ts'
import { code, RpcError, UpstreamError, type UpstreamFault } from '../../protocol/errors.ts'
import { EventStreamParser, eventText, primingText, type StreamEvent } from '../../protocol/event-stream.ts'
import type { Question } from '../../protocol/exchange.ts'
import { elementsOf, isDeeperThan, isObject, memberOf, membersOf, oneLine, withLast, withMembers } from '../../protocol/json.ts'
import { bridged, canBeAsked, checkAskable, classOf, plainClass, shareable, shown, union, validCapabilities } from '../../protocol/capabilities.ts'
import { allowsBatch, allowsPolling, isLegacyVersion, latestLegacy, legacyVersions, negotiate } from '../../protocol/legacy/versions.ts'
import { isLevel, levels, lower, reaches, type Level } from '../../protocol/listener.ts'
import {
  errorText, notificationText, parseMessage, requestText, resultText, toRpcError, type Message, type Notification,
  type Request, type RequestId, type Response
} from '../../protocol/message.ts'
import { Peer } from '../../protocol/peer.ts'
import { Table } from '../../protocol/table.ts'
import { HttpTransport, type HttpOptions } from '../../protocol/transports/http.ts'
import { SseTransport } from '../../protocol/transports/sse.ts'
import { messagesIn, type Receiver, type SendOptions, type Transport } from '../../protocol/transports/transport.ts'
import { FakeExchange } from '../fakes/exchange.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)
const holds = <Ts extends [unknown, ...unknown[]]>(property: fc.IProperty<Ts>, numRuns = 400): void => {
  fc.assert(property, { seed, numRuns })
}

// ── JSON as text: a generator that knows what it wrote, so that nothing is read back by the code under test ──

interface Written { text: string, depth: number, members?: Array<{ key: string, keyText: string, value: string }>, elements?: string[] }

const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 2 })
const unit = fc.constantFrom(
  'a', 'b', 'n', '"', '\\', '/', '\n', '\r', '\0', '{', '}', '[', ']', ',', ':', ' ', 'é', '\u2028', '\ud83d', '\ude00',
  '\ud83d\ude00'
)
const toStringText = (parts: Array<[string, boolean]>): { value: string; text: string } => ({
  value: parts.map(([part]) => part).join(''),
  text: `"${parts.map(([part, escaped]) =>
      escaped || JSON.stringify(part) !== `"${part}"`
        ? part.split('')
            .map((each) => (escaped ? `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}` : JSON.stringify(each).slice(1, -1)))
            .join('')
        : part
    )
    .join('')}"`
})
const escapes = fc.boolean()
const stringText = fc.array(fc.tuple(unit, escapes), { maxLength: 6 }).map(toStringText)
/** Few keys, so that they repeat, and spelt in many ways. */
const keyText = fc.oneof(
  fc.tuple(
    fc.constantFrom('a', 'name', '_meta', '__proto__', 'constructor', 'toString', '', '0', '"', '\\'),
    fc.array(escapes, { minLength: 11, maxLength: 11 })
  )
    .map(([key, how]) => toStringText(key.split('').map((part, at): [string, boolean] => [part, how[at] === true]))),
  stringText
)
const scalar = fc.oneof(
  fc.constantFrom('0', '-0', '1', '-1.50', '1e400', '1E-7', '0.1e+2', '12345678901234567890', 'true', 'false', 'null')
    .map((text): Written => ({ text, depth: 0 })),
  stringText.map(({ text }): Written => ({ text, depth: 0 }))
)
const {
  value: jsonText,
  object: objectText,
  array: arrayText
} = fc.letrec<{ value: Written; object: Written; array: Written }>((tie) => ({
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, scalar, tie('object'), tie('array')),
  object: fc.tuple(fc.array(fc.tuple(keyText, tie('value'), space, space, space, space), { maxLength: 5 }), space)
    .map(([list, inner]): Written => ({
      text: `{${inner}${list.map(([key, { text }, a, b, c, d]) => `${a}${key.text}${b}:${c}${text}${d}`).join(',')}}`,
      depth: 1 + Math.max(0, ...list.map(([, { depth }]) => depth)),
      members: list.map(([key, { text }]) => ({ key: key.value, keyText: key.text, value: text }))
    })),
  array: fc.tuple(fc.array(fc.tuple(tie('value'), space, space), { maxLength: 5 }), space)
    .map(([list, inner]): Written => ({
      text: `[${inner}${list.map(([{ text }, a, b]) => `${a}${text}${b}`).join(',')}]`,
      depth: 1 + Math.max(0, ...list.map(([{ depth }]) => depth)),
      elements: list.map(([{ text }]) => text)
    }))
}))
const padded = (written: fc.Arbitrary<Written>): fc.Arbitrary<Written> =>
  fc.tuple(space, written, space).map(([a, each, b]) => ({ ...each, text: `${a}${each.text}${b}` }))

/** An object as `JSON.parse` makes it: own members only, `__proto__` among them. */
function objectOf (entries: ReadonlyArray<readonly [string, string]>): Record<string, unknown> {
  return Object.fromEntries(entries.map(([key, value]) => [key, JSON.parse(value) as unknown]))
}

test('json: text that is read and changed in place', async (t) => {
  await t.test('the generator itself writes what JSON.parse reads', async () => {
    holds(fc.property(padded(objectText), ({ text, members = [] }) => {
      assert.deepEqual(JSON.parse(text), objectOf(members.map(({ key, value }) => [key, value])))
    }))
  })

  await t.test('membersOf finds every member: key decoded, value to the byte', async () => {
    holds(fc.property(padded(objectText), ({ text, members = [] }) => {
      const found = membersOf(text)
      assert.deepEqual(found.map(({ key, start, end }) => [key, text.slice(start, end)]), members.map(({ key, value }) => [key, value]))
      members.forEach(({ keyText }, at) => { assert.ok(text.startsWith(keyText, found[at]?.keyStart), `${keyText} begins elsewhere`) })
    }))
  })

  await t.test('memberOf gives what JSON.parse would see: the last of two, and nothing inherited', async () => {
    holds(fc.property(padded(objectText), ({ text, members = [] }) => {
      for (const key of new Set([...members.map((each) => each.key), 'a', '__proto__', 'constructor', 'absent'])) {
        assert.equal(memberOf(text, key), members.findLast((each) => each.key === key)?.value)
      }
    }))
  })

  await t.test('elementsOf gives every element to the byte', async () => {
    holds(fc.property(padded(arrayText), ({ text, elements = [] }) => { assert.deepEqual(elementsOf(text), elements) }))
  })

  await t.test('what is no object has no members, what is no array no elements', async () => {
    for (const text of ['null', '1', '"{"', 'true', ' "[1]" ']) {
      assert.deepEqual(membersOf(text), [])
      assert.deepEqual(elementsOf(text), [])
      assert.equal(memberOf(text, 'a'), undefined)
    }
    assert.deepEqual(membersOf('[{"a":1}]'), [])
    assert.deepEqual(elementsOf('{"a":[1]}'), [])
  })

  const changes = fc.array(
    fc.tuple(
      fc.constantFrom<string[]>('a', 'name', '_meta', '__proto__', 'constructor', '', '"', 'new'),
      fc.option(jsonText.map(({ text }) => text), { nil: undefined })
    ),
    { maxLength: 4 }
  )
    .map((list) => new Map(list))

  await t.test(
    'withMembers changes exactly the named members, keeps the text of all others, and leaves a changed key standing once',
    async () => {
      holds(
        fc.property(padded(objectText), changes, ({ text, members = [] }, wanted) => {
          const out = withMembers(text, Object.fromEntries(wanted))
          const left = new Map(wanted)
          const expected: Array<[string, string]> = []
          for (const { key, value } of members) {
            if (!wanted.has(key)) {
              expected.push([key, value])
              continue
            }
            const fresh = left.get(key)
            left.delete(key)
            if (fresh !== undefined) expected.push([key, fresh])
          }
          for (const [key, fresh] of left) if (fresh !== undefined) expected.push([key, fresh])
          // As a value, as JSON.parse sees it …
          assert.deepEqual(JSON.parse(out), objectOf(expected))
          // … and as text: every member, in place, to the byte.
          const byKey = (list: Array<[string, string]>): Array<[string, string]> =>
            list.filter(([key]) => members.some((each) => each.key === key))
          assert.deepEqual(byKey(membersOf(out).map(({ key, start, end }) => [key, out.slice(start, end)])), byKey(expected))
          for (const { key, keyText } of members) if (!wanted.has(key)) assert.ok(out.includes(keyText), `${keyText} is respelt`)
          for (const [key, fresh] of wanted) {
            assert.equal(
              membersOf(out).filter((each) => each.key === key).length, fresh === undefined ? 0 : 1,
              `${key} does not stand once`
            )
          }
        }),
        1_000
      )
    }
  )

  await t.test('withLast adds a member at the end, and keeps every byte before it', async () => {
    holds(fc.property(padded(objectText), jsonText, ({ text, members = [] }, { text: value }) => {
      const out = withLast(text, 'the last one', value)
      assert.deepEqual(JSON.parse(out), objectOf([...members.map(({ key, value }): [string, string] => [key, value]), ['the last one', value]]))
      assert.ok(out.startsWith(text.slice(0, text.lastIndexOf('}'))))
    }))
    for (const [text, out] of [['{}', '{"a":1}'], [' { \n} ', ' { \n"a":1}'], ['{"b":{}}', '{"b":{},"a":1}']] as const) {
      assert.equal(withLast(text, 'a', '1'), out)
    }
  })

  await t.test('withMembers without changes says the same', async () => {
    holds(fc.property(padded(objectText), ({ text, members = [] }) => {
      const out = withMembers(text, {})
      assert.deepEqual(
        membersOf(out).map(({ key, start, end }) => [key, out.slice(start, end)]),
        members.map(({ key, value }) => [key, value])
      )
    }))
  })

  await t.test('a table of the odd ones', async () => {
    const table: Array<[string, Record<string, string | undefined>, string]> = [
      ['{}', {}, '{}'],
      ['{}', { a: '1' }, '{"a":1}'],
      ['{ "a" : 1 , "b" : 2 }', { a: '3' }, '{"a" : 3,"b" : 2}'],
      ['{"a":1,"b":2}', { a: undefined }, '{"b":2}'],
      ['{"a":1}', { b: undefined }, '{"a":1}'],
      ['{"a":1,"a":2,"a":3}', { a: '4' }, '{"a":4}'],
      ['{"\\u0061":1,"a":2}', { a: '4' }, '{"\\u0061":4}'],
      ['{"\\u0061":1,"a":2}', { a: undefined }, '{}'],
      ['{"n":12345678901234567890,"e":1e400,"a":1}', { a: '2' }, '{"n":12345678901234567890,"e":1e400,"a":2}'],
      ['{"__proto__":{"x":1},"a":1}', { a: '2' }, '{"__proto__":{"x":1},"a":2}'],
      ['{"a":1}', Object.fromEntries([['__proto__', '{}']]), '{"a":1,"__proto__":{}}'],
      ['{"s":"\\ud83d","a":"}\\""}', { s: '""' }, '{"s":"","a":"}\\""}']
    ]
    for (const [text, change, out] of table) assert.equal(withMembers(text, change), out, text)
    const defaults = { d: '""', a: '0' }
    assert.equal(withMembers('{"b":1}', { a: '1' }, defaults), '{"b":1,"a":1,"d":""}')
    assert.equal(withMembers('{"\\u0064":null,"a":2,"a":3}', {}, defaults), '{"\\u0064":null,"a":2,"a":3}')
  })

  await t.test('isDeeperThan counts what is open at once, and not what stands in strings', async () => {
    holds(
      fc.property(padded(jsonText), fc.integer({ min: 0, max: 6 }), ({ text, depth }, limit) => {
        assert.equal(isDeeperThan(text, limit), depth > limit)
      })
    )
    for (const limit of [1, 2, 200, 1_000]) {
      for (const [open, close] of [['[', ']'], ['{"a":', '}']] as const) {
        const nested = (depth: number): string => `${open.repeat(depth - 1)}${open === '[' ? '[' : '{'}${close.repeat(depth)}`
        assert.equal(isDeeperThan(nested(limit), limit), false, `${limit} levels of ${open}`)
        assert.equal(isDeeperThan(nested(limit + 1), limit), true, `${limit + 1} levels of ${open}`)
      }
      assert.equal(isDeeperThan(`["${'[{\\"'.repeat(5_000)}"]`, limit), false)
    }
  })

  await t.test('oneLine says the same on one line', async () => {
    holds(fc.property(padded(jsonText), ({ text }) => {
      const line = oneLine(text)
      assert.doesNotMatch(line, /[\r\n]/)
      assert.deepEqual(JSON.parse(line), JSON.parse(text))
    }))
  })

  await t.test('on text that is no JSON they return all the same', async () => {
    for (const text of ['{"a', '{"a"', '{"a":', '{"a":1', '[1,', '[,,]', '[}', '{"\\']) {
      membersOf(text)
      elementsOf(text)
      withMembers(text, { a: '1' })
    }
    assert.doesNotThrow(() => membersOf('{"\\x":1}'), 'a key with an escape that is none')
    holds(
      fc.property(
        fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', 'a', 'u', '1', ' '), maxLength: 20 }),
        (text) => {
          membersOf(text)
          memberOf(text, 'a')
          elementsOf(text)
          withMembers(text, { a: '1' })
          isDeeperThan(text, 3)
          oneLine(text)
        }
      ),
      3_000
    )
  })

  await t.test('isObject', async () => {
    for (const value of [{}, { a: 1 }, Object.create(null)]) assert.equal(isObject(value), true)
    for (const value of [null, undefined, [], 'a', 1, true, () => {}]) assert.equal(isObject(value), false)
  })
})

test('message: JSON-RPC from text and back', async (t) => {
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

  await t.test('every kind', async () => {
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

  await t.test('an id comes back as it was written', async () => {
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
      assert.equal(resultText(request.idText, '{}'), `{"jsonrpc":"2.0","id":${idText},"result":{}}`)
      assert.equal(errorText(request.idText, '{"code":1}'), `{"jsonrpc":"2.0","id":${idText},"error":{"code":1}}`)
    }
  })

  await t.test('of two equal keys value and text are the same one, however they are spelt', async () => {
    const request = requestOf(
      '{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"a","method":"b","params":{"x":1},"p\\u0061rams":{"x":2}}'
    )
    assert.deepEqual({ ...request }, { kind: 'request', id: 2, idText: '2', method: 'b', params: { x: 2 }, paramsText: '{"x":2}' })
  })

  await t.test('params hold each member once, the last one, and so does their `ref`; without repetition they keep their bytes', async () => {
    const table: ReadonlyArray<readonly [string, string]> = [
      ['{"uri":"a","uri":"b"}', '{"uri":"b"}'],
      ['{"uri":"a", "x":1e400,"\\u0075ri":"b"}', '{"\\u0075ri":"b","x":1e400}'],
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
      assert.deepEqual(JSON.parse(paramsText), JSON.parse(params))
    }
  })

  await t.test('`__proto__` is a member like any other, and lends nothing', async () => {
    assert.throws(() => single('{"__proto__":{"jsonrpc":"2.0","id":1,"method":"m"}}'), { code: code.invalidRequest })
    const request = requestOf('{"jsonrpc":"2.0","id":1,"method":"m","params":{"__proto__":{"name":"x"}}}')
    assert.equal(request.params.name, undefined)
    assert.equal(request.paramsText, '{"__proto__":{"name":"x"}}')
  })

  await t.test('what is refused, and with which code', async () => {
    const table: Array<[string, number]> = [
      ['', code.parse],
      ['{', code.parse],
      ['{"jsonrpc":"2.0",}', code.parse],
      ['nul', code.parse],
      ['{"a":01}', code.parse],
      ['null', code.invalidRequest],
      ['1', code.invalidRequest],
      ['"text"', code.invalidRequest],
      ['{}', code.invalidRequest],
      ['[]', code.invalidRequest],
      ['[1,2,3,4,5,6]', code.invalidRequest],
      ['{"id":1,"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":"1.0","id":1,"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":2,"id":1,"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1,"method":1}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1,"method":null}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":null,"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":true,"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":{},"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":[1],"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1e400,"method":"m"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1,"method":"m","params":"p"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","method":"m","params":0}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1,"error":"text"}', code.invalidRequest],
      ['{"jsonrpc":"2.0","id":1,"error":null}', code.invalidRequest],
      [`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(199)}${']'.repeat(199)}}}`, code.invalidRequest]
    ]
    for (const [text, expected] of table) {
      assert.throws(() => parseMessage(text, 200, 5), (error) => error instanceof RpcError && error.code === expected, text.slice(0, 80))
    }
    requestOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(198)}${']'.repeat(198)}}}`)
  })

  await t.test('a batch keeps order, kinds and digits', async () => {
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

  await t.test('what is no message in a batch is its own error, under its id where it has one', async () => {
    const batch = parseMessage(
      '[1,{"jsonrpc":"2.0","id":1.0,"method":7},[{"jsonrpc":"2.0","method":"m"}],{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0",' +
      '"id":{},"method":"m"}]',
      200,
      5
    )
    assert.ok(Array.isArray(batch))
    assert.deepEqual(batch.map((each) => (each.kind === 'malformed' ? [each.idText, each.error.code] : each.kind)), [
      ['null', code.invalidRequest],
      ['1.0', code.invalidRequest],
      ['null', code.invalidRequest],
      'notification',
      ['null', code.invalidRequest]
    ])
    assert.deepEqual(messagesIn('[1,{"jsonrpc":"2.0","method":"m"}]').map(({ kind }) => kind), ['notification'])
  })

  await t.test('whatever object stands in params or result is kept to the byte', async () => {
    holds(fc.property(distinct, jsonText, space, (params, result, gap) => {
      assert.equal(requestOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":${gap}${params.text}${gap}}`).paramsText, params.text)
      const response = single(`{"jsonrpc":"2.0","id":1,"result":${gap}${result.text}${gap}}`) as Response
      assert.equal(response.resultText, result.text)
    }))
  })

  await t.test('whatever comes: a message or an RpcError', async () => {
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
            assert.ok(error instanceof RpcError && [code.parse, code.invalidRequest].some((each) => each === error.code), String(error))
          }
        }
      ),
      1_000
    )
  })

  await t.test('the writers write what the parser reads', async () => {
    holds(fc.property(fc.oneof(fc.string(), fc.integer()), fc.string(), distinct, (id, method, { text }) => {
      assert.deepEqual(
        { ...single(requestText(id, method, text)) },
        { kind: 'request', id, idText: JSON.stringify(id), method, params: JSON.parse(text) as unknown, paramsText: text }
      )
      assert.deepEqual(
        { ...single(notificationText(method, text)) },
        { kind: 'notification', method, params: JSON.parse(text) as unknown, paramsText: text }
      )
      assert.deepEqual({ ...single(resultText(JSON.stringify(id), text)) }, { kind: 'response', id, resultText: text })
      assert.deepEqual({ ...single(errorText(JSON.stringify(id), text)) }, { kind: 'response', id, errorText: text })
    }))
    assert.equal(requestText(1, 'ping'), '{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert.equal(notificationText('n'), '{"jsonrpc":"2.0","method":"n"}')
  })

  await t.test('an error that came as text goes out to the byte', async () => {
    const text = '{ "code" : -32042, "message":"need a URL", "data":{"n":12345678901234567890} }'
    const error = toRpcError(text)
    assert.deepEqual([error.code, error.message, error.toText()], [-32042, 'need a URL', text])
    const odd = toRpcError('{"code":"x"}')
    assert.deepEqual([odd.code, odd.toText()], [code.internal, '{"code":"x"}'])
    assert.equal(new RpcError(-1, 'a "b"').toText(), '{"code":-1,"message":"a \\"b\\""}')
  })

  await t.test('which failures say that a request did not run', async () => {
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
})

test('event stream: bytes to events and back', async (t) => {
  const parse = (chunks: Iterable<Uint8Array>, limit = 1_000_000): StreamEvent[] => {
    const events: StreamEvent[] = []
    const parser = new EventStreamParser((event) => { events.push(event) }, limit)
    for (const chunk of chunks) parser.push(chunk)
    return events
  }
  const parseText = (text: string, limit?: number): StreamEvent[] => parse([Buffer.from(text)], limit)
  const event = (data: string, more: Partial<StreamEvent> = {}): StreamEvent => ({
    event: 'message', data, id: undefined, retry: undefined, ...more
  })

  await t.test('fields as the standard reads them', async () => {
    const table: Array<[string, StreamEvent[]]> = [
      ['data: a\n\n', [event('a')]],
      ['data:a\n\n', [event('a')]],
      ['data:  a \n\n', [event(' a ')]],
      ['data: a\ndata: b\ndata\n\n', [event('a\nb\n')]],
      ['data: a:b: c\n\n', [event('a:b: c')]],
      ['event: endpoint\ndata: /x\n\ndata: y\n\n', [event('/x', { event: 'endpoint' }), event('y')]],
      ['event: lost\n\ndata: y\n\n', [event('y')]],
      [': comment\n\n:\n\ndata: a\n: within\ndata: b\n\n', [event('a\nb')]],
      ['id: 7\nretry: 100\ndata: \n\n', [event('', { id: '7', retry: 100 })]],
      ['id: 7\n\n', [event('', { id: '7' })]],
      ['id\ndata: a\n\n', [event('a', { id: '' })]],
      ['id: a\0b\ndata: a\n\n', [event('a')]],
      ['retry: 1.5\nretry: -1\nretry: x\nretry:\ndata: a\n\n', [event('a')]],
      ['Data: a\nunknown: b\ndata: c\n\n', [event('c')]],
      ['data: a', []], ['data: a\n', []], ['\n\n\n', []],
      ['data: a\r\n\r\ndata: b\r\n\r\n', [event('a'), event('b')]],
      ['data: a\r\n\ndata: b\n\r\n', [event('a'), event('b')]],
      ['\ufeffdata: a\n\n', [event('a')]],
      ['data: é\u2028😀\n\n', [event('é\u2028😀')]]
    ]
    for (const [text, events] of table) assert.deepEqual(parseText(text), events, JSON.stringify(text))
  })

  await t.test('a lone CR ends a line, too (WHATWG HTML, 9.2.5)', async () => {
    assert.deepEqual(parseText('data: a\rdata: b\r\rdata: c\n\n'), [event('a\nb'), event('c')])
  })

  await t.test('whatever ends the lines, and wherever the chunks break between them', async () => {
    const bytewise = (text: string): StreamEvent[] => parse(Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte)))
    for (const text of [
      'data: a\r\rdata: b\r\r', 'data: a\r\n\r\ndata: b\n\n', 'data: a\r\n\ndata: b\n\n', 'data: a\n\rdata: b\r\n\r',
      'data: a\r\n\rdata: b\r\r\n'
    ]) {
      assert.deepEqual(parseText(text), [event('a'), event('b')], JSON.stringify(text))
      assert.deepEqual(bytewise(text), [event('a'), event('b')], `${JSON.stringify(text)}, byte by byte`)
    }
  })

  await t.test('chunks may break anywhere: in a character, in a line end, in a field', async () => {
    const line = fc.constantFrom('\n', '\r\n')
    const word = fc.string({ unit: fc.constantFrom('a', ':', ' ', '{', '"', 'é', '😀', '中'), maxLength: 8 })
    const one = fc.record({
      name: fc.option(fc.constantFrom('message', 'endpoint')),
      data: fc.array(word, { minLength: 1, maxLength: 3 }),
      id: fc.option(fc.string({ unit: fc.constantFrom('1', '-', 'ü'), maxLength: 4 })),
      retry: fc.option(fc.nat(99_999)),
      comment: fc.boolean(),
      end: line
    })
    holds(fc.property(fc.array(one, { maxLength: 5 }), fc.array(fc.nat(500), { maxLength: 30 }), (list, cuts) => {
      const text = list.map(({ name, data, id, retry, comment, end }) =>
        [
          ...(comment ? [': a comment: data: no'] : []),
          ...(name === null ? [] : [`event: ${name}`]),
          ...(id === null ? [] : [`id: ${id}`]),
          ...(retry === null ? [] : [`retry: ${retry}`]),
          ...data.map((each) => `data: ${each}`),
          '',
          ''
        ].join(end)
      )
        .join('')
      const expected = list.map(({ name, data, id, retry }) =>
        event(data.join('\n'), { event: name ?? 'message', id: id ?? undefined, retry: retry ?? undefined })
      )
      const bytes = Buffer.from(text)
      const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
      assert.deepEqual(parse(at.slice(1).map((end, index) => bytes.subarray(at[index], end))), expected)
      assert.deepEqual(parse(Array.from(bytes, (byte) => Uint8Array.of(byte))), expected)
    }))
  })

  await t.test('an event beyond the limit is refused, however it comes; one within it is not', async () => {
    const chunked = (text: string, size: number): Uint8Array[] =>
      Array.from({ length: Math.ceil(text.length / size) }, (_, at) => Buffer.from(text.slice(at * size, (at + 1) * size)))
    assert.equal(parseText(`data: ${'x'.repeat(90)}\n\n`, 100).length, 1)
    assert.equal(parse(chunked(`data: ${'x'.repeat(90)}\n\n`, 7), 100).length, 1)
    assert.equal(parse(chunked(`data: ${'x'.repeat(90)}\n\n`.repeat(50), 7), 100).length, 50)
    const tooLong: Record<string, Uint8Array[]> = {
      'one line at once': [Buffer.from(`data: ${'x'.repeat(101)}\n`)],
      'one line in pieces': chunked(`data: ${'x'.repeat(200)}`, 7),
      'a line that never ends': chunked('x'.repeat(200), 7),
      'many lines': chunked(`data: ${'x'.repeat(30)}\n`.repeat(4), 7),
      'a comment that never ends': chunked(`:${'x'.repeat(200)}`, 7)
    }
    for (const [how, chunks] of Object.entries(tooLong)) assert.throws(() => parse(chunks, 100), RangeError, how)
  })

  await t.test('an event of many empty lines is bounded, too', async () => {
    assert.throws(() => parseText('data:\n'.repeat(1_000), 100), RangeError)
  })

  await t.test('what the writers write is read back, on one line', async () => {
    holds(
      fc.property(
        padded(jsonText),
        fc.option(fc.integer({ min: 0, max: 99 }).map((n) => `${n}-${n}`), { nil: undefined }),
        ({ text }, id) => {
          const written = eventText(text, id)
          const [read, ...more] = parseText(written)
          assert.equal(more.length, 0)
          assert.equal(read?.id, id)
          assert.equal(read?.event, 'message')
          assert.deepEqual(JSON.parse(read?.data ?? ''), JSON.parse(text))
        }
      )
    )
    assert.deepEqual(parseText(primingText('3-0', 1_500)), [event('', { id: '3-0', retry: 1_500 })])
  })
})

test('table: what is in flight, by id', async (t) => {
  await t.test('1 and "1" are two ids, and so are all others that look alike', async () => {
    const ids: RequestId[] = [
      1,
      '1',
      -1,
      '-1',
      0,
      '0',
      '',
      1.5,
      '1.5',
      1e21,
      '1e+21',
      '__proto__',
      'constructor',
      '"1',
      2 ** 53,
      4_294_967_296
    ]
    const table = new Table<RequestId, number>()
    ids.forEach((id, at) => { table.set(id, at) })
    assert.equal(table.size, ids.length)
    ids.forEach((id, at) => { assert.equal(table.get(id), at, String(id)); assert.equal(table.has(id), true) })
    assert.deepEqual(new Set(table.keys()), new Set(ids))
    assert.deepEqual(table.values().sort((a, b) => a - b), ids.map((_, at) => at))
    for (const id of ['toString', 'valueOf', 2, '2', -0.5]) {
      assert.equal(table.has(id), false)
      assert.equal(table.get(id), undefined)
      assert.equal(table.take(id), undefined)
    }
    ids.forEach((id, at) => {
      assert.equal(table.take(id), at)
      assert.equal(table.take(id), undefined)
      assert.equal(table.has(id), false)
    })
    assert.equal(table.size, 0)
  })

  await t.test('it does what a Map does', async () => {
    const id = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constantFrom('1', '0', '-1', '', 'a'), fc.constantFrom(0.5, -1.5))
    holds(fc.property(fc.array(fc.tuple(fc.constantFrom('set', 'take', 'get'), id, fc.nat()), { maxLength: 40 }), (steps) => {
      const map = new Map<RequestId, number>()
      const table = new Table<RequestId, number>()
      for (const [step, key, value] of steps) {
        if (step === 'set') {
          map.set(key, value)
          table.set(key, value)
        } else if (step === 'take') {
          assert.equal(table.take(key), map.get(key))
          map.delete(key)
        } else assert.equal(table.get(key), map.get(key))
        assert.equal(table.size, map.size)
      }
      assert.deepEqual(new Map(table.keys().map((key) => [key, table.get(key)])), map)
    }))
  })

  await t.test('calls come oldest first: numbers in their order; and lists are copies', async () => {
    const table = new Table<number, string>()
    for (const id of [3, 1, 2, 10]) table.set(id, `call ${id}`)
    assert.deepEqual(table.values(), ['call 1', 'call 2', 'call 3', 'call 10'])
    for (const key of table.keys()) table.take(key)
    assert.equal(table.size, 0)
  })
})

/** A transport that only writes down what it is told. */
class FakeTransport implements Transport {
  readonly sent: Array<{ message: Message, id: number | undefined }> = []
  readonly dropped: number[] = []
  receiver: Receiver | undefined
  async start (receiver: Receiver): Promise<void> { this.receiver = receiver }
  send (text: string, options?: SendOptions): void {
    const message = parseMessage(text, 100)
    assert.ok(!Array.isArray(message))
    this.sent.push({ message, id: options?.id })
  }

  drop (id: number): void { this.dropped.push(id) }
  async agreed (): Promise<void> {}
  async close (): Promise<void> {}
  notifications (): Notification[] { return this.sent.flatMap(({ message }) => message.kind === 'notification' ? [message] : []) }
}

async function startPeer (): Promise<{ transport: FakeTransport, peer: Peer, seen: Array<[string, unknown, number | undefined]> }> {
  const transport = new FakeTransport()
  const seen: Array<[string, unknown, number | undefined]> = []
  const peer = new Peer(transport, {
    request: (request, origin) => { seen.push(['request', request.method, origin]) },
    notification: (notification, origin) => { seen.push(['notification', notification.method, origin]) },
    closed: (error) => { seen.push(['closed', error.message, undefined]) }
  })
  await peer.start()
  return { transport, peer, seen }
}
const answerTo = (id: RequestId | null, more: Partial<Response> = {}): Response => ({
  kind: 'response', id, resultText: `{"for":${JSON.stringify(id)}}`, ...more
})

test('peer: ids are allotted, answers matched, the rest handed on', async (t) => {
  await t.test('answers in any order, errors too, each to its request', async () => {
    const { transport, peer, seen } = await startPeer()
    assert.equal(peer.nextId, 1)
    const first = peer.request('a', '{"x":1}')
    assert.equal(peer.nextId, 2)
    const second = peer.request('b')
    assert.deepEqual(
      transport.sent.map(({ message, id }) => [id, message.kind === 'request' && [message.id, message.method, message.paramsText]]),
      [[1, [1, 'a', '{"x":1}']], [2, [2, 'b', '{}']]]
    )
    peer.message(answerTo(2), undefined)
    peer.message({ kind: 'response', id: 1, errorText: '{"code":-5}' }, undefined)
    assert.deepEqual(await second, answerTo(2))
    assert.equal((await first).errorText, '{"code":-5}')
    assert.deepEqual(seen, [])
  })

  await t.test('answers to nothing, to "1" instead of 1, and to what was answered or given up, are nobody\'s', async () => {
    const { transport, peer, seen } = await startPeer()
    let over = 0
    const first = peer.request('a', undefined, { paused: () => {}, over: () => { over++; return undefined } })
    for (const id of [0, 2, -1, 1.5, '1', '', null]) peer.message(answerTo(id), undefined)
    assert.equal(over, 0)
    peer.abandon(1, new UpstreamError('timeout', 'too slow'))
    peer.message(answerTo(1), undefined)
    peer.failed(1, new UpstreamError('broken', 'late'))
    await assert.rejects(first, { fault: 'timeout', message: 'too slow' })
    assert.deepEqual(transport.dropped, [1])
    assert.equal(over, 1)
    const second = peer.request('b')
    peer.message(answerTo(1), undefined)
    peer.message(answerTo(2, { resultText: '1' }), undefined)
    peer.message(answerTo(2, { resultText: '2' }), undefined)
    assert.equal((await second).resultText, '1')
    assert.deepEqual(seen, [])
  })

  await t.test('requests and notifications of the other side come with the request on whose stream they came', async () => {
    const { peer, seen } = await startPeer()
    peer.message({ kind: 'request', id: 1, idText: '1', method: 'ask', params: {}, paramsText: '{}' }, 7)
    peer.message({ kind: 'notification', method: 'tell', params: {}, paramsText: '{}' }, undefined)
    assert.deepEqual(seen, [['request', 'ask', 7], ['notification', 'tell', undefined]])
  })

  await t.test('answering: under the id as it was written', async () => {
    const { transport, peer } = await startPeer()
    peer.answer('12345678901234567890', { kind: 'response', id: 0, resultText: '{"n":1e400}' })
    peer.answer('""', { kind: 'response', id: '', errorText: '{"code":1}' })
    assert.deepEqual(transport.sent.map(({ message }) => message), [
      { kind: 'response', id: Number('12345678901234567890'), resultText: '{"n":1e400}' },
      { kind: 'response', id: '', errorText: '{"code":1}' }
    ])
  })

  await t.test('when the connection goes, everything pending fails, each once, and then it is told, once', async () => {
    const { transport, peer, seen } = await startPeer()
    const overs: number[] = []
    const pending = [1, 2, 3].map(async (id) =>
      await peer.request('a', undefined, {
        paused: () => {},
        over: () => {
          overs.push(id)
          seen.push(['over', id, undefined])
          return undefined
        }
      }))
    peer.message(answerTo(2), undefined)
    peer.closed(new UpstreamError('broken', 'gone'))
    peer.closed(new UpstreamError('broken', 'gone again'))
    peer.message(answerTo(1), undefined)
    assert.deepEqual(
      (await Promise.allSettled(pending)).map((each) =>
        each.status === 'fulfilled' ? each.value.id : (each.reason as UpstreamError).message
      ),
      ['gone', 2, 'gone']
    )
    assert.deepEqual(overs, [2, 1, 3])
    assert.deepEqual(seen.at(-1), ['closed', 'gone', undefined])
    assert.equal(seen.filter(([what]) => what === 'closed').length, 1)
    const before = transport.sent.length
    let over = 0
    await assert.rejects(
      peer.request('late', undefined, {
        paused: () => {},
        over: () => {
          over++
          return undefined
        }
      }),
      { fault: 'unreachable', message: 'gone' }
    )
    peer.notify('late')
    peer.answer('1', answerTo(1))
    assert.equal(transport.sent.length, before, 'nothing is sent on a connection that is gone')
    assert.equal(over, 1)
  })

  await t.test('a poll is told to who follows the request, while it is pending', async () => {
    const { peer } = await startPeer()
    const paused: number[] = []
    void peer.request('a', undefined, { paused: (retry) => { paused.push(retry) }, over: () => undefined })
    peer.paused(1, 500)
    peer.paused(2, 600)
    peer.message(answerTo(1), undefined)
    peer.paused(1, 700)
    assert.deepEqual(paused, [500])
  })
})

interface Reply {
  status: number
  type?: string
  text?: string
  /** How it ends; undefined: it stays open. */ end?: 'well' | 'broken'
  headers?: Record<string, string>
}
interface Asked {
  method: string
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
  reply: (asked: Asked) => Reply | Promise<Reply>
): Connection<Kind> {
  mockTimers(t, 'setTimeout', 'Date')
  const asked: Asked[] = []
  const heard: Message[] = []
  const told: string[] = []
  const dispatch = ({ method, headers, body }: Dispatcher.DispatchOptions, handler: Required<Dispatcher.DispatchHandler>): void => {
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
    transport: new Kind({ url: new URL('http://upstream.example/mcp'), headers: {}, dispatcher: { dispatch } as unknown as Dispatcher }),
    asked,
    posts: () => asked.filter(({ method }) => method === 'POST'),
    gets: () => asked.filter(({ method }) => method === 'GET'),
    heard,
    told,
    receiver: {
      message: (message) => {
        heard.push(message)
        return true
      },
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

test('http: an answer that comes by a stream', async (t) => {
  const primed = 'id: x-1\nretry: 700\ndata: \n\n'
  const result = (id: unknown): string => `id: x-9\ndata: ${resultText(JSON.stringify(id), '{}')}\n\n`
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
    await t.test(`it broke, and resuming it is answered ${says}: the request may have run`, async (t) => {
      const { transport, tick, told, gets, asked } = await httpConnection(t, ({ method }) =>
        method === 'POST' ? events(primed, 'broken') : refused
      )
      transport.send(requestText(2, 'tools/call'), { id: 2 })
      await tick(0)
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

  await t.test('it broke, and the upstream is busy, or has not missed the former one yet: it is asked for again', async (t) => {
    const refusals: Reply[] = [json(409, { ...noSession, error: { code: -32000, message: 'Conflict' } }), json(503, {}), json(429, {})]
    const { transport, tick, told, heard, gets } = await httpConnection(t, ({ method }) =>
      method === 'POST' ? events(primed, 'broken') : (refusals.shift() ?? events(result(2), 'well'))
    )
    transport.send(requestText(2, 'tools/call'), { id: 2 })
    for (let n = 0; n < 5; n++) await tick(700)
    assert.deepEqual([told, gets().length, heard.map((message) => message.kind === 'response' && message.id)], [[], 4, [1, 2]])
    assert.deepEqual(gets().map(({ headers }) => headers['last-event-id']), Array.from({ length: 4 }, () => 'x-1'))
  })

  await t.test('it breaks again and again: it is given up', async (t) => {
    const { transport, tick, told, gets } = await httpConnection(t, ({ method }) =>
      method === 'POST' ? events(primed, 'broken') : events('', 'broken')
    )
    transport.send(requestText(2, 'tools/call'), { id: 2 })
    for (let n = 0; n < 20; n++) await tick(700)
    assert.equal(gets().length, 5)
    assert.deepEqual(told, ['2 broken: upstream.example closed the connection'])
  })

  for (const [says, poll] of [['with an event', 'id: x-2\ndata: \n\n'], ['without a word', '']] as const) {
    await t.test(`polled as often as the upstream likes, each time ${says}, at the pace that it asked for`, async (t) => {
      let polls = 0
      const { transport, tick, told, heard, gets } = await httpConnection(t, ({ method }) =>
        method === 'POST' ? events(primed, 'well') : events(++polls < 12 ? poll : result(2), 'well')
      )
      transport.send(requestText(2, 'tools/call'), { id: 2 })
      await tick(0)
      for (let n = 0; n < 12; n++) await tick(700)
      assert.equal(gets().length, 12)
      assert.deepEqual(heard.map((message) => message.kind === 'response' && message.id), [1, 2])
      assert.deepEqual(told, Array.from({ length: 12 }, () => '2 paused 700'))
    })
  }
})

test('http: the stream of news', async (t) => {
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
    await made.transport.agreed('2025-11-25')
    return made
  }

  for (const [status, text, from] of [
    [400, 'Invalid event ID', undefined], [401, '', undefined], [403, '', undefined], [408, '', 'e-1'],
    [409, 'Conflict', 'e-1'], [429, '', 'e-1'], [500, '', 'e-1'], [502, '', 'e-1']
  ] as const) {
    await t.test(`it ended, and is refused with ${status} for a while: it is asked for again`, async (t) => {
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
    await t.test(
      `an event id that a header takes ${sent === undefined ? 'not' : 'as UTF-8'} keeps no stream from being resumed`,
      async (t) => {
        const made = await httpConnection(t, (asked) => (asked.method === 'GET' ? events(`id: ${id}\ndata: \n\n`) : json(404, {})))
        await made.transport.agreed('2025-11-25')
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
    await t.test(`it ended, and is refused with ${says}: that is believed`, async (t) => {
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

  await t.test('an upstream that says `retry: 0` is not polled without a pause', async (t) => {
    const { transport, gets, tick } = await httpConnection(t, ({ method }) => method === 'GET' ? events('retry: 0\n\n', 'well') : json(404, {}))
    await transport.agreed('2025-11-25')
    for (let n = 0; n < 300; n++) await tick(10)
    assert.ok(gets().length > 1 && gets().length <= 6, `${gets().length} GETs in 3 s`)
  })

  await t.test('an upstream that offers none is not asked again', async (t) => {
    for (const status of [400, 404, 405, 200]) {
      await t.test(`${status}`, async (t) => {
        const { transport, gets, tick, told } = await httpConnection(t, () => ({ status, text: 'no session for you', end: 'well' }))
        await transport.agreed('2025-11-25')
        await tick(120_000)
        assert.deepEqual([gets().length, told], [1, []])
      })
    }
  })

  await t.test('one that cannot be read takes no others with it', async (t) => {
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
    await t.test(`the session is gone, as ${says} finds, while a call is on its way: that says for itself what became of it`, async (t) => {
      const connection = await standing(t, [json(404, {})], ({ id }) => id === 2 ? events(': wait\n\n') : json(404, {}))
      const { posts, tick, told, transport, heard } = connection
      transport.send(requestText(2, 'tools/call'), { id: 2 })
      await tick(0)
      begin(connection)
      await tick(2_000)
      assert.deepEqual(told, says === 'another call' ? ['3 expired: the upstream no longer knows our session'] : [])
      posts().find(({ id }) => id === 2)?.say(`data: ${resultText('2', '{}')}\n\n`, 'well')
      assert.equal(heard.length, 2)
      assert.equal(told.at(-1), 'expired')
    })
  }
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
  const ids = (text: string): unknown[] => messagesIn(text).map((message) => message.kind === 'notification' ? undefined : message.id)
  assert.deepEqual(ids('{"jsonrpc":"2.0","id":"17","result":{}}'), [17])
  assert.deepEqual(
    ids(
      '[{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"x"}},{"jsonrpc":"2.0","id":"2","method":"ping"},{"jsonrpc":"2.0",' +
      '"id":"x1","result":{}},{"jsonrpc":"2.0","id":null,"error":{}}]'
    ),
    [1, '2', 'x1', null]
  )
})

test('sse: a POST that is refused', async (t) => {
  for (const [status, fault] of [
    [400, 'expired'], [404, 'expired'], [401, 'unauthorized'], [403, 'refused'], [500, 'refused'], [502, 'broken'],
    [504, 'broken']
  ] as const) {
    await t.test(`${status}: ${fault}`, async (t) => {
      const { transport, receiver, told, tick } = connection(t, SseTransport, ({ method }) =>
        method === 'GET' ? events('event: endpoint\ndata: /messages\n\n') : { status, end: 'well' }
      )
      await transport.start(receiver)
      transport.send(requestText(1, 'tools/call'), { id: 1 })
      await tick(0)
      assert.deepEqual(told.map((each) => each.split(':')[0]), [`1 ${fault}`])
    })
  }
})

/** A client's request with a progress token. */
const withToken = (): FakeExchange => new FakeExchange('{"name":"x","_meta":{"progressToken":"mine"}}')

/** The upstream reports progress on the call with this id. */
const progress = '{"progressToken":1,"progress":0.5}'

const question = (): Question => ({
  method: 'sampling/createMessage',
  params: {},
  paramsText: '{}',
  signal: new AbortController().signal,
  outlivesRequest: false,
  progress: () => {}
})

test('call: one deadline, and one cancellation', async (t) => {
  interface Started {
    transport: FakeTransport
    peer: Peer
    call: Call
    exchange: FakeExchange
    overs: () => number
    failure: () => UpstreamError | undefined
    answer: () => Response | undefined
  }
  const start = async (t: Test, deadlines: Partial<Deadlines> = {}, exchange = withToken()): Promise<Started> => {
    mockTimers(t, 'setTimeout', 'Date')
    const { transport, peer } = await startPeer()
    let overs = 0
    let failure: UpstreamError | undefined
    let answer: Response | undefined
    const call = new Call(peer, exchange, {
      changes: {},
      deadlines: { timeout: 1_000, resetTimeoutOnProgress: true, maxTotalTimeout: undefined, ...deadlines },
      over: () => { overs++ }
    })
    call.answer.then((response) => { answer = response }, (error: unknown) => { failure = error as UpstreamError })
    return { transport, peer, call, exchange, overs: () => overs, failure: () => failure, answer: () => answer }
  }
  const settle = async (): Promise<void> => { for (let turn = 0; turn < 10; turn++) await Promise.resolve() }
  const cancelled = (transport: FakeTransport): unknown[] =>
    transport.notifications().filter(({ method }) => method === 'notifications/cancelled')
      .map(({ params }) => params.requestId)

  await t.test('the request goes out at once, under its own progress token; its answer ends it', async (t) => {
    const { transport, peer, call, overs, answer } = await start(t)
    assert.deepEqual(
      transport.sent.map(({ message }) => message.kind === 'request' && [message.id, message.method, message.paramsText]),
      [[1, 'tools/call', '{"name":"x","_meta":{"progressToken":1}}']]
    )
    assert.equal(call.id, 1)
    assert.equal(call.over, false)
    peer.message(answerTo(1), undefined)
    await settle()
    assert.equal(answer()?.id, 1)
    mock.timers.tick(100_000)
    call.cancel(new UpstreamError('closed', 'too late'))
    await settle()
    assert.deepEqual([call.over, overs(), cancelled(transport)], [true, 1, []])
  })

  await t.test('silence ends it at the idle deadline, not before; the upstream is told once', async (t) => {
    const { transport, peer, call, overs, failure } = await start(t)
    mock.timers.tick(999)
    await settle()
    assert.equal(failure(), undefined)
    mock.timers.tick(1)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
    assert.match(failure()?.message ?? '', /no answer within 1 s/)
    call.cancel(new UpstreamError('closed', 'again'))
    mock.timers.tick(100_000)
    peer.message(answerTo(1), undefined)
    assert.deepEqual([call.over, overs(), cancelled(transport), transport.dropped], [true, 1, [1], [1]])
  })

  await t.test('progress re-arms it', async (t) => {
    const { call, failure } = await start(t)
    for (let step = 0; step < 5; step++) { mock.timers.tick(900); call.progress(progress) }
    await settle()
    assert.equal(failure(), undefined)
    mock.timers.tick(1_000)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
  })

  await t.test('progress does not where resetTimeoutOnProgress is false', async (t) => {
    const { call, failure } = await start(t, { resetTimeoutOnProgress: false })
    mock.timers.tick(900)
    call.progress(progress)
    mock.timers.tick(100)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
  })

  await t.test('the hard cap holds against any progress', async (t) => {
    const { transport, call, failure } = await start(t, { maxTotalTimeout: 2_500 })
    for (let step = 0; step < 3; step++) { mock.timers.tick(800); call.progress(progress) }
    await settle()
    assert.equal(failure(), undefined)
    mock.timers.tick(99)
    await settle()
    assert.equal(failure(), undefined)
    mock.timers.tick(1)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
    assert.deepEqual(cancelled(transport), [1])
  })

  await t.test('a cap below the idle deadline holds, too', async (t) => {
    const { failure } = await start(t, { maxTotalTimeout: 400 })
    mock.timers.tick(400)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
  })

  await t.test('while a question is open the idle deadline rests; afterwards it begins anew', async (t) => {
    const { call, exchange, failure } = await start(t)
    mock.timers.tick(900)
    let answer: (response: Response) => void = () => {}
    exchange.answer = async () => await new Promise((resolve) => { answer = resolve })
    const asked = call.ask(question())
    mock.timers.tick(600_000)
    call.progress(progress)
    mock.timers.tick(600_000)
    await settle()
    assert.equal(failure(), undefined)
    answer(answerTo('yes'))
    assert.deepEqual(await asked, answerTo('yes'))
    mock.timers.tick(999)
    await settle()
    assert.equal(failure(), undefined)
    mock.timers.tick(1)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
  })

  await t.test('of two questions the last one to end ends the rest; one that fails ends, too', async (t) => {
    const { call, exchange, failure } = await start(t)
    const ends: Array<() => void> = []
    exchange.answer = async () => await new Promise((resolve) => { ends.push(() => { resolve(answerTo(1)) }) })
    const first = call.ask(question())
    exchange.answer = async () => await new Promise((_resolve, reject) => { ends.push(() => { reject(new Error('gone')) }) })
    const second = call.ask(question())
    ends[0]?.()
    await first
    mock.timers.tick(600_000)
    await settle()
    assert.equal(failure(), undefined)
    ends[1]?.()
    await assert.rejects(second, /gone/)
    mock.timers.tick(1_000)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
  })

  await t.test('the hard cap goes on while a question is open', async (t) => {
    const { call, exchange, failure } = await start(t, { maxTotalTimeout: 5_000 })
    exchange.answer = async () => await new Promise(() => {})
    void call.ask(question())
    mock.timers.tick(4_999)
    await settle()
    assert.equal(failure(), undefined)
    mock.timers.tick(1)
    await settle()
    assert.equal(failure()?.fault, 'timeout')
  })

  await t.test('a client that cancels cancels upstream, once, with its reason', async (t) => {
    const { transport, exchange, failure, overs } = await start(t)
    exchange.cancel('the user pressed "stop"')
    exchange.cancel('twice')
    await settle()
    assert.equal(failure()?.fault, 'closed')
    const [notification, ...more] = transport.notifications()
    assert.deepEqual(notification?.params, { requestId: 1, reason: 'the user pressed "stop"' })
    assert.equal(more.length, 0)
    mock.timers.tick(100_000)
    assert.deepEqual([overs(), cancelled(transport)], [1, [1]])
  })

  await t.test('a client that was gone before the call began', async (t) => {
    const exchange = withToken()
    exchange.cancelled = 'gone before'
    const { call, transport, failure, overs } = await start(t, {}, exchange)
    await settle()
    mock.timers.tick(100_000)
    call.cancel(new UpstreamError('closed', 'again'))
    assert.deepEqual([call.over, failure()?.fault, failure()?.message], [true, 'closed', 'gone before'])
    assert.deepEqual([transport.sent, overs()], [[], 0], 'nothing is sent, and nothing was begun that could end')
  })

  await t.test('a link that is gone already, or goes: an error, and nothing to cancel', async (t) => {
    const { peer, transport, failure, overs } = await start(t)
    peer.closed(new UpstreamError('broken', 'gone'))
    await settle()
    assert.deepEqual([failure()?.message, overs(), cancelled(transport)], ['gone', 1, []])
    let over = 0
    const late = new Call(peer, new FakeExchange(), {
      changes: {},
      deadlines: { timeout: 1_000, resetTimeoutOnProgress: true, maxTotalTimeout: undefined },
      over: () => { over++ }
    })
    await assert.rejects(late.answer, { fault: 'unreachable' })
    mock.timers.tick(100_000)
    assert.deepEqual([late.over, over, cancelled(transport)], [true, 1, []])
  })

  await t.test('an upstream that wants to be polled: the client is told', async (t) => {
    const { peer, exchange } = await start(t)
    peer.paused(1, 750)
    assert.deepEqual(exchange.paused, [750])
  })
})

test('capabilities', async (t) => {
  const ui = 'io.modelcontextprotocol/ui'
  await t.test('classOf: equal for what an upstream cannot tell apart, whatever the order; else not', async () => {
    const capability = fc.dictionary(
      fc.constantFrom('sampling', 'elicitation', 'roots', 'extensions', 'experimental', '__proto__', '2', '10'),
      fc.oneof(
        fc.jsonValue({ maxDepth: 2 }),
        fc.dictionary(fc.constantFrom('tools', 'context', 'form', 'url', 'listChanged', ui, 'x'), fc.jsonValue({ maxDepth: 1 }), {
          maxKeys: 3
        })
      ),
      { maxKeys: 4 }
    )
    const shuffled = (value: unknown): unknown => isObject(value)
      ? Object.fromEntries(Object.keys(value).reverse().map((key) => [key, shuffled(value[key])]))
      : Array.isArray(value) ? value.map(shuffled) : value
    holds(fc.property(capability, capability, (one, other) => {
      const copy = shuffled(one) as Record<string, unknown>
      assert.equal(classOf(copy), classOf(one))
      let same = true
      try {
        assert.deepEqual(JSON.parse(JSON.stringify(shareable(one))), JSON.parse(JSON.stringify(shareable(other))))
      } catch { same = false }
      assert.equal(classOf(one) === classOf(other), same)
    }))
    assert.equal(classOf({}), plainClass)
    assert.notEqual(classOf({ sampling: {} }), classOf({ sampling: { tools: {} } }))
    assert.notEqual(classOf({ extensions: { [ui]: [1, 2] } }), classOf({ extensions: { [ui]: [2, 1] } }))
    assert.ok(classOf({ extensions: { [ui]: 'x'.repeat(100_000) } }).length < 1_000, 'it is a key in many places')
    assert.notEqual(classOf({ extensions: { [ui]: 'x'.repeat(100_000) } }), classOf({ extensions: { [ui]: 'y'.repeat(100_000) } }))
  })

  await t.test('shareable: what an upstream acts upon, and nothing that makes a client one of a kind', async () => {
    const table: Array<[Record<string, unknown>, Record<string, unknown>]> = [
      [{}, {}],
      [{ sampling: {}, elicitation: {}, roots: {} }, { sampling: {}, elicitation: {}, roots: {} }],
      [{ sampling: { context: {}, tools: {}, x: 1 } }, { sampling: { context: {}, tools: {} } }],
      [{ elicitation: { form: { applyDefaults: true }, url: {}, x: 1 } }, { elicitation: { form: { applyDefaults: true }, url: {} } }],
      [{ roots: { listChanged: false, x: 1 } }, { roots: { listChanged: false } }],
      [
        { sampling: { form: {} }, elicitation: { tools: {} }, roots: { url: {} } },
        { sampling: {}, elicitation: {}, roots: {} }
      ],
      [{ sampling: null, elicitation: true, roots: [] }, {}],
      [{ experimental: { x: 1 }, tasks: { list: {} }, logging: {}, x: 1 }, {}],
      [{ extensions: { [ui]: { mimeTypes: ['text/html'] }, other: {} } }, { extensions: { [ui]: { mimeTypes: ['text/html'] } } }],
      [{ extensions: { other: {} } }, {}],
      [{ extensions: null }, {}],
      [{ [ui]: {} }, {}],
      [
        JSON.parse('{"__proto__":{"sampling":{}},"constructor":{},"sampling":{"__proto__":{"tools":{}}}}') as Record<string, unknown>,
        { sampling: {} }
      ]
    ]
    for (const [client, expected] of table) {
      assert.deepEqual(shareable(client), expected, JSON.stringify(client))
      assert.equal(classOf(client), classOf(shareable(client)), 'who shares a connection is shown the same on it')
    }
    assert.equal(classOf({ experimental: { x: 1 }, extensions: { other: {} } }), plainClass)
  })

  await t.test('tasks towards the client are not carried, and make no class of their own', async () => {
    assert.deepEqual(bridged({ sampling: {}, tasks: { list: {} }, experimental: { x: 1 } }), { sampling: {}, experimental: { x: 1 } })
    assert.equal(classOf({ sampling: {}, tasks: { list: {} } }), classOf({ sampling: {} }))
  })

  await t.test('canBeAsked: sampling, elicitation or roots', async () => {
    const table: Array<[Record<string, unknown>, boolean]> = [
      [{}, false],
      [{ sampling: {} }, true],
      [{ elicitation: { url: {} } }, true],
      [{ roots: { listChanged: true } }, true],
      [{ extensions: { a: {} }, experimental: {} }, false],
      [{ sampling: null }, false],
      [{ sampling: true }, false],
      [{ roots: [] }, false],
      [{ tasks: {} }, false]
    ]
    for (const [client, expected] of table) assert.equal(canBeAsked(client), expected, JSON.stringify(client))
  })

  await t.test('checkAskable: what was declared, with its modes and parts, and what nobody knows', async () => {
    const everything = { sampling: { tools: {} }, elicitation: { form: {}, url: {} }, roots: {} }
    const needs: Record<string, keyof typeof everything> = {
      'sampling/createMessage': 'sampling', 'elicitation/create': 'elicitation', 'roots/list': 'roots'
    }
    for (const [method, need] of Object.entries(needs)) {
      assert.throws(() => { checkAskable({}, { method, params: {} }) }, { code: -32601 })
      checkAskable(everything, { method, params: {} })
      checkAskable({ [need]: {} }, { method, params: {} })
      assert.throws(() => { checkAskable({ ...everything, [need]: undefined }, { method, params: {} }) }, { code: -32601 })
    }
    checkAskable({}, { method: 'x-vendor/ask', params: { mode: 'url' } })
    const modes: ReadonlyArray<readonly [Record<string, unknown>, form: boolean, url: boolean]> = [
      [{}, true, false], [{ form: {} }, true, false], [{ url: {} }, false, true], [{ form: {}, url: {} }, true, true],
      [{ vendor: {} }, true, false]
    ]
    const refused = (check: () => void): boolean => {
      try { check() } catch (error) { assert.equal((error as RpcError).code, -32602); return true }
      return false
    }
    for (const [elicitation, form, url] of modes) {
      for (const [mode, can] of [['form', form], [undefined, form], ['url', url]] as const) {
        const asked = { method: 'elicitation/create', params: { mode } }
        assert.equal(refused(() => { checkAskable({ elicitation }, asked) }), !can, JSON.stringify([elicitation, mode]))
      }
    }
    const withTools = { method: 'sampling/createMessage', params: { tools: [] } }
    assert.ok(refused(() => { checkAskable({ sampling: {} }, withTools) }))
    checkAskable(everything, withTools)
  })

  await t.test('shown: the lists that are there can change; nothing else is touched', async () => {
    const server = { tools: {}, resources: { subscribe: true, extra: 1 }, logging: {}, experimental: { x: 1 }, prompts: null }
    assert.deepEqual(shown(server), {
      tools: { listChanged: true },
      resources: { subscribe: true, extra: 1, listChanged: true },
      logging: {},
      experimental: { x: 1 },
      prompts: null
    })
    assert.deepEqual(server.tools, {}, 'the original is not changed')
    assert.deepEqual(shown({}), {})
  })

  await t.test('union: what any of them has; subscribe if any has it; what needs one upstream is left out', async () => {
    const table: Array<[Array<Record<string, unknown>>, Record<string, unknown>]> = [
      [[], {}],
      [[{ tools: {} }, { prompts: { listChanged: false } }], { tools: { listChanged: true }, prompts: { listChanged: true } }],
      [[{ resources: { subscribe: true } }, { resources: { subscribe: false } }], { resources: { subscribe: true, listChanged: true } }],
      [[{ resources: {} }, { resources: { subscribe: true } }], { resources: { subscribe: true, listChanged: true } }],
      [[{ logging: {}, completions: {} }, {}], { logging: {}, completions: {} }],
      [[{ tasks: { list: {} }, experimental: { x: {} }, tools: {} }], { tools: { listChanged: true } }],
      [[{ extensions: { a: {} } }, { extensions: { b: {} } }], { extensions: { a: {}, b: {} } }]
    ]
    for (const [servers, expected] of table) assert.deepEqual(union(servers), expected, JSON.stringify(servers))
  })

  await t.test('those that are not what MCP says are left out, each with a sentence', async () => {
    const valid = { tools: {}, resources: { subscribe: true, x: 'y' }, extensions: { y: {} }, unknown: 5, tasks: { list: {}, other: 1 } }
    assert.deepEqual(validCapabilities(valid), { capabilities: valid, problems: [] })
    const table: Array<[string, Record<string, unknown>, string]> = [
      ['{"tools":5,"logging":{}}', { logging: {} }, '"tools" is not an object'],
      ['{"prompts":null}', {}, '"prompts" is not an object'],
      ['{"resources":{"subscribe":"yes","listChanged":true}}', { resources: { listChanged: true } }, '"resources.subscribe" is not a boolean'],
      ['{"extensions":{"y":5,"z":{}}}', { extensions: { z: {} } }, '"extensions.y" is not an object'],
      ['{"experimental":{"__proto__":1}}', { experimental: {} }, '"experimental.__proto__" is not an object'],
      ['{"tasks":{"requests":[]}}', { tasks: {} }, '"tasks.requests" is not an object']
    ]
    for (const [text, capabilities, problem] of table) {
      const found = validCapabilities(JSON.parse(text) as Record<string, unknown>)
      assert.deepEqual(found, { capabilities, problems: [`capabilities: ${problem} and is left out`] })
    }
  })
})

test('versions of the legacy era', async () => {
  const table: Array<[unknown, string, boolean]> = [
    ...legacyVersions.map((version): [unknown, string, boolean] => [version, version, true]),
    ['2026-07-28', latestLegacy, false],
    ['1999-01-01', latestLegacy, false],
    ['', latestLegacy, false],
    [undefined, latestLegacy, false],
    [20250618, latestLegacy, false],
    ['2025-11-25 ', latestLegacy, false]
  ]
  for (const [asked, answered, known] of table) {
    assert.equal(negotiate(asked), answered)
    assert.equal(isLegacyVersion(asked), known)
  }
  assert.equal(latestLegacy, '2025-11-25')
  assert.deepEqual(legacyVersions.map((version) => [version, allowsBatch(version), allowsPolling(version)]), [
    ['2025-11-25', false, true], ['2025-06-18', false, false], ['2025-03-26', true, false], ['2024-11-05', true, false],
    ['2024-10-07', true, false]
  ])
})

test('log levels', async () => {
  const inOrder = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] satisfies Level[]
  assert.deepEqual(levels, inOrder)
  inOrder.forEach((a, at) => {
    assert.equal(isLevel(a), true)
    inOrder.forEach((b, other) => {
      assert.equal(reaches(a, b), at >= other, `${a} for who wants ${b}`)
      assert.equal(lower(a, b), at < other ? a : b)
    })
    assert.equal(lower(a, undefined), a)
    assert.equal(lower(undefined, a), a)
    // A level that nobody knows is passed on: better one too many than one lost.
    assert.equal(reaches('fatal', a), true)
    assert.equal(reaches(undefined, a), true)
  })
  assert.equal(lower(undefined, undefined), undefined)
  for (const other of ['DEBUG', 'warn', '', 3, null, undefined, {}]) assert.equal(isLevel(other), false)
})
