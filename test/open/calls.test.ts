// Tools over plain HTTP.
import assert from 'node:assert/strict'
import { t as file, test } from 'tap'
import { Raw, Refusal, startUpstream, tool, type Call } from '../fakes/fault-http.ts'
import { at, connected, KEY, plain, settings, within, type Json } from '../helpers/client.ts'
import { served } from '../helpers/served.ts'
import { startHub, until } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { gate } from '../helpers/wire.ts'
import { document, echoArguments, get, object, operations, post, refused } from '../helpers/open-tools.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'

const typed = {
  n: { type: 'integer' },
  x: { type: 'number' },
  b: { type: 'boolean' },
  s: { type: 'string' },
  l: { type: 'array', items: { type: 'integer' } },
  w: { type: 'array', items: { type: 'string' } },
  o: { type: 'object' },
  m: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
  e: { enum: [1, 2] },
  z: { type: ['string', 'integer'] }
}
const seen: Call[] = []
let result = ''
const fake = await startUpstream(file, {
  tools: [
    tool('odd'),
    tool('typed', object(typed)),
    tool(
      'strict',
      object(
        { q: { type: 'string', minLength: 2, pattern: '^[a-z]+$' }, n: { type: 'integer', maximum: 5 } },
        { required: ['q'], additionalProperties: false }
      )
    ),
    tool('group', object({ group: { type: 'string' }, token: { type: 'string' }, limit: { type: 'integer' } })),
    tool('slow'),
    tool('hang'),
    tool('refuse'),
    tool('fail'),
    tool('raw'),
    tool('off'),
    tool('evil', object({ p: { type: 'string', pattern: '^(a+)+$' }, q: { type: 'string', pattern: 'a*a*a*a*b' } })),
    tool(
      'digits',
      object(
        { u: { type: 'string', pattern: '^\\d+$' }, c: { type: 'string', pattern: '^C' } },
        { patternProperties: { '^x-': { type: 'string' } }, additionalProperties: false }
      )
    ),
    tool(
      'sized',
      object({
        u: { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^\\d+(px|%)$' }] },
        v: { anyOf: [{ type: 'integer' }, { type: 'string', minLength: 3 }] },
        s: { type: 'string' },
        any: {}
      })
    ),
    tool(
      'tuple',
      object(
        { z: { type: 'string' }, t: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } },
        { required: ['z'], additionalProperties: false }
      )
    ),
    tool(
      'parts',
      object(
        {
          z: { type: 'integer', exclusiveMinimum: true },
          n: { type: 'integer', maximum: 5 },
          k: { $ref: '#/$defs/Kind' },
          gone: { $ref: 'https://elsewhere.example/schema' }
        },
        { required: ['n'], additionalProperties: false, $defs: { Kind: { enum: ['x', 'y'] } } }
      )
    ),
    tool(
      'inherited',
      object({ constructor: { type: 'string' }, toString: { type: 'string' }, valueOf: { type: 'integer' } }, { required: ['valueOf'] })
    ),
    tool('prototype', JSON.parse('{"inputSchema":{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}}') as Json),
    tool('nested', JSON.parse(`{"inputSchema":{"type":"object","properties":{"list":{"items":{"$ref":"#/$defs/One"}}},"$defs":{"One":{
      "properties":{"__proto__":{"maximum":3},"properties":{"enum":[{"properties":{"__proto__":1}}]}},"additionalProperties":false}}}}`) as Json),
    tool('broken', { inputSchema: { type: 'object', properties: { a: { $ref: 'https://elsewhere.example/schema' } } } }),
    tool('old', {
      inputSchema: {
        $schema: 'http://json-schema.org/draft-07/schema#',
        type: 'object',
        properties: { pair: { type: 'array', items: [{ type: 'integer' }, { type: 'string' }], additionalItems: false } }
      }
    })
  ],
  async on (call) {
    if (call.method !== 'tools/call') return undefined
    seen.push(call)
    switch (call.params.name) {
      case 'fail': return { content: [{ type: 'text', text: 'it failed' }], isError: true }
      case 'odd': return new Raw(result)
      case 'refuse': return new Refusal(-32000, 'not today, canary-4242-secret')
      case 'raw':
        return new Raw('{ "content": [], "big": 12345678901234567890, "huge": 1e400, "__proto__": {"x":1}, "last":"\\u00e9" }')
      case 'slow':
      case 'hang': return 'never'
      default: return echoArguments(call)
    }
  }
})
const hub = await startHub(file, {
  settings: settings({
    fake: { url: fake.url, visibility: 'public', headers: { 'X-Secret': 'canary-4242-secret' }, tools: { off: { enabled: false } } },
    hasty: { url: fake.url, visibility: 'public', options: { timeout: 200 } },
    away: { url: 'http://127.0.0.1:9/mcp', visibility: 'public' },
    disabled: { url: fake.url, visibility: 'public', enabled: false }
  })
})
await connected(hub, 2)
const args = (answer: { status: number; text: string }): unknown => {
  assert.equal(answer.status, 200, answer.text)
  return at(JSON.parse(answer.text), 'structuredContent', 'args')
}
const typedGet = async (query: string): Promise<{ status: number, text: string }> => await get(hub, `/api/tools/fake/typed?${query}`)

