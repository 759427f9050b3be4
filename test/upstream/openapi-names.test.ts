// The names of tools and arguments that are made of a description: as model APIs take them, while requests have those of the API.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { json, restApi } from '../fakes/rest-api.ts'
import { described, ok, op, openapi, restClient, type Tool } from '../fakes/rest-client.ts'
import { ToolNames } from '../../plugins/upstream/openapi/describe/names.ts'

/** What the model APIs of all vendors take. */
const taken = /^[a-zA-Z0-9_-]{1,64}$/
const argumentsOf = (tool: Tool | undefined): string[] => Object.keys(tool?.inputSchema.properties ?? {})
const query = (name: string, more: object = {}): object => ({ name, in: 'query', schema: {}, ...more })
const long = 'a_very_long_parameter_name_that_some_generated_descriptions_have_in_them_indeed'

test('arguments have names that model APIs take; the request has those of the API', async (t) => {
  const api = await restApi(t)
  const names = [
    'plain', 'StartTime<', 'StartTime>', 'filter[search]', 'page[size]', 'ids[]', '$top', '@odata.type', '検索', '並べ替え', 'a b', 'x:y',
    long, '_', 'a.b', 'a/b', 'a_b'
  ]
  const client = await described(t, api.url, {
    '/get': { get: op('get', [...names.map((name) => query(name)), { name: 'X.Any', in: 'header', schema: {} }]) },
    '/turned': { get: op('turned', [...names].reverse().map((name) => query(name))) },
    '/{päth}/x': { get: op('path', [{ name: 'päth', in: 'path', required: true, schema: {} }]) },
    '/told': { get: op('told', [query('$top', { description: 'How many' }), query('検索')]) }
  })
  const tools = await client.tools()
  const made = argumentsOf(tools.get('get'))
  assert.equal(made.length, names.length + 1)
  for (const name of made) assert.match(name, taken)
  assert.deepEqual(made.filter((name) => !/_[0-9a-f]{8}$/.test(name)),
    ['plain', 'filter_search', 'page_size', 'ids', 'top', 'odata_type', 'x_y', '_', 'a_b', 'X_Any'])
  assert.deepEqual(argumentsOf(tools.get('turned')).reverse(), made.slice(0, -1), 'the order decides nothing')

  await client.call('get', Object.fromEntries(made.map((name, at) => [name, at])))
  const sent = new URL(api.last().url, api.url).searchParams
  assert.deepEqual([...sent], names.map((name, at) => [name, String(at)]))
  assert.equal(api.last().headers['x.any'], String(names.length))
  const [inPath = ''] = argumentsOf(tools.get('path'))
  await client.call('path', { [inPath]: 'ü' })
  assert.equal(decodeURIComponent(api.last().url), '/ü/x')
  const { top, ...other } = tools.get('told')?.inputSchema.properties ?? {}
  assert.deepEqual([top, Object.values(other)], [
    { description: 'How many ("$top" in the request)' }, [{ description: '"検索" in the request' }]
  ])
  const refused = await client.call('get', { 'filter[search]': 1 })
  assert.match(refused.content[0]?.text ?? '', /The argument "filter\[search\]" does not exist. The arguments are "plain", .*"filter_search"/)
})

