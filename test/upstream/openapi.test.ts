import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { dump } from 'js-yaml'
import { UpstreamError } from '../../protocol/errors.ts'
import { limits } from '../../plugins/limits/index.ts'
import { compile } from '../../plugins/upstream/openapi/describe/compile.ts'
import { checkLimits } from '../../plugins/upstream/openapi/describe/document.ts'
import { DescriptionError } from '../../plugins/upstream/openapi/problems.ts'
import { DescriptionReader } from '../../plugins/upstream/openapi/describe/reader.ts'
import { SharedApi } from '../../plugins/upstream/openapi/api.ts'
import { Outbound } from '../../plugins/outbound/outbound.ts'
import { incomplete, type ServerConfig } from '../../schemas/server.ts'
import { json, restApi, type Seen } from '../fakes/rest-api.ts'
import { openapi, restClient } from '../fakes/rest-client.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)

const ok = { responses: { 200: { description: 'OK' } } }
const refused =
  (pattern: RegExp) =>
    (error: unknown): boolean =>
      error instanceof UpstreamError && (assert.match(error.message, pattern), true)
const ajv = new Ajv2020({ strict: false, validateFormats: false })

// ── parameters ──

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
  const client = await restClient(t, { url: `${api.url}/v1/`, openapi: { schema: openapi(paths) } })
  for (const { name, place, value, expected } of cases) {
    await client.call(name, { color: value })
    const { url, headers } = api.last()
    const actual =
      place === 'path'
        ? url.split('/')[3]
        : place === 'query'
          ? url.split('?')[1]
          : place === 'cookie'
            ? headers.cookie?.replaceAll('; ', ';')
            : headers.color
    assert.equal(actual, expected, name)
  }
  assert.equal(api.seen.length, cases.length)
})

test('parameters: encoding, digits, defaults and what must not pass', async (t) => {
  const api = await restApi(t)
  const parameter = (name: string, place: string, more: object = {}): object => ({ name, in: place, schema: {}, ...more })
  const client = await restClient(t, {
    url: `${api.url}/base`,
    openapi: {
      schema: openapi({
        '/things/{id}': {
          parameters: [parameter('id', 'path', { required: true }), parameter('shared', 'query', { description: 'of the path' })],
          get: {
            operationId: 'one',
            parameters: [
              parameter('q', 'query'),
              parameter('raw', 'query', { allowReserved: true }),
              parameter('filter', 'query', { content: { 'application/json': { schema: { type: 'object' } } } }),
              parameter('plain', 'query', { content: { 'text/plain': { schema: { type: 'string' } } } }),
              parameter('any', 'query', { content: { '*/*': {} } }),
              parameter('shared', 'query', { description: 'of the operation', required: true }),
              parameter('deep', 'query', { style: 'deepObject' }),
              parameter('expand[]', 'query')
            ],
            ...ok
          }
        },
        '/clash/{id}': {
          post: {
            operationId: 'clash',
            parameters: [
              parameter('id', 'query'),
              parameter('id', 'path', { required: true }),
              parameter('id', 'header'),
              parameter('id_query', 'cookie')
            ],
            ...ok
          }
        },
        '/undeclared/{who}/{what}.json?fixed=1': { get: { operationId: 'undeclared', parameters: [parameter('more', 'query')], ...ok } },
        '/headers': {
          get: {
            operationId: 'headers',
            parameters: [
              parameter('X-One', 'header'),
              parameter('Authorization', 'header'),
              parameter('Content-Type', 'header'),
              parameter('Accept', 'header'),
              parameter('Host', 'header'),
              parameter('c', 'cookie')
            ],
            ...ok
          }
        }
      })
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
      '"expand[]":[]}'
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
      [{ id: 1, shared: 1, wrong: 2, 'wrong "too"': 3 }, /no argument "wrong", "wrong \\"too\\""\. The tool takes "id", "shared", "q"/]
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
  const client = await restClient(t, {
    url: api.url,
    openapi: {
      schema: openapi({
        '/{path}': {
          post: {
            operationId: 'x',
            parameters,
            requestBody: { content: { 'application/json': { schema: { type: 'object', properties: { field: {} } } } } },
            ...ok
          }
        }
      })
    }
  })
  const text = fc.string({ unit: 'binary', minLength: 1 }).filter((value) => value !== '.' && value !== '..')

  const header = fc
    .string({ unit: 'binary', minLength: 1 })
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
  }), { seed, numRuns: 150 })
})