test('texts become what the schema says', async () => {
  const table: Array<[string, unknown]> = [
    ['n=7&x=-1.5e3&b=true&s=7', { n: 7, x: -1500, b: true, s: '7' }],
    ['n=-0&b=1', { n: 0, b: true }],
    ['n=1.0', { n: 1 }],
    ['n=1e2', { n: 100 }],
    ['n=-1.50E%2B1', { n: -15 }],
    ['n=2500e-2&m=0.0', { n: 25, m: 0 }],
    ['l=1.0,2e0', { l: [1, 2] }],
    ['b=0', { b: false }],
    ['b=false', { b: false }],
    ['n=9007199254740991', { n: 9007199254740991 }],
    ['l=1,2,3', { l: [1, 2, 3] }],
    ['l=1&l=2', { l: [1, 2] }],
    ['l=%5B1%5D', { l: [1] }],
    ['l=', { l: [] }],
    ['w=a&w=b,c', { w: ['a', 'b,c'] }],
    ['w=a', { w: ['a'] }],
    ['o=%7B%22k%22%3A%5B1%5D%7D', { o: { k: [1] } }],
    ['m=5', { m: 5 }],
    ['m=null', { m: null }],
    ['e=2', { e: 2 }],
    ['z=5', { z: '5' }],
    ['s=a+b%20c%2B&s2=&other=x&other=y', { s: 'a b c+', s2: '', other: ['x', 'y'] }],
    ['token=t&constructor=c&toString=s&__proto__=p', JSON.parse('{"token":"t","constructor":"c","toString":"s","__proto__":"p"}')]
  ]
  for (const [query, expected] of table) assert.deepEqual(args(await typedGet(query)), expected, query)
  assert.deepEqual(args(await post(hub, '/api/tools/fake/typed', { n: '7', x: 1, l: '1,2', o: { n: '7' }, extra: { deep: [1, 'a'] } })), {
    n: 7, x: 1, l: [1, 2], o: { n: '7' }, extra: { deep: [1, 'a'] }
  })
  assert.deepEqual(args(await get(hub, '/api/tools/fake/group?group=mine&token=secret&limit=3')), {
    group: 'mine', token: 'secret', limit: 3
  })
  assert.deepEqual(args(await get(hub, '/api/tools/fake/strict?q=ab&n=5')), { q: 'ab', n: 5 })
  assert.deepEqual(args(await get(hub, '/api/tools/fake/old?pair=%5B1,%22a%22%5D')), { pair: [1, 'a'] })
  assert.deepEqual(args(await get(hub, '/api/tools/fake/inherited?valueOf=1')), { valueOf: 1 })
  for (const [path, body] of [
    ['prototype', '{"__proto__":"a"}'], ['nested', '{"list":[{"__proto__":2,"properties":{"properties":{"__proto__":1}}}]}']
  ] as const) assert.deepEqual(args(await post(hub, `/api/tools/fake/${path}`, body)), JSON.parse(body), path)
  assert.deepEqual(args(await get(hub, '/api/tools/fake/sized?u=5&v=7&s=8&any=9')), { u: 5, v: 7, s: '8', any: '9' })
  assert.deepEqual(args(await get(hub, '/api/tools/fake/sized?u=5px&v=700')), { u: '5px', v: '700' })
  assert.deepEqual(args(await get(hub, '/api/tools/fake/tuple?z=1&t=%5B%22a%22,1%5D')), { z: '1', t: ['a', 1] })
  assert.deepEqual(args(await get(hub, '/api/tools/fake/parts?n=5&k=x&z=1&gone=any')), { n: 5, k: 'x', z: 1, gone: 'any' })
  // Each schema has patterns of its own, whichever were compiled before.
  assert.deepEqual(args(await get(hub, '/api/tools/fake/digits?u=12&c=C&x-a=1')), { u: '12', c: 'C', 'x-a': '1' })
  for (const body of ['', '{}', ' ']) assert.deepEqual(args(await post(hub, '/api/tools/fake/typed', body)), {})
  assert.deepEqual(
    args(
      await fetch(`${hub.url}/api/tools/fake/typed`, { method: 'POST' }).then(async (reply) => ({
        status: reply.status,
        text: await reply.text()
      }))
    ),
    {}
  )
  // What the gateway cannot check, the upstream does.
  assert.deepEqual(args(await post(hub, '/api/tools/fake/broken', { a: 1 })), { a: 1 })
  for (const evil of [{ p: `${'a'.repeat(60)}b` }, { q: 'a'.repeat(20_000) }]) {
    assert.deepEqual(args(await within('a pattern that takes for ever', post(hub, '/api/tools/fake/evil', evil))), evil)
  }
})

