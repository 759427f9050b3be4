// OpenAPI descriptions: what they name, how they are read, and again when they change.
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { dump } from 'js-yaml'
import { UpstreamError } from '../../protocol/errors.ts'
import { compileDescription } from '../../plugins/upstream/openapi/describe/compile.ts'
import { parseDocument } from '../../plugins/upstream/openapi/describe/document.ts'
import { DescriptionError } from '../../plugins/upstream/openapi/plan.ts'
import { WorkerPool } from '../../plugins/base/threads/pool.ts'
import { readDescription } from '../../plugins/upstream/openapi/describe/reader.ts'
import { SharedApi } from '../../plugins/upstream/openapi/api.ts'
import { ApiDescription } from '../../plugins/upstream/openapi/describe/description.ts'
import { Outbound } from '../../plugins/base/outbound/outbound.ts'
import { type ServerConfig } from '../../schemas/server.ts'
import { managed } from '../fakes/replica.ts'
import { restApi } from '../fakes/rest-api.ts'
import { ok, described, op, openapi, restClient } from '../fakes/rest-client.ts'
import { KEY, settings, silence, type Json } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

const refused =
  (pattern: RegExp) =>
    (error: unknown): boolean => error instanceof UpstreamError && (assert.match(error.message, pattern), true)
const ajv = new Ajv2020({ strict: false, validateFormats: false })

/** A port where nobody may knock. */
async function silentPort (t: { after: (fn: () => unknown) => void }): Promise<{ port: number, knocks: () => number }> {
  let knocks = 0
  const server = createServer((socket) => { knocks++; socket.destroy() })
  return { port: await listen(t, server), knocks: () => knocks }
}