// ── bodies ──

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
  const client = await restClient(t, {
    url: api.url,
    openapi: {
      schema: openapi({
        '/flat': body({ 'text/plain': {}, 'application/json': { schema: object } }),
        '/optional': body({ 'application/json': { schema: object } }, { required: false }),
        '/all': body({
          'application/vnd.x+json': {
            schema: { allOf: [object, { type: 'object', properties: { extra: {}, name: { maxLength: 3 } }, required: ['extra'] }] }
          }
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
    }
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
    const { type, body } = await send(
      'flat',
      '{"name":"a","n":12345678901234567890,"meta":{"x": 1e400, "__proto__": {"y": 1}},"tags":null}'
    )
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
    assert.deepEqual(
      [Object.keys(schema('all')?.properties ?? {}), schema('all')?.required?.sort()],
      [
        ['name', 'tags', 'meta', 'n', 'extra'],
        ['extra', 'name']
      ]
    )
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
    assert.deepEqual(
      [schema('multi')?.properties.file, schema('multi')?.properties.files],
      [bytesSaid, { type: 'array', items: bytesSaid }]
    )
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
  assert.deepEqual(
    [tool?.name, Object.keys(tool?.inputSchema.properties ?? {})],
    ['proto', ['__proto__', 'constructor', '__proto___header', 'toString']]
  )
  ajv.compile(tool?.inputSchema ?? {})
  await client.call('proto', '{"__proto__":"a","constructor":"b","__proto___header":"c","toString":"d"}')
  assert.deepEqual([api.last().url, api.last().body.toString()], ['/p/a?constructor=b', '{"toString":"d"}'])
  assert.ok(api.last().rawHeaders.join().includes('__proto__,c'))
  assert.equal(({} as { d?: unknown }).d, undefined)
})

// ── credentials ──

test('credentials', async (t) => {
  const api = await restApi(t)
  const schemes = {
    key: { type: 'apiKey', name: 'X-Key', in: 'header' },
    flow: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: `${api.url}/token`, scopes: {} } } }
  }
  const paths = {
    '/get': { get: { operationId: 'get', ...ok } },
    '/open': { get: { operationId: 'open', security: [], ...ok } },
    '/elsewhere': {
      servers: [{ url: 'http://localhost:{port}/other', variables: { port: { default: String(api.port) } } }],
      get: { operationId: 'elsewhere', ...ok }
    }
  }
  const schema = openapi(paths, { components: { securitySchemes: schemes }, servers: [{ url: `${api.url}/documented` }] })
  const connect = async (security: object, more: ServerConfig = {}, passed?: () => Record<string, string>) => {
    const config = { type: 'openapi' as const, url: api.url, ...more, openapi: { schema, security, ...more.openapi } } as ServerConfig
    assert.equal(incomplete(config), undefined)
    return await restClient(t, config, { passed })
  }

  await t.test('each kind goes where it belongs, in both spellings', async () => {
    const basic = `Basic ${Buffer.from('me:p:w').toString('base64')}`
    for (const [security, url, headers] of [
      [{ type: 'none' }, '/get', {}],
      [{ type: 'apiKey', value: 'k 1' }, '/get', { 'x-key': 'k 1' }],
      [{ type: 'apiKey', name: 'Other', in: 'header', value: 'k' }, '/get', { other: 'k' }],
      [{ type: 'apiKey', name: 'key', in: 'query', value: 'k 1&' }, '/get?key=k%201%26', {}],
      [{ type: 'apiKey', apiKey: { name: 'key', in: 'cookie', value: 'k 1' } }, '/get', { cookie: 'key=k%201' }],
      [{ type: 'http', scheme: 'bearer', token: 'tok' }, '/get', { authorization: 'Bearer tok' }],
      [{ type: 'http', scheme: 'basic', username: 'me', password: 'p:w' }, '/get', { authorization: basic }],
      [{ type: 'http', http: { scheme: 'basic', credentials: basic.slice(6) } }, '/get', { authorization: basic }],
      [{ type: 'http', http: { scheme: 'Token', credentials: 'abc' } }, '/get', { authorization: 'Token abc' }],
      [{ type: 'oauth2', oauth2: { token: 'given' } }, '/get', { authorization: 'Bearer given' }],
      [{ type: 'openIdConnect', openIdConnect: { url: 'http://unused.test', token: 'id' } }, '/get', { authorization: 'Bearer id' }]
    ] as Array<[object, string, Record<string, string>]>) {
      const client = await connect(security)
      await client.call('get')
      const { url: asked, headers: sent } = api.last()
      assert.equal(asked, url)
      for (const name of ['authorization', 'x-key', 'other', 'cookie']) {
        assert.equal(sent[name], headers[name], `${JSON.stringify(security)}: ${name}`)
      }
      await client.call('open')
      assert.equal(api.last().url, '/open')
      for (const name of ['authorization', 'x-key', 'other', 'cookie']) assert.equal(api.last().headers[name], undefined)
    }
  })

  await t.test('what is lacking is said when it is stored', async () => {
    for (const [security, says] of [
      [{ type: 'apiKey' }, /needs a "value"/],
      [{ type: 'http', scheme: 'bearer' }, /needs a "token"/],
      [{ type: 'http', scheme: 'digest', credentials: 'x' }, /digest/],
      [{ type: 'http', credentials: 'x' }, /"scheme"/],
      [{ type: 'oauth2', clientId: 'x' }, /"clientSecret"/]
    ] as const) assert.match(incomplete({ type: 'openapi', openapi: { schema, security } }) ?? '', says)
    assert.match(incomplete({ type: 'openapi' }) ?? '', /needs a "url"/)
    assert.match(incomplete({ type: 'openapi', openapi: { url: 'file:///etc/passwd' } }) ?? '', /"openapi.url" must be/)
  })

  await t.test(
    "headers: the configured ones win over arguments, the client's own over credentials; another origin gets none of them",
    async () => {
      let passed: Record<string, string> = { authorization: 'Bearer mine' }
      const client = await connect(
        { type: 'http', scheme: 'bearer', token: 'tok' },
        { headers: { 'X-Fixed': 'f', Cookie: 'a=b' } },
        () => passed
      )
      await client.call('get')
      assert.deepEqual(
        [api.last().headers.authorization, api.last().headers['x-fixed'], api.last().headers.cookie],
        ['Bearer mine', 'f', 'a=b']
      )
      passed = {}
      await client.call('get')
      assert.equal(api.last().headers.authorization, 'Bearer tok')
      const before = api.seen.length
      const refusal = await client.call('elsewhere')
      assert.equal(refusal.isError, true)
      assert.match(String(refusal.content[0]?.text), /at another server than the credentials/)
      assert.doesNotMatch(String(refusal.content[0]?.text), /localhost/, 'its clients are not told which')
      assert.match(client.warnings.join(), /operations at http:\/\/localhost:\d+, which are not called/)
      assert.equal(api.seen.length, before)
      const bare = await connect({ type: 'none' }, { headers: { 'X-Fixed': 'f', Cookie: 'a=b' } }, () => ({ authorization: 'Bearer mine' }))
      await bare.call('elsewhere')
      const { headers, url } = api.last()
      assert.deepEqual(
        [url, headers.host, headers.authorization, headers['x-fixed'], headers.cookie],
        ['/other/elsewhere', `localhost:${api.port}`, undefined, undefined, undefined]
      )
    }
  )

  await t.test('a description that is fetched chooses no other origin for what is configured', async () => {
    const away = `http://localhost:${api.port}`
    const describe = (servers: unknown, tokenUrl: string, operation: object = {}): void => {
      const flow = { type: 'oauth2', flows: { clientCredentials: { tokenUrl, scopes: {} } } }
      const described = { '/get': { get: { operationId: 'get', ...ok, ...operation } }, '/open': paths['/open'] }
      const document = openapi(described, { components: { securitySchemes: { flow } }, servers })
      api.at('/fetched.json', (_request, response) => { json(response, document) })
    }
    const url = `${api.url}/fetched.json`
    const bearer = { type: 'http', scheme: 'bearer', token: 'canary' }
    const configOf = (security: object, more: ServerConfig = {}): ServerConfig =>
      ({ type: 'openapi', url, headers: { 'X-Fixed': 'canary' }, ...more, openapi: { security, ...more.openapi } }) as ServerConfig
    const isTold = (): boolean => JSON.stringify(api.seen).includes('canary')
    api.seen.length = 0
    for (const server of [`${away}/v1`, `//localhost:${api.port}/v1`]) {
      describe([{ url: server }], '/token')
      await assert.rejects(restClient(t, configOf(bearer)), refused(/names http:\/\/localhost:\d+ as its server, .* give the address of the API as "url"/))
      const bare = await restClient(t, configOf({ type: 'none' }))
      await bare.call('get')
      assert.equal(api.last().headers.host, `localhost:${api.port}`)
      assert.ok(!isTold(), 'calls go there, configured headers do not')
      const word = await restClient(t, configOf(bearer, { url: `${away}/v1`, openapi: { url } }))
      await word.call('get')
      assert.deepEqual([api.last().headers.authorization, api.last().headers['x-fixed']], ['Bearer canary', 'canary'], "with an admin's word")
      api.seen.length = 0
    }
    describe([{ url: '/v1' }], '/token', { servers: [{ url: away }] })
    const one = await restClient(t, configOf(bearer))
    assert.equal((await one.call('get')).isError, true)
    await one.call('open')
    assert.deepEqual([api.seen.length, api.last().url, api.last().headers['x-fixed']], [1, '/v1/open', 'canary'])
    api.seen.length = 0
    describe([{ url: '/v1' }], `${away}/token`)
    const flowing = await restClient(t, configOf({ type: 'oauth2', clientId: 'id', clientSecret: 'canary' }, { headers: {} }))
    await assert.rejects(flowing.call('get'), /needs a "tokenUrl": the description states none at the server itself/)
    assert.equal(api.seen.length, 0)
  })

  await t.test('configured headers go as UTF-8; one that cannot be sent is told of, and nothing is', async () => {
    const utf8 = (value: string | string[] | undefined): string => Buffer.from(String(value), 'latin1').toString()
    const client = await connect(
      { type: 'apiKey', name: 'X-K', in: 'header', value: 'ключ' },
      { headers: { 'X-B': 'ю', Cookie: 'c=ю', 'X-Latin': 'é' } }
    )
    await client.call('get')
    const { headers } = api.last()
    assert.deepEqual([utf8(headers['x-k']), utf8(headers['x-b']), utf8(headers.cookie), headers['x-latin']], ['ключ', 'ю', 'c=ю', 'é'])
    await (await connect({ type: 'http', scheme: 'bearer', token: 'ключ' })).call('get')
    assert.equal(utf8(api.last().headers.authorization), 'Bearer ключ')
    api.at('/headers.json', (_request, response) => { json(response, schema) })
    await restClient(t, { url: `${api.url}/headers.json`, headers: { 'X-B': 'ю' } })
    const before = api.seen.length
    await assert.rejects(
      connect({ type: 'none' }, { headers: { 'X-Ключ': 'a' } }),
      refused(/"X-Ключ" is not a valid header name: check "headers" and "openapi.security"/)
    )
    await assert.rejects(connect({ type: 'none' }, { headers: { 'X-A': 'a\nb' } }), refused(/the header "X-A" holds a control character/))
    for (const [security, says] of [
      [{ type: 'apiKey', name: 'X K', value: 'a' }, /"X K" is not a valid header name/],
      [{ type: 'http', scheme: 'bearer', token: 'a\rb' }, /"authorization" holds a control character/]
    ] as const) {
      await assert.rejects((await connect(security)).call('get'), refused(says))
    }
    assert.equal(api.seen.length, before)
  })

  await t.test('without an address of its own, the description says where the API is, and that is trusted', async () => {
    const client = await connect({ type: 'http', scheme: 'bearer', token: 'tok' }, { url: undefined })
    await client.call('get')
    assert.equal(api.last().url, '/documented/get')
    await client.call('elsewhere')
    assert.equal(api.last().headers.authorization, 'Bearer tok')
  })

  await t.test('client credentials: fetched once for all, kept, renewed once on 401', async () => {
    let count = 0
    const asked: Seen[] = []
    let good = ''
    api.at('/token', (request, response) => {
      asked.push(request)
      good = `t${++count}`
      setTimeout(() => { json(response, { access_token: good, token_type: 'Bearer', expires_in: 3_600 }) }, 20)
    })
    api.answer(({ headers }, response) => {
      json(response, { auth: headers.authorization }, headers.authorization === `Bearer ${good}` ? 200 : 401)
    })
    const client = await connect({ type: 'oauth2', clientId: 'i d', clientSecret: 's:1', scopes: ['a', 'b'] })
    await Promise.all([client.call('get'), client.call('get'), client.call('get')])
    assert.equal(count, 1)
    assert.deepEqual(
      [asked[0]?.method, asked[0]?.body.toString(), asked[0]?.headers.authorization],
      ['POST', 'grant_type=client_credentials&scope=a+b', `Basic ${Buffer.from('i+d:s%3A1').toString('base64')}`]
    )
    good = 'revoked'
    const again = await Promise.all([client.call('get'), client.call('get')])
    assert.equal(count, 2)
    assert.deepEqual(again.map(({ structuredContent }) => structuredContent), [{ auth: 'Bearer t2' }, { auth: 'Bearer t2' }])
    api.answer((_request, response) => { json(response, {}, 401) })
    const before = api.seen.length
    assert.equal((await client.call('get')).isError, true)
    assert.deepEqual([count, api.seen.length - before], [3, 2])
    await client.call('open')
    assert.equal(api.last().headers.authorization, undefined)
  })

  await t.test('an endpoint that wants the secret in the body gets it there; a short-lived token is renewed in time', async () => {
    let count = 0
    const bodies: string[] = []
    api.at('/token', ({ headers, body }, response) => {
      bodies.push(body.toString())
      if (headers.authorization !== undefined) json(response, { error: 'invalid_client' }, 401)
      else json(response, { access_token: `b${++count}`, expires_in: '0' })
    })
    api.answer(({ headers }, response) => { json(response, { auth: headers.authorization }) })
    const client = await connect({ type: 'oauth2', tokenUrl: `${api.url}/token`, clientId: 'id', clientSecret: 'secret' })
    assert.deepEqual((await client.call('get')).structuredContent, { auth: 'Bearer b1' })
    assert.deepEqual((await client.call('get')).structuredContent, { auth: 'Bearer b2' })
    assert.deepEqual(bodies.map((body) => body.includes('client_secret=secret')), [false, true, true])
  })

  await t.test('OpenID Connect finds its token endpoint', async () => {
    api.at('/issuer/.well-known/openid-configuration', (_request, response) => { json(response, { token_endpoint: `${api.url}/token` }) })
    api.at('/token', (_request, response) => { json(response, { access_token: 'oidc' }) })
    api.answer(({ headers }, response) => { json(response, { auth: headers.authorization }) })
    const client = await connect({ type: 'openIdConnect', url: `${api.url}/issuer/`, clientId: 'id', clientSecret: 'secret' })
    assert.deepEqual((await client.call('get')).structuredContent, { auth: 'Bearer oidc' })
  })

  await t.test(
    'the description says what the configuration does not: relative to its first server, and of several schemes the one that it asks for',
    async () => {
      api.at('/v2/token', (_request, response) => {
        json(response, { access_token: 'relative' })
      })
      api.at('/oidc/.well-known/openid-configuration', (_request, response) => {
        json(response, { token_endpoint: `${api.url}/v2/token` })
      })
      api.answer(({ headers, url }, response) => {
        json(response, { auth: headers.authorization ?? url })
      })
      const of = async (security: object, securitySchemes: object): Promise<unknown> => {
        const schema = {
          ...openapi({ '/get': { get: { operationId: 'get', ...ok } } }),
          servers: [{ url: '/v2/' }],
          components: { securitySchemes },
          security: [{ asked: [] }]
        }
        const client = await restClient(t, {
          url: `${api.url}/v1`,
          openapi: { schema, security: { clientId: 'id', clientSecret: 'secret', ...security } }
        } as never)
        return (await client.call('get')).structuredContent
      }
      const flow = (tokenUrl: string): object => ({ type: 'oauth2', flows: { clientCredentials: { tokenUrl, scopes: {} } } })
      for (const tokenUrl of ['token', '/v2/token', `${api.url}/v2/token`]) {
        assert.deepEqual(await of({ type: 'oauth2' }, { asked: flow(tokenUrl) }), { auth: 'Bearer relative' }, tokenUrl)
      }
      assert.deepEqual(
        await of(
          { type: 'openIdConnect' },
          { asked: { type: 'openIdConnect', openIdConnectUrl: '/oidc/.well-known/openid-configuration' } }
        ),
        { auth: 'Bearer relative' }
      )
      assert.deepEqual(await of({ type: 'oauth2' }, { other: flow('/nowhere'), asked: flow('token') }), { auth: 'Bearer relative' })
      assert.deepEqual(
        await of(
          { type: 'apiKey', value: 'k' },
          { other: { type: 'apiKey', in: 'header', name: 'x-other' }, asked: { type: 'apiKey', in: 'query', name: 'key' } }
        ),
        { auth: '/v1/get?key=k' }
      )
    }
  )
  await t.test('no token: the error says what to check, and never what the endpoint said', async () => {
    api.at('/token', (_request, response) => { json(response, { error: 'invalid_client', error_description: 'leak' }, 400) })
    const client = await connect({ type: 'oauth2', clientId: 'id', clientSecret: 'secret' })
    await assert.rejects(
      client.call('get'),
      (error: Error) => /gave no token \(HTTP 400\): check "clientId"/.test(error.message) && !/leak|secret"?:/.test(error.message)
    )
    const untrusted = await connect({ type: 'oauth2', clientId: 'id', clientSecret: 'secret', tokenUrl: 'http://169.254.169.254/latest' })
    await assert.rejects(untrusted.call('get'), /token endpoint http:\/\/169\.254\.169\.254\/latest failed: .*never reached/)
  })
})

// ── answers ──

test('answers', async (t) => {
  const api = await restApi(t)
  const client = await restClient(t, {
    url: api.url,
    openapi: {
      schema: openapi({
        '/x': { get: { operationId: 'get', ...ok }, head: { operationId: 'head', ...ok }, post: { operationId: 'post', ...ok } }
      })
    }
  })
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
        schema: openapi({
          '/x': {
            get: { operationId: 'get', parameters: [{ name: 'q', in: 'query', schema: {} }], ...ok },
            head: { operationId: 'head', ...ok }
          }
        }),
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
      content: [
        { type: 'text', text: 'HTTP 422 Unprocessable Entity' },
        { type: 'text', text: '{"message":"no"}' }
      ],
      structuredContent: { message: 'no' },
      isError: true
    })
    answer(500, 'application/json', `{"message":"${'x'.repeat(limits.openapi.errorBody)}"}`)
    assert.equal((await client.call('get')).structuredContent, undefined)
    answer(500, 'text/plain', 'x'.repeat(1_000_000))
    const { isError, content } = await client.call('get')
    assert.deepEqual(
      [isError, content[0]?.text, content[1]?.text?.length],
      [true, 'HTTP 500 Internal Server Error', limits.openapi.errorBody]
    )
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
      setTimeout(() => {
        response.destroy()
      }, 20)
    })
    await assert.rejects(client.call('get'), (error: unknown) => error instanceof UpstreamError && error.fault === 'broken')
    const away = await restClient(t, {
      url: 'http://127.0.0.1:1',
      openapi: { schema: openapi({ '/x': { get: { operationId: 'get', ...ok } } }) }
    })
    await assert.rejects(
      away.call('get'),
      (error: unknown) => error instanceof UpstreamError && !error.didNotRun && /127\.0\.0\.1:1/.test(error.message)
    )
    assert.equal(away.link.closed, false)
  })
  await t.test('unknown tools and methods', async () => {
    await assert.rejects(client.call('nope'), /Unknown tool: "nope"/)
    await assert.rejects(client.link.request('resources/list'), /Method not found/)
    assert.equal(await client.link.request('ping'), '{}')
  })
  await t.test('cancelling ends the request', async () => {
    let gone = false
    api.answer((_request, response) => { response.on('close', () => { gone = true }) })
    const count = api.seen.length
    const call = client.session.request('tools/call', '{"name":"get"}', 300)
    await assert.rejects(call, /no answer to tools\/call/)
    assert.equal(api.seen.length, count + 1)
    await until(() => gone, 'the request went on')
  })
})