test(
  'a schema that takes for ever is left to the upstream, whatever makes it so, and for a while it is not tried again',
  async (t) => {
    const chain = Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [`d${n}`, { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }])
    )
    const long = Array.from({ length: 4_000 }, (_, n) => n)
    const hostile = await startUpstream(t, {
      tools: [
        tool('groups', object({ a: { type: 'string', pattern: '^((a+)(a*))+$' } })),
        tool('optional', object({ a: { type: 'string', pattern: '^(a?){40}a{40}$' } })),
        tool('doubled', object({ a: { $ref: '#/$defs/d0' } }, { $defs: { ...chain, d40: { type: 'string' } } })),
        tool(
          'recursive',
          object({ a: { $ref: '#/$defs/n' } }, {
            $defs: {
              n: {
                anyOf: [
                  { properties: { c: { $ref: '#/$defs/n' } }, required: ['x'] },
                  { properties: { c: { $ref: '#/$defs/n' } }, required: ['x'] }
                ]
              }
            }
          })
        ),
        tool(
          'items',
          object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { allOf: Array.from({ length: 300 }, () => ({ $ref: '#/$defs/a' })) } } })
        ),
        tool(
          'links',
          object(Object.fromEntries(long.map((n) => [`p${n}`, { $ref: `#/$defs/d${n}` }])), {
            $defs: {
              ...Object.fromEntries(long.map((n) => [`d${n}`, { $ref: `#/$defs/d${n + 1}` }])),
              [`d${long.length}`]: { type: 'string' }
            }
          })
        ),
        tool('good', object({ n: { type: 'integer' } }))
      ],
      on: echoArguments
    })
    setLimits(t, baseLimits.argumentChecks, { time: 300 })
    // The whole document takes many times as long.
    setLimits(t, downstreamLimits.documents, { time: 2_000 })
    const hub = await served(t, { hostile: { url: hostile.url, visibility: 'public' } })
    let deep: Json = {}
    for (let n = 0; n < 25; n++) deep = { c: deep }
    const table: Array<[string, Json]> = [
      ['groups', { a: `${'a'.repeat(40)}!` }], ['optional', { a: `${'a'.repeat(45)}!` }], ['doubled', { a: 'x' }],
      ['recursive', { a: deep }], ['items', { a: ['1', '2'] }]
    ]
    for (const [name, given] of table) {
      assert.deepEqual(args(await within(name, post(hub, `/api/tools/hostile/${name}`, given))), given)
      assert.deepEqual(args(await post(hub, `/api/tools/hostile/${name}`, given)), given)
    }
    assert.equal((await get(hub, '/api/tools/hostile/good?n=x')).status, 400, 'others are validated')
    assert.deepEqual(
      args(
        await within('a list for the management API',
          post(hub, '/api/tools/call/hostile', { toolName: 'items', arguments: { a: ['1'] } }, { authorization: `Bearer ${KEY}` }).then(
            (answer) => ({ ...answer, text: JSON.stringify(at(JSON.parse(answer.text), 'data')) })
          )
        )
      ),
      { a: ['1'] }
    )
    const whole = await within('a document with a chain of references', document(hub, '/api/hostile/openapi.json'))
    assert.deepEqual(at(whole, 'paths', '/tools/hostile/links', 'post', 'requestBody', 'content', 'application/json', 'schema'), {
      type: 'object',
      additionalProperties: { description: 'The arguments of the tool' }
    })
  }
)

