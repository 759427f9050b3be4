// Calls of OpenAPI servers: parameters, bodies and answers.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { UpstreamError } from '../../protocol/errors.ts'
import { json, restApi, type Seen } from '../fakes/rest-api.ts'
import { ok, described, op, openapi, restClient } from '../fakes/rest-client.ts'
import { mockTimers, turnsUntil } from '../helpers/clock.ts'
import { seed } from '../helpers/json-texts.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false })

/**
 * OpenAPI, "Style Examples": the value of a parameter "color" in a request. – : the specification says n/a.
 * Where revisions differ (label without explode, pipes) the later one counts, which says what RFC 6570 says.
 */
const styles = `
  in     style          explode  empty     string         array                                 object
  path   matrix         false    –         ;color=blue    ;color=blue,black,brown               ;color=R,100,G,200,B,150
  path   matrix         true     –         ;color=blue    ;color=blue;color=black;color=brown   ;R=100;G=200;B=150
  path   label          false    –         .blue          .blue,black,brown                     .R,100,G,200,B,150
  path   label          true     –         .blue          .blue.black.brown                     .R=100.G=200.B=150
  path   simple         false    –         blue           blue,black,brown                      R,100,G,200,B,150
  path   simple         true     –         blue           blue,black,brown                      R=100,G=200,B=150
  header simple         false    (empty)   blue           blue,black,brown                      R,100,G,200,B,150
  header simple         true     (empty)   blue           blue,black,brown                      R=100,G=200,B=150
  query  form           false    color=    color=blue     color=blue,black,brown                color=R,100,G,200,B,150
  query  form           true     color=    color=blue     color=blue&color=black&color=brown    R=100&G=200&B=150
  query  spaceDelimited false    –         –              color=blue%20black%20brown            color=R%20100%20G%20200%20B%20150
  query  spaceDelimited true     –         –              color=blue&color=black&color=brown    –
  query  pipeDelimited  false    –         –              color=blue%7Cblack%7Cbrown            color=R%7C100%7CG%7C200%7CB%7C150
  query  pipeDelimited  true     –         –              color=blue&color=black&color=brown    –
  query  deepObject     true     –         –              –                              color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150
  cookie form           false    color=    color=blue     color=blue,black,brown                color=R,100,G,200,B,150
  cookie form           true     color=    color=blue     color=blue;color=black;color=brown    R=100;G=200;B=150
`
  .trim()
  .split('\n')
  .map((line) => line.trim().split(/ +/))
  .slice(1)
const colors = { empty: '', string: 'blue', array: ['blue', 'black', 'brown'], object: { R: 100, G: 200, B: 150 } }

test('parameters: every style, explode and place, as the specification writes them', async (t) => {
  const api = await restApi(t)
  const paths: Record<string, object> = {}
  const cases: Array<{ name: string, place: string, value: unknown, expected: string }> = []
  for (const [place = '', style = '', explode = '', ...cells] of styles) {
    Object.entries(colors).forEach(([kind, value], at) => {
      const expected = cells[at] ?? ''
      if (expected === '–') return
      const name = `${place}-${style}-${explode}-${kind}`
      paths[place === 'path' ? `/${name}/{color}` : `/${name}`] = {
        get: {
          operationId: name,
          parameters: [{ name: 'color', in: place, required: true, style, explode: explode === 'true', schema: {} }],
          ...ok
        }
      }
      cases.push({ name, place, value, expected: expected === '(empty)' ? '' : expected })
    })
  }
  const client = await described(t, `${api.url}/v1/`, paths)
  for (const { name, place, value, expected } of cases) {
    await client.call(name, { color: value })
    const { url, headers } = api.last()
    const sent: Record<string, unknown> = {
      path: url.split('/')[3], query: url.split('?')[1], cookie: headers.cookie?.replaceAll('; ', ';'), header: headers.color
    }
    assert.equal(sent[place], expected, name)
  }
  assert.equal(api.seen.length, cases.length)
})