test('descriptions: names, places, versions and what is wrong with them', async (t) => {
  const api = await restApi(t)
  const connect = async (schema: object | string, more: ServerConfig = {}) =>
    await restClient(t, { url: api.url, ...more, openapi: { schema } })

  await t.test('names, words and annotations', async () => {
    const get = (operationId: string | undefined, more: object = {}): object => ({ operationId, ...more, ...ok })
    const client = await connect(openapi({
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
    }))
    const tools = await client.tools()
    const names = [...tools.keys()]
    assert.deepEqual(names.filter((name) => !/_[0-9a-f]{8}$/.test(name)),
      ['repos_list_all', 'dup', 'post_a', 'get_users_id_files_ext', 'get'])
    assert.equal(names.filter((name) => /^dup_[0-9a-f]{8}$/.test(name)).length, 2)
    for (const name of names) assert.match(name, /^[\w-]{1,64}$/)
    assert.deepEqual([...(await (await connect(openapi({ '/a': { delete: get('dup'), put: get('dup') } }))).tools()).keys()][0], 'dup')
    const { title, description } = tools.get('repos_list_all') ?? {}
    assert.deepEqual([title, description], ['Lists', 'Deprecated.\n\nLists\n\nLists all.'])
    assert.equal(tools.get('get_users_id_files_ext')?.description, 'GET /users/{id}/files.{ext}')
    const methods = new Map([...tools.values()].map(({ description, annotations }) => [description.split(' ')[0], annotations]))
    assert.deepEqual([methods.get('HEAD'), methods.get('PUT'), methods.get('DELETE'), methods.get('POST')], [
      { readOnlyHint: true },
      { readOnlyHint: false, idempotentHint: true },
      { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
      { readOnlyHint: false }
    ])
  })
  await t.test('Swagger 2.0', async () => {
    const lists = (place: string, ...formats: string[]): object[] => formats.map((collectionFormat) =>
      ({ name: collectionFormat, in: place, type: 'array', items: { type: 'string' }, collectionFormat }))
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
              ...lists('query', 'csv', 'ssv', 'tsv', 'pipes', 'multi'),
              { name: 'X-Ids', in: 'header', type: 'array', items: {} },
              { name: 'X-Rows', in: 'header', type: 'array', collectionFormat: 'pipes', items: { type: 'array', items: { type: 'integer' } } }
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
              { name: 'list', in: 'formData', type: 'array', items: {}, collectionFormat: 'pipes' },
              { name: 'rows', in: 'formData', type: 'array', items: { type: 'array', collectionFormat: 'ssv', items: {} } }
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
              ...lists('formData', 'csv', 'ssv', 'multi'),
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
    await client.call('get', { ids: list, limit: 5, csv: list, ssv: list, tsv: list, pipes: list, multi: list, 'X-Ids': list, 'X-Rows': [[1, 2], [3]] })
    assert.deepEqual(
      [api.last().url, api.last().headers['x-ids'], api.last().headers['x-rows']],
      ['/v1/pets/a%20b%7Cc?limit=5&csv=a%20b,c&ssv=a%20b%20c&tsv=a%20b%09c&pipes=a%20b%7Cc&multi=a%20b&multi=c&api_key=k', 'a b,c', '1,2|3']
    )
    assert.deepEqual(Object.keys(tools.get('post')?.inputSchema.properties ?? {}), ['ids', 'limit', 'name', 'parent'])
    await client.call('post', { ids: 'x', name: 'n', parent: { name: 'p' } })
    assert.equal(api.last().body.toString(), '{"name":"n","parent":{"name":"p"}}')
    await client.call('form', { a: '1 2', list: ['x', 'y'], rows: [[1, 2], [3]] })
    assert.deepEqual([api.last().headers['content-type'], api.last().body.toString()],
      ['application/x-www-form-urlencoded', 'a=1%202&list=x%7Cy&rows=1%202,3'])
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
    const client = await connect(openapi({
      '/a': {
        servers: [{ url: '/path-server' }],
        get: op('a'),
        put: op('b', [], { servers: [{ url: `${api.url}/{v}/{w}`, variables: { v: { default: 'v1' }, w: { enum: ['first', 'second'] } } }] })
      },
      '/c': { get: op('c', [], { servers: [{ url: '{broken}' }] }) },
      '/d': { get: op('d', [], { servers: [{ url: 'ftp://x.test' }] }) },
      '/e': { get: op('e', [], { servers: [{ url: 'http://[' }] }) }
    }))
    await client.call('a')
    assert.equal(api.last().url, '/path-server/a')
    await client.call('b')
    assert.equal(api.last().url, '/v1/first/a')
    // On the host of the description's own server it is the API, and the configuration says where that is.
    const at = (url: string): object => ({ servers: [{ url }], ...ok })
    const pinned = await connect(openapi({
      '/e': {
        get: { operationId: 'e', ...at('https://api.test/v1') },
        put: { operationId: 'f', ...at(`http://localhost:${api.port}/upload`) },
        post: { operationId: 'g', ...at('http://api.test/v2/') }
      }
    }, { servers: [{ url: '//api.test/v1' }] }), { url: `${api.url}/base` })
    for (const [name, expected] of [['e', '127.0.0.1/base/e'], ['f', 'localhost/upload/e'], ['g', '127.0.0.1/v2/e']] as const) {
      await pinned.call(name)
      assert.equal(`${api.last().headers.host?.split(':')[0]}${api.last().url}`, expected)
    }
    // Without an address to be relative to, that is the description's own server.
    const own = await connect(openapi({
      '/h': {
        servers: [{ url: 'http://elsewhere.test/' }],
        get: { operationId: 'h', ...at('/up') },
        put: { operationId: 'i', ...at('up') }
      }
    }, { servers: [{ url: `${api.url}/v1/` }] }), { url: undefined })
    for (const [name, expected] of [['h', '/up/h'], ['i', '/v1/up/h']] as const) {
      await own.call(name)
      assert.equal(api.last().url, expected)
    }
    assert.deepEqual(client.warnings, [
      'its description: GET /c was omitted: the server "{broken}" has a variable "broken" without a default',
      'its description: GET /d was omitted: the server "ftp://x.test" does not use http or https',
      'its description: GET /e was omitted: the server "http://[" is not a valid URL'
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
        /GET \/r0 was omitted: the reference "http:.*" points outside the description: such references are not followed/
      ],
      ['file:///etc/passwd', /"file:\/\/\/etc\/passwd" points outside/],
      ['other.yaml#/Pet', /"other.yaml#\/Pet" points outside/],
      ['#/components/schemas/Missing', /has no target/],
      ['#/components/schemas/Self', /refers to itself/],
      ['#/components/schemas/Deep/far', /has no target/],
      ['#/info/title', /does not refer to a schema/],
      ['#anchor', /is not valid: it must have the form/]
    ]
    const client = await connect(openapi(
      {
        '/good': { get: op('good') },
        ...Object.fromEntries(refs.map(([ref], at) => [`/r${at}`, bad(ref)])),
        '/item': { $ref: `http://127.0.0.1:${silent.port}/item` },
        '/parameter': { get: { parameters: [{ in: 'query' }], ...ok } },
        relative: { get: ok }
      },
      { components: { schemas: { Self: { $ref: '#/components/schemas/Self' }, Deep: { $ref: `http://127.0.0.1:${silent.port}/deep` } } } }
    ))
    assert.deepEqual([...(await client.tools()).keys()], ['good'])
    refs.forEach(([, says], at) => { assert.match(client.warnings[at] ?? '', says) })
    assert.match(client.warnings.join('\n'), /the path "relative" was omitted: it must begin with a slash/)
    assert.match(client.warnings.join('\n'), /the path \/item was omitted: the reference/)
    assert.match(client.warnings.join('\n'), /GET \/parameter was omitted: a parameter has no "name"/)
    assert.equal(silent.knocks(), 0)
    await assert.rejects(connect(openapi({ '/a': bad('http://127.0.0.1:1/x') })),
      refused(/GET \/a was omitted: the reference "http:\/\/127\.0\.0\.1:1\/x" points outside/))
  })
  await t.test('circles of every kind come to an end', async () => {
    const body = (name: string): object =>
      ({ requestBody: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } } })
    const [node, other] = ['Node', 'Other'].map((name) => ({ $ref: `#/components/schemas/${name}` }))
    const client = await connect(openapi({
      '/a': { post: op('a', [], body('Node')) },
      '/b': { post: op('b', [], body('All')) },
      '/c': { post: op('c', [], { requestBody: { $ref: '#/components/requestBodies/Loop' } }) }
    }, {
      components: {
        requestBodies: { Loop: { $ref: '#/components/requestBodies/Loop' } },
        schemas: {
          Node: { type: 'object', properties: { next: other } },
          Other: { type: 'object', properties: { back: node, self: other } },
          All: { allOf: [{ $ref: '#/components/schemas/All' }] }
        }
      }
    }))
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
    const deep = `{"openapi":"3.0.0","paths":{},"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    /** Why a document cannot be read. */
    const problemOf = (document: string): string => {
      const { openapi: bounds, description } = upstreamLimits
      try { compileDescription(parseDocument(document, bounds), { baseUrl: api.url, ...bounds, description }) } catch (error) {
        assert.ok(error instanceof DescriptionError)
        return error.message
      }
      assert.fail(`it can be read: ${document}`)
    }
    for (const [document, says] of [
      ['', /an object is expected|not valid YAML/],
      ['[1,2]', /an object is expected/],
      ['{"openapi": "3.0.0", "paths": {', /not valid JSON: .*/],
      ['openapi: 3.0.0\npaths: [\n  }', /not valid YAML: .*\(line 3, column/],
      ['a: 1', /neither "openapi" nor "swagger"/],
      ['openapi: 4.0.0\npaths: {}', /version "4.0.0"; OpenAPI 3.0, 3.1 and Swagger 2.0/],
      ['swagger: "1.2"\npaths: {}', /version "1.2"/],
      ['openapi: 3.0.0', /no "paths"/],
      ['openapi: 3.0.0\npaths: {}', /no operations/],
      [bomb, /more than 5000000 values/],
      ['a: &x [*x]\nopenapi: 3.0.0\npaths: {}', /nested deeper than 300 levels, or contains itself/]
    ] as const) assert.match(problemOf(document), says, document.slice(0, 60))
    for (const [document, says] of [['<!DOCTYPE html><html></html>', /an HTML or XML page/], [deep, /nested deeper|nested too deeply|not valid JSON/]] as const) {
      await assert.rejects(connect(document), refused(says), document.slice(0, 60))
    }
    // Not a piece of it: who sees the error may not be whom it is for.
    for (const document of [
      '[SECRET', '{"a" SECRET}', '{"a":"SECRET', '[{"a":1} SECRET', 'a: !SECRET x', 'a: *SECRET', 'a: "SECRET',
      'a: !<tag:SECRET> x', 'a: !e!SECRET x', 'a: !!int SECRET'
    ]) {
      assert.match(problemOf(document), /not valid (JSON|YAML): .*\(line 1, column \d+\)/, document)
      assert.doesNotMatch(problemOf(document), /SECRET/, document)
    }
    await assert.rejects(restClient(t, { openapi: { schema: openapi({ '/a': { get: ok } }) } }),
      refused(/has no server with an absolute URL: set "url" to the address of the API/))
  })
})

test('descriptions by address: read with its rules, and again when they change', async (t) => {
  const api = await restApi(t)
  let document = JSON.stringify(openapi({ '/a': { get: op('a') } }))
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
  const outbound = new Outbound({ allow: '' })
  t.after(async () => { await outbound.close() })
  const descriptionAt = (address: string): ApiDescription => {
    const description = new ApiDescription({ type: 'openapi', url: address }, { outbound, warn: () => {}, onChange: () => {} })
    t.after(() => { description.close() })
    return description
  }

  await t.test('relative servers are relative to its address; links share one reading', async () => {
    document = JSON.stringify(openapi({ '/a': { get: op('a') } }, { servers: [{ url: '../v2' }] }))
    const sharedApi = new SharedApi()
    const [one, two] = await Promise.all([
      restClient(t, { url, keepAliveInterval: 200 }, { sharedApi, outbound }),
      restClient(t, { url, keepAliveInterval: 200 }, { sharedApi, outbound })
    ])
    assert.equal(reads - conditional, 1)
    await one.call('a')
    assert.equal(api.last().url, '/v2/a')

    await until(() => conditional >= 1, 'it was not asked again')
    assert.deepEqual(one.news, [])
    document = JSON.stringify(openapi({ '/b': { get: op('b') } }))
    etag = '"2"'
    await until(() => one.news.length === 1 && two.news.length === 1, 'no list_changed')
    assert.deepEqual([one.news, [...(await two.tools()).keys()]], [['notifications/tools/list_changed'], ['b']])

    status = 500
    etag = undefined
    await until(() => one.warnings.length > 0)
    document = '{"openapi": "3.0.0"'
    status = 200
    await until(() => one.warnings.length > 1)
    const failed = reads
    await until(() => reads >= failed + 3, 'it is not read again')
    assert.equal(one.warnings.length, 2)
    assert.match(
      one.warnings[0] ?? '',
      /the description at http:.*openapi.json cannot be fetched: its address answered HTTP 500; the last valid one stays in use/
    )
    assert.match(one.warnings[1] ?? '', /cannot be used: it is not valid JSON: .*; the last valid one stays in use/)
    assert.equal((await one.call('b')).isError, undefined)

    await one.link.close()
    await two.link.close()
    // What was on its way has arrived.
    await silence(50)
    const before = reads
    await silence(500)
    assert.equal(reads, before)
  })
  await t.test('the configured headers go along only where the API lives', async () => {
    const seen: Array<string | undefined> = []
    api.at('/keyed.yaml', ({ headers }, response) => {
      seen.push(headers['x-key'] as string | undefined)
      response.end(dump(openapi({ '/a': { get: op('a') } })))
    })
    const headers = { 'X-Key': 'secret' }
    await restClient(t, { headers, openapi: { url: `${api.url}/keyed.yaml` } })
    await restClient(t, { headers, url: `http://localhost:${api.port}/api`, openapi: { url: `${api.url}/keyed.yaml` } })
    assert.deepEqual(seen, ['secret', undefined])
  })
  await t.test('a document that could not be used is read at the next attempt, even if it has not changed', async () => {
    let answers = 0
    api.at('/unfinished.json', (_request, response) => {
      answers++
      response.writeHead(200, { etag: '"1"' }).end('{"openapi": "3.0.0"')
    })
    const description = descriptionAt(`${api.url}/unfinished.json`)
    for (const attempt of [1, 2]) {
      await assert.rejects(description.current(), /cannot be used: it is not valid JSON/)
      assert.equal(answers, attempt)
    }
  })
  await t.test('an address that is not absolute is named as the problem', async () => {
    await assert.rejects(descriptionAt('//openapi.json').current(), (error: Error) => error instanceof UpstreamError &&
      error.message === 'the description cannot be used: its address is not an absolute http or https address')
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
    await assert.rejects(restClient(t, { url: 'http://169.254.169.254/x' }), /to such addresses only if/)
    await assert.rejects(restClient(t, { url: `${api.url}/x`, storedByUser: true }), /must be public/)
    const foreign = await described(t, 'http://169.254.169.254', { '/a': { get: op('a') } })
    await assert.rejects(foreign.call('a'), (error: UpstreamError) => /to such addresses only if/.test(error.detail))
  })
})