test('the result comes as the tool gave it, to the byte', async () => {
  for (const answer of [await get(hub, '/api/tools/fake/raw'), await post(hub, '/api/tools/fake/raw', {})]) {
    assert.deepEqual(
      [answer.status, answer.text],
      [200, '{ "content": [], "big": 12345678901234567890, "huge": 1e400, "__proto__": {"x":1}, "last":"\\u00e9" }']
    )
  }
  const failed = await get(hub, '/api/tools/fake/fail')
  assert.deepEqual(
    [failed.status, JSON.parse(failed.text), failed.headers.get('cache-control'), failed.headers.get('content-type')],
    [200, { content: [{ type: 'text', text: 'it failed' }], isError: true }, 'no-store', 'application/json; charset=utf-8']
  )
})

test('... on the management API, too, and so do the arguments', async () => {
  const call = async (body: string, server = 'fake'): Promise<{ status: number; text: string }> =>
    await post(hub, `/api/tools/call/${server}`, body, { authorization: `Bearer ${KEY}` })
  const raw = async (text: string): Promise<{ status: number; text: string }> => {
    result = text
    return await call('{"toolName":"odd"}')
  }
  const said = (text: string): string => `{"success":true,"data":{${text},"toolName":"odd","arguments":{}}}`
  for (const members of [
    '"content":[],"structuredContent":[1,2,3]', '"content":[],"structuredContent":"text"', '"content":[],"structuredContent":{"a":null}',
    '"content":[],"big":12345678901234567890,"huge":1e400,"_meta":{"x":1}'
  ]) {
    assert.deepEqual(await raw(`{${members}}`), { status: 200, text: said(members) })
  }
  // Where MCP has no null, it is read as absent.
  assert.equal((await raw('{"content":[null],"structuredContent":null,"isError":null}')).text, said('"content":[]'))
  // What is missing, or of another type, is the least that clients read.
  const block = (text: string): string => `{"type":"text","text":${JSON.stringify(text)}}`
  for (const [members, read] of [
    ['"content":{"a":1}', `"content":[${block('{"a":1}')}]`], ['"content":["abc",5]', `"content":[${block('abc')},${block('5')}]`],
    ['"structuredContent":{"a":null}', '"content":[],"structuredContent":{"a":null}'], ['"isError":"yes"', '"content":[]']
  ] as const) assert.equal((await raw(`{${members}}`)).text, said(read))
  for (const text of ['null', '[]']) assert.equal((await raw(text)).text, said('"content":[]'), text)
  assert.equal(
    (await raw('{ "toolName": "mine", "content": [] }')).text,
    '{"success":true,"data":{"toolName": "odd","content": [],"arguments":{}}}'
  )
  for (const [text, read] of [['5', '5'], ['"text"', 'text']] as const) {
    assert.equal((await raw(text)).text, said(`"content":[${block(read)}]`), text)
  }
  seen.length = 0
  for (const [body, status, says] of [
    ['{"toolName":"typed","arguments":{"n":12345678901234567890}}', 400, /12345678901234567890/],
    ['{"toolName":"typed","arguments":{"x":1e400}}', 400, /1e400/],
    ['{bad', 400, /JSON/],
    ['[]', 400, /./],
    ['', 400, /toolName/]
  ] as const) {
    const answer = await call(body)
    assert.equal(answer.status, status, answer.text)
    assert.match(String(at(JSON.parse(answer.text), 'message')), says)
    assert.equal((await call(body, 'nope')).status, 404, body)
  }
  assert.equal(
    (await post(hub, '/api/tools/call/nope', 'x', { authorization: `Bearer ${KEY}`, 'content-type': 'text/plain' })).status,
    404
  )
  assert.equal(seen.length, 0)
})