// ── descriptions ──

/** A port where nobody may knock. */
async function silentPort (t: { after: (fn: () => unknown) => void }): Promise<{ port: number, knocks: () => number }> {
  let knocks = 0
  const server = createServer((socket) => { knocks++; socket.destroy() })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => { server.close() })
  const address = server.address()
  return { port: typeof address === 'object' && address ? address.port : 0, knocks: () => knocks }
}

test('schemas: what OpenAPI 3.0 says, in JSON Schema 2020-12', async (t) => {
  const conversions: Array<[object, object]> = [
    [{ type: 'string', nullable: true }, { type: ['string', 'null'] }],
    [
      { type: 'string', nullable: true, enum: ['a', 'a'] },
      { type: ['string', 'null'], enum: ['a', null] }
    ],
    [
      { nullable: true, allOf: [{ $ref: '#/components/schemas/Cat' }], description: 'd' },
      { description: 'd', anyOf: [{ allOf: [{ $ref: '#/$defs/Cat' }] }, { type: 'null' }] }
    ],
    [
      { type: 'integer', minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false, format: 'int64' },
      { format: 'int64', maximum: 5, type: 'integer', exclusiveMinimum: 1 }
    ],
    [
      { type: 'string', example: 'x', xml: { name: 'y' }, externalDocs: { url: 'z' }, discriminator: { propertyName: 'p' }, 'x-own': 1 },
      { type: 'string', examples: ['x'] }
    ],
    [
      { $ref: '#/components/schemas/Cat', description: 'mine', type: 'number' },
      { $ref: '#/$defs/Cat', description: 'mine' }
    ],
    [
      {
        type: 'object',
        properties: { id: { readOnly: true }, a: { type: 'string' }, b: { $ref: '#/components/schemas/Made' } },
        required: ['id', 'a', 'a', 'b', 7]
      },
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
    ],
    [
      { type: 'array', items: { type: 'string', format: 'byte' }, uniqueItems: true, minItems: '1' },
      { uniqueItems: true, type: 'array', items: { format: 'byte', type: 'string', contentEncoding: 'base64' } }
    ],
    [
      { type: 'text', pattern: '[', required: true, enum: [], maxLength: -1, items: 5, allOf: [], multipleOf: 0, properties: { a: 'no' } },
      { properties: {} }
    ],
    [
      { type: 'object', additionalProperties: { $ref: '#/components/schemas/Cat' } },
      { type: 'object', additionalProperties: { $ref: '#/$defs/Cat' } }
    ],
    [
      { oneOf: [{ $ref: '#/components/schemas/Cat' }, { not: {} }], deprecated: true, default: null, title: 't' },
      { title: 't', deprecated: true, default: null, not: undefined, oneOf: [{ $ref: '#/$defs/Cat' }, { not: {} }] }
    ]
  ]
  const components = {
    schemas: {
      Cat: {
        type: 'object',
        properties: {
          kittens: { type: 'array', items: { $ref: '#/components/schemas/Cat' } },
          default: { $ref: '#/components/schemas/Deep' }
        }
      },
      Made: { type: 'string', readOnly: true },
      Deep: { type: 'string' },
      Unused: {}
    }
  }
  const parameters = conversions.map(([schema], at) => ({ name: `p${at}`, in: 'query', schema }))
  const client = await restClient(t, {
    url: 'http://127.0.0.1:1',
    openapi: {
      schema: openapi(
        { '/x': { get: { operationId: 'x', parameters, ...ok } }, '/y': { get: { operationId: 'y', ...ok } } },
        { components }
      )
    }
  })
  const tools = await client.tools()
  const { properties = {}, $defs } = tools.get('x')?.inputSchema ?? {}
  conversions.forEach(([schema, expected], at) => {
    assert.deepEqual(properties[`p${at}`], JSON.parse(JSON.stringify(expected)), JSON.stringify(schema))
  })
  assert.deepEqual(Object.keys($defs ?? {}), ['Cat', 'Deep'])
  assert.equal(tools.get('y')?.inputSchema.$defs, undefined)
  const valid = ajv.compile({ ...tools.get('x')?.inputSchema })
  assert.ok(valid({ p9: { a: { kittens: [{ kittens: [] }], default: 'x' } }, p0: null }), JSON.stringify(valid.errors))
  assert.equal(valid({ p9: { a: { kittens: [{ kittens: [5] }] } } }), false)

  await t.test('3.1 keeps what stands beside a reference, and its own keywords', async () => {
    const schema = {
      openapi: '3.1.0',
      info: {},
      components: { schemas: { T: { type: ['string', 'null'], minLength: 2 } } },
      paths: {
        '/x': {
          get: {
            operationId: 'x',
            parameters: [
              { name: 'p', in: 'query', schema: { $ref: '#/components/schemas/T', maxLength: 3, default: 'ab' } },
              {
                name: 'q',
                in: 'query',
                schema: {
                  exclusiveMinimum: 3,
                  const: 4,
                  prefixItems: [true],
                  dependentRequired: { a: ['b'] },
                  if: {},
                  then: false,
                  examples: [4]
                }
              },
              { name: 'r', in: 'query', schema: true }
            ]
          }
        }
      }
    }
    const { inputSchema } = [...(await (await restClient(t, { url: 'http://127.0.0.1:1', openapi: { schema } })).tools()).values()][0] ?? {}
    assert.deepEqual(inputSchema?.properties, {
      p: { maxLength: 3, default: 'ab', $ref: '#/$defs/T' },
      q: { exclusiveMinimum: 3, const: 4, examples: [4], dependentRequired: { a: ['b'] }, if: {}, then: { not: {} }, prefixItems: [{}] },
      r: {}
    })
    const valid = ajv.compile({ ...inputSchema })
    assert.deepEqual([valid({ p: 'abc' }), valid({ p: 'abcd' }), valid({ p: 'a' })], [true, false, false])
  })

  await t.test('patterns are said as Unicode has them; what cannot be said makes a schema take more, never less', async () => {
    const one = (name: string): object => ({ oneOf: [{ $ref: `#/components/schemas/${name}` }, { type: 'string', enum: ['red'] }] })
    const given: Array<[object, object]> = [
      [{ pattern: '^\\#\\:\\_[+\\-/\\@\\d\\]]\\.$' }, { pattern: '^#:_[+\\x2d/@\\d\\]]\\.$' }],
      [{ oneOf: [{ pattern: '^\\#' }, { not: { pattern: '\\:' } }] }, { oneOf: [{ pattern: '^#' }, { not: { pattern: ':' } }] }],
      [
        { patternProperties: { '^\\#': { type: 'string' } }, additionalProperties: false },
        { patternProperties: { '^#': { type: 'string' } }, additionalProperties: false }
      ],
      [{ patternProperties: { '(?i)^a': {}, b: {} }, additionalProperties: false }, { patternProperties: { b: {} } }],
      [{ type: 'string', not: { pattern: '(?i)a' } }, { type: 'string' }],
      [{ not: { items: { minLength: '2' } } }, {}],
      [
        { oneOf: [{ type: 'strin' }, { const: 'b' }], anyOf: [{ maxLength: 5 }] },
        { anyOf: [{ maxLength: 5 }], allOf: [{ anyOf: [{}, { const: 'b' }] }] }
      ],
      [{ if: { enum: [] }, then: { maxLength: 1 }, else: { maxLength: 2 } }, {}],
      [
        { properties: { a: { pattern: '(?i)a' } }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
        { properties: { a: {} }, oneOf: [{ required: ['a'] }, { required: ['b'] }] }
      ],
      [one('Far'), { anyOf: [{ $ref: '#/$defs/Far' }, { type: 'string', enum: ['red'] }] }],
      [one('Near'), { anyOf: [{ $ref: '#/$defs/Near' }, { type: 'string', enum: ['red'] }] }],
      [one('Whole'), { oneOf: [{ $ref: '#/$defs/Whole' }, { type: 'string', enum: ['red'] }] }]
    ]
    const schemas = {
      Near: { type: 'string', pattern: '(?i)^x' },
      Far: { allOf: [{ $ref: '#/components/schemas/Whole' }, { $ref: '#/components/schemas/Near' }] },
      Whole: { properties: { whole: { $ref: '#/components/schemas/Whole' } } }
    }
    const parameters = given.map(([schema], at) => ({ name: `p${at}`, in: 'query', schema }))
    const client = await restClient(t, {
      url: 'http://127.0.0.1:1',
      openapi: {
        schema: { ...openapi({ '/x': { get: { operationId: 'x', parameters, ...ok } } }, { components: { schemas } }), openapi: '3.1.0' }
      }
    })
    const { inputSchema } = (await client.tools()).get('x') ?? {}
    given.forEach(([schema, expected], at) => { assert.deepEqual(inputSchema?.properties[`p${at}`], expected, JSON.stringify(schema)) })
    const valid = ajv.compile({ ...inputSchema })
    for (const args of [{ p9: 'red' }, { p0: '#:_-.' }, { p0: '#:_].' }, { p3: { A: 1 } }]) {
      assert.ok(valid(args), JSON.stringify([args, valid.errors]))
    }
    assert.equal(valid({ p0: '#:_,.' }), false)
  })

  await t.test('cut in depth, choices admit what they did', async () => {
    const schemas = Object.fromEntries(
      Array.from({ length: 100 }, (_, at) => [
        `L${at}`,
        {
          type: 'object',
          required: [`kind${at}`],
          properties: {
            [`kind${at}`]: { type: 'string', enum: Array.from({ length: 200 }, (__, each) => `value-${at}-${each}`) },
            next: { oneOf: [1, 2, 3].map((more) => ({ $ref: `#/components/schemas/L${(at + more) % 100}` })) },
            other: { not: { $ref: `#/components/schemas/L${(at + 9) % 100}` } }
          }
        }
      ])
    )
    const client = await restClient(t, {
      url: 'http://127.0.0.1:1',
      openapi: {
        schema: openapi(
          {
            '/x': {
              get: { operationId: 'x', parameters: [{ name: 'p', in: 'query', schema: { $ref: '#/components/schemas/L0' } }], ...ok }
            }
          },
          { components: { schemas } }
        )
      }
    })
    const valid = ajv.compile({ ...(await client.tools()).get('x')?.inputSchema })
    let value: object = { kind33: 'value-33-1' }
    for (let at = 30; at >= 0; at -= 3) value = { [`kind${at}`]: `value-${at}-1`, next: value, other: {} }
    assert.ok(valid({ p: value }), JSON.stringify(valid.errors))
  })

  await t.test('a schema that is too large loses words, then depth, and stays valid', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [
        `member${at}`,
        {
          description: 'words '.repeat(20),
          type: 'object',
          properties: Object.fromEntries(
            Array.from({ length: 12 }, (__, next) => [`inner${next}`, { $ref: `#/components/schemas/L${next}` }])
          )
        }
      ])
    )
    const schemas = Object.fromEntries(
      Array.from({ length: 200 }, (_, at) => [
        `L${at}`,
        {
          type: 'object',
          description: 'more words '.repeat(30),
          properties: {
            next: { $ref: `#/components/schemas/L${(at + 1) % 200}` },
            value: { type: 'string', enum: Array.from({ length: 40 }, (__, each) => `value-${at}-${each}`) }
          }
        }
      ])
    )
    const client = await restClient(t, {
      url: 'http://127.0.0.1:1',
      openapi: {
        schema: openapi(
          {
            '/x': {
              post: {
                operationId: 'x',
                requestBody: { content: { 'application/json': { schema: { type: 'object', properties } } } },
                ...ok
              }
            }
          },
          { components: { schemas } }
        )
      }
    })
    const { inputSchema } = (await client.tools()).get('x') ?? {}
    assert.ok(JSON.stringify(inputSchema).length <= limits.openapi.schema)
    assert.equal(Object.keys(inputSchema?.properties ?? {}).length, 40)
    const valid = ajv.compile({ ...inputSchema })
    assert.ok(valid({ member0: { inner0: { next: {}, value: 'value-0-1' } } }), JSON.stringify(valid.errors))
    assert.equal(valid({ member0: 5 }), false)
  })
})