const bodies = [
  ['application/json', '{"@odata.type":"t","first name":"f","plain":"p","a.b":"1","a/b":"2"}'],
  ['application/x-www-form-urlencoded', '%40odata.type=t&first%20name=f&plain=p&a.b=1&a%2Fb=2'],
  ['multipart/form-data', undefined]
] as const
for (const [type, expected] of bodies) {
  test(`fields of a body are arguments of such names, too: ${type}`, async (t) => {
    const api = await restApi(t)
    const fields = ['@odata.type', 'first name', 'plain', 'a.b', 'a/b']
    const schema = { type: 'object', properties: Object.fromEntries(fields.map((name) => [name, { type: 'string' }])), required: ['a.b'] }
    const open = { ...schema, additionalProperties: true }
    const content = (each: object): object => ({ requestBody: { required: true, content: { [type]: { schema: each } } } })
    const client = await described(t, api.url, {
      '/closed': { post: op('closed', [], content(schema)) },
      '/open': { post: op('open', [], content(open)) },
      '/clash': { post: op('clash', [query('first_name')], content(schema)) }
    })
    const tools = await client.tools()
    const made = argumentsOf(tools.get('closed'))
    for (const name of made) assert.match(name, taken)
    assert.deepEqual(made.slice(0, 3), ['odata_type', 'first_name', 'plain'])
    const dotted = made[3] ?? ''
    assert.deepEqual(tools.get('closed')?.inputSchema.required, [dotted])
    const values = Object.fromEntries(made.map((name, at) => [name, ['t', 'f', 'p', '1', '2'][at]]))
    await client.call('closed', values)
    const body = api.last().body.toString()
    if (expected === undefined) for (const name of fields) assert.ok(body.includes(`name="${name}"`), name)
    else assert.equal(body, expected)
    await client.call('open', { ...values, 'any thing': 'else' })
    assert.match(api.last().body.toString(), /any( |%20)thing/)
    const missing = await client.call('closed', { plain: 'p' })
    assert.match(missing.content[0]?.text ?? '', new RegExp(`The argument "${dotted}" is missing`))
    const clash = argumentsOf(tools.get('clash'))
    assert.deepEqual([clash.length, ...clash.slice(0, 2)], [6, 'first_name', 'odata_type'])
    assert.match(clash[2] ?? '', /^first_name_[0-9a-f]{8}$/, 'a field that would become the name of a parameter')
  })
}

test('tools have names that model APIs take, whatever the order of the operations', async (t) => {
  const api = await restApi(t)
  const ids = ['pets.list', 'pets/list', 'pets_list', 'a.b', 'über', '清单', 'x'.repeat(70), '_lead_']
  const paths = ids.map((id, at): [string, object] => [`/p${at}`, { get: op(id) }])
  const names = async (entries: Array<[string, object]>): Promise<string[]> =>
    [...(await (await described(t, api.url, Object.fromEntries(entries))).tools()).keys()]
  const made = await names(paths)
  assert.equal(new Set(made).size, ids.length)
  for (const name of made) assert.match(name, taken)
  assert.deepEqual([made[2], made[3], made[4], made[7]], ['pets_list', 'a_b', 'uber', '_lead_'])
  assert.deepEqual((await names([...paths].reverse())).reverse(), made)
})

test('an expression of a path belongs to its parameter, as frameworks write it', async (t) => {
  const api = await restApi(t)
  /** The path, the parameter that it declares, the argument, and whether slashes stay. */
  const cases: Array<[string, string | undefined, string, boolean]> = [
    ['/a/{*path}', 'path', 'path', true],
    ['/b/{**path}', 'path', 'path', true],
    ['/c/{*path}', '*path', 'path', true],
    ['/d/{*}', '*', 'path_08428', true],
    ['/e/{proxy+}', 'proxy', 'proxy', true],
    ['/f/{rest:.*}', 'rest', 'rest', true],
    ['/g/{id:[0-9]{1,4}}', 'id', 'id', false],
    ['/h/{id:int}', undefined, 'id', false],
    ['/i/{name=shelves/*}', 'name', 'name', true],
    ['/j/{+path}', undefined, 'path', true],
    ['/k/{path*}', 'path', 'path', true],
    ['/l/{id?}', 'id', 'id', false],
    ['/m/{plain}', 'plain', 'plain', false],
    ['/n/:id', 'id', 'id', false],
    ['/o/:id(\\d+)', 'id', 'id', false],
    ['/p/<id>', 'id', 'id', false],
    ['/q/<int:id>', 'id', 'id', false],
    ['/r/<path:rest>', 'rest', 'rest', true]
  ]
  const client = await described(t, api.url, Object.fromEntries(cases.map(([path, name], at) => [path, {
    get: op(`t${at}`, name === undefined ? [] : [{ name, in: 'path', required: true, schema: { type: 'string' } }])
  }])))
  const tools = await client.tools()
  for (const [at, [path, , argument, keepsSlashes]] of cases.entries()) {
    const names = argumentsOf(tools.get(`t${at}`))
    assert.equal(names.length, 1, path)
    const [name = ''] = names
    assert.match(name, taken)
    if (argument !== 'path_08428') assert.equal(name, argument, path)
    await client.call(`t${at}`, { [name]: 'x/y z' })
    assert.equal(api.last().url, `${path.slice(0, 3)}${keepsSlashes ? 'x/y%20z' : 'x%2Fy%20z'}`, path)
    const climbing = await client.call(`t${at}`, { [name]: keepsSlashes ? 'x/../../y' : '..' })
    assert.equal(climbing.isError, true, path)
  }
})