test('on the management API arguments are converted for a server that is still connecting, too', async (t) => {
  const { promise: mayConnect, open: connect } = gate()
  const slow = await startUpstream(t, {
    tools: [tool('typed', object(typed))],
    on: async (call) => {
      if (call.method === 'initialize') await mayConnect
      return echoArguments(call)
    }
  })
  const headers = { authorization: `Bearer ${KEY}` }
  assert.equal((await post(hub, '/api/servers', { name: 'slow', config: { url: slow.url, visibility: 'public' } }, headers)).status, 200)
  await until(() => slow.received.some(({ message }) => message.method === 'initialize'))
  const asking = post(hub, '/api/tools/call/slow', { toolName: 'typed', arguments: { n: '5', b: 'true', l: '1,2', s: '5' } }, headers)
  await get(hub, '/health')
  connect()
  const answer = await asking
  assert.deepEqual(at(JSON.parse(answer.text), 'data', 'structuredContent', 'args'), { n: 5, b: true, l: [1, 2], s: '5' }, answer.text)
})

test('bad arguments in a query get a clear error and never reach the upstream', async () => {
  seen.length = 0
  const table: Array<[string, RegExp]> = [
    ['typed?n=abc', /\bn\b.*integer/],
    ['typed?n=1.5', /integer/],
    ['typed?n=1.05e1', /integer/],
    ['typed?n=1e-1', /integer/],
    ['typed?n=9007199254740990.9', /integer/],
    ['typed?n=1e400', /n is too large to be forwarded exactly/],
    ['typed?n=9007199254740993', /n is too large to be forwarded exactly/],
    ['typed?n=9007199254740993.0', /n is too large/],
    ['typed?l=1,-9007199254740993', /l\.1 is too large/],
    ['typed?n=', /\bn\b/],
    ['typed?n=0x10', /\bn\b/],
    ['typed?n=1&n=2', /\bn\b/],
    ['typed?x=Infinity', /\bx\b.*number/],
    ['typed?x=1e400', /x is too large/],
    ['typed?x=12345678901234567890', /x is too large/],
    ['typed?b=yes', /\bb\b.*boolean/],
    ['typed?b=', /\bb\b/],
    ['typed?s=a&s=b', /\bs\b.*string/],
    ['typed?l=1,a', /l\.1.*integer/],
    ['typed?o=%7Bx', /\bo\b.*object/],
    ['typed?o=%7B%22k%22:1e400%7D', /\bo\b/],
    ['typed?o=%5B%5D', /\bo\b/],
    ['typed?e=3', /\be\b.*1, 2/],
    ['strict', /\bq\b.*required/],
    ['strict?q=a', /\bq\b/],
    ['strict?q=ab&n=6', /\bn\b.*5/],
    ['strict?q=ab&extra=1', /extra.*not known/],
    ['strict?q=a&n=x&extra=1', /(?=.*\bq\b)(?=.*\bn\b)(?=.*extra)/],
    ['sized?u=5em', /\bu\b/],
    ['sized?v=ab', /\bv\b/],
    ['tuple', /z.*required/],
    ['tuple?z=1&bogus=2', /bogus.*not known/],
    ['tuple?z=1&t=%5B1,1%5D', /t\.0.*string/],
    ['parts', /n.*required/],
    ['parts?n=6', /\bn\b.*5/],
    ['parts?n=1&k=z', /\bk\b/],
    ['parts?n=1&bogus=2', /bogus.*not known/],
    ['digits?u=ab', /\bu\b.*pattern/],
    ['digits?c=12', /\bc\b.*pattern/],
    ['digits?y-a=1', /y-a.*not known/],
    ['inherited', /valueOf.*required/],
    ['inherited?valueOf=1&constructor=a&constructor=b', /constructor.*string/],
    ['old?pair=%5B1,2%5D', /pair/],
    ['old?pair=%5B1,%22a%22,3%5D', /pair/],
    ['typed?s=%ZZ', /percent/],
    ['typed?s=%ff', /percent/]
  ]
  for (const [path, says] of table) refused(await get(hub, `/api/tools/fake/${path}`), 400, says)
  assert.deepEqual(seen.map(({ params }) => params), [])
})