test('descriptions: names, places, versions and what is wrong with them', async (t) => {
  const api = await restApi(t)
  const connect = async (schema: object | string, more: ServerConfig = {}) =>
    await restClient(t, { url: api.url, ...more, openapi: { schema } })

  await t.test('names, words and annotations', async () => {
    const get = (operationId: string | undefined, more: object = {}): object => ({ operationId, ...more, ...ok })
    const client = await connect(
      openapi({
        '/a': {
          get: get('repos/list all', { summary: 'Lists', description: 'Lists all.', deprecated: true }),
          head: get('dup'),
          put: get('dup'),
          delete: get('dup'),
          post: get('清单')
        },
        '/users/{id}/files.{ext}': { get: get(undefined) },
        '/long': { get: get('x'.repeat(65)) },
        '/': { get: get('', { description: 'Root' }) }
      })
    )
    const tools = await client.tools()
    const names = [...tools.keys()]
    assert.deepEqual(
      names.filter((name) => !/_[0-9a-f]{8}$/.test(name)),
      ['repos_list_all', 'dup', 'post_a', 'get_users_id_files.ext', 'get']
    )
    assert.equal(names.filter((name) => /^dup_[0-9a-f]{8}$/.test(name)).length, 2)
    for (const name of names) assert.match(name, /^[\w.-]{1,64}$/)
    assert.deepEqual([...(await (await connect(openapi({ '/a': { delete: get('dup'), put: get('dup') } }))).tools()).keys()][0], 'dup')
    const { title, description } = tools.get('repos_list_all') ?? {}
    assert.deepEqual([title, description], ['Lists', 'Deprecated.\n\nLists\n\nLists all.'])
    assert.equal(tools.get('get_users_id_files.ext')?.description, 'GET /users/{id}/files.{ext}')
    const methods = new Map([...tools.values()].map(({ description, annotations }) => [description.split(' ')[0], annotations]))
    assert.deepEqual(
      [methods.get('HEAD'), methods.get('PUT'), methods.get('DELETE'), methods.get('POST')],
      [
        { readOnlyHint: true },
        { readOnlyHint: false, idempotentHint: true },
        { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
        { readOnlyHint: false }
      ]
    )
  })

  await t.test('Swagger 2.0', async () => {
    const schema = {
      swagger: '2.0',
      info: { title: 'Old', version: '1' },
      host: `127.0.0.1:${api.port}`,
      basePath: '/v1',
      schemes: ['http'],
      consumes: ['application/json'],
      securityDefinitions: { key: { type: 'apiKey', in: 'query', name: 'api_key' } },
      parameters: { Limit: { name: 'limit', in: 'query', type: 'integer', maximum: 10, exclusiveMaximum: true } },
      definitions: {
        Pet: { type: 'object', required: ['name'], properties: { name: { type: 'string' }, parent: { $ref: '#/definitions/Pet' } } }
      },
      paths: {
        '/pets/{ids}': {
          parameters: [{ $ref: '#/parameters/Limit' }],
          get: {
            operationId: 'get',
            parameters: [
              { name: 'ids', in: 'path', required: true, type: 'array', items: { type: 'string' }, collectionFormat: 'pipes' },
              ...['csv', 'ssv', 'tsv', 'pipes', 'multi'].map((collectionFormat) => ({
                name: collectionFormat,
                in: 'query',
                type: 'array',
                items: { type: 'string' },
                collectionFormat
              })),
              { name: 'X-Ids', in: 'header', type: 'array', items: {} }
            ]
          },
          post: { operationId: 'post', parameters: [{ name: 'pet', in: 'body', required: true, schema: { $ref: '#/definitions/Pet' } }] }
        },
        '/form': {
          post: {
            operationId: 'form',
            consumes: ['application/x-www-form-urlencoded'],
            parameters: [
              { name: 'a', in: 'formData', type: 'string', required: true },
              { name: 'list', in: 'formData', type: 'array', items: {}, collectionFormat: 'pipes' }
            ]
          }
        },
        '/upload': {
          post: {
            operationId: 'upload',
            consumes: ['multipart/form-data'],
            parameters: [
              { name: 'file', in: 'formData', type: 'file', required: true },
              { name: 'note', in: 'formData', type: 'string' },
              ...['csv', 'ssv', 'multi'].map((collectionFormat) => ({
                name: collectionFormat,
                in: 'formData',
                type: 'array',
                items: { type: 'string' },
                collectionFormat
              })),
              { name: 'unsaid', in: 'formData', type: 'array', items: { type: 'integer' } }
            ]
          }
        }
      }
    }
    const client = await restClient(t, { openapi: { schema, security: { type: 'apiKey', value: 'k' } } })
    const tools = await client.tools()
    for (const { inputSchema } of tools.values()) ajv.compile(inputSchema)
    assert.deepEqual(tools.get('get')?.inputSchema.properties.limit, { type: 'integer', exclusiveMaximum: 10 })
    const list = ['a b', 'c']
    await client.call('get', { ids: list, limit: 5, csv: list, ssv: list, tsv: list, pipes: list, multi: list, 'X-Ids': list })
    assert.deepEqual(
      [api.last().url, api.last().headers['x-ids']],
      ['/v1/pets/a%20b%7Cc?limit=5&csv=a%20b,c&ssv=a%20b%20c&tsv=a%20b%09c&pipes=a%20b%7Cc&multi=a%20b&multi=c&api_key=k', 'a b,c']
    )
    assert.deepEqual(Object.keys(tools.get('post')?.inputSchema.properties ?? {}), ['ids', 'limit', 'name', 'parent'])
    await client.call('post', { ids: 'x', name: 'n', parent: { name: 'p' } })
    assert.equal(api.last().body.toString(), '{"name":"n","parent":{"name":"p"}}')
    await client.call('form', { a: '1 2', list: ['x', 'y'] })
    assert.deepEqual(
      [api.last().headers['content-type'], api.last().body.toString()],
      ['application/x-www-form-urlencoded', 'a=1%202&list=x%7Cy']
    )
    await client.call('upload', { file: 'AQI=', note: 'hi' })
    assert.match(api.last().body.toString('latin1'), /name="file"; filename="file"\r\nContent-Type: application\/octet-stream\r\n\r\n/)
    assert.ok(api.last().body.includes(Buffer.from([13, 10, 1, 2, 13, 10])))
    await client.call('upload', { file: 'AQI=', csv: list, ssv: list, multi: list, unsaid: [1, 2] })
    const form = await new Response(new Uint8Array(api.last().body), {
      headers: { 'content-type': api.last().headers['content-type'] ?? '' }
    }).formData()
    assert.deepEqual(['csv', 'ssv', 'multi', 'unsaid'].map((name) => form.getAll(name)), [['a b,c'], ['a b c'], ['a b', 'c'], ['1,2']])
  })

  await t.test('servers: of the path, of the operation, with variables, relative to the address of the API', async () => {
    const client = await connect(
      openapi({
        '/a': {
          servers: [{ url: '/path-server' }],
          get: { operationId: 'a', ...ok },
          put: {
            operationId: 'b',
            servers: [
              { url: `http://127.0.0.1:${api.port}/{v}/{w}`, variables: { v: { default: 'v1' }, w: { enum: ['first', 'second'] } } }
            ],
            ...ok
          }
        },
        '/c': { get: { operationId: 'c', servers: [{ url: '{broken}' }], ...ok } },
        '/d': { get: { operationId: 'd', servers: [{ url: 'ftp://x.test' }], ...ok } }
      })
    )
    await client.call('a')
    assert.equal(api.last().url, '/path-server/a')
    await client.call('b')
    assert.equal(api.last().url, '/v1/first/a')
    // On the host of the description's own server it is the API, and the configuration says where that is.
    const at = (url: string): object => ({ servers: [{ url }], ...ok })
    const pinned = await connect(
      {
        ...openapi({
          '/e': {
            get: { operationId: 'e', ...at('https://api.test/v1') },
            put: { operationId: 'f', ...at(`http://localhost:${api.port}/upload`) },
            post: { operationId: 'g', ...at('http://api.test/v2/') }
          }
        }),
        servers: [{ url: '//api.test/v1' }]
      },
      { url: `${api.url}/base` }
    )
    for (const [name, expected] of [['e', '127.0.0.1/base/e'], ['f', 'localhost/upload/e'], ['g', '127.0.0.1/v2/e']] as const) {
      await pinned.call(name)
      assert.equal(`${api.last().headers.host?.split(':')[0]}${api.last().url}`, expected)
    }
    // Without an address to be relative to, that is the description's own server.
    const own = await connect(
      {
        ...openapi({
          '/h': {
            servers: [{ url: 'http://elsewhere.test/' }],
            get: { operationId: 'h', ...at('/up') },
            put: { operationId: 'i', ...at('up') }
          }
        }),
        servers: [{ url: `${api.url}/v1/` }]
      },
      { url: undefined }
    )
    for (const [name, expected] of [['h', '/up/h'], ['i', '/v1/up/h']] as const) {
      await own.call(name)
      assert.equal(api.last().url, expected)
    }
    assert.deepEqual(client.warnings, [
      'its description: GET /c is left out: the server "{broken}" has a variable "broken" without a default',
      'its description: GET /d is left out: the server "ftp://x.test" is not reached by http or https'
    ])
  })

  await t.test('YAML, with anchors and merges; dates and versions stay text', async () => {
    const client = await connect(
      `# a comment\nopenapi: 3.0.0\ninfo: {title: Yaml, version: 2020-01-01}\nservers: [{url: "${api.url}"}]\nx-common: &common\n  ` +
      'description: shared\n  responses: {200: {description: OK}}\npaths:\n  /when/{on}:\n    get:\n      <<: *common\n      ' +
      'operationId: when\n      parameters:\n      - {name: on, in: path, required: true, schema: {type: string, default: 2020-01-01,' +
      ' enum: [yes, 2020-01-01]}}\n'
    )
    const tool = (await client.tools()).get('when')
    assert.equal(tool?.description, 'shared')
    assert.deepEqual(tool?.inputSchema.properties.on, { type: 'string', default: '2020-01-01', enum: ['yes', '2020-01-01'] })
    assert.equal(client.link.identity.serverInfo, '{"name":"Yaml","version":"2020-01-01"}')
  })

  await t.test('one operation that cannot be served is left out with a warning, and no external reference is followed', async () => {
    const silent = await silentPort(t)
    const bad = (ref: string): object => ({
      get: { parameters: [{ name: 'p', in: 'query', schema: { type: 'object', properties: { deep: { $ref: ref } } } }], ...ok }
    })
    const refs: Array<[string, RegExp]> = [
      [
        `http://127.0.0.1:${silent.port}/x.json#/a`,
        /GET \/r0 is left out: the reference "http:.*" leads out of the description: such references are never followed/
      ],
      ['file:///etc/passwd', /"file:\/\/\/etc\/passwd" leads out/],
      ['other.yaml#/Pet', /"other.yaml#\/Pet" leads out/],
      ['#/components/schemas/Missing', /leads to nothing/],
      ['#/components/schemas/Self', /leads to itself/],
      ['#/components/schemas/Deep/far', /leads to nothing/],
      ['#/info/title', /leads to no schema/],
      ['#anchor', /cannot be read/]
    ]
    const client = await connect(
      openapi(
        {
          '/good': { get: { operationId: 'good', ...ok } },
          ...Object.fromEntries(refs.map(([ref], at) => [`/r${at}`, bad(ref)])),
          '/item': { $ref: `http://127.0.0.1:${silent.port}/item` },
          '/parameter': { get: { parameters: [{ in: 'query' }], ...ok } },
          relative: { get: ok }
        },
        { components: { schemas: { Self: { $ref: '#/components/schemas/Self' }, Deep: { $ref: `http://127.0.0.1:${silent.port}/deep` } } } }
      )
    )
    assert.deepEqual([...(await client.tools()).keys()], ['good'])
    refs.forEach(([, says], at) => { assert.match(client.warnings[at] ?? '', says) })
    assert.match(client.warnings.join('\n'), /the path "relative" is left out: it must begin with a slash/)
    assert.match(client.warnings.join('\n'), /the path \/item is left out: the reference/)
    assert.match(client.warnings.join('\n'), /GET \/parameter is left out: a parameter has no "name"/)
    assert.equal(silent.knocks(), 0)
    await assert.rejects(
      connect(openapi({ '/a': bad('http://127.0.0.1:1/x') })),
      refused(/GET \/a is left out: the reference "http:\/\/127\.0\.0\.1:1\/x" leads out/)
    )
  })

  await t.test('circles of every kind come to an end', async () => {
    const client = await connect(
      openapi(
        {
          '/a': {
            post: {
              operationId: 'a',
              requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Node' } } } },
              ...ok
            }
          },
          '/b': {
            post: {
              operationId: 'b',
              requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/All' } } } },
              ...ok
            }
          },
          '/c': { post: { operationId: 'c', requestBody: { $ref: '#/components/requestBodies/Loop' }, ...ok } }
        },
        {
          components: {
            requestBodies: { Loop: { $ref: '#/components/requestBodies/Loop' } },
            schemas: {
              Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Other' } } },
              Other: {
                type: 'object',
                properties: { back: { $ref: '#/components/schemas/Node' }, self: { $ref: '#/components/schemas/Other' } }
              },
              All: { allOf: [{ $ref: '#/components/schemas/All' }] }
            }
          }
        }
      )
    )
    const tools = await client.tools()
    assert.deepEqual([...tools.keys()], ['a', 'b'])
    assert.deepEqual(Object.keys(tools.get('a')?.inputSchema.$defs ?? {}), ['Other', 'Node'])
    ajv.compile({ ...tools.get('a')?.inputSchema })
  })

  await t.test('what is no description is refused in a sentence', async () => {
    const bomb =
      'a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n' +
      `${Array.from({ length: 9 }, (_, at) => `a${at + 1}: &a${at + 1} [${Array(10).fill(`*a${at}`).join(',')}]`).join('\n')}\n` +
      'openapi: 3.0.0\npaths: {}\n'
    for (const [document, says] of [
      ['', /an object is expected|not valid YAML/],
      ['<!DOCTYPE html><html></html>', /a page in HTML/],
      ['[1,2]', /an object is expected/],
      ['{"openapi": "3.0.0", "paths": {', /not valid JSON: .*/],
      ['openapi: 3.0.0\npaths: [\n  }', /not valid YAML: .*\(line 3, column/],
      ['a: 1', /neither "openapi" nor "swagger"/],
      ['openapi: 4.0.0\npaths: {}', /version "4.0.0"; OpenAPI 3.0, 3.1 and Swagger 2.0/],
      ['swagger: "1.2"\npaths: {}', /version "1.2"/],
      ['openapi: 3.0.0', /no "paths"/],
      ['openapi: 3.0.0\npaths: {}', /no operations/],
      [bomb, /more than 5000000 values/],
      ['a: &x [*x]\nopenapi: 3.0.0\npaths: {}', /nested deeper than 300 levels, or holds itself/],
      [
        '{"openapi":"3.0.0","paths":{},"x":' + '['.repeat(100_000) + ']'.repeat(100_000) + '}',
        /nested deeper|nested too deeply|not valid JSON/
      ]
    ] as const) { await assert.rejects(connect(document), refused(says), document.slice(0, 60)) }
    // Not a piece of it: who sees the error may not be whom it is for.
    for (const document of [
      '[SECRET',
      '{"a" SECRET}',
      '{"a":"SECRET',
      '[{"a":1} SECRET',
      'a: !SECRET x',
      'a: *SECRET',
      'a: "SECRET',
      'a: !<tag:SECRET> x',
      'a: !e!SECRET x',
      'a: !!int SECRET'
    ]) {
      await assert.rejects(
        connect(document),
        (error) =>
          error instanceof UpstreamError &&
          /not valid (JSON|YAML): .*\(line 1, column \d+\)/.test(error.message) &&
          !error.message.includes('SECRET'),
        document
      )
    }
    await assert.rejects(
      restClient(t, { openapi: { schema: openapi({ '/a': { get: ok } }) } }),
      refused(/names no server by an absolute URL: give the address of the API as "url"/)
    )
  })
})

test('descriptions by address: read with its rules, and again when they change', async (t) => {
  const api = await restApi(t)
  let document = JSON.stringify(openapi({ '/a': { get: { operationId: 'a', ...ok } } }))
  let status = 200
  let conditional = 0
  let reads = 0
  let etag: string | undefined = '"1"'
  api.at('/docs/openapi.json', ({ headers }, response) => {
    reads++
    if (headers['if-none-match'] !== undefined && headers['if-none-match'] === etag) {
      conditional++
      response.writeHead(304).end()
      return
    }
    response.writeHead(status, { 'content-type': 'application/json', ...etag === undefined ? {} : { etag } }).end(document)
  })
  const url = `${api.url}/docs/openapi.json`

  await t.test('relative servers are relative to its address; links share one reading', async () => {
    document = JSON.stringify(openapi({ '/a': { get: { operationId: 'a', ...ok } } }, { servers: [{ url: '../v2' }] }))
    const sharedApi = new SharedApi()
    const outbound = new Outbound({ allow: '' })
    t.after(async () => { await outbound.close() })
    const [one, two] = await Promise.all([
      restClient(t, { url, keepAliveInterval: 1_000 }, { sharedApi, outbound }),
      restClient(t, { url, keepAliveInterval: 1_000 }, { sharedApi, outbound })
    ])
    assert.equal(reads, 1)
    await one.call('a')
    assert.equal(api.last().url, '/v2/a')

    await until(() => conditional >= 1, 'it was not asked again')
    assert.deepEqual(one.news, [])
    document = JSON.stringify(openapi({ '/b': { get: { operationId: 'b', ...ok } } }))
    etag = '"2"'
    await until(() => one.news.length === 1 && two.news.length === 1, 'no list_changed')
    assert.deepEqual([one.news, [...(await two.tools()).keys()]], [['notifications/tools/list_changed'], ['b']])

    status = 500
    etag = undefined
    await until(() => one.warnings.length > 0)
    document = '{"openapi": "3.0.0"'
    status = 200
    await until(() => one.warnings.length > 1)
    await new Promise((resolve) => { setTimeout(resolve, 1_500) })
    assert.equal(one.warnings.length, 2)
    assert.match(
      one.warnings[0] ?? '',
      /the description at http:.*openapi.json cannot be fetched: its address answered HTTP 500; the last good one stays in use/
    )
    assert.match(one.warnings[1] ?? '', /cannot be used: it is not valid JSON: .*; the last good one stays in use/)
    assert.equal((await one.call('b')).isError, undefined)

    await one.link.close()
    await two.link.close()
    const before = reads
    await new Promise((resolve) => { setTimeout(resolve, 1_500) })
    assert.equal(reads, before)
  })

  await t.test('the configured headers go along only where the API lives', async () => {
    const seen: Array<string | undefined> = []
    api.at('/keyed.yaml', ({ headers }, response) => {
      seen.push(headers['x-key'] as string | undefined)
      response.end(dump(openapi({ '/a': { get: { operationId: 'a', ...ok } } })))
    })
    const headers = { 'X-Key': 'secret' }
    await restClient(t, { headers, openapi: { url: `${api.url}/keyed.yaml` } })
    await restClient(t, { headers, url: `http://localhost:${api.port}/api`, openapi: { url: `${api.url}/keyed.yaml` } })
    assert.deepEqual(seen, ['secret', undefined])
  })

  await t.test('failures say what and where, without what may be secret; addresses are judged', async () => {
    api.at('/gone', (_request, response) => { response.writeHead(404).end('body that is not told') })
    api.at('/large', (_request, response) => {
      response.on('error', () => {})
      const chunk = 'x'.repeat(1024 * 1024)
      for (let count = 0; count < 33; count++) response.write(chunk)
      response.end()
    })
    await assert.rejects(
      restClient(t, { url: `${api.url}/gone?key=s3cret` }),
      (error: Error) =>
        /the description at http:\/\/127\.0\.0\.1:\d+\/gone cannot be fetched: its address answered HTTP 404/.test(error.message) &&
        !/s3cret|not told/.test(error.message)
    )
    await assert.rejects(restClient(t, { url: `${api.url}/large` }), /too large: more than 33554432 bytes/)
    await assert.rejects(restClient(t, { url: 'http://127.0.0.1:1/x' }), /127\.0\.0\.1:1/)
    await assert.rejects(restClient(t, { url: 'http://169.254.169.254/x' }), /never reached/)
    await assert.rejects(restClient(t, { url: `${api.url}/x`, storedByUser: true }), /must be public/)
    const foreign = await restClient(t, {
      url: 'http://169.254.169.254',
      openapi: { schema: openapi({ '/a': { get: { operationId: 'a', ...ok } } }) }
    })
    await assert.rejects(foreign.call('a'), /never reached/)
  })
})

test('descriptions with anything wrong anywhere: each tool that comes of them is valid', async () => {
  const whole = JSON.stringify({
    openapi: '3.0.0',
    info: { title: 'x', version: '1', description: 'd' },
    servers: [{ url: '/{v}', variables: { v: { default: 'a' } } }],
    components: {
      securitySchemes: { a: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: 'http://x.test' } } } },
      schemas: {
        A: { type: 'object', nullable: true, required: ['a'], properties: { a: { $ref: '#/components/schemas/B' } } },
        B: { allOf: [{ $ref: '#/components/schemas/A' }, { oneOf: [{ type: 'string', enum: ['a', null], pattern: '^a' }] }] }
      }
    },
    paths: {
      '/a/{id}': {
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer', minimum: 1, exclusiveMinimum: true } }],
        post: {
          operationId: 'a',
          summary: 's',
          parameters: [
            {
              name: 'q',
              in: 'query',
              style: 'deepObject',
              explode: true,
              content: { 'application/json': { schema: { $ref: '#/components/schemas/A' } } }
            }
          ],
          requestBody: {
            required: true,
            content: {
              'multipart/form-data': {
                schema: {
                  type: 'object',
                  properties: { f: { type: 'string', format: 'binary' }, g: { type: 'array', items: { $ref: '#/components/schemas/B' } } },
                  required: ['f'],
                  additionalProperties: { type: 'string' }
                },
                encoding: { g: { style: 'form', contentType: 'text/plain' } }
              }
            }
          },
          security: []
        }
      },
      '/b': { get: { operationId: 'b' } }
    }
  })
  const swagger = JSON.stringify({
    swagger: '2.0',
    host: 'x.test',
    basePath: '/v',
    schemes: ['http'],
    consumes: ['application/json'],
    definitions: { A: { type: 'object', properties: { a: { $ref: '#/definitions/A' } } } },
    paths: {
      '/a/{id}': {
        post: {
          parameters: [
            { name: 'id', in: 'path', type: 'array', items: { type: 'string' }, collectionFormat: 'csv' },
            { name: 'b', in: 'body', schema: { $ref: '#/definitions/A' } }
          ]
        },
        put: { parameters: [{ name: 'f', in: 'formData', type: 'file' }] }
      }
    }
  })
  const { openapi: bounds, description } = limits
  const validate = new Ajv2020({ strict: false }).getSchema('https://json-schema.org/draft/2020-12/schema')
  const wrong = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(
      '',
      '#',
      '#/components/schemas/A',
      '__proto__',
      'object',
      {},
      [],
      [null],
      { $ref: '#/paths' },
      { $ref: 5 },
      { type: 'object', properties: { x: { $ref: '#/definitions/A' } } }
    )
  )
  let served = 0
  fc.assert(fc.property(fc.constantFrom(whole, swagger), fc.nat(), wrong, fc.nat(), wrong, (text, at, value, otherAt, otherValue) => {
    const document = JSON.parse(text) as Record<string, unknown>
    for (const [place, put] of [[at, value], [otherAt, otherValue]] as const) {
      const places: Array<[Record<string, unknown>, string]> = []
      const walk = (each: unknown): void => {
        if (typeof each === 'object' && each !== null) {
          for (const key of Object.keys(each)) {
            places.push([each as Record<string, unknown>, key])
            walk((each as Record<string, unknown>)[key])
          }
        }
      }
      walk(document)
      const [target, key] = places[place % places.length] ?? [document, 'paths']
      target[key] = structuredClone(put)
    }
    try {
      checkLimits(document, bounds)
      const { tools, plans, names } = compile(document, { baseUrl: 'http://x.test/doc', ...bounds, description })
      assert.deepEqual([tools.length, plans.length], [names.length, names.length])
      for (const tool of tools) {
        const { name, inputSchema } = JSON.parse(tool) as { name: string, inputSchema: object }
        assert.match(name, /^[\w.-]{1,64}$/)
        assert.ok(validate?.(inputSchema), JSON.stringify(validate?.errors))
        new Ajv2020({ strict: false, validateFormats: false, validateSchema: false }).compile(inputSchema)
        served++
      }
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error
    }
  }), { seed, numRuns: 500 })
  assert.ok(served > 300, String(served))
})