test('parameters: encoding, digits, defaults and what must not pass', async (t) => {
  const api = await restApi(t)
  const parameter = (name: string, place: string, more: object = {}): object => ({ name, in: place, schema: {}, ...more })
  const client = await described(t, `${api.url}/base`, {
    '/things/{id}': {
      parameters: [parameter('id', 'path', { required: true }), parameter('shared', 'query', { description: 'of the path' })],
      get: op('one', [
        parameter('q', 'query'),
        parameter('raw', 'query', { allowReserved: true }),
        parameter('filter', 'query', { content: { 'application/json': { schema: { type: 'object' } } } }),
        parameter('plain', 'query', { content: { 'text/plain': { schema: { type: 'string' } } } }),
        parameter('any', 'query', { content: { '*/*': {} } }),
        parameter('shared', 'query', { description: 'of the operation', required: true }),
        parameter('deep', 'query', { style: 'deepObject' }),
        parameter('expand[]', 'query')
      ])
    },
    '/clash/{id}': {
      post: op('clash', [
        parameter('id', 'query'), parameter('id', 'path', { required: true }), parameter('id', 'header'),
        parameter('id_query', 'cookie')
      ])
    },
    '/undeclared/{who}/{what}.json?fixed=1': { get: op('undeclared', [parameter('more', 'query')]) },
    '/headers': {
      get: op('headers', [
        parameter('X-One', 'header'), parameter('Authorization', 'header'), parameter('Content-Type', 'header'),
        parameter('Accept', 'header'), parameter('Host', 'header'), parameter('c', 'cookie')
      ])
    }
  })
  const tools = await client.tools()
  const query = (): string => api.last().url.replace(/^[^?]*\?/, '')

  await t.test('all but the unreserved characters are encoded, half a surrogate pair too', async () => {
    await client.call('one', { id: 'a/b?c#d é%2F', q: "&=+ '()*!\ud800", shared: '~-._' })
    assert.equal(api.last().url, '/base/things/a%2Fb%3Fc%23d%20%C3%A9%252F?shared=~-._&q=%26%3D%2B%20%27%28%29%2A%21%EF%BF%BD')
  })
  await t.test('allowReserved keeps what is reserved or encoded, but never ends the value', async () => {
    await client.call('one', { id: 1, raw: 'a/b:c?d=e&f#g+h%20i%j [x]', shared: 1 })
    assert.match(query(), /raw=a\/b:c\?d=e%26f%23g%2Bh%20i%25j%20\[x\]/)
  })
  await t.test('numbers keep every digit; null and empty lists are not sent', async () => {
    await client.call(
      'one',
      '{"id":12345678901234567890,"q":[1e400,0.10],"shared":true,"raw":null,"deep":{"a":{"b":[9007199254740993,null]},"none":[]},' +
      '"expand":[]}'
    )
    assert.equal(api.last().url, '/base/things/12345678901234567890?shared=true&q=1e400&q=0.10&deep%5Ba%5D%5Bb%5D%5B0%5D=9007199254740993')
  })
  await t.test('a content parameter is JSON, or the text that it is', async () => {
    await client.call('one', { id: 1, filter: { a: [1, 'ö'] }, plain: 'some "text"', any: 'a', shared: 1 })
    assert.equal(decodeURIComponent(query()), 'shared=1&filter={"a":[1,"ö"]}&plain=some "text"&any="a"')
  })
  await t.test('an operation speaks of a parameter last', async () => {
    const one = tools.get('one')
    assert.equal(one?.inputSchema.properties.shared?.description, 'of the operation')
    assert.deepEqual(one?.inputSchema.required, ['id', 'shared'])
  })
  await t.test('names that clash get their place as suffix', async () => {
    assert.deepEqual(Object.keys(tools.get('clash')?.inputSchema.properties ?? {}), ['id', 'id_query', 'id_header', 'id_query_cookie'])
    await client.call('clash', { id: 'p', id_query: 'q', id_header: 'h', id_query_cookie: 'c' })
    assert.deepEqual([api.last().url, api.last().headers.id, api.last().headers.cookie], ['/base/clash/p?id=q', 'h', 'id_query=c'])
  })
  await t.test('what only the path names is a parameter, too', async () => {
    await client.call('undeclared', { who: 'a b', what: 'c', more: 2 })
    assert.equal(api.last().url, '/base/undeclared/a%20b/c.json?fixed=1&more=2')
  })
  await t.test('headers that are not a parameter\'s to set are none; others carry UTF-8, and no line breaks', async () => {
    assert.deepEqual(Object.keys(tools.get('headers')?.inputSchema.properties ?? {}), ['X-One', 'c'])
    await client.call('headers', { 'X-One': 'grün ✓', c: 'a b;c' })
    assert.equal(Buffer.from(String(api.last().headers['x-one']), 'latin1').toString(), 'grün ✓')
    assert.equal(api.last().headers.cookie, 'c=a%20b%3Bc')
    const before = api.seen.length
    const { isError, content } = await client.call('headers', { 'X-One': 'a\r\nX-Two: b' })
    assert.ok(isError && /control character/.test(content[0]?.text ?? ''))
    assert.equal(api.seen.length, before)
  })
  await t.test('arguments that would make another request are refused before anything is sent', async () => {
    const before = api.seen.length
    for (const [args, says] of [
      [{ id: '', shared: 1 }, /"id" in the path must not be empty/],
      [{ id: '..', shared: 1 }, /another path/],
      [{ id: '.', shared: 1 }, /another path/],
      [{ id: [], shared: 1 }, /must not be empty/],
      [{ shared: 1 }, /argument "id" is missing/],
      [{ id: 1 }, /argument "shared" is missing/],
      [{ id: 1, shared: 1, wrong: 2, 'wrong "too"': 3 }, /The argument "wrong", "wrong \\"too\\"" does not exist\. The arguments are "id", "shared", "q"/]
    ] as const) {
      const { isError, content } = await client.call('one', args)
      assert.equal(isError, true)
      assert.match(content[0]?.text ?? '', says)
    }
    await client.call('undeclared', { who: '.', what: 'x' }).then(({ isError }) => { assert.equal(isError, true) })
    assert.equal(api.seen.length, before)
  })
})

