/* eslint no-template-curly-in-string: off -- they are what this is about */
// Templates: nothing secret leaves with one, what it holds runs elsewhere once its variables are set, and nobody gets more by one than by
// POST /api/servers and POST /api/groups.
import assert from 'node:assert/strict'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { test } from 'tap'
import { referencedVariables, replaceSecrets } from '../../../plugins/management/templates/config.ts'
import { TemplateVariables } from '../../../plugins/management/templates/variables.ts'
import { expandVariables } from '../../../plugins/upstream/links/environment.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { json, restApi } from '../../fakes/rest-api.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { appFor } from '../../helpers/app.ts'
import { at, KEY, text, type Json } from '../../helpers/client.ts'
import { bearerKey, path, until } from '../../helpers/hub.ts'
import { managementLimits } from '../../../plugins/management/limits.ts'
import { identityLimits } from '../../../plugins/identity/limits.ts'

const password = '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234'
const users = ['ann', 'bob'].map((username) => ({ username, password, isAdmin: false }))
const world = (more: Json = {}): Json => ({ users, bearerKeys: [bearerKey()], ...more })

/** The management API of an app, as the admin's key, or as a user. A body may be JSON text. */
const apiOf = (app: FastifyInstance, as = 'admin') => async (method: 'GET' | 'POST' | 'PUT', url: string, payload?: object | string): Promise<LightMyRequestResponse> => {
  const user = users.find(({ username }) => username === as)
  return await app.inject({
    method,
    url: `/api${url}`,
    headers: {
      ...(user ? { 'x-auth-token': app.auth.createLoginToken(user) } : { authorization: `Bearer ${KEY}` }),
      ...(payload === undefined ? {} : { 'content-type': 'application/json' })
    },
    ...(payload === undefined ? {} : { payload })
  })
}

const covered = (name: string, config: Json): Json => replaceSecrets(name, config, new TemplateVariables(referencedVariables(config), {}))

test('secrets of one kind get a variable each', async () => {
  const query = (count: number): string => Array.from({ length: count }, (_, n) => `k=${n % (count / 2)}x`).join('&')
  const names = [...String(covered('q', { url: `http://192.0.2.1/?${query(40)}` }).url).matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name)
  assert.equal(names.length, 40)
  // The same value is the same variable, and no two values share one.
  assert.deepEqual(names.slice(0, 20), names.slice(20))
  assert.equal(new Set(names).size, 20)
})

test('what becomes a variable, and what stays', async () => {
  for (const [config, wanted] of [
    [{ env: { API_KEY: 'k', N: '${N}', PATH: '/x', JWT_SECRET: 'j', X_CLIENT_SECRET: 'c', PGPASSWORD: 'p', LOG_LEVEL: 'debug', EMPTY: '' } },
      {
        env: {
          API_KEY: '${API_KEY}',
          N: '${N}',
          PATH: '${PATH_VALUE}',
          JWT_SECRET: '${JWT_SECRET_VALUE}',
          X_CLIENT_SECRET: '${X_CLIENT_SECRET_VALUE}',
          PGPASSWORD: '${MCP_PGPASSWORD}',
          LOG_LEVEL: '${LOG_LEVEL_VALUE}',
          EMPTY: ''
        }
      }],
    [{ headers: { Authorization: 'Bearer abc', 'X-Key': 'k', Known: 'Bearer ${TOKEN}' } },
      { headers: { Authorization: 'Bearer ${MY_API_AUTHORIZATION}', 'X-Key': '${MY_API_X_KEY}', Known: 'Bearer ${TOKEN}' } }],
    [{ url: 'https://ada:pw@example.com/mcp?key=k&mode=v#frag=1' },
      { url: 'https://${MY_API_USERINFO}@example.com/mcp?key=${MY_API_KEY}&mode=${MY_API_MODE}#${MY_API_FRAGMENT}' }],
    [{ url: 'https://example.com/s/0123456789abcdef/mcp-server-filesystem' }, { url: 'https://example.com/s/${MY_API_PATH}/mcp-server-filesystem' }],
    [{ url: 'https://${HOST}/mcp' }, { url: 'https://${HOST}/mcp' }],
    [{ args: ['-y', '@scope/server-x@1.2.3', '--api-key', 'k', '--token=t', '--header', 'X-Auth: h', 'https://e.com/a?b=c', '/srv/files', 'sk-abcdefghijklmnop', '--id=0123456789abcdefghij0'] },
      { args: ['-y', '@scope/server-x@1.2.3', '--api-key', '${MY_API_API_KEY}', '--token=${MY_API_TOKEN}', '--header', 'X-Auth: ${MY_API_X_AUTH}', 'https://e.com/a?b=${MY_API_B}', '/srv/files', '${MY_API_TOKEN_VALUE}', '--id=${MCP_MY_API_TOKEN}'] }],
    [{ oauth: { clientId: 'id', clientSecret: 's', accessToken: 'a', refreshToken: 'r', scopes: ['x'] } },
      { oauth: { clientId: 'id', clientSecret: '${MY_API_CLIENTSECRET}', scopes: ['x'] } }],
    [{ oauth: { grantType: 'client_credentials', clientId: 'id', privateKey: 'pem', signingAlgorithm: 'ES384', tokenEndpointAuthMethod: 'private_key_jwt', issuer: 'https://login.example.com' } },
      { oauth: { grantType: 'client_credentials', clientId: 'id', privateKey: '${MY_API_PRIVATEKEY}', signingAlgorithm: 'ES384', tokenEndpointAuthMethod: 'private_key_jwt', issuer: 'https://login.example.com' } }],
    [{ openapi: { url: 'https://e.com/d?key=k', security: { type: 'apiKey', name: 'X-Key', in: 'header', value: 'v' } } },
      { openapi: { url: 'https://e.com/d?key=${MY_API_KEY}', security: { type: 'apiKey', name: 'X-Key', in: 'header', value: '${MY_API_APIKEY}' } } }],
    [{ openapi: { security: { type: 'http', http: { scheme: 'bearer', token: 't' } } } },
      { openapi: { security: { type: 'http', http: { scheme: 'bearer', token: '${MY_API_TOKEN}' } } } }],
    [{ proxy: { url: 'http://u:p@proxy:8080', noProxy: 'local' } }, { proxy: { url: 'http://${MY_API_USERINFO}@proxy:8080', noProxy: 'local' } }],
    [{ owner: 'ann', createdAt: 'x', storedByUser: true, sharedWithUsers: ['bob'], visibility: 'private', visibilityDefaulted: true, enabled: true, unknown: 'secret' }, {}],
    [{ visibility: 'public', enabled: false, tools: { a: { enabled: false } }, description: 'https://u:p@example.com/' },
      { visibility: 'public', enabled: false, tools: { a: { enabled: false } }, description: 'https://u:p@example.com/' }]
  ] as Array<[Json, Json]>) assert.deepEqual(covered('my api', config), config.description === undefined ? wanted : { ...wanted, description: at(covered('my api', config), 'description') })
})