test('objects that have no text, where a text is expected, make a description that cannot be used', async () => {
  const { openapi: bounds, description } = limits
  const textless = { toString: 0 }
  const compiled = (more: object): ReturnType<typeof compile> =>
    compile({ ...openapi({ '/a': { get: ok } }), ...more }, { baseUrl: 'http://x.test', ...bounds, description })
  assert.throws(() => compiled({ openapi: undefined, swagger: textless }), DescriptionError)
  assert.equal(compiled({ info: { version: textless } }).version, '')
  const field = { in: 'formData', type: 'array', items: { type: 'string' } }
  const paths = {
    '/a': { post: { parameters: [{ ...field, name: 'a', collectionFormat: textless }] } },
    '/b': { post: { parameters: [{ ...field, name: textless }] } }
  }
  const { names, warnings } = compiled({ openapi: undefined, swagger: '2.0', consumes: ['multipart/form-data'], paths })
  assert.deepEqual([names, warnings], [['post_a'], ['POST /b is left out: a parameter has no "name"']])
})

test('what is kept to call the operations is bounded, as tools are', async () => {
  const { openapi: bounds, description } = limits
  const compiled = (document: object, more = {}): ReturnType<typeof compile> =>
    compile({ ...document }, { baseUrl: 'http://x.test', ...bounds, description, ...more })
  const parameters = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`p${n}`, { name: `${n}${'x'.repeat(10_000)}`, in: 'query' }]))
  const all = Object.keys(parameters).map((name) => ({ $ref: `#/components/parameters/${name}` }))
  const paths = { '/a': { get: { parameters: all, ...ok } }, '/b': { get: ok } }
  const large = compiled({ ...openapi(paths), components: { parameters } })
  assert.deepEqual(large.names, ['get_b'])
  assert.match(large.warnings.join(), /^GET \/a is left out: the names and forms of its parameters are longer than 262144 characters$/)
  const few = all.slice(0, 5)
  const several = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`/${n}`, { get: { parameters: few, ...ok } }]))
  const { names, warnings, tools, plans } = compiled({ ...openapi(several), components: { parameters } }, { total: 500_000, schema: 1_000 })
  assert.ok([...tools, ...plans].join('').length <= 500_000)
  assert.ok(names.length > 2 && names.length < 10, names.join())
  assert.match(warnings.join(), /would be longer than 500000 characters/)
})

