// OpenAPI documents of the tools that callers may run.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t as file, test } from 'tap'
import { parse } from 'yaml'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { at, connected, everything, plain, settings, text, within, type Json } from '../helpers/client.ts'
import { npmServer, startHub, until } from '../helpers/hub.ts'
import { served } from '../helpers/served.ts'
import { document, echoArguments, edit, get, ids, object, operations, post, refused, run, several, valid } from '../helpers/open-tools.ts'

const tools = [
  tool('ten', object(several(10))),
  tool('eleven', object(several(11))),
  tool('none', object({})),
  tool(
    'mixed',
    object(
      {
        n: { type: 'integer', minimum: 1 },
        s: { type: 'string', description: 'Some text' },
        o: { anyOf: [{ type: 'number' }, { type: 'null' }] },
        k: { $ref: '#/$defs/Kind' }
      },
      { required: ['n'], $defs: { Kind: { enum: ['x', 'y'] } } }
    )
  ),
  tool('list', object({ l: { type: 'array', items: { type: 'string' } } })),
  tool('nested', object({ o: { type: 'object', properties: { a: { type: 'integer' } } } })),
  tool('anything', object({ a: {} })),
  tool('maybe', object({ a: { anyOf: [{ type: 'string' }, { type: 'array' }] } })),
  tool('open', object({}, { additionalProperties: { type: 'integer' } })),
  tool('cases', {
    inputSchema: {
      type: 'object',
      oneOf: [
        { properties: { a: { type: 'string' } }, required: ['a'] },
        { properties: { b: { type: 'string' } }, required: ['b'] }
      ]
    }
  }),
  tool(
    'tree',
    object({ root: { $ref: '#/$defs/Node' } }, {
      $defs: {
        Node: {
          type: 'object',
          required: ['name'],
          properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/Node' } } }
        }
      }
    })
  ),
  tool(
    'unions',
    object({
      u: { anyOf: [{ type: 'integer' }, { type: 'string', enum: ['auto'] }] },
      e: { enum: [1, 'a', true] },
      c: { oneOf: [{ type: 'boolean' }, { const: 'auto' }] }
    })
  ),
  tool('odd', {
    title: 'Odd',
    inputSchema: {
      type: 'object',
      properties: {
        'a b&c=d': { type: 'string' },
        'é%': { type: 'integer' },
        yes: { type: 'boolean' },
        list: { type: 'array', prefixItems: [{ const: 1 }], items: false },
        deep: { type: 'object', patternProperties: { '^x': { type: ['string', 'null'] } }, additionalProperties: false }
      }
    }
  })
]
const fake = await startUpstream(file, { tools, on: echoArguments })
const other = await startUpstream(file, { tools: [tool('other'), tool('second')], on: echoArguments })
const member = { name: 'other', tools: ['second'] }
const hub = await startHub(file, {
  env: { BASE_PATH: '/hub' },
  settings: settings(
    {
      fake: { url: fake.url, visibility: 'public', description: 'Tools for tests' },
      other: { url: other.url, visibility: 'public', tools: { other: { enabled: false } } }
    },
    {
      groups: [
        { id: 'g-1', name: 'team one', servers: ['fake', member] },
        { id: 'g-2', name: 'other', servers: ['fake'] },
        { id: 'g-3', name: 'nothing', servers: [] }
      ],
      systemConfig: { install: { baseUrl: 'https://hub.example/' } }
    }
  )
})
await connected(hub, 2)
const here = 'https://hub.example/hub/api'
/** As the document says, but on this machine. */
const onHub = (given: unknown): Json => {
  const { paths, ...rest } = given as Json
  return { ...rest, servers: [{ url: `${hub.url}/api` }], paths }
}

