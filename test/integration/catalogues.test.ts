/* eslint-disable no-template-curly-in-string -- configs hold variables in this form */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { CatalogueSource } from '../../plugins/management/market/source.ts'
import { npmPackageOf } from '../../plugins/management/market/market.ts'
import type { FetchedResponse } from '../../plugins/base/outbound/fetch.ts'
import type { MarketFile, MarketServer } from '../../schemas/catalogues.ts'
import { newNameProblem } from '../../schemas/names.ts'
import { entry, mcpRegistry, type FakeRegistry } from '../fakes/mcp-registry.ts'
import { json, restApi } from '../fakes/rest-api.ts'
import { appFor } from '../helpers/app.ts'
import { path } from '../helpers/hub.ts'
import { managementLimits } from '../../plugins/management/limits.ts'

type Json = Record<string, unknown>
const users = [{ username: 'admin', password: 'x', isAdmin: true }, { username: 'ada', password: 'x', isAdmin: false }]

interface World {
  app: FastifyInstance
  get: (path: string, user?: string) => Promise<LightMyRequestResponse>
  post: (body: object) => Promise<LightMyRequestResponse>
}
async function world (t: Test, { env = {}, mcpRouter }: { env?: Json, mcpRouter?: Json } = {}): Promise<World> {
  // No command is found, so that nothing is installed.
  const app = await appFor(t, { users, systemConfig: { mcpRouter } }, env, { environment: { PATH: '/nonexistent' } })
  const headers = (user: string) => ({ 'x-auth-token': app.auth.createLoginToken(users.find(({ username }) => username === user) ?? { username: user, password: '' }) })
  return {
    app,
    get: async (address, user = 'admin') => await app.inject({ url: `/api${address}`, headers: headers(user) }),
    post: async (body) => await app.inject({ method: 'POST', url: '/api/servers', headers: headers('admin'), payload: body })
  }
}
const dataOf = (reply: LightMyRequestResponse): any => { // eslint-disable-line @typescript-eslint/no-explicit-any
  assert.equal(reply.statusCode, 200, reply.body)
  return (reply.json() as { data: unknown }).data
}

test('the market that the project ships', async (t) => {
  const { app, get, post } = await world(t)
  const servers = dataOf(await get('/market/servers')) as MarketServer[]

  await t.test('has fifty servers or more, of npm, PyPI and public remotes, each once', async () => {
    assert.ok(servers.length >= 50)
    assert.equal(new Set(servers.map(({ name }) => name)).size, servers.length)
    for (const kind of ['npm', 'uvx', 'http']) assert.ok(servers.some(({ installations }) => kind in installations), kind)
    for (const { name } of servers) assert.equal(newNameProblem(name), undefined, name)
    assert.equal(dataOf(await get('/market/servers', 'ada')).length, servers.length)
  })

  await t.test('has configs that POST /api/servers takes unchanged', async () => {
    for (const { name, config } of servers) {
      // Nothing is asked of the remotes themselves.
      const sent = 'url' in config ? { ...config, enabled: false } : config
      const reply = await post({ name, config: sent })
      assert.equal(reply.statusCode, 200, `${name}: ${reply.body}`)
      const kept = app.settings.current.servers.get(name)?.config ?? {}
      const { storedByUser, storedBy, createdAt, owner, visibility, enabled, ...stored } = kept
      assert.deepEqual(stored, config, name)
      await app.inject({ method: 'DELETE', url: `/api/servers/${name}`, headers: { 'x-auth-token': app.auth.createLoginToken({ username: 'admin', password: 'x' }) } })
    }
  })

  await t.test('names every variable that a config needs', async () => {
    for (const { name, config, required, arguments: inputs } of servers) {
      const used = [...JSON.stringify(config).matchAll(/\$\{(\w+)\}/g)].map(([, key]) => key)
      assert.deepEqual([...new Set(used)].sort(), required.map(({ key }) => key).sort(), name)
      assert.deepEqual(Object.keys(inputs).filter((key) => inputs[key]?.required).sort(), [...new Set(used)].sort(), name)
    }
  })

  await t.test('is read by name, words, category and tag', async () => {
    const names = async (address: string): Promise<string[]> => (dataOf(await get(address)) as MarketServer[]).map(({ name }) => name)
    assert.equal(dataOf(await get('/market/servers/fetch')).config.command, 'uvx')
    assert.equal((await get('/market/servers/nothing')).statusCode, 404)
    assert.deepEqual(await names('/market/servers/search?query=postgresql%20BRANCHES'), ['neon'])
    assert.equal((await names('/market/servers/search')).length, servers.length)
    assert.deepEqual(await names('/market/servers/search?query=xyzzy'), [])
    const categories = dataOf(await get('/market/categories')) as string[]
    assert.ok(categories.includes('Databases'))
    for (const category of categories) assert.ok((await names(`/market/categories/${encodeURIComponent(category)}`)).length > 0, category)
    assert.ok((await names('/market/categories/databases')).includes('redis'))
    assert.ok((dataOf(await get('/market/tags')) as string[]).includes('git'))
    assert.deepEqual(await names('/market/tags/vectors'), ['chroma', 'pinecone', 'qdrant'])
    assert.deepEqual(await names('/market/tags/none'), [])
  })

  await t.test('states the day of the last look at the package registry', async () => {
    const file = JSON.parse(readFileSync(path('assets/market/servers.json'), 'utf8')) as MarketFile
    const packages = new Set(file.servers.map(npmPackageOf).filter((name) => name !== undefined))
    for (const name of Object.keys(file.found)) assert.ok(packages.has(name), `${name} is in no entry`)
    if (file.checked !== null) assert.equal(Object.keys(file.found).length, packages.size)
    assert.ok(!file.servers.some(({ name }) => name === 'search'), 'a name that a route has')
  })
})