test('reading is bounded in time and memory, and given up when nobody wants it', async (t) => {
  const never = new AbortController().signal
  const fine = { document: Buffer.from(JSON.stringify(openapi({ '/a': { get: op('a') } }))), baseUrl: 'http://x.test' }
  const large = { ...fine, document: Buffer.from(`[${Array(1_000_000).fill('{"a":{}}').join()}]`) }
  const read = async (
    task: typeof fine, { heap = 512, time = 60_000, signal = never } = {}
  ): Promise<Awaited<ReturnType<typeof readDescription>>> => {
    const pool = new WorkerPool({ threads: 1, heap, idle: 60_000 })
    t.after(() => { pool.close() })
    return await readDescription(task, { owner: 'ann', trusted: true }, signal, pool, time)
  }
  await assert.rejects(read(large, { time: 1 }), /longer than 0.001 s/)
  await assert.rejects(read(large, { heap: 32 }), /more than 32 MB of memory/)
  await assert.rejects(read(fine, { signal: AbortSignal.abort() }), /no longer needed/)
  const controller = new AbortController()
  const reading = read(fine, { signal: controller.signal })
  controller.abort()
  await assert.rejects(reading, /no longer needed/)
  assert.deepEqual((await read(fine)).names, ['a'])
  // The gateway reads each page in one step, so pages are small.
  const many = openapi(Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`/p${n}`, { get: { description: 'x'.repeat(10_000), ...ok } }])))
  const { names, pages } = await read({ ...fine, document: Buffer.from(JSON.stringify(many)) })
  assert.equal(names.length, 100)
  assert.ok(pages.length > 2 && pages.every(({ length }) => length < upstreamLimits.openapi.page + 20_000), `${pages.length} pages`)
})