test('a tool of up to ten single values is a GET, every other one a POST', async () => {
  const whole = await document(hub)
  await valid(whole)
  assert.equal(at(whole, 'servers', 0, 'url'), here)
  const methods = Object.fromEntries(operations(whole).map(({ id, method }) => [id, method]))
  assert.deepEqual(methods, {
    fake_ten: 'GET',
    fake_eleven: 'POST',
    fake_none: 'GET',
    fake_mixed: 'GET',
    fake_list: 'POST',
    fake_nested: 'POST',
    fake_anything: 'POST',
    fake_maybe: 'POST',
    fake_open: 'POST',
    fake_cases: 'POST',
    fake_tree: 'POST',
    fake_unions: 'GET',
    fake_odd: 'POST',
    other_second: 'GET'
  })
  const mixed = at(whole, 'paths', '/tools/fake/mixed', 'get')
  assert.deepEqual(at(mixed, 'parameters'), [
    { name: 'n', in: 'query', required: true, schema: { type: 'integer', minimum: 1 } },
    { name: 's', in: 'query', required: false, description: 'Some text', schema: { type: 'string' } },
    { name: 'o', in: 'query', required: false, schema: { type: 'number', nullable: true } },
    { name: 'k', in: 'query', required: false, schema: { type: 'string', enum: ['x', 'y'] } }
  ])
  assert.deepEqual(
    [at(mixed, 'tags'), at(mixed, 'description'), at(mixed, 'responses', '200', 'content', 'application/json', 'schema')],
    [['fake'], 'The tool mixed', { $ref: '#/components/schemas/ToolResponse' }]
  )
  assert.deepEqual(at(whole, 'tags'), [{ name: 'fake', description: 'Tools for tests' }, { name: 'other' }])
  for (const name of ['ToolResponse', 'ErrorResponse', 'fake.tree.Node']) {
    assert.ok(at(whole, 'components', 'schemas', name) !== undefined, name)
  }
  // A tool of a modern server may answer any JSON value.
  const data = at(whole, 'components', 'schemas', 'ToolResponse', 'properties', 'structuredContent')
  assert.deepEqual(Object.keys(data as object), ['description'])
  assert.equal(at(whole, 'paths', '/tools/fake/odd', 'post', 'summary'), 'Odd')
  for (const operation of operations(whole)) {
    for (const full of [false, true]) assert.equal((await run(hub, onHub(whole), operation, full)).status, 200, operation.id)
  }
})

test('in YAML they say the same', async () => {
  for (const path of ['openapi', 'fake/openapi', 'team%20one/openapi']) {
    const reply = await fetch(`${hub.url}/api/${path}.yaml?description=${encodeURIComponent('two\\nlines: "and" \\u2028 more #')}`)
    assert.match(String(reply.headers.get('content-type')), /yaml/)
    assert.deepEqual(
      parse(await reply.text()),
      await document(hub, `/api/${path}.json?description=${encodeURIComponent('two\\nlines: "and" \\u2028 more #')}`)
    )
  }
})

test('the query says what stands in the head, and what is covered', async () => {
  const asked = await document(
    hub,
    '/api/openapi.json?title=Mine&description=About&version=7.1&serverUrl=https%3A%2F%2Felse.example%2Fapi%2F&servers=other,' +
    '%20nope&includeDisabled=true'
  )
  await valid(asked)
  assert.deepEqual(
    [at(asked, 'info'), at(asked, 'servers')],
    [{ title: 'Mine', description: 'About', version: '7.1' }, [{ url: 'https://else.example/api/' }]]
  )
  assert.deepEqual(ids(asked), ['other_other', 'other_second'])
  assert.deepEqual(ids(await document(hub, '/api/openapi.json?servers=nope')), [])
  refused(await get(hub, '/api/tools/other/other'), 404)
  for (const serverUrl of [
    'nope', '/api', 'ftp://else.example/', 'javascript:alert(1)', 'https://user@else.example/',
    'https://u:p@else.example', 'https://{host}/', 'https:\\\\\\\\else.example', 'https://', 'https://else.example/ x',
    `https://else.example/${'x'.repeat(2_048)}`, '', '//else.example/api'
  ]) {
    for (const path of ['/api/openapi.json', '/api/openapi.yaml', '/api/fake/openapi.json']) {
      refused(await get(hub, `${path}?serverUrl=${encodeURIComponent(serverUrl)}`), 400, /serverUrl/)
    }
  }
  for (const query of ['includeDisabled=maybe', 'title=a&title=b', 'servers=a&servers=b']) {
    refused(await get(hub, `/api/openapi.json?${query}`), 400)
  }
  // A misspelt filter would select everything.
  refused(await get(hub, '/api/openapi.json?server=up'), 400, /did you mean "servers"/)
  const elsewhere = await plain(`http://127.0.0.1:${hub.port}/hub/api/openapi.json`, { headers: { 'x-forwarded-host': 'evil.example' } })
  assert.equal(elsewhere.status, 200)
  assert.ok(!elsewhere.body.includes('evil.example'))
})