test('arguments that do not fit are the same refusal on both call routes', async () => {
  seen.length = 0
  for (const [name, args, says] of [
    ['strict', {}, /q is required/],
    ['strict', { q: 'ab', n: 6 }, /\bn\b.*5/],
    ['strict', { q: 'ab', extra: 1 }, /extra is not known/],
    ['tuple', {}, /z is required/],
    ['nested', { list: [{ other: 4 }] }, /list\.0\.other is not known/],
    ['typed', { n: 'abc' }, /\bn\b.*integer/]
  ] as const) {
    const open = await post(hub, `/api/tools/fake/${name}`, args)
    const managed = await post(hub, '/api/tools/call/fake', { toolName: name, arguments: args }, { authorization: `Bearer ${KEY}` })
    refused(open, 400, says)
    const { message, code } = JSON.parse(managed.text) as Json
    assert.deepEqual([managed.status, message, code], [open.status, at(JSON.parse(open.text), 'message'), at(JSON.parse(open.text), 'error')])
  }
  assert.equal(seen.length, 0)
})
test('a bad body gets a clear error and never reaches the upstream', async () => {
  seen.length = 0
  for (const [path, body, says] of [
    ['prototype', '{"__proto__":5}', /__proto__ must be string/],
    ['prototype', '{"a":"b"}', /__proto__ is required/],
    ['nested', '{"list":[{"__proto__":4}]}', /list\.0\.__proto__ must be <= 3/],
    ['nested', '{"list":[{"other":4}]}', /other is not known/],
    ['nested', '{"list":[{"properties":{"properties":{"__proto__":2}}}]}', /list\.0\.properties must be one of/],
    ['strict', '{"q":"ab","n":5,"__proto__":5}', /__proto__ is not known/]
  ] as const) refused(await post(hub, `/api/tools/fake/${path}`, body), 400, says)
  const bodies: Array<[string, number, RegExp]> = [
    ['[]', 400, /object/],
    ['null', 400, /object/],
    ['7', 400, /object/],
    ['"text"', 400, /object/],
    ['{', 400, /JSON/],
    ['{"n":1e400}', 400, /1e400/],
    ['{"n":12345678901234567890}', 400, /12345678901234567890/],
    ['{"deep":[{"n":-12345678901234567890}]}', 400, /12345678901234567890/],
    ['{"n":true}', 400, /\bn\b/],
    ['{"n":[1]}', 400, /\bn\b/],
    ['{"s":1}', 400, /\bs\b/],
    ['{"o":[]}', 400, /\bo\b/],
    [`{"o":{"a":${'['.repeat(300)}${']'.repeat(300)}}}`, 400, /nested/],
    [`{"s":"${'x'.repeat(1_100_000)}"}`, 413, /larger/],
    ...[300, 3_000, 20_000].map((levels): [string, number, RegExp] => [
      JSON.stringify({ o: `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}` }),
      400,
      /\bo\b.*object/
    ])
  ]
  for (const [body, status, says] of bodies) refused(await post(hub, '/api/tools/fake/typed', body), status, says)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    refused(await post(hub, '/api/tools/fake/typed', '{"n":1}', { 'content-type': type }), 415)
  }
  assert.deepEqual(seen.map(({ params }) => params), [])
})