test('through the gateway: stored by an admin, listed, called, told', async (t) => {
  const api = await restApi(t)
  const schema = openapi({
    '/pets/{id}': {
      get: op('getPet', [
        { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
        { name: 'verbose', in: 'query', schema: { type: 'boolean' } }
      ])
    },
    '/left-out': { get: { parameters: [{ $ref: 'http://elsewhere.test/x#/y' }], ...ok } }
  })
  const hub = await startHub(t, {
    settings: settings({
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
    })
  })
  const record = async (name: string): Promise<Json> => await managed(hub, 'GET', `/servers/${name}`)
  const change = async (description: object): Promise<void> => {
    await managed(hub, 'PUT', '/servers/pets', { config: { type: 'openapi', url: api.url, openapi: { schema: description } } })
  }
  await until(async () => (await record('pets')).status === 'connected', () => hub.output())

  const pets = await record('pets')
  assert.deepEqual((pets.tools as Array<{ name: string }>).map(({ name }) => name), ['getPet'])
  assert.doesNotMatch(JSON.stringify(pets), /abc-secret-value/)
  // Who stores it sees what is missing, and why.
  const leftOut = /^its description: GET \/left-out was omitted: the reference "http:\/\/elsewhere.test\/x#\/y" points outside/
  assert.match((pets.warnings as string[]).join('\n'), leftOut)
  const tried = await managed(hub, 'POST', '/servers/test', { config: pets.config, name: 'pets' })
  assert.match((tried.warnings as string[]).join('\n'), leftOut)

  const headersSent = { authorization: `Bearer ${KEY}`, 'x-tenant': 't1', 'x-user': 'u1', 'x-other': 'o1' }
  await managed(hub, 'POST', '/tools/call/pets', { toolName: 'getPet', arguments: { id: '7', verbose: true } }, headersSent)
  // The other server asks again and again.
  const { url, headers } = api.seen.findLast(({ url }) => url !== '/nothing') ?? assert.fail()
  assert.deepEqual(
    [url, headers['x-key'], headers['x-tenant'], headers['x-user'], headers['x-other'], headers.authorization],
    ['/pets/7?verbose=true', 'abc-secret-value', 't1', 'u1', undefined, undefined]
  )

  await until(async () => (await record('bad')).status === 'disconnected')
  assert.match(
    String((await record('bad')).error),
    /the description at http:.*\/nothing cannot be used: it is not an OpenAPI description: it has neither "openapi" nor "swagger"/
  )

  await t.test('a changed description reaches clients', async () => {
    await change(openapi({ '/cats': { get: op('getCats') } }))
    await until(async () => JSON.stringify((await record('pets')).tools).includes('getCats'))
  })
  await t.test('the tools of one description are not those of another that cannot be read', async () => {
    await change({})
    await until(async () => (await record('pets')).status === 'disconnected')
    assert.deepEqual((await record('pets')).tools, [])
  })
})