test('a group comes before a server of its name, by id or name, with what it selects', async () => {
  for (const name of ['g-1', 'team%20one']) {
    const group = await document(hub, `/api/${name}/openapi.json`)
    await valid(group)
    assert.ok(
      ids(group).includes('other_second') && ids(group).includes('fake_ten') && !ids(group).includes('other_other'),
      ids(group).join()
    )
    const elsewhere = await document(hub, `/api/${name}/openapi.json?serverUrl=https%3A%2F%2Felse.example%2Fapi%2F`)
    assert.deepEqual(
      [at(elsewhere, 'servers', 0, 'url'), at(elsewhere, 'paths', '/tools/fake/ten', 'servers')],
      ['https://else.example/api/', [{ url: 'https://else.example/api/g-1' }]]
    )
    assert.deepEqual(
      [at(group, 'info', 'title'), at(group, 'servers', 0, 'url'), at(group, 'paths', '/tools/fake/ten', 'servers')],
      ['team one', here, [{ url: `${here}/g-1` }]]
    )
  }
  assert.ok(ids(await document(hub, '/api/other/openapi.json')).every((id) => id.startsWith('fake_')))
  for (const path of ['/api/nope/openapi.json', '/api/nothing/openapi.json', '/api/nope/openapi.yaml']) refused(await get(hub, path), 404)
  for (const path of [
    '/api/team%20one/tools/other/second?a=1', '/api/g-1/tools/other/second?a=1',
    '/api/tools/other/second?group=team%20one&a=1', '/api/fake/tools/fake/none?a=1'
  ]) {
    const answer = await get(hub, path)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(at(JSON.parse(answer.text), 'structuredContent', 'args'), { a: '1' })
  }
  assert.equal((await post(hub, '/api/g-1/tools/other/second', {})).status, 200)
  assert.equal((await post(hub, '/api/tools/other/second?group=g-1', { a: 1 })).status, 200)
  for (const query of ['group=team%20one&group=team%20one', 'group=g-1&group=nope']) {
    refused(await get(hub, `/api/tools/other/second?${query}`), 400, /group/)
    refused(await post(hub, `/api/tools/other/second?${query}`, {}), 400, /group/)
  }
  assert.deepEqual(at(JSON.parse((await get(hub, '/api/g-1/tools/other/second?group=a&group=b')).text), 'structuredContent', 'args'), {
    group: ['a', 'b']
  })
  for (const path of [
    '/api/g-2/tools/other/second', '/api/fake/tools/other/second', '/api/tools/other/second?group=g-2',
    '/api/tools/other/second?group=nope', '/api/tools/fake/none?group=fake', '/api/nope/tools/fake/none'
  ]) { refused(await get(hub, path), 404) }
})

test('which servers, and how many tools', async () => {
  assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/servers')).text), { success: true, data: ['fake', 'other'] })
  assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/stats')).text), {
    success: true,
    data: {
      totalServers: 2,
      totalTools: 14,
      serverBreakdown: [
        { name: 'fake', toolCount: 13, status: 'connected' },
        { name: 'other', toolCount: 1, status: 'connected' }
      ]
    }
  })
})

test('an ETag spares what has not changed, and changes with what it covers', async () => {
  for (const path of ['/api/openapi.json', '/api/openapi.yaml', '/api/fake/openapi.json', '/api/openapi/servers', '/api/openapi/stats']) {
    const first = await get(hub, path)
    const etag = String(first.headers.get('etag'))
    assert.match(etag, /^"[^"]+"$/)
    const again = await get(hub, path, { 'if-none-match': etag })
    assert.deepEqual([again.status, again.text, again.headers.get('etag')], [304, '', etag], path)
    assert.deepEqual([again.headers.get('content-length'), again.headers.get('content-type')], [null, null])
    assert.equal((await get(hub, path, { 'if-none-match': '"other"' })).text, first.text)
  }
  const tag = async (path: string): Promise<string | null> => (await get(hub, path)).headers.get('etag')
  assert.equal(
    new Set(
      await Promise.all(
        [
          '/api/openapi.json', '/api/openapi.yaml', '/api/openapi.json?title=x',
          '/api/openapi.json?includeDisabled=true', '/api/openapi.json?servers=fake', '/api/g-1/openapi.json'
        ].map(tag)
      )
    ).size,
    6
  )
})