test('servers with many secrets are exported one by one: others get a turn between them', async (t) => {
  const url = `http://192.0.2.1/?${Array.from({ length: 1_000 }, (_, n) => `token=${n}`).join('&')}`
  const mcpServers = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`s${n}`, { url, enabled: false }]))
  const app = await appFor(t, world({ mcpServers }))
  let turns = 0
  let isOver = false
  const tick = (): void => { turns++; if (!isOver) setImmediate(tick) }
  const exported = apiOf(app)('POST', '/templates/export', { name: 'x' })
  tick()
  assert.equal((await exported).statusCode, 200)
  isOver = true
  assert.ok(turns >= 30, `${turns} turns`)
})

test('what becomes a variable is masked as well, and a mask that comes back keeps it', async (t) => {
  const config = {
    command: 'npx',
    args: ['-y', 'mcp-server-kubernetes-k8s', 'ghp_canary0123456789', '--session', 'canary0123456789abcdef'],
    enabled: false
  }
  const url = 'https://canary-user:canary-password@example.com/mcp'
  const app = await appFor(t, world({ mcpServers: { local: config, remote: { url, enabled: false } } }))
  for (const path of ['/servers', '/settings', '/mcp-settings/export']) assert.doesNotMatch((await apiOf(app)('GET', path)).body, /canary/, path)
  const exported = await apiOf(app)('POST', '/templates/export', { name: 'x' })
  assert.doesNotMatch(exported.body, /canary/)
  assert.deepEqual(at(exported.json(), 'data', 'servers', 'local', 'args', 1), 'mcp-server-kubernetes-k8s')
  for (const name of ['local', 'remote']) {
    const shown = at((await apiOf(app)('GET', `/servers/${name}`)).json(), 'data', 'config') as Json
    const put = await apiOf(app)('PUT', `/servers/${name}`, { config: { ...shown, description: 'new' } })
    assert.equal(put.statusCode, 200, put.body)
  }
  const stored = ['local', 'remote'].map((name) => app.settings.current.servers.get(name)?.config)
  assert.deepEqual([stored[0]?.args, stored[0]?.description, stored[1]?.url], [config.args, 'new', url])
  const shown = at((await apiOf(app)('GET', '/servers/remote')).json(), 'data', 'config') as Json
  const moved = await apiOf(app)('PUT', '/servers/remote', { config: { ...shown, url: String(shown.url).replace('example.com', 'example.org') } })
  assert.match(`${moved.statusCode} ${moved.body}`, /^400 .*this is a mask/)
})