test('parameters: whatever the value, the API reads it as it was given', async (t) => {
  const api = await restApi(t)
  const places = ['path', 'query', 'header', 'cookie'] as const
  const parameters = places.map((place) => ({ name: place, in: place, required: true, schema: { type: 'string' } }))
  const client = await described(t, api.url, {
    '/{path}': {
      post: op('x', parameters, { requestBody: { content: { 'application/json': { schema: { type: 'object', properties: { field: {} } } } } } })
    }
  })
  const text = fc.string({ unit: 'binary', minLength: 1 }).filter((value) => value !== '.' && value !== '..')

  const header = fc.string({ unit: 'binary', minLength: 1 })
    // eslint-disable-next-line no-control-regex
    .filter((value) => !/[\u0000-\u001f\u007f]/.test(value) && value.trim() === value)
  await fc.assert(fc.asyncProperty(text, text, header, text, fc.jsonValue(), async (path, query, head, cookie, field) => {
    const { isError, content } = await client.call('x', { path, query, header: head, cookie, field })
    assert.equal(isError, undefined, content[0]?.text)
    const { url, headers, body } = api.last()
    assert.equal(decodeURIComponent(url.slice(1).split('?')[0] ?? ''), path)
    assert.equal(decodeURIComponent(url.split('?query=')[1] ?? ''), query)
    const seen = String(headers.header)
    assert.equal(/^[\u0020-\u00ff]*$/.test(head) ? seen : Buffer.from(seen, 'latin1').toString(), head)
    assert.equal(decodeURIComponent(headers.cookie?.slice('cookie='.length) ?? ''), cookie)
    assert.equal(body.toString(), JSON.stringify({ field }))
  }), { seed, numRuns: 80 })
})