test('reading is bounded in time and memory, and given up when nobody wants it', async () => {
  const never = new AbortController().signal
  const bounds = { readTime: 60_000, readHeap: 512, readIdle: 60_000 }
  let ended = 0
  const reader = (more: object): DescriptionReader => new DescriptionReader(() => { ended++ }, { ...bounds, ...more })
  const fine = { chunks: [Buffer.from(JSON.stringify(openapi({ '/a': { get: { operationId: 'a', ...ok } } })))], baseUrl: 'http://x.test' }
  await assert.rejects(reader({ readTime: 1 }).read(fine, never), /longer than 0.001 s/)
  await assert.rejects(
    reader({ readHeap: 64 }).read({ ...fine, chunks: [Buffer.from(`[${Array(3_000_000).fill('{"a":{}}').join()}]`)] }, never),
    /more than 64 MB of memory/
  )
  await assert.rejects(reader({}).read(fine, AbortSignal.abort()), /not needed any more/)
  const controller = new AbortController()
  const reading = reader({}).read(fine, controller.signal)
  controller.abort()
  await assert.rejects(reading, /not needed any more/)
  assert.equal(ended, 4)
  const twice = reader({ readIdle: 50 })
  assert.deepEqual([(await twice.read(fine, never)).names, (await twice.read(fine, never)).names], [['a'], ['a']])
  await until(() => ended === 5)
})