test('a foreign page, a prefetch and another method never reach the upstream', async () => {
  seen.length = 0
  const page = { 'sec-fetch-site': 'cross-site' }
  const foreign: Array<Record<string, string>> = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    page,
    { ...page, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-purpose': 'prefetch' },
    { 'sec-purpose': 'prefetch;prerender' },
    { purpose: 'prefetch' },
    { host: 'evil.example' }
  ]
  for (const headers of foreign) {
    for (const method of ['GET', 'POST']) {
      const answer = await plain(`http://127.0.0.1:${hub.port}/api/tools/fake/typed`, { method, headers })
      refused({ status: answer.status, text: answer.body }, 403)
      if (headers.host === undefined) assert.equal(answer.headers['cache-control'], 'no-store')
    }
  }
  for (const method of ['HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY']) {
    const answer = await plain(`http://127.0.0.1:${hub.port}/api/tools/fake/typed`, { method }).catch(() => ({ status: 400 }))
    assert.ok(answer.status >= 400 && answer.status < 500, `${method}: ${answer.status}`)
  }
  assert.deepEqual(seen.map(({ params }) => params), [])
  assert.equal((await get(hub, '/api/tools/fake/typed', { origin: hub.url, 'sec-fetch-site': 'same-origin' })).status, 200)
  assert.equal(seen.length, 1)
})

test('what is not there, hidden or disabled is all the same', async () => {
  seen.length = 0
  const what = '"success":false,"error":"TH_NO_SUCH","message":"There is no such'
  for (const path of [
    'fake/nope', 'fake/off', 'fake/fake-typed', 'nope/typed', 'disabled/typed', 'call/typed', '__proto__/typed',
    'fake/..%2Ffake'
  ]) {
    for (const answer of [
      await get(hub, `/api/tools/${path}`),
      await post(hub, `/api/tools/${path.replace('call/', 'calls/')}`, '{"n":"x"')
    ]) {
      refused(answer, 404)
      const [server = '', name = ''] = path.split('/').map(decodeURIComponent)
      assert.equal(answer.text.replace('calls', 'call'), `{${what} ${server === 'fake' ? `tool: \\"${name}` : `server: \\"${server}`}\\""}`)
    }
  }
  assert.equal(seen.length, 0)
})

test('an upstream that fails is 502, one that is slow 504', async () => {
  const told = await get(hub, '/api/tools/fake/refuse')
  refused(told, 502, /not today/)
  assert.ok(!told.text.includes('4242'), told.text)
  refused(await within('the deadline', get(hub, '/api/tools/hasty/hang')), 504)
  refused(await within('the patience', get(hub, '/api/tools/away/any')), 502, /away/)
})
test('a tool that runs as a task only is run as one, and its result waited for', async (t) => {
  const heard: string[] = []
  let last = 0
  const fake = await startUpstream(t, {
    capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
    tools: [{ ...tool('research', object({ topic: { type: 'string' } })), execution: { taskSupport: 'required' } }],
    async on ({ method, params }) {
      if (method === 'tools/call') {
        if (params.task === undefined) return new Refusal(-32601, 'it runs as a task only')
        return {
          task: {
            taskId: `t${++last}`,
            status: 'working',
            createdAt: '2026-01-01T00:00:00Z',
            lastUpdatedAt: '2026-01-01T00:00:00Z',
            ttl: 60_000
          }
        }
      }
      if (method.startsWith('tasks/')) heard.push(`${method} ${String(params.taskId)}`)
      if (method === 'tasks/result') {
        if (params.taskId === 't3') return 'never'
        return { content: [{ type: 'text', text: `of ${String(params.taskId)}` }] }
      }
      return method === 'tasks/cancel' ? { taskId: params.taskId, status: 'cancelled' } : undefined
    }
  })
  const hub = await served(t, { one: { url: fake.url, visibility: 'public' } })
  const [operation] = operations(await document(hub))
  assert.equal(operation?.path, '/tools/one/research')
  const text = (answer: { text: string }, ...path: string[]): unknown => at(JSON.parse(answer.text), ...path, 'content', 0, 'text')
  assert.equal(text(await get(hub, '/api/tools/one/research?topic=x')), 'of t1')
  assert.equal(
    text(
      await post(hub, '/api/tools/call/one', { toolName: 'research', arguments: { topic: 'x' } }, { authorization: `Bearer ${KEY}` }),
      'data'
    ),
    'of t2'
  )
  const gone = new AbortController()
  const asking = fetch(`${hub.url}/api/tools/one/research`, { signal: gone.signal }).catch(() => {})
  await until(() => heard.includes('tasks/result t3'))
  gone.abort()
  await asking
  await until(() => heard.includes('tasks/cancel t3'), 'the task goes on for nobody')
})