test('documents follow toggles, descriptions, new tools, disconnects and connects', async () => {
  const now = async (): Promise<Json> => await document(hub)
  const before = String((await get(hub, '/api/openapi.json')).headers.get('etag'))
  /** Edits the config of the second server in the file. */
  const change = async (config: Json, seen: () => Promise<boolean>): Promise<void> => {
    await edit(hub, ({ mcpServers }) => { (mcpServers as Json).other = { url: other.url, visibility: 'public', ...config } }, seen)
  }
  await change({ tools: { second: { description: 'Said by an admin' } } }, async () => ids(await now()).includes('other_other'))
  assert.equal(at(await now(), 'paths', '/tools/other/second', 'get', 'description'), 'Said by an admin')
  assert.equal((await get(hub, '/api/openapi.json', { 'if-none-match': before })).status, 200)
  other.options = { ...other.options, tools: [tool('other'), tool('second'), tool('third')] }
  await other.broadcast('notifications/tools/list_changed')
  await until(async () => ids(await now()).includes('other_third'), 'the new tool never came')
  await change({ enabled: false }, async () => !ids(await now()).some((id) => id.startsWith('other_')))
  assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/servers')).text), { success: true, data: ['fake'] })
  await change({ keepAliveInterval: 1_000 }, async () => ids(await now()).includes('other_third'))
  await other.close()
  await until(async () => !ids(await now()).some((id) => id.startsWith('other_')), 'the lost server stayed')
  await other.listen()
  await until(async () => ids(await now()).includes('other_third'), 'the server never came back')
})
test('names of every kind work in paths, and operations are never confused', async (t) => {
  const odd = [
    'with space', 'dots.in.it', '.hidden', '...', 'slash/inside', 'per%cent', 'a%2Fb', 'question?', 'hash#',
    'plus+and&', 'semi;colon', 'brace{d}', 'naïve', '工具', 'инструмент', '🛠️', '"quoted"', "it's", 'back\\slash',
    '__proto__', 'constructor', '~1', 'x'.repeat(1_500)
  ]
  const unnameable = ['.', '..', '\ud800']
  const fake = await startUpstream(t, {
    tools: [...odd, ...unnameable].map((name) => tool(name, object({ v: { type: 'string' } }))),
    on: echoArguments
  })
  const first = await startUpstream(t, { tools: [tool('c'), tool('b_c')], on: echoArguments })
  const open = (url: string): Json => ({ url, visibility: 'public' })
  const mcpServers = { 'сервер 1.x': open(fake.url), a_b: open(first.url), a: open(first.url), users: open(first.url) }
  const hub = await startHub(t, { settings: settings(mcpServers) })
  await connected(hub, 4)
  const whole = await document(hub)
  await valid(whole)
  assert.deepEqual(parse((await get(hub, '/api/openapi.yaml')).text), whole)
  const named = operations(whole).filter(({ server }) => server === 'сервер 1.x')
  for (const { id } of operations(whole)) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/)
  assert.equal(new Set(ids(whole)).size, operations(whole).length)
  assert.match(String(named.find(({ path }) => path.endsWith('/constructor'))?.id), /^1_x_[0-9a-f]{8}_constructor$/)
  for (const [n, operation] of named.entries()) {
    const answer = await run(hub, whole, operation, true)
    assert.equal(answer.status, 200, `${operation.path}: ${answer.text}`)
    assert.deepEqual(at(JSON.parse(answer.text), 'structuredContent'), { tool: odd[n], args: { v: 'text' } }, operation.path)
  }
  // a_b + c and a + b_c would both be a_b_c.
  const others = operations(whole).filter(({ server }) => server === 'a_b' || server === 'a')
  assert.equal(new Set(others.map(({ id }) => id)).size, 4)
  assert.deepEqual(others.slice(0, 3).map(({ id }) => id), ['a_b_c', 'a_b_b_c', 'a_c'])
  assert.match(String(others[3]?.id), /^a_b_c_[0-9a-f]{8}$/)
  for (const operation of others) {
    assert.equal(
      at(JSON.parse((await run(hub, whole, operation, true)).text), 'structuredContent', 'tool'),
      operation.path.split('/').at(-1),
      operation.id
    )
  }
  assert.deepEqual(ids(await document(hub)), ids(whole))
  // Not taken for a user.
  const users = await document(hub, '/api/users/openapi.json')
  assert.deepEqual(ids(users), ['users_c', 'users_b_c'])
  assert.deepEqual(parse((await get(hub, '/api/users/openapi.yaml')).text), users)
  for (const operation of operations(users)) assert.equal((await run(hub, users, operation, true)).status, 200)
})
test('an operationId keeps its meaning while its server is away, and when an earlier one begins to list such a tool', async (t) => {
  const [earlier, later] = [
    await startUpstream(t, { tools: [tool('c')], on: echoArguments }),
    await startUpstream(t, { tools: [tool('b_c'), tool('b_d')], on: echoArguments })
  ]
  const hub = await served(t, { a_b: { url: earlier.url, visibility: 'public' }, a: { url: later.url, visibility: 'public' } })
  const ids = async (): Promise<Record<string, string>> =>
    Object.fromEntries(operations(await document(hub)).map(({ server, path, id }) => [`${server}/${path.split('/').at(-1)}`, id]))
  const before = await ids()
  assert.equal(before['a_b/c'], 'a_b_c')
  assert.match(String(before['a/b_c']), /^a_b_c_[0-9a-f]{8}$/)
  assert.equal(before['a/b_d'], 'a_b_d')

  earlier.options.tools = [tool('c'), tool('d')]
  await earlier.broadcast('notifications/tools/list_changed')
  await until(async () => 'a_b/d' in await ids(), 'the new tool is not described')
  const after = await ids()
  assert.match(String(after['a_b/d']), /^a_b_d_[0-9a-f]{8}$/)
  const { 'a_b/d': added, ...rest } = after
  assert.deepEqual(rest, before)

  await earlier.close()
  await until(async () => {
    await post(hub, '/api/tools/a_b/c', {})
    return !('a_b/c' in await ids())
  }, 'a server that is away is still described')
  assert.deepEqual(await ids(), { 'a/b_c': before['a/b_c'], 'a/b_d': before['a/b_d'] })
})