// ── the whole program ──

test('through the gateway: stored by an admin, listed, called, told', async (t) => {
  const api = await restApi(t)
  const schema = openapi({
    '/pets/{id}': {
      get: {
        operationId: 'getPet',
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
          { name: 'verbose', in: 'query', schema: { type: 'boolean' } }
        ],
        ...ok
      }
    },
    '/left-out': { get: { parameters: [{ $ref: 'http://elsewhere.test/x#/y' }], ...ok } }
  })
  const key = bearerKey()
  const hub = await startHub(t, {
    settings: {
      users: [],
      mcpServers: {
        pets: {
          type: 'openapi',
          url: api.url,
          passthroughHeaders: ['X-Tenant'],
          openapi: {
            schema,
            passthroughHeaders: ['X-User'],
            security: { type: 'apiKey', apiKey: { name: 'X-Key', in: 'header', value: 'abc-secret-value' } }
          }
        },
        bad: { type: 'openapi', openapi: { url: `${api.url}/nothing` } }
      },
      bearerKeys: [key]
    }
  })
  const request = async (
    path: string,
    init: RequestInit = {}
  ): Promise<{ status: number; body: { data: Record<string, unknown>; success: boolean } }> => {
    const answer = await fetch(`${hub.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json', ...(init.headers as Record<string, string>) }
    })
    return { status: answer.status, body: (await answer.json()) as { data: Record<string, unknown>; success: boolean } }
  }
  await until(async () => (await request('/api/servers/pets')).body.data.status === 'connected', () => hub.output())

  const { body: { data: pets } } = await request('/api/servers/pets')
  assert.deepEqual((pets.tools as Array<{ name: string }>).map(({ name }) => name), ['getPet'])
  assert.doesNotMatch(JSON.stringify(pets), /abc-secret-value/)
  // Who stores it sees what is missing, and why.
  const leftOut = /^its description: GET \/left-out is left out: the reference "http:\/\/elsewhere.test\/x#\/y" leads out/
  assert.match((pets.warnings as string[]).join('\n'), leftOut)
  const tried = await request('/api/servers/test', { method: 'POST', body: JSON.stringify({ config: pets.config, name: 'pets' }) })
  assert.match((tried.body.data?.warnings as string[] ?? [JSON.stringify(tried)]).join('\n'), leftOut)

  api.answer((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end('{"id":12345678901234567890}')
  })
  const called = await fetch(`${hub.url}/api/tools/call/pets`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key.token}`,
      'content-type': 'application/json',
      'x-tenant': 't1',
      'x-user': 'u1',
      'x-other': 'o1'
    },
    body: JSON.stringify({ toolName: 'getPet', arguments: { id: '7', verbose: true } })
  })
  assert.equal(called.status, 200)
  const { url, headers } = api.last()
  assert.deepEqual(
    [url, headers['x-key'], headers['x-tenant'], headers['x-user'], headers['x-other'], headers.authorization],
    ['/pets/7?verbose=true', 'abc-secret-value', 't1', 'u1', undefined, undefined]
  )

  await until(async () => (await request('/api/servers/bad')).body.data.status === 'disconnected')
  assert.match(
    String((await request('/api/servers/bad')).body.data.error),
    /the description at http:.*\/nothing cannot be used: it is not an OpenAPI description: it has neither "openapi" nor "swagger"/
  )

  await t.test('a changed description reaches clients', async () => {
    const other = openapi({ '/cats': { get: { operationId: 'getCats', ...ok } } })
    const { status } = await request('/api/servers/pets', {
      method: 'PUT',
      body: JSON.stringify({ config: { type: 'openapi', url: api.url, openapi: { schema: other } } })
    })
    assert.equal(status, 200)
    await until(async () => JSON.stringify((await request('/api/servers/pets')).body.data.tools).includes('getCats'))
  })

  await t.test('the tools of one description are not those of another that cannot be read', async () => {
    const config = { type: 'openapi', url: api.url, openapi: { schema: {} } }
    assert.equal((await request('/api/servers/pets', { method: 'PUT', body: JSON.stringify({ config }) })).status, 200)
    await until(async () => (await request('/api/servers/pets')).body.data.status === 'disconnected')
    assert.deepEqual((await request('/api/servers/pets')).body.data.tools, [])
  })
})