const weather = entry('io.github.ada/weather', {
  packages: [{ registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' }, environmentVariables: [{ name: 'KEY', isRequired: true, isSecret: true }] }]
})
async function registryWorld (t: Test, entries: Json[]): Promise<World & { fake: FakeRegistry }> {
  const fake = await mcpRegistry(t, entries)
  return { ...await world(t, { env: { REGISTRY_URL: fake.api.url } }), fake }
}

test('the registry', async (t) => {
  const many = Array.from({ length: 65 }, (_, at) => entry(`com.example/server-${at}`, { remotes: [{ type: 'streamable-http', url: `https://mcp.example.com/${at}` }] }))
  const { get, post, fake } = await registryWorld(t, [
    weather,
    entry('io.github.ada/weather', { version: '0.9.0' }, { isLatest: false }),
    entry('com.example/gone', {}, { status: 'deleted', statusMessage: 'malware' }),
    ...many
  ])

  await t.test('is read page by page', async () => {
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = dataOf(await get(`/registry/servers?version=latest${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`))
      assert.ok(page.servers.length <= 30 && page.metadata.count === page.servers.length)
      names.push(...page.servers.map((each: { server: { name: string } }) => each.server.name))
      cursor = page.metadata.nextCursor
    } while (cursor !== undefined)
    assert.deepEqual(names, ['io.github.ada/weather', ...many.map((each) => (each.server as Json).name)])
    assert.equal(dataOf(await get('/registry/servers?limit=100')).servers.length, 67)
  })

  await t.test('is searched; its entries have configs that POST /api/servers takes unchanged', async () => {
    const { servers } = dataOf(await get('/registry/servers?search=weather&version=latest'))
    assert.equal(servers.length, 1)
    const [{ name, config, required }] = servers[0].configs
    assert.deepEqual(config, { type: 'stdio', command: 'npx', args: ['-y', '@ada/weather@1.0.0'], env: { KEY: '${INPUT_WEATHER_KEY}' } })
    assert.deepEqual(required, [{ key: 'INPUT_WEATHER_KEY', title: 'KEY', sensitive: true }])
    const stored = await post({ name, config })
    assert.deepEqual(dataOf(stored).config.env, { KEY: '${INPUT_WEATHER_KEY}' })
    assert.deepEqual(servers[0]._meta['io.modelcontextprotocol.registry/official'].status, 'active')
  })

  await t.test('has versions', async () => {
    const name = encodeURIComponent('io.github.ada/weather')
    assert.deepEqual(dataOf(await get(`/registry/servers/${name}/versions`)).servers.map((each: { server: Json }) => each.server.version), ['1.0.0', '0.9.0'])
    assert.equal(dataOf(await get(`/registry/servers/${name}/versions/latest`)).server.version, '1.0.0')
    const old = dataOf(await get(`/registry/servers/${name}/versions/0.9.0`))
    assert.deepEqual(old.configs, [{ from: 'entry', reason: 'it has neither a package nor a remote' }])
    for (const address of [`${name}/versions/7`, 'com.example%2Fnothing/versions', `${name}/versions/..%2F..`, `${name}/versions/%2E%2E`, '%2E%2E/versions']) {
      assert.equal((await get(`/registry/servers/${address}`)).statusCode, 404, address)
    }
    const gone = dataOf(await get(`/registry/servers/${encodeURIComponent('com.example/gone')}/versions/1.0.0`))
    assert.deepEqual(gone.configs, [{ from: 'entry', reason: 'it was deleted from the registry: malware' }])
  })

  await t.test('refuses what the registry refuses, and what is out of bounds', async () => {
    assert.match((await get('/registry/servers?cursor=nonsense')).body, /TH_INVALID_INPUT.*|does not accept/)
    for (const query of ['cursor=nonsense', 'limit=0', 'limit=101', `search=${'a'.repeat(201)}`]) {
      assert.equal((await get(`/registry/servers?${query}`)).statusCode, 400, query)
    }
  })

  await t.test('is not asked again for what it said a moment ago, nor for what it does not list', async () => {
    const before = fake.api.seen.length
    await get('/registry/servers?limit=3')
    await get('/registry/servers?limit=3')
    assert.equal(fake.api.seen.length, before + 1)
    assert.ok(fake.api.seen.every(({ url }) => url.startsWith('/v0.1/servers')))
  })

  await t.test('is served as it was while it is away; 502 for what was never read', async () => {
    fake.failWith = (response) => { json(response, { error: 'down' }, 503) }
    assert.equal((await get('/registry/servers?limit=3')).statusCode, 200)
    const reply = await get('/registry/servers?limit=4')
    assert.equal(reply.statusCode, 502)
    assert.deepEqual(reply.json(), { success: false, message: 'The MCP registry is not available: it answered HTTP 503', code: 'TH_UPSTREAM_FAILED' })
    fake.failWith = undefined
  })
})

test('what a registry must not answer', async (t) => {
  const { get, fake } = await registryWorld(t, [])
  const bad: Array<[string, string]> = [
    ['no JSON', '<html>'],
    ['another form', '{"servers":{"a":1}}'],
    ['a list of something else', '{"servers":[1]}'],
    ['nesting', `{"servers":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['size', JSON.stringify({ servers: [], padding: 'x'.repeat(managementLimits.catalogues.answerSize) })]
  ]
  let limit = 1
  for (const [name, body] of bad) {
    fake.failWith = (response) => { response.writeHead(200, { 'content-type': 'application/json' }).end(body) }
    const reply = await get(`/registry/servers?limit=${limit++}`)
    assert.equal(reply.statusCode, 502, `${name}: ${reply.body}`)
    assert.ok(!reply.body.includes(fake.api.url.slice(7)), 'an address leaks')
  }
  await t.test('entries that break the form have a reason, and their page is served', async () => {
    fake.failWith = undefined
    fake.entries = [
      weather,
      entry('no-namespace'),
      entry('com.example/long', { description: 'x'.repeat(5_000) }),
      entry('com.example/many', { remotes: Array.from({ length: 51 }, () => ({ type: 'sse', url: 'https://a.example' })) }),
      JSON.parse('{"server":{"name":"com.example/proto","description":"d","version":"1","__proto__":{"polluted":1},"remotes":[{"type":"sse","url":"https://a.example/{__proto__}","variables":{"__proto__":{"value":"x"}}}]}}') as Json,
      entry('com.example/nulls', { title: null, packages: null, remotes: [{ type: 'sse', url: 'https://a.example/sse', headers: null }] })
    ]
    const { servers } = dataOf(await get('/registry/servers?limit=50'))
    const reasons = servers.map((each: { configs: Array<{ reason?: string }> }) => each.configs[0]?.reason)
    assert.equal(reasons[0], undefined)
    for (const at of [1, 2, 3]) assert.match(String(reasons[at]), /does not match the schema/)
    assert.ok(reasons[4] !== undefined)
    assert.equal(reasons[5], undefined)
    assert.equal(({} as Json).polluted, undefined)
  })
  await t.test('a list is cut where it is longer than it may be', async () => {
    fake.entries = Array.from({ length: managementLimits.catalogues.answerEntries + 5 }, (_, at) => entry('com.example/many', { version: `1.0.${at}` }))
    const { servers } = dataOf(await get(`/registry/servers/${encodeURIComponent('com.example/many')}/versions`))
    assert.equal(servers.length, managementLimits.catalogues.answerEntries)
  })
})

test('a source', async (t) => {
  let now = 1_000_000
  let asked = 0
  let answer: () => Promise<Partial<FetchedResponse>> | Partial<FetchedResponse> = () => ({})
  const headers: Array<Record<string, string> | undefined> = []
  const told: string[] = []
  const source = new CatalogueSource({
    name: 'The test',
    now: () => now,
    reportOutage: (level, sentence) => { told.push(`${level} ${sentence}`) },
    outbound: {
      fetch: async (_url, options) => {
        asked++
        headers.push(options.headers)
        return { status: 200, headers: { etag: '"1"' }, body: Buffer.from('{"a":1}'), ...await answer() }
      }
    }
  })
  const ask = async (key = 'k', owner = 'ada') => await source.ask({ key, url: 'http://x', convert: (value) => value }, owner)

  await t.test('asks whether an answer has changed, once it is a minute old', async () => {
    assert.deepEqual(await ask(), { value: { a: 1 } })
    now += managementLimits.catalogues.freshFor - 1
    await ask()
    assert.equal(asked, 1)
    now += 1
    answer = () => ({ status: 304, body: Buffer.alloc(0) })
    assert.deepEqual(await ask(), { value: { a: 1 } })
    assert.equal(headers.at(-1)?.['if-none-match'], '"1"')
    await ask()
    assert.equal(asked, 2)
  })
  await t.test('serves an earlier answer while the service is away, and asks again after a pause', async () => {
    const since = new Date(now).toISOString()
    now += managementLimits.catalogues.freshFor
    answer = () => { throw new Error('away') }
    assert.deepEqual(await ask(), { value: { a: 1 }, staleSince: since })
    assert.deepEqual(await ask(), { value: { a: 1 }, staleSince: since })
    assert.equal(asked, 3)
    now += managementLimits.catalogues.retryDelay
    await ask()
    assert.equal(asked, 4)
    assert.deepEqual(told, ['warn The test is not available: its answer does not have the expected format'], 'one line for as long as it lasts')
    now += managementLimits.catalogues.retryDelay
    answer = () => ({ body: Buffer.from('{"a":2}') })
    assert.deepEqual(await ask(), { value: { a: 2 } })
    assert.equal(asked, 5)
    assert.equal(told.length, 2)
    assert.match(told[1] ?? '', /^info The test is available again since .*, after 2 failures since /)
  })
  await t.test('forgets what the service has no more', async () => {
    now += managementLimits.catalogues.freshFor
    answer = () => ({ status: 404 })
    await assert.rejects(ask(), { code: 'TH_NO_SUCH' })
    answer = () => { throw new Error('away') }
    await assert.rejects(ask(), { code: 'TH_UPSTREAM_FAILED' })
  })
  await t.test('asks once for all that wait, and leaves room for other callers', async () => {
    let go = (): void => {}
    const gate = new Promise<void>((resolve) => { go = resolve })
    answer = async () => { await gate; return {} }
    const before = asked
    const same = [ask('same'), ask('same'), ask('same')]
    const others = Array.from({ length: managementLimits.catalogues.concurrentRequests }, async (_, at) => await ask(`other ${at}`).then(() => 'ok', (error: { isOwnerLimit?: boolean }) => error.isOwnerLimit))
    const stranger = ask('stranger', 'bob')
    await new Promise((resolve) => { setImmediate(resolve) })
    go()
    await Promise.all([...same, stranger])
    const results = await Promise.all(others)
    assert.ok(results.includes('ok') && results.includes(true))
    assert.equal(asked - before, 2 + results.filter((each) => each === 'ok').length)
  })
})

test('the cloud', async (t) => {
  const api = await restApi(t)
  const listed = [
    { name: 'weather', title: 'Weather', description: 'Forecasts', author_name: 'ada', server_key: 'weather', config_name: 'weather', server_url: 'https://router.example.com/mcp/weather', secret: 'x' },
    { name: 'Weather 2', server_key: 'weather', config_name: 'other' },
    { name: 'my maps', server_key: 'k/2', config_name: '', server_url: 'ftp://router.example.com' },
    { name: 'weather', server_key: 'third', config_name: 'weather', server_url: 'https://router.example.com/${HOME}' },
    'nonsense'
  ]
  api.answer(({ url, body }, response) => {
    if (url === '/v1/list-servers') json(response, { code: 0, message: 'ok', data: { servers: listed } })
    else if (url === '/v1/list-tools' && String(body) === '{"server":"weather"}') {
      json(response, { data: { tools: [{ name: 'forecast', description: 'd', inputSchema: { type: 'object' }, extra: 1 }, { name: 7 }] } })
    } else json(response, {}, 404)
  })
  const mcpRouter = { apiKey: 'the-key-of-the-router', baseUrl: `${api.url}/v1/`, referer: 'https://hub.example', title: 'Hub' }
  const { get } = await world(t, { mcpRouter })

  await t.test('lists servers with configs, and the key stays here', async () => {
    const reply = await get('/cloud/servers', 'ada')
    const servers = dataOf(reply) as Json[]
    assert.ok(!reply.body.includes('the-key-of-the-router'))
    assert.deepEqual(servers.map(({ name }) => name), ['weather', 'k-2', 'weather-2'])
    assert.deepEqual(servers[0], {
      name: 'weather',
      title: 'Weather',
      description: 'Forecasts',
      author_name: 'ada',
      content: '',
      server_key: 'weather',
      config_name: 'weather',
      created_at: '',
      updated_at: '',
      config: { type: 'streamable-http', url: 'https://router.example.com/mcp/weather', headers: { Authorization: 'Bearer ${MCPROUTER_API_KEY}' } },
      required: [{ key: 'MCPROUTER_API_KEY', title: 'API key', description: 'Your API key of the cloud catalogue', sensitive: true }]
    })
    assert.match(String(servers[1]?.reason), /http or https/)
    assert.match(String(servers[2]?.reason), /variable/)
    const { headers, method } = api.last()
    assert.deepEqual([method, headers.authorization, headers['http-referer'], headers['x-title']], ['POST', 'Bearer the-key-of-the-router', 'https://hub.example', 'Hub'])
  })
  await t.test('reads one, and its tools', async () => {
    assert.equal(dataOf(await get('/cloud/servers/weather')).title, 'Weather')
    assert.equal(dataOf(await get(`/cloud/servers/${encodeURIComponent('k/2')}`)).name, 'k-2')
    assert.equal((await get('/cloud/servers/nothing')).statusCode, 404)
    assert.deepEqual(dataOf(await get('/cloud/servers/weather/tools')), [{ name: 'forecast', description: 'd', inputSchema: { type: 'object' } }])
    assert.equal((await get('/cloud/servers/k-2/tools')).statusCode, 502)
  })
  await t.test('400 until it is set up, 502 while it refuses the key', async () => {
    for (const settings of [undefined, { apiKey: 'x' }, { baseUrl: api.url }]) {
      const { get: ask } = await world(t, { mcpRouter: settings })
      const reply = await ask('/cloud/servers')
      assert.equal(reply.statusCode, 400)
      assert.match(reply.body, /mcpRouter.baseUrl/)
    }
    const { get: ask } = await world(t, { mcpRouter: { ...mcpRouter, apiKey: 'other' } })
    api.answer((_request, response) => { json(response, {}, 401) })
    assert.equal((await ask('/cloud/servers')).statusCode, 502)
  })
})