test('every operation of real servers runs as its document says', async (t) => {
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'text'), 'hello')
  const hub = await startHub(t, {
    env: { PUBLIC_TOOLS: 'all' },
    settings: settings({
      everything: npmServer('everything', 'stdio'),
      files: { ...npmServer('filesystem', folder), cwd: folder },
      memory: { ...npmServer('memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.json') } },
      remote: { type: 'streamable-http', url: await everything(t) }
    })
  })
  await connected(hub, 4)
  const whole = await document(hub)
  await valid(whole)
  const all = operations(whole)
  assert.deepEqual([...new Set(all.map(({ server }) => server))], ['everything', 'files', 'memory', 'remote'])
  assert.ok(all.length > 40, `${all.length} operations`)
  for (const name of ['everything', 'files', 'memory', 'remote']) {
    const part = await document(hub, `/api/${name}/openapi.json`)
    await valid(part)
    assert.deepEqual(ids(part), all.filter(({ server }) => server === name).map(({ id }) => id))
  }
  let succeeded = 0
  // By default, one of them takes ten seconds: it is called with all of its arguments only.
  await Promise.all(all.flatMap((operation) => (operation.id.includes('long') ? [true] : [false, true]).map(async (full) => {
    const answer = await within(operation.id, run(hub, whole, operation, full))
    assert.equal(answer.status, 200, `${operation.method} ${operation.path}: ${answer.text}`)
    const result: unknown = JSON.parse(answer.text)
    assert.ok(Array.isArray(at(result, 'content')), answer.text)
    // Arguments that the server's own schema refuses would be an error of ours.
    assert.doesNotMatch(text(result), /-32602|invalid arguments/i, `${operation.id}: ${answer.text}`)
    if (at(result, 'isError') !== true) succeeded++
  })))
  assert.ok(succeeded > all.length, `only ${succeeded} of ${2 * all.length} calls did something`)
})