test('a variable stands for one secret', async () => {
  const variables = new TemplateVariables(['TOKEN'], {})
  const [one, two, three] = [['a', '1'], ['b', '2'], ['c', '1']].map(([name = '', secret]) => replaceSecrets(name, { env: { TOKEN: 'x', KEY: secret } }, variables))
  assert.deepEqual([one, two, three], [
    { env: { TOKEN: '${TOKEN_VALUE}', KEY: '${KEY}' } },
    { env: { TOKEN: '${TOKEN_VALUE}', KEY: '${KEY_VALUE}' } },
    { env: { TOKEN: '${TOKEN_VALUE}', KEY: '${KEY}' } }
  ])
  assert.deepEqual(replaceSecrets('сервер', { headers: { Авторизация: 's' } }, variables), { headers: { Авторизация: '${SERVER_VALUE}' } })
  assert.deepEqual(replaceSecrets('7up', { headers: { X: 's' } }, variables), { headers: { X: '${_7UP_X}' } })
})

test('what is a variable in a template is filled in', async () => {
  const config = {
    env: { API_KEY: 'one-secret' },
    headers: { Authorization: 'Bearer two-secret' },
    url: 'https://u:three-secret@example.com/four-secret-0123456789?key=five-secret',
    args: ['--token=six-secret'],
    proxy: { url: 'http://u:seven-secret@proxy:1' },
    oauth: { clientId: 'x', clientSecret: 'eight-secret' },
    openapi: { url: 'https://e.com/?k=nine-secret', security: { type: 'apiKey' as const, value: 'ten-secret' } }
  }
  const variables = new TemplateVariables([], {})
  const secrets = new Map<string, string>()
  const cover = variables.createReplacer.bind(variables)
  variables.createReplacer = (server, naming) => (secret, hint) => {
    const made = cover(server, naming)(secret, hint)
    const name = /\$\{(.*)\}/.exec(made)?.[1]
    if (name !== undefined) secrets.set(name, secret.replace(/^Bearer /, ''))
    return made
  }
  const made = replaceSecrets('s', config, variables)
  assert.doesNotMatch(JSON.stringify(made), /secret[-"@]|-secret/)
  assert.deepEqual([...secrets.keys()].sort(), [...new Set(referencedVariables(made))].sort())
  assert.deepEqual(expandVariables(made as ServerConfig, Object.fromEntries(secrets)).config, config)
  const byUser = expandVariables({ ...made, storedByUser: true } as ServerConfig, Object.fromEntries(secrets))
  assert.doesNotMatch(JSON.stringify(byUser.config), /-secret/, 'nothing is filled in for a user')
  const mixed = expandVariables({ ...made, storedByUser: ['/url'] } as ServerConfig, Object.fromEntries(secrets))
  assert.deepEqual([mixed.config.proxy, mixed.config.oauth, mixed.config.openapi], [made.proxy, made.oauth, made.openapi])
})

test('from one gateway to another: servers run once the variables are set', async (t) => {
  const secret = 'canary-7f3a9c'
  const upstream = await startUpstream(t, {
    tools: [tool('echo')],
    raw: (request, response) => {
      if (request.headers['x-api-key'] === secret) return false
      response.writeHead(401).end()
      return true
    }
  })
  const first = await appFor(t, world({
    mcpServers: {
      remote: { url: upstream.url, headers: { 'X-Api-Key': secret }, owner: 'ann', visibility: 'public', tools: { other: { enabled: false } } },
      local: { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs'), '--token', secret], env: { SECRET: secret } },
      anns: { url: 'http://127.0.0.1:9/mcp', owner: 'ann', enabled: false }
    },
    groups: [
      { id: '1', name: 'team', description: 'All', owner: 'ann', servers: ['remote', { name: 'local', tools: ['echo'], alias: 'l' }] },
      { id: '2', name: 'other', servers: ['anns'] }
    ]
  }))
  const exported = await apiOf(first)('POST', '/templates/export', { name: 'all', description: 'Everything' })
  assert.equal(exported.statusCode, 200, exported.body)
  assert.doesNotMatch(exported.body, new RegExp(secret))
  const template = at(exported.json(), 'data') as { servers: Json, groups: Json[], requiredEnvVars: string[] } & Json
  assert.deepEqual(template.requiredEnvVars, ['LOCAL_TOKEN', 'REMOTE_X_API_KEY', 'SECRET'])
  assert.deepEqual(template.groups, [
    { name: 'team', description: 'All', servers: ['remote', { name: 'local', tools: ['echo'], prompts: 'all', resources: 'all', alias: 'l' }] },
    { name: 'other', servers: ['anns'] }
  ])
  assert.deepEqual([template.version, template.name, template.description, Object.keys(template.servers)], ['1.0', 'all', 'Everything', ['remote', 'local', 'anns']])
  assert.doesNotMatch(JSON.stringify(template.servers), /owner|"ann"|createdAt/)

  const chosen = at((await apiOf(first)('POST', '/templates/export', { name: 'some', serverNames: ['anns'], groupIds: ['team'] })).json(), 'data')
  assert.deepEqual(Object.keys(at(chosen, 'servers') as Json).sort(), ['anns', 'local', 'remote'])
  const ofGroup = (await apiOf(first)('GET', '/templates/export/groups/2')).json<Json>()
  assert.deepEqual([at(ofGroup, 'data', 'name'), Object.keys(at(ofGroup, 'data', 'servers') as Json)], ['other', ['anns']])
  assert.equal(at((await apiOf(first)('GET', '/templates/export/groups/other?name=mine')).json(), 'data', 'name'), 'mine')
  for (const [body, message] of [
    [{ name: 'x', serverNames: ['anns', 'no-such'] }, 'There is no such server: "no-such"'],
    [{ name: 'x', groupIds: ['team', 'no-such'] }, 'There is no such group: "no-such"']
  ] as const) {
    const refused = await apiOf(first)('POST', '/templates/export', body)
    assert.deepEqual([refused.statusCode, refused.json<Json>().message], [404, message])
  }
  const misspelt = await apiOf(first)('POST', '/templates/export', { name: 'x', servers: ['anns'] })
  assert.equal(misspelt.statusCode, 400)
  assert.match(String(misspelt.json<Json>().message), /"servers" is not known; there are .*"serverNames"/)

  const environment = { PATH: process.env.PATH, LOCAL_TOKEN: secret, REMOTE_X_API_KEY: secret, SECRET: secret }
  const second = await appFor(t, world({ mcpServers: { anns: { url: 'http://127.0.0.1:9/mcp', enabled: false } } }), {}, { environment })
  const imported = await apiOf(second)('POST', '/templates/import', template)
  assert.equal(imported.statusCode, 200, imported.body)
  assert.deepEqual(at(imported.json(), 'data'), {
    serversCreated: 2,
    serversSkipped: 1,
    groupsCreated: 2,
    groupsSkipped: 0,
    details: [
      { type: 'server', name: 'remote', action: 'created' },
      { type: 'server', name: 'local', action: 'created' },
      { type: 'server', name: 'anns', action: 'skipped', message: 'There is already a server with this name' },
      { type: 'group', name: 'team', action: 'created' },
      { type: 'group', name: 'other', action: 'created' }
    ]
  })
  assert.match(String(at(imported.json(), 'message')), /LOCAL_TOKEN, REMOTE_X_API_KEY, SECRET$/)
  await until(() => ['remote', 'local'].every((name) => second.upstreams.get(name)?.status === 'connected'), () =>
    JSON.stringify(['remote', 'local'].map((name) => second.upstreams.get(name)?.error)))
  const called = await apiOf(second)('POST', '/tools/call/remote', { toolName: 'echo', arguments: { message: 'hi' } })
  assert.equal(text(at(called.json(), 'data')), 'hi')
  assert.deepEqual(second.settings.current.servers.get('remote')?.config.tools, { other: { enabled: false } })
  const again = await apiOf(second)('POST', '/templates/import', template)
  assert.deepEqual([again.statusCode, at(again.json(), 'data', 'serversSkipped'), at(again.json(), 'data', 'groupsSkipped')], [200, 3, 2])
})

test('a template has the servers in their order, also those with numbers as names, and so has the gateway that imports it', async (t) => {
  const config = { url: 'http://127.0.0.1:9/mcp', enabled: false }
  const order = ({ settings }: FastifyInstance): string[] => [...settings.current.servers.keys()]
  const first = await appFor(t, world({ mcpServers: { main: config } }))
  for (const name of ['7', 'last', '3']) await apiOf(first)('POST', '/servers', { name, config })
  await apiOf(first)('POST', '/groups', { name: 'both', servers: ['main', '7'] })
  for (const [exported, wanted] of [
    [await apiOf(first)('POST', '/templates/export', { name: 'n' }), ['main', '7', 'last', '3']],
    [await apiOf(first)('POST', '/templates/export', { name: 'n', serverNames: ['3', 'main', '7'] }), ['3', 'main', '7']],
    [await apiOf(first)('GET', '/templates/export/groups/both'), ['main', '7']]
  ] as const) {
    const template = /"data":(\{.*\})\}$/.exec(exported.body)?.[1] ?? ''
    assert.deepEqual([...template.matchAll(/"(\w+)":\{"url"/g)].map(([, name]) => name), wanted, exported.body)
    const second = await appFor(t, world({}))
    assert.equal((await apiOf(second)('POST', '/templates/import', template)).statusCode, 200)
    assert.deepEqual(order(second), wanted)
  }
  // A small body, and one that is parsed in steps.
  for (const description of ['', 'x'.repeat(100_000)]) {
    const servers = ['zed', '7', '3'].map((name) => `"${name}": ${JSON.stringify({ ...config, description })}`).join()
    const app = await appFor(t, world({}))
    const imported = await apiOf(app)('POST', '/templates/import', `{"version": "1.0", "servers": {${servers}}}`)
    assert.deepEqual((at(imported.json(), 'data', 'details') as Json[]).map(({ name }) => name), ['zed', '7', '3'])
    assert.deepEqual(order(app), ['zed', '7', '3'])
  }
})

test('a REST API from one gateway to another: its credentials stay, and its description goes along', async (t) => {
  const secret = 'canary-5e81d2'
  const api = await restApi(t)
  const schema = {
    openapi: '3.0.3',
    info: { title: 'Weather', version: '1', description: 'Its sk-1234567890abcdefghijklmn is no secret' },
    servers: [{ url: api.url }],
    paths: { '/weather': { get: { operationId: 'weather', responses: { 200: { description: 'as it is' } } } } }
  }
  api.at('/api.json', ({ headers }, response) => { json(response, headers['x-static'] === secret ? schema : {}, headers['x-static'] === secret ? 200 : 401) })
  const keyed = { ...schema, servers: [{ url: `${api.url}/{v}?key=${secret}`, variables: { v: { default: 'v1' } } }] }
  const security = { type: 'apiKey', name: 'X-Key', in: 'header', value: secret }
  const headers = { 'X-Static': secret }
  const first = await appFor(t, world({
    mcpServers: {
      fetched: { type: 'openapi', url: api.url, openapi: { url: `${api.url}/api.json?key=${secret}`, security }, headers },
      inline: { type: 'openapi', openapi: { schema, security: { type: 'http', scheme: 'bearer', token: secret }, passthroughHeaders: ['X-Request-Id'] }, visibility: 'public' },
      text: { type: 'openapi', openapi: { schema: JSON.stringify(schema) } },
      keyed: { type: 'openapi', openapi: { schema: keyed } },
      keyedText: { type: 'openapi', openapi: { schema: JSON.stringify(keyed) } }
    }
  }))
  const exported = await apiOf(first)('POST', '/templates/export', { name: 'apis' })
  assert.equal(exported.statusCode, 200, exported.body)
  assert.doesNotMatch(exported.body, new RegExp(secret))
  const template = at(exported.json(), 'data') as { servers: Record<string, Json>, requiredEnvVars: string[] }
  assert.deepEqual(at(template.servers, 'inline', 'openapi', 'schema'), schema)
  const environment = { PATH: process.env.PATH, ...Object.fromEntries(template.requiredEnvVars.map((name) => [name, secret])) }
  const second = await appFor(t, world({}), {}, { environment })
  const imported = await apiOf(second)('POST', '/templates/import', template)
  assert.deepEqual([imported.statusCode, at(imported.json(), 'data', 'serversCreated')], [200, 5], imported.body)
  const names = ['fetched', 'inline', 'text', 'keyed', 'keyedText']
  await until(() => names.every((name) => second.upstreams.get(name)?.status === 'connected'), () =>
    JSON.stringify(names.map((name) => second.upstreams.get(name)?.error)))
  for (const [name, header, value] of [['fetched', 'x-key', secret], ['inline', 'authorization', `Bearer ${secret}`], ['text', 'x-key', undefined]] as const) {
    const called = await apiOf(second)('POST', `/tools/call/${name}`, { toolName: 'weather', arguments: {} })
    assert.match(called.body, /ok/, called.body)
    assert.equal(api.last().headers[header], value, name)
  }
  for (const name of ['keyed', 'keyedText']) {
    await apiOf(second)('POST', `/tools/call/${name}`, { toolName: 'weather', arguments: {} })
    assert.equal(api.last().url, `/v1/weather?key=${secret}`, name)
  }
  const sentOn = second.settings.current.servers.get('inline')?.config.openapi
  assert.deepEqual([sentOn?.passthroughHeaders, sentOn?.schema], [['X-Request-Id'], schema])
  // A template of the second gateway is the same: what is a variable already stays.
  const again = at((await apiOf(second)('POST', '/templates/export', { name: 'apis' })).json(), 'data')
  assert.deepEqual([at(again, 'servers'), at(again, 'requiredEnvVars')], [template.servers, template.requiredEnvVars])
})

test('nobody gets more by a template', async (t) => {
  const app = await appFor(t, world({
    mcpServers: {
      anns: { url: 'https://example.com/mcp', headers: { 'X-Key': 'canary-of-ann' }, owner: 'ann', enabled: false },
      bobs: { url: 'https://example.com/mcp', owner: 'bob', enabled: false, visibility: 'private' },
      open: { url: 'https://example.com/mcp', headers: { 'X-Key': 'canary-of-admin' }, visibility: 'public', enabled: false }
    },
    groups: [{ id: '1', name: 'mixed', owner: 'ann', servers: ['anns', 'open', 'bobs'] }, { id: '2', name: 'admins', servers: ['open'] }]
  }))
  const ann = apiOf(app, 'ann')

  await t.test('a user exports what it manages', async () => {
    const all = await ann('POST', '/templates/export', { name: 'mine' })
    assert.equal(all.statusCode, 200)
    assert.deepEqual(Object.keys(at(all.json(), 'data', 'servers') as Json), ['anns'])
    assert.deepEqual(at(all.json(), 'data', 'groups'), [{ name: 'mixed', servers: ['anns'] }])
    assert.equal(at(all.json(), 'message'), 'Omitted, since you do not manage them: "open"')
    assert.doesNotMatch(all.body, /canary|bobs/)
    for (const [body, status] of [
      [{ name: 'x', serverNames: ['open'] }, 403], [{ name: 'x', serverNames: ['bobs'] }, 404], [{ name: 'x', groupIds: ['2'] }, 403]
    ] as const) assert.equal((await ann('POST', '/templates/export', body)).statusCode, status, JSON.stringify(body))
    const forbidden = await ann('POST', '/templates/export', { name: 'x', serverNames: ['anns', 'open'] })
    assert.match(String(forbidden.json<Json>().message), /may change this server: "open"$/)
    assert.equal((await ann('GET', '/templates/export/groups/2')).statusCode, 403)
    assert.equal((await apiOf(app, 'bob')('GET', '/templates/export/groups/no-such')).statusCode, 404)
  })

  await t.test('a user imports what it may create', async () => {
    const imported = await ann('POST', '/templates/import', {
      version: '1.0',
      name: 'x',
      servers: {
        fine: { url: 'https://example.com/mcp', owner: 'admin', storedByUser: false, headers: { A: '${JWT_SECRET}' }, enabled: false },
        shell: { command: 'sh' },
        api: { type: 'openapi', openapi: { url: 'https://example.com/' } },
        bobs: { url: 'https://example.com/mcp' },
        constructor: { url: 'https://example.com/mcp' },
        'a/b': { url: 'https://example.com/mcp' },
        masked: { url: 'https://example.com/mcp', headers: { A: '••••' } },
        nothing: 'x'
      },
      groups: [
        { name: 'fine group', servers: ['fine', 'open'] },
        { name: 'stolen', servers: ['bobs'] },
        { name: 'open', servers: [] },
        { name: 'mixed', servers: [] }
      ],
      requiredEnvVars: []
    })
    assert.equal(imported.statusCode, 207, imported.body)
    assert.match(at(imported.json(), 'message') as string, /^A part of the template was imported: `details` says why the rest was not\. .*JWT_SECRET$/)
    assert.deepEqual((at(imported.json(), 'data', 'details') as Json[]).map(({ type, name, action }) => [type, name, action]), [
      ['server', 'fine', 'created'], ['server', 'shell', 'failed'], ['server', 'api', 'failed'],
      ['server', 'bobs', 'skipped'], ['server', 'constructor', 'failed'], ['server', 'a/b', 'failed'],
      ['server', 'masked', 'failed'], ['server', 'nothing', 'failed'], ['group', 'fine group', 'created'],
      ['group', 'stolen', 'failed'], ['group', 'open', 'failed'], ['group', 'mixed', 'skipped']
    ])
    const { owner, storedByUser } = app.settings.current.servers.get('fine')?.config ?? {}
    assert.deepEqual([owner, storedByUser], ['ann', true])
    assert.equal([...app.settings.current.groups.values()].find(({ name }) => name === 'fine group')?.owner, 'ann')
    assert.match(imported.body, /ALLOW_USER_STDIO/)
  })

  await t.test('and is told what became of it', async () => {
    for (const [servers, status, message] of [
      [{ shell: { command: 'sh' }, nothing: 'x' }, 207, /^Nothing of the template was imported: `details` says why$/],
      [{ shell: { command: 'sh' }, bobs: { url: 'https://example.com/mcp' } }, 207, /^Nothing of the template was imported/],
      [{ bobs: { url: 'https://example.com/mcp' } }, 200, /^Nothing was imported: all names in the template already exist$/],
      [{}, 200, /^The template is empty/],
      [{ told: { url: 'https://example.com/mcp', enabled: false } }, 200, /^The template was imported$/]
    ] as const) {
      const imported = await ann('POST', '/templates/import', { version: '1.0', name: 'x', servers, groups: [] })
      assert.equal(imported.statusCode, status, imported.body)
      assert.match(at(imported.json(), 'message') as string, message)
    }
  })

  await t.test('a user has no more servers and groups by it than otherwise', async () => {
    const servers = Object.fromEntries(Array.from({ length: managementLimits.serversPerUser + 1 }, (_, each) => [`s${each}`, { url: 'https://example.com/mcp', enabled: false }]))
    const groups = Array.from({ length: managementLimits.groupsPerUser + 1 }, (_, each) => ({ name: `g${each}`, servers: [] }))
    const imported = await apiOf(app, 'bob')('POST', '/templates/import', { version: '1.0', name: 'x', servers, groups })
    const details = at(imported.json(), 'data', 'details') as Json[]
    assert.equal(imported.statusCode, 207, imported.body)
    // Bob has one server already.
    assert.deepEqual(details.filter(({ action }) => action === 'failed').map(({ name }) => name), ['s99', 's100', 'g100'])
  })

  await t.test('what is malformed does not keep the rest from it, and what has no effect is said', async () => {
    const address = { url: 'https://example.com/mcp', enabled: false }
    const servers = {
      whole: address,
      written: { ...address, owner: 'bob', colour: 'red', oauth: { clientId: 'x', accessToken: 'y' } },
      elsewhere: { serverUrl: 'https://example.com/mcp', disabled: true },
      text: 'https://example.com/mcp',
      none: null,
      '': address
    }
    const groups = [
      { name: 'whole group', servers: ['whole'] },
      { servers: [] },
      { name: 'no servers' },
      { name: 'one', servers: 'whole' },
      { name: 'numbers', servers: [1] },
      { name: 'selection', servers: [{ name: 'whole', tools: 'some' }] },
      { name: 7, servers: [] },
      'whole',
      { name: 'written group', owner: 'bob', servers: [{ name: 'whole', tool: ['a'] }] }
    ]
    const imported = await apiOf(app)('POST', '/templates/import', { version: '1.0', name: 'x', servers, groups, mcpServers: {}, $schema: 'x' })
    assert.equal(imported.statusCode, 207, imported.body)
    const { serversCreated, groupsCreated, details } = at(imported.json(), 'data') as { serversCreated: number, groupsCreated: number, details: Json[] }
    assert.deepEqual([serversCreated, groupsCreated], [3, 2])
    const wanted: ReadonlyArray<[string, string, RegExp?]> = [
      ['whole', 'created'],
      ['written', 'created', /^"owner" has no effect in a template\. "colour" is not known and has no effect\. "oauth\.accessToken" is not known/],
      ['elsewhere', 'created'],
      ['text', 'failed', /^A server is an object, its config/],
      ['none', 'failed', /^A server is an object/],
      ['', 'failed', /needs a name/],
      ['whole group', 'created'],
      ['', 'failed', /^groups\.1: "name" is missing/],
      ['no servers', 'failed', /^"servers" is missing/],
      ['one', 'failed', /^"servers": expected a list of names$/],
      ['numbers', 'failed', /^"servers\.0": expected the name of a server/],
      ['selection', 'failed', /^"servers\.0\.tools": expected "all", or a list/],
      ['', 'failed', /^groups\.6: "name": expected string$/],
      ['', 'failed', /^groups\.7: A group is an object/],
      ['written group', 'created', /^"owner" is not known and has no effect\. "servers\.0\.tool" is not known/]
    ]
    assert.deepEqual(details.map(({ name, action }) => [name, action]), wanted.map(([name, action]) => [name, action]))
    for (const [each, [name, , message]] of wanted.entries()) {
      if (message) assert.match(String(details[each]?.message), message)
      else assert.equal(details[each]?.message, undefined, name)
    }
    assert.equal(app.settings.current.servers.get('elsewhere')?.config.enabled, false)
    assert.deepEqual(at(imported.json(), 'warnings'), [
      '"mcpServers" is not known and has no effect; a template has "version", "name", "description", "createdAt", "servers", "groups", "requiredEnvVars"'
    ])
  })

  await t.test('what is no template', async () => {
    for (const [body, reason] of [
      [{ servers: {} }, /version/],
      [{ version: '2.0' }, /is not supported/],
      [{ version: '1.0', servers: [] }, /servers/],
      [{ version: '1.0', groups: {} }, /groups/],
      [{ version: '1.0', groups: Array.from({ length: 1_001 }, (_, each) => ({ name: `${each}`, servers: [] })) }, /import it in parts/]
    ] as const) {
      const refused = await apiOf(app)('POST', '/templates/import', body)
      assert.equal(refused.statusCode, 400, refused.body)
      assert.match(refused.body, reason)
    }
    const empty = await apiOf(app)('POST', '/templates/import', JSON.parse('{"version":"1.0","servers":{"__proto__":{"url":"https://example.com/mcp"}}}') as object)
    assert.deepEqual([empty.statusCode, at(empty.json(), 'data', 'details', 0, 'action')], [207, 'failed'])
  })
})

test('a variable that stands for a secret is none that the gateway has', async () => {
  const environment = { MY_CANARY: 'of-the-gateway', MY_CANARY_VALUE: '', API_KEY: 'of-the-gateway', Path: '/bin' }
  const config = { headers: { canary: 'harmless' }, env: { API_KEY: 'k', PATH: 'p' }, args: ['--path=/x', '--token', 't'] }
  const made = replaceSecrets('my', config, new TemplateVariables([], environment))
  assert.deepEqual([made.headers, made.env], [{ canary: '${MCP_MY_CANARY}' }, { API_KEY: '${API_KEY_VALUE}', PATH: '${PATH_VALUE}' }])
  assert.deepEqual(expandVariables(made as ServerConfig, environment).config, made)
})

test('what a user stored is filled in for nobody, by way of a template either', async (t) => {
  const environment = { PATH: process.env.PATH, MY_CANARY: 'canary-of-the-gateway' }
  const app = await appFor(t, world(), {}, { environment })
  const stored = async (as: string, method: 'POST' | 'PUT', name: string, config: Json): Promise<void> => {
    const url = method === 'POST' ? '/servers' : `/servers/${name}`
    const reply = await apiOf(app, as)(method, url, { ...(method === 'POST' ? { name } : {}), config: { ...config, enabled: false } })
    assert.ok(reply.statusCode < 300, reply.body)
  }
  const named = '${MY_CANARY}'
  await stored('ann', 'POST', 'my', {
    url: `https://example.com/${named}/\${A:-$}{env:MY_CANARY}?q=${named}`,
    headers: { canary: 'harmless-secret-1234', whole: named, bearer: `Bearer ${named}`, within: `a ${named} b`, env: '${env:MY_CANARY}' },
    oauth: { clientId: named, clientSecret: named }
  })
  await stored('ann', 'POST', 'edited', { url: `https://example.com/${named}`, headers: { theirs: named } })
  const shown = at((await apiOf(app)('GET', '/servers/edited')).json(), 'data', 'config') as Json
  await stored('admin', 'PUT', 'edited', { ...shown, headers: { ...shown.headers as Json, ours: named } })
  await stored('admin', 'POST', 'ours', { url: `https://example.com/${named}`, headers: { whole: named, secret: 'ours' } })

  const exported = await apiOf(app)('POST', '/templates/export', { name: 'all' })
  const template = at(exported.json(), 'data') as { servers: Record<string, Json>, requiredEnvVars: string[] } & Json
  assert.deepEqual(template.servers.ours, { url: `https://example.com/${named}`, headers: { whole: named, secret: '${OURS_SECRET}' }, enabled: false })
  assert.deepEqual(template.servers.edited?.headers, { theirs: '${MCP_EDITED_THEIRS_VALUE}', ours: named })
  assert.deepEqual(at(template.servers.my, 'headers'), {
    canary: '${MCP_MY_CANARY_VALUE}',
    whole: '${MCP_MY_WHOLE_VALUE}',
    bearer: 'Bearer ${MCP_MY_BEARER_VALUE}',
    within: '${MCP_MY_WITHIN_VALUE_1}',
    env: '${MCP_MY_ENV_VALUE}'
  })
  const required = [...new Set([...JSON.stringify(template.servers).matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name))].sort()
  assert.deepEqual(template.requiredEnvVars, required)

  // Where it is imported, too, servers and headers may be called as a variable that is there.
  const second = await appFor(t, world(), {}, { environment })
  const imported = await apiOf(second)('POST', '/templates/import', template)
  assert.deepEqual([imported.statusCode, at(imported.json(), 'data', 'serversCreated')], [200, 3], imported.body)
  const filled = (name: string): Json => {
    const config = second.settings.current.servers.get(name)?.config
    assert.ok(config)
    return { ...expandVariables(config, environment).config }
  }
  assert.doesNotMatch(JSON.stringify(filled('my')), /canary-of-the-gateway/)
  assert.deepEqual(filled('edited').headers, { theirs: '${MCP_EDITED_THEIRS_VALUE}', ours: 'canary-of-the-gateway' })
  assert.equal(filled('ours').url, 'https://example.com/canary-of-the-gateway')
})

test('a user\'s variable within a variable stays a user\'s after an admin\'s edit', async (t) => {
  const environment = { PATH: process.env.PATH, MY_CANARY: 'canary-of-the-gateway' }
  const app = await appFor(t, world(), {}, { environment })
  for (const [each, path] of ['${A:-$}{env:MY_CANARY}', '${A:-$}{B:-$}{MY_CANARY}', '${${A:-MY_CANARY}}', '${env:${A:-${env:MY_CANARY}}}'].entries()) {
    const name = `my${each}`
    const created = await apiOf(app, 'ann')('POST', '/servers', { name, config: { url: `https://example.com/${path}`, enabled: false } })
    assert.equal(created.statusCode, 200, created.body)
    const shown = at((await apiOf(app)('GET', `/servers/${name}`)).json(), 'data', 'config') as Json
    const put = await apiOf(app)('PUT', `/servers/${name}`, { config: { ...shown, description: 'new' } })
    assert.equal(put.statusCode, 200, put.body)
    const config = app.settings.current.servers.get(name)?.config
    assert.ok(config)
    assert.doesNotMatch(String(expandVariables(config, environment).config.url), /canary-of-the-gateway/, path)
  }
})

test('200 exports and imports per 15 minutes and caller', async (t) => {
  const app = await appFor(t, world())
  const { requests } = identityLimits.templates
  const ann = apiOf(app, 'ann')
  for (let each = 0; each < requests; each++) assert.equal((await ann('POST', '/templates/export', { name: 'x' })).statusCode, 200)
  const refused = await ann('POST', '/templates/import', { version: '1.0' })
  assert.deepEqual([refused.statusCode, at(refused.json(), 'code')], [429, 'TH_TOO_MANY_REQUESTS'])
  assert.ok(Number(refused.headers['retry-after']) > 0 && Number(refused.headers['retry-after']) <= 900)
  assert.equal((await ann('GET', '/templates/export/groups/1')).statusCode, 429)
  assert.equal((await apiOf(app, 'bob')('POST', '/templates/export', { name: 'x' })).statusCode, 200)
})