test('bodies', async (t) => {
  const api = await restApi(t)
  const body = (content: object, more: object = {}): object => ({ post: { requestBody: { content, required: true, ...more }, ...ok } })
  const object = {
    type: 'object',
    required: ['name', 'made'],
    properties: {
      made: { type: 'string', readOnly: true },
      name: { type: 'string' },
      tags: { type: 'array', items: { type: 'string' } },
      meta: { type: 'object' },
      n: { type: 'integer', nullable: true }
    }
  }
  const client = await described(t, api.url, {
    '/flat': body({ 'text/plain': {}, 'application/json': { schema: object } }),
    '/optional': body({ 'application/json': { schema: object } }, { required: false }),
    '/all': body({
      'application/vnd.x+json': { schema: { allOf: [object, { type: 'object', properties: { extra: {}, name: { maxLength: 3 } }, required: ['extra'] }] } }
    }),
    '/open': body({ 'application/json': { schema: { ...object, additionalProperties: { type: 'number' } } } }),
    '/clash/{name}': body({ 'application/json': { schema: object } }),
    '/clash2/{body}': body({ 'application/json': { schema: { type: 'array' } } }),
    '/either': body({ 'application/json': { schema: { oneOf: [object, { type: 'string' }] } } }),
    '/form': body({
      'application/x-www-form-urlencoded': { schema: object, encoding: { tags: { style: 'spaceDelimited', explode: false } } }
    }),
    '/deep': body({
      'application/x-www-form-urlencoded': {
        schema: object,
        encoding: { meta: { style: 'deepObject', explode: true }, tags: { explode: true }, name: { contentType: 'application/json' } }
      }
    }),
    '/multi': body({
      'multipart/form-data': {
        schema: {
          type: 'object',
          properties: {
            name: { type: 'string' },
            file: { type: 'string', format: 'binary' },
            files: { type: 'array', items: { type: 'string', format: 'binary' } },
            meta: { type: 'object' },
            list: { type: 'array', items: {} },
            png: {}
          }
        },
        encoding: { png: { contentType: 'image/png' }, list: { contentType: 'application/json' } }
      }
    }),
    '/text': body({ 'text/csv': { schema: { type: 'string' } } }),
    '/bytes': body({ 'image/png': { schema: { type: 'string', format: 'binary' } } }),
    '/raw': body({ '*/*': { schema: { type: 'string', format: 'binary' } } }),
    '/image': body({ 'image/*': {} }),
    '/any': body({ '*/*': { schema: { type: 'object' } } })
  })
  const tools = await client.tools()
  const send = async (name: string, args: unknown): Promise<{ type: string | undefined, body: string, seen: Seen }> => {
    const count = api.seen.length
    const { isError, content } = await client.call(`post_${name}`, args)
    assert.equal(isError, undefined, content[0]?.text)
    assert.equal(api.seen.length, count + 1)
    const seen = api.last()
    return { type: seen.headers['content-type'], body: seen.body.toString(), seen }
  }
  const schema = (name: string) => tools.get(`post_${name}`)?.inputSchema

  await t.test('an object\'s fields are arguments; what is readOnly is none; bytes stay', async () => {
    assert.deepEqual(
      [Object.keys(schema('flat')?.properties ?? {}), schema('flat')?.required, schema('flat')?.additionalProperties],
      [['name', 'tags', 'meta', 'n'], ['name'], false]
    )
    assert.deepEqual(schema('flat')?.properties.n?.type, ['integer', 'null'])
    const { type, body } = await send('flat',
      '{"name":"a","n":12345678901234567890,"meta":{"x": 1e400, "__proto__": {"y": 1}},"tags":null}')
    assert.deepEqual(
      [type, body],
      ['application/json', '{"name":"a","tags":null,"meta":{"x": 1e400, "__proto__": {"y": 1}},"n":12345678901234567890}']
    )
  })
  await t.test('a body that need not be is sent when a field is given, and whole then', async () => {
    assert.equal(schema('optional')?.required, undefined)
    const { type, body } = await send('optional', {})
    assert.deepEqual([type, body], [undefined, ''])
    assert.equal((await client.call('post_optional', { n: 1 })).isError, true)
    assert.equal((await send('optional', { name: 'x' })).body, '{"name":"x"}')
  })
  await t.test('allOf is taken together', async () => {
    assert.deepEqual([Object.keys(schema('all')?.properties ?? {}), schema('all')?.required?.sort()], [
      ['name', 'tags', 'meta', 'n', 'extra'],
      ['extra', 'name']
    ])
    const { type, body } = await send('all', { name: 'x', extra: 1 })
    assert.deepEqual([type, JSON.parse(body)], ['application/vnd.x+json', { name: 'x', extra: 1 }])
  })
  await t.test('fields beyond the known ones where the schema admits them', async () => {
    assert.deepEqual(schema('open')?.additionalProperties, { type: 'number' })
    assert.deepEqual(JSON.parse((await send('open', { name: 'x', other: 2 })).body), { name: 'x', other: 2 })
  })
  await t.test('under "body" where a name is taken, or it is no plain object', async () => {
    assert.deepEqual(Object.keys(schema('clash_name')?.properties ?? {}), ['name', 'body'])
    assert.equal((await send('clash_name', '{"name":"p","body":{"name":"b","n":0.10}}')).body, '{"name":"b","n":0.10}')
    assert.deepEqual(Object.keys(schema('clash2_body')?.properties ?? {}), ['body', 'body_request'])
    assert.equal((await send('clash2_body', { body: 'p', body_request: [1] })).body, '[1]')
    assert.equal((await send('either', { body: 'text' })).body, '"text"')
    assert.equal((await send('any', { body: { a: 1 } })).type, 'application/json')
    assert.equal((await client.call('post_either', {})).isError, true)
  })
  await t.test('forms', async () => {
    assert.deepEqual(await send('form', { name: 'a b&c', tags: ['x', 'y z'], meta: { k: 'v' } }).then(({ type, body }) => [type, body]), [
      'application/x-www-form-urlencoded',
      'name=a%20b%26c&tags=x%20y%20z&meta=%7B%22k%22%3A%22v%22%7D'
    ])
    assert.equal(
      (await send('deep', { name: 'n', tags: ['x', 'y'], meta: { a: { b: 1 } } })).body,
      'name=%22n%22&tags=x&tags=y&meta%5Ba%5D%5Bb%5D=1'
    )
  })
  await t.test('multipart: a part for each field, bytes from base64 and data: addresses', async () => {
    const bytes = Buffer.from([0, 255, 13, 10, 45, 45])
    const { type, seen } = await send('multi', {
      name: 'é',
      file: bytes.toString('base64'),
      files: ['AQ==', 'data:text/plain;name=a%20b.txt;base64,Yg=='],
      meta: { a: 1 },
      list: [1, 2],
      png: 'AQID'
    })
    const form = await new Response(new Uint8Array(seen.body), { headers: { 'content-type': type ?? '' } }).formData()
    const file = async (name: string, at = 0): Promise<unknown[]> => {
      const one = form.getAll(name)[at] as File
      return [one.name, one.type, Buffer.from(await one.arrayBuffer())]
    }
    assert.deepEqual([form.get('name'), form.get('meta'), form.getAll('list')], ['é', '{"a":1}', ['[1,2]']])
    assert.deepEqual(await file('file'), ['file', 'application/octet-stream', bytes])
    assert.deepEqual(await file('files', 1), ['a b.txt', 'text/plain', Buffer.from('b')])
    assert.deepEqual(await file('png'), ['png', 'image/png', Buffer.from([1, 2, 3])])
    const bytesSaid = { type: 'string', contentEncoding: 'base64', description: 'Bytes in base64, or a data: address' }
    assert.deepEqual([schema('multi')?.properties.file, schema('multi')?.properties.files],
      [bytesSaid, { type: 'array', items: bytesSaid }])
    for (const wrong of ['%%%', 'data:text/plain,plain', 5]) assert.equal((await client.call('post_multi', { file: wrong })).isError, true)
  })
  await t.test('text and bytes', async () => {
    assert.deepEqual(await send('text', { body: 'a,b\n"c"' }).then(({ type, body }) => [type, body]), ['text/csv', 'a,b\n"c"'])
    const { type, seen } = await send('bytes', { body: 'iVBO Rw0K\n' })
    assert.deepEqual([type, seen.body.toString('hex')], ['image/png', '89504e470d0a'])
    // A data: address says the type where the description leaves it open.
    for (const [name, given, expected] of [
      ['bytes', 'data:image/gif;base64,AQ==', 'image/png'],
      ['image', 'data:image/gif;base64,AQ==', 'image/gif'],
      ['image', 'AQ==', 'application/octet-stream'],
      ['raw', 'AQ==', 'application/octet-stream'],
      ['raw', 'data:image/gif;base64,AQ==', 'image/gif']
    ] as const) {
      const sent = await send(name, { body: given })
      assert.deepEqual([sent.type, sent.seen.body.toString('hex')], [expected, '01'], `${name} ${given}`)
    }
  })
})