test('the notations of other frameworks are literal text where no path parameter of that name is declared', async (t) => {
  const api = await restApi(t)
  const id = [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
  const client = await described(t, api.url, {
    '/a/:id/:other.json': { get: op('a', id) },
    '/b/{id}:cancel': { get: op('b', [...id, { name: 'cancel', in: 'path', required: true, schema: { type: 'string' } }]) },
    '/c/<int:x>': { get: op('c', []) }
  })
  const tools = await client.tools()
  assert.deepEqual(['a', 'b', 'c'].map((name) => argumentsOf(tools.get(name))), [['id'], ['id'], []])
  await client.call('a', { id: 'x' })
  assert.equal(api.last().url, '/a/x/:other.json')
  await client.call('b', { id: 'x' })
  assert.equal(api.last().url, '/b/x:cancel')
  await client.call('c', {})
  assert.equal(api.last().url, '/c/%3Cint:x%3E')
  assert.match(client.warnings.join(), /GET \/b\/\{id\}:cancel: the path does not contain its parameter "cancel"/)
})

test('versions and names that YAML reads as numbers', async (t) => {
  const api = await restApi(t)
  api.answer((_request, response) => { json(response, {}) })
  const rest = '\ninfo:\n  title: 2024\n  version: 1.2\npaths:\n  /a/{1}:\n    get:\n      operationId: 404\n' +
    '      parameters:\n        - {name: 1, in: path, required: true, schema: {type: [string, "null"]}}\n      responses: {}\n'
  for (const version of ['openapi: 3.0', 'openapi: 3.1', 'openapi: 3.1.0', 'openapi: "3.1"', 'swagger: 2.0', 'swagger: "2.0"']) {
    const client = await restClient(t, { url: api.url, openapi: { schema: `${version}${rest}` } })
    const [tool] = [...(await client.tools()).values()]
    assert.deepEqual([tool?.name, argumentsOf(tool)], ['404', ['1']], version)
    await client.call('404', { 1: 'x' })
    assert.equal(api.last().url, '/a/x', version)
  }
  for (const version of [3.5e10, 4, 2, true, null]) {
    const schema = { ...openapi({ '/a': { get: ok } }), openapi: version }
    await assert.rejects(restClient(t, { url: api.url, openapi: { schema } }), /OpenAPI/, String(version))
  }
})

test('an operationId that looks like the hashed name of another operation takes no tool away', async () => {
  const operations = [['a_b_541a2d0d', '/z'], ['a b', '/x'], ['a+b', '/y']].map(([operationId, path = '']) => ({ operationId, method: 'GET', path }))
  const names = new ToolNames(operations)
  const assigned = operations.map((operation) => names.assign(operation))
  assert.equal(assigned[0], 'a_b_541a2d0d')
  assert.equal(new Set(assigned).size, 3, assigned.join())
})