test('a tool\'s schema holds a member named __proto__, and so does the request', async (t) => {
  const api = await restApi(t)
  const schema = JSON.parse(
    '{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{"/p/{__proto__}":{"post":{"operationId":"__proto__",' +
    '"parameters":[{"name":"__proto__","in":"path","schema":{"$ref":"#/components/schemas/__proto__"}},{"name":"constructor",' +
    '"in":"query","schema":{"type":"string"}},{"name":"__proto__","in":"header","schema":{}}],' +
    '"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"toString":{"type":"string"}},' +
    '"required":["toString"]}}}}}}},"components":{"schemas":{"__proto__":{"type":"string","examples":[{"__proto__":1}]}}}}'
  ) as object
  const client = await restClient(t, { url: api.url, openapi: { schema } })
  const [tool] = [...(await client.tools()).values()]
  assert.deepEqual([tool?.name, Object.keys(tool?.inputSchema.properties ?? {})],
    ['__proto__', ['__proto__', 'constructor', '__proto___header', 'toString']])
  ajv.compile(tool?.inputSchema ?? {})
  await client.call('__proto__', '{"__proto__":"a","constructor":"b","__proto___header":"c","toString":"d"}')
  assert.deepEqual([api.last().url, api.last().body.toString()], ['/p/a?constructor=b', '{"toString":"d"}'])
  assert.ok(api.last().rawHeaders.join().includes('__proto__,c'))
  assert.equal(({} as { d?: unknown }).d, undefined)
})

test('answers', async (t) => {
  const api = await restApi(t)
  const client = await described(t, api.url, { '/x': { get: op('get'), head: op('head'), post: op('post') } })
  const answer = (status: number, type: string | undefined, body: string | Buffer, headers: Record<string, string> = {}): void => {
    api.answer((_request, response) => {
      response.writeHead(status, { ...(type === undefined ? {} : { 'content-type': type }), ...headers }).end(body)
    })
  }

  await t.test('JSON is text, and an object is structured too, to the digit', async () => {
    answer(200, 'application/json; charset=utf-8', '{"n": 12345678901234567890,\n"e":1e400, "__proto__": {"a": 1}}')
    assert.equal(
      await client.callText('get'),
      '{"content":[{"type":"text","text":"{\\"n\\": 12345678901234567890,\\n\\"e\\":1e400, \\"__proto__\\": {\\"a\\": 1}}"}],' +
      '"structuredContent":{"n": 12345678901234567890, "e":1e400, "__proto__": {"a": 1}}}'
    )
    answer(200, 'application/hal+json', '[1]')
    assert.deepEqual(await client.call('get'), { content: [{ type: 'text', text: '[1]' }] })
    answer(200, 'application/json', '{broken')
    assert.deepEqual(await client.call('get'), { content: [{ type: 'text', text: '{broken' }] })
    answer(200, 'application/json', '{"a":'.repeat(2_000) + '1' + '}'.repeat(2_000))
    assert.equal((await client.call('get')).structuredContent, undefined)
  })
  await t.test('text, in its own character set; nothing; and a redirect within the origin', async () => {
    answer(200, 'text/plain; charset=iso-8859-1', Buffer.from('gr\u00fcn', 'latin1'))
    assert.deepEqual(await client.call('get'), { content: [{ type: 'text', text: 'grün' }] })
    answer(204, undefined, '')
    assert.deepEqual(await client.call('get'), { content: [{ type: 'text', text: 'HTTP 204 No Content' }] })
    api.answer(({ url }, response) => {
      if (url === '/x') response.writeHead(302, { location: '/y' }).end()
      else json(response, { at: url })
    })
    assert.deepEqual((await client.call('get')).structuredContent, { at: '/y' })
  })
  await t.test('a redirect that is not followed is the answer: what it answered ran', async () => {
    const said = (line: string, ...more: string[]): object => ({ content: [line, ...more].map((text) => ({ type: 'text', text })) })
    for (const [name, status, location, line] of [
      ['get', 302, 'http://127.0.0.2:1/file?sig=a%20b#x', 'HTTP 302 Found\nlocation: http://127.0.0.2:1/file?sig=a%20b#x'],
      ['post', 302, '/done', 'HTTP 302 Found\nlocation: /done'],
      ['post', 303, 'https://other.test/', 'HTTP 303 See Other\nlocation: https://other.test/'],
      ['get', 301, '/x', 'HTTP 301 Moved Permanently\nlocation: /x'],
      ['post', 307, 'http://[', 'HTTP 307 Temporary Redirect\nlocation: http://[']
    ] as const) {
      const before = api.seen.length
      answer(status, 'application/json', '{"id":1}', { location })
      assert.deepEqual(await client.call(name), { ...said(line, '{"id":1}'), structuredContent: { id: 1 } })
      assert.equal(api.seen.length - before, location === '/x' ? 4 : 1)
    }
    answer(303, undefined, '', { location: 'https://other.test/' })
    assert.deepEqual(await client.call('post'), said('HTTP 303 See Other\nlocation: https://other.test/'))
    answer(302, undefined, '')
    assert.deepEqual(await client.call('post'), said('HTTP 302 Found'))
    answer(201, undefined, '', { location: '/x/5' })
    assert.deepEqual(await client.call('post'), said('HTTP 201 Created\nlocation: /x/5'))
    // What the configuration adds to the query is not told, however it comes back.
    const keyed = await restClient(t, {
      url: `${api.url}/?tenant=s3cret`,
      openapi: {
        schema: openapi({ '/x': { get: op('get', [{ name: 'q', in: 'query', schema: {} }]), head: op('head') } }),
        security: { type: 'apiKey', in: 'query', name: 'key', value: 'k 1' }
      }
    })
    for (const [location, shown] of [
      ['https://x.test/a?q=1&key=k+1', 'https://x.test/a'],
      ['https://x.test/login?next=%2Fx%3Ftenant%3Ds3cret%26q%3D1#a', 'https://x.test/login'],
      ['https://x.test/a?q=1&other=2', 'https://x.test/a?q=1&other=2']
    ] as const) {
      answer(302, 'text/plain', `Found. Redirecting to ${location}`, { location })
      assert.deepEqual(
        await keyed.call('get', { q: 1 }),
        said(`HTTP 302 Found\nlocation: ${shown}`, ...(location === shown ? [`Found. Redirecting to ${location}`] : []))
      )
    }
    assert.equal(api.last().url, '/x?tenant=s3cret&q=1&key=k%201')
    answer(302, undefined, '', { location: 'https://x.test/?key=k%201', 'x-other': 'y' })
    const [{ text = '' } = {}] = (await keyed.call('head')).content
    assert.match(text, /^HTTP 302 Found\n(.*\n)*x-other: y/)
    assert.doesNotMatch(text, /k%201/)
  })
  await t.test('bytes', async () => {
    const bytes = Buffer.from([0, 255, 1])
    answer(200, 'image/png', bytes)
    assert.deepEqual(await client.call('get'), { content: [{ type: 'image', data: 'AP8B', mimeType: 'image/png' }] })
    answer(200, 'application/pdf', bytes)
    assert.deepEqual(await client.call('get'), {
      content: [{ type: 'resource', resource: { uri: `${api.url}/x`, mimeType: 'application/pdf', blob: 'AP8B' } }]
    })
    answer(200, undefined, bytes)
    assert.equal((await client.call('get')).content[0]?.resource?.mimeType, 'application/octet-stream')
  })
  await t.test('HEAD tells the headers', async () => {
    answer(200, 'text/plain', '', { 'x-total': '5', 'set-cookie': 'secret' })
    const [{ text = '' } = {}] = (await client.call('head')).content
    assert.match(text, /^HTTP 200 OK\n/)
    assert.match(text, /x-total: 5/)
    assert.doesNotMatch(text, /secret/)
  })
  await t.test('a status of 400 or more is an error with its line and its body, cut', async () => {
    answer(422, 'application/json', '{"message":"no"}')
    assert.deepEqual(await client.call('get'), {
      content: [{ type: 'text', text: 'HTTP 422 Unprocessable Entity' }, { type: 'text', text: '{"message":"no"}' }],
      structuredContent: { message: 'no' },
      isError: true
    })
    answer(500, 'application/json', `{"message":"${'x'.repeat(upstreamLimits.openapi.errorBody)}"}`)
    assert.equal((await client.call('get')).structuredContent, undefined)
    answer(500, 'text/plain', 'x'.repeat(1_000_000))
    const { isError, content } = await client.call('get')
    assert.deepEqual([isError, content[0]?.text, content[1]?.text?.length],
      [true, 'HTTP 500 Internal Server Error', upstreamLimits.openapi.errorBody])
  })
  await t.test('too large, cut off, away: errors that say so, and the link stays', async () => {
    api.answer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      for (let count = 0; count < 17; count++) response.write('x'.repeat(1024 * 1024))
      response.end()
    })
    await assert.rejects(client.call('get'), /too large: more than 16777216 bytes/)
    api.answer((_request, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('x')
      setTimeout(() => { response.destroy() }, 20)
    })
    await assert.rejects(client.call('get'), (error: unknown) => error instanceof UpstreamError && error.fault === 'broken')
    for (const [encoding, reason] of [['gzip', ''], ['zstd', ': its content-encoding is not one of gzip, deflate and br']]) {
      api.answer((_request, response) => { response.writeHead(200, { 'content-encoding': encoding }).end('{"not":"compressed"}') })
      await assert.rejects(client.call('get'), (error: unknown) =>
        error instanceof UpstreamError && error.messageForClients === `its answer cannot be decompressed${reason}`)
    }
    const away = await described(t, 'http://127.0.0.1:1', { '/x': { get: op('get') } })
    await assert.rejects(away.call('get'),
      (error: unknown) => error instanceof UpstreamError && !error.didNotRun && error.messageForClients === 'it cannot be reached' && /127\.0\.0\.1:1/.test(error.detail))
    assert.equal(away.link.closed, false)
  })
  await t.test('unknown tools and methods', async () => {
    await assert.rejects(client.call('nope'), /Unknown tool: "nope"/)
    await assert.rejects(client.link.request('resources/list'), /Method not found/)
    assert.equal(await client.link.request('ping'), '{}')
  })
  await t.test('cancelling ends the request', async (t) => {
    let gone = false
    api.answer((_request, response) => { response.on('close', () => { gone = true }) })
    const count = api.seen.length
    mockTimers(t, 'setTimeout')
    const call = assert.rejects(client.session.request('tools/call', '{"name":"get"}', 300), /no answer to tools\/call/)
    await turnsUntil(() => api.seen.length > count)
    mock.timers.tick(300)
    await call
    await turnsUntil(() => gone)
    assert.equal(api.seen.length, count + 1)
  })
})
