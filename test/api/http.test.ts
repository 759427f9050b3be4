// What HTTP promises of the management API, whatever a route does: methods, entity tags, locations, queries, codes.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { allowedMethodsLookup } from '../../plugins/base/scopes/index.ts'
import { appFor } from '../helpers/app.ts'
import { admin, alice, key } from '../helpers/doors.ts'
import { bearerKey } from '../helpers/hub.ts'

const own = bearerKey({ name: 'own', kind: 'user', owner: 'alice', token: 'thk_own', id: '22222222-2222-4222-8222-222222222222' })
const scoped = bearerKey({
  name: 'scoped',
  accessType: 'groups',
  allowedGroups: ['team'],
  token: 'thk_scoped',
  id: '33333333-3333-4333-8333-333333333333'
})
const stored = {
  users: [admin, alice],
  bearerKeys: [key, own, scoped],
  mcpServers: { up: { url: 'http://127.0.0.1:9/mcp', enabled: false }, 'its own': { url: 'http://127.0.0.1:9/mcp', enabled: false } },
  systemConfig: { oauthServer: { enabled: true } },
  groups: [{ id: '5f1d8b0e-7a35-4c53-9c54-1f2f6b6c9d10', name: 'team', servers: ['up'] }]
}
type Ask = (method: InjectOptions['method'], url: string, more?: InjectOptions) => Promise<LightMyRequestResponse>
/** Asks with a system key. */
const asking = (app: FastifyInstance): Ask => async (method, url, more = {}) => await app.inject({
  method, url, ...more, headers: { authorization: `Bearer ${key.token}`, host: '127.0.0.1', ...more.headers }
})

test('the methods of a path, from the table of routes', async () => {
  const at = allowedMethodsLookup([
    { method: 'GET', url: '/api/servers/:name', scope: 'api' },
    { method: 'PUT', url: '/api/servers/:name', scope: 'api' },
    { method: 'POST', url: '/api/servers/batch', scope: 'api' },
    { method: 'GET', url: '/api/:name/openapi.json', scope: 'open' },
    { method: 'POST', url: '/api/tools/:server/:tool', scope: 'hidden' },
    { method: 'POST', url: '/oauth/token', scope: 'oauth' },
    { method: 'GET', url: '/docs/static/*', scope: 'docs' },
    { method: 'OPTIONS', url: '*', scope: 'public' },
    { method: 'PATCH', url: '/mcp/$smart', scope: 'mcp' },
    { method: 'POST', url: '/mcp/$smart', scope: 'mcp' },
    { method: 'GET', url: '/', scope: 'public' }
  ], (scope) => scope === 'hidden')
  for (const [path, methods] of [
    ['/api/servers/x', ['GET', 'PUT']],
    ['/api/servers/x/', ['GET', 'PUT']],
    ['/api/servers/batch', ['GET', 'POST', 'PUT']],
    ['/api/servers/x/y', []],
    ['/api/servers/', []],
    ['/api/a%2Fb/openapi.json', ['GET']],
    ['/api/x/openapiXjson', []],
    ['/api/tools/a/b', []],
    ['/oauth/token', []],
    ['/docs/static/a/b.js', ['GET']],
    ['/mcp/$smart', ['POST']],
    ['/', ['GET']],
    ['', []]
  ] as const) assert.deepEqual(at(path), methods, path)
  assert.deepEqual([at('/api/servers/batch', true), at('/api/servers/x', true)], [['POST'], []])
})

test('a known path with another method is 405 with Allow, whether or not the thing is there, and whoever asks', async (t) => {
  const app = await appFor(t, stored, { BASE_PATH: '/hub' })
  const ask = asking(app)
  const strangers = { headers: { authorization: '' } }
  for (const [method, path, allow] of [
    ['PATCH', '/api/servers', 'GET, HEAD, POST'],
    ['DELETE', '/api/servers', 'GET, HEAD, POST'],
    ['POST', '/api/servers/up', 'DELETE, GET, HEAD, PUT'],
    ['POST', '/api/servers/none', 'DELETE, GET, HEAD, PUT'],
    ['POST', '/api/servers/up/?x=1', 'DELETE, GET, HEAD, PUT'],
    ['GET', '/api/servers/up/toggle', 'POST'],
    ['PUT', '/api/tools/call/up', 'GET, POST'],
    ['PUT', '/api/users', 'GET, HEAD, POST'],
    ['GET', '/api/auth/login', 'POST'],
    ['POST', '/health', 'GET, HEAD'],
    ['DELETE', '/metrics', 'GET, HEAD']
  ] as const) {
    for (const more of [{}, strangers]) {
      const { statusCode, headers, body } = await ask(method, `/hub${path}`, more)
      assert.deepEqual([statusCode, headers.allow], [405, allow], `${method} ${path}: ${body}`)
      assert.equal((JSON.parse(body) as { code: string }).code, 'TH_METHOD_NOT_ALLOWED')
    }
  }
  // The name of a server, were there one.
  for (const [method, path] of [['GET', 'batch'], ['DELETE', 'batch'], ['GET', 'test']] as const) {
    const { statusCode, headers } = await ask(method, `/hub/api/servers/${path}`)
    assert.deepEqual([statusCode, headers.allow], [405, 'POST'], `${method} ${path}`)
  }
  // In the words of the open routes, and of MCP.
  for (const [path, allow] of [
    ['/tools/up/echo', 'GET, POST'], ['/team/tools/up/echo/', 'GET, POST'], ['/team/openapi.json', 'GET, HEAD'], ['/openapi/stats', 'GET, HEAD']
  ] as const) {
    const { statusCode, headers, body } = await ask('DELETE', `/hub/api${path}?x=1`)
    const { message, ...others } = JSON.parse(body) as Record<string, unknown>
    assert.deepEqual([statusCode, headers.allow, others], [405, allow, { success: false, error: 'TH_METHOD_NOT_ALLOWED' }], path)
  }
  const mcp = await ask('PATCH', '/hub/sse')
  assert.deepEqual([mcp.statusCode, mcp.headers.allow, mcp.json<{ jsonrpc: string }>().jsonrpc], [405, 'GET', '2.0'])
  for (const path of ['/api/nothing', '/api/servers/a/b/c/d', '/oauth/token', '/hubs', '/api/servers']) {
    assert.equal((await ask('PATCH', path)).statusCode, 404, path)
  }
})

test('what is switched off has no methods, and read-only comes first', async (t) => {
  const off = asking(await appFor(t, stored, { METRICS: 'off', PUBLIC_TOOLS: 'off' }))
  for (const path of ['/metrics', '/api/tools/up/echo', '/api/openapi.json', '/oauth/token', '/api/social-auth/user']) {
    const { statusCode, headers } = await off('DELETE', path)
    assert.deepEqual([statusCode, headers.allow], [404, undefined], path)
  }
  const readonly = asking(await appFor(t, stored, { READONLY: true }))
  assert.equal((await readonly('PATCH', '/api/servers')).statusCode, 403)
})

test('what GET reads has an entity tag, and 304 for who has it', async (t) => {
  const ask = asking(await appFor(t, stored))
  const hash = /^"[\w-]{43}"$/
  const revisionAndHash = /^"[\w-]{22}\.[\w-]{43}"$/
  for (const [path, shape] of [
    ['/api/servers', hash],
    ['/api/servers/up', revisionAndHash],
    ['/api/groups/team', revisionAndHash],
    ['/api/users/alice', revisionAndHash],
    [`/api/auth/keys/${own.id}`, revisionAndHash],
    ['/api/settings', hash],
    ['/api/prompts', hash],
    ['/api/audit', hash]
  ] as const) {
    const first = await ask('GET', path)
    const etag = String(first.headers.etag)
    assert.match(etag, shape, `${path}: ${first.body}`)
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const { statusCode, body, headers } = await ask('GET', path, { headers: { 'if-none-match': known } })
      assert.deepEqual([statusCode, body, headers.etag, headers['content-type']], [304, '', etag, undefined], path)
      assert.equal(headers['cache-control'], 'no-store')
    }
    const head = await ask('HEAD', path)
    assert.deepEqual([head.statusCode, head.headers.etag, head.body], [200, etag, ''], path)
    assert.equal((await ask('GET', path, { headers: { 'if-none-match': '"other"' } })).statusCode, 200)
  }
  const { etag } = (await ask('GET', '/api/groups/team')).headers
  await ask('PUT', '/api/groups/team', { payload: { description: 'changed' } })
  assert.equal((await ask('GET', '/api/groups/team', { headers: { 'if-none-match': String(etag) } })).statusCode, 200)
  for (const [method, path] of [['GET', '/api/servers/none'], ['POST', '/api/servers/up/reload']] as const) {
    assert.equal((await ask(method, path)).headers.etag, undefined, path)
  }
})

test('201 says where the new thing is', async (t) => {
  const ask = asking(await appFor(t, stored, { BASE_PATH: '/hub' }))
  for (const [path, payload] of [
    ['/users', { username: 'ada+1@x', password: 'Analytical-1' }],
    ['/auth/register', { username: 'grace', password: 'Analytical-1' }],
    ['/groups', { name: 'a team', servers: ['its own'] }],
    ['/auth/keys', { name: 'k', kind: 'user', owner: 'alice' }],
    ['/prompts', { name: 'p', template: 'x' }],
    ['/resources', { uri: 'x:1', name: 'r', content: 'x' }],
    ['/oauth/clients', { name: 'c', redirectUris: ['https://app.example/cb'] }]
  ] as const) {
    const made = await ask('POST', `/hub/api${path}`, { payload })
    assert.equal(made.statusCode, 201, `${path}: ${made.body}`)
    const { location } = made.headers
    assert.ok(location?.startsWith('/hub/api/'), `${path}: ${location}`)
    const { statusCode, body } = await ask('GET', String(location))
    assert.equal(statusCode, 200, `${location}: ${body}`)
  }
})

test('a parameter that a route does not know is refused, with the one that was meant', async (t) => {
  const ask = asking(await appFor(t, stored))
  for (const [path, says] of [
    ['/servers?limt=1', /"limt" is not known; did you mean "limit"\?/],
    ['/servers?field=name', /did you mean "fields"\?/],
    ['/groups?Cursor=x', /did you mean "cursor"\?/],
    ['/users?page=1', /"page" is not known; there are "limit", "cursor", "fields"/],
    ['/mcp-settings/export?includeSecret=true', /did you mean "includeSecrets"\?/],
    ['/settings?x=1', /there is none/],
    ['/servers/up?fields=name', /there is none/],
    ['/logs?__proto__=1', /there is none/]
  ] as const) {
    const { statusCode, body } = await ask('GET', `/api${path}`)
    const { message, code } = JSON.parse(body) as { message: string, code: string }
    assert.deepEqual([statusCode, code], [400, 'TH_INVALID_INPUT'], body)
    assert.match(message, says)
  }
  assert.equal((await ask('DELETE', '/api/servers/up?force=true')).statusCode, 400)
  assert.equal((await ask('GET', '/api/servers/up')).statusCode, 200, 'nothing was removed')
  for (const path of ['/servers?token=x&_=1', '/servers/up?_=1']) assert.equal((await ask('GET', `/api${path}`)).statusCode, 200, path)
  // Arguments, and what other programs add.
  assert.equal((await ask('GET', '/api/tools/up/echo?limt=1')).statusCode, 404)
  assert.equal((await ask('POST', '/api/tools/call/up?limt=1', { payload: { toolName: 'x' } })).statusCode, 404)
  for (const path of ['/oauth/callback?x=1', '/health?x=1', '/config?x=1', '/public-config?x=1']) {
    assert.ok([200, 400].includes((await ask('GET', path)).statusCode), path)
    assert.doesNotMatch((await ask('GET', path)).body, /parameter/, path)
  }
  assert.equal((await ask('GET', '/api/servers?limt=1', { headers: { authorization: '' } })).statusCode, 401, 'who asks comes first')
  assert.equal((await ask('PUT', '/api/groups/none?x=1', { payload: {} })).statusCode, 404, 'and what is there')
})

test('what was not found is named as it was asked for', async (t) => {
  const app = await appFor(t, stored)
  const ask = asking(app)
  for (const [path, message] of [
    ['/api/servers/none', 'There is no such server: "none"'],
    ['/api/servers/a%22b', 'There is no such server: "a\\"b"'],
    [`/api/groups/${'x'.repeat(200)}`, `There is no such group: "${'x'.repeat(60)}…"`],
    ['/api/users/none', 'There is no such user: "none"'],
    ['/api/auth/keys/none', 'There is no such bearer key: "none"'],
    ['/api/prompts/none', 'There is no such built-in prompt: "none"'],
    ['/api/oauth/clients/none', 'There is no such client: "none"'],
    ['/api/market/servers/none', 'There is no such server in this catalogue: "none"'],
    ['/api/none/openapi.json', 'There is no such group or server: "none"'],
    ['/api/tools/none/echo', 'There is no such server: "none"'],
    ['/api/none/tools/up/echo', 'There is no such group or server: "none"'],
    ['/api/tools/up/echo?group=none', 'There is no such group: "none"'],
    ['/api/tools/up/echo', 'There is no such server: "up"'],
    ['/api/team/tools/up/echo', 'There is no such server: "up"']
  ] as const) {
    const answer = await ask('GET', path)
    assert.equal(answer.json<{ message: string }>().message, message, path)
    assert.equal(answer.statusCode, 404)
  }
})

test('every failure has a code, and none of an inner fault', async (t) => {
  const app = await appFor(t, stored)
  const ask = asking(app)
  const batch = await ask('POST', '/api/servers/batch', { payload: { servers: [{ name: '', config: {} }] } })
  assert.deepEqual([batch.statusCode, batch.json<{ code: string }>().code], [400, 'TH_INVALID_INPUT'])
  for (const fault of [new Error('inner'), Object.assign(new Error('inner'), { code: 'ECONNREFUSED' }), new TypeError('inner')]) {
    app.groups.list = () => { throw fault }
    const { statusCode, body } = await ask('GET', '/api/groups')
    assert.deepEqual([statusCode, JSON.parse(body)], [500, { success: false, message: 'Internal error', code: 'TH_FAILED' }])
  }
})

test('pages of any origin may read documents, and no more', async (t) => {
  const app = await appFor(t, stored)
  const headers = { origin: 'https://editor.example', host: '127.0.0.1' }
  for (const path of ['/api/openapi.json', '/api/openapi.yaml', '/api/team/openapi.json', '/api/users/openapi.yaml']) {
    const answer = await app.inject({ url: path, headers })
    assert.deepEqual([answer.headers['access-control-allow-origin'], answer.headers['access-control-allow-credentials']], ['*', undefined], path)
    assert.match(String(answer.headers['access-control-expose-headers']), /\betag\b/)
    const preflight = await app.inject({
      method: 'OPTIONS',
      url: path,
      headers: { ...headers, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' }
    })
    assert.deepEqual([preflight.statusCode, preflight.headers['access-control-allow-headers']], [204, 'authorization'], path)
  }
  for (const path of ['/api/openapi/servers', '/api/servers', '/api/tools/up/echo', '/mcp']) {
    const preflight = await app.inject({ method: 'OPTIONS', url: path, headers: { ...headers, 'access-control-request-method': 'GET' } })
    assert.equal(preflight.headers['access-control-allow-origin'], undefined, path)
  }
})

test('a key that opens MCP and tools only is told so on the management API', async (t) => {
  const app = await appFor(t, { ...stored, systemConfig: { routing: { bearerAuthHeaderName: 'x-key' } } })
  for (const [headers, says] of [
    [{ authorization: 'Bearer thk_own' }, /^This is a user key, which is for MCP and \/api\/tools\/<server>\/<tool> only\. Log in/],
    [{ 'x-key': 'thk_own' }, /^This is a user key, which is for MCP and \/api\/tools\/<server>\/<tool> only\./],
    [{ authorization: 'Bearer thk_scoped' }, /^This key has a limited scope, so it is for MCP and \/api\/tools\/<server>\/<tool> only\./],
    [{ authorization: 'Bearer thk_other' }, /^The credential in the Authorization header is not valid here\./],
    [{}, /^Log in/]
  ] as const) {
    const { statusCode, body } = await app.inject({ url: '/api/servers', headers: { host: '127.0.0.1', ...headers } })
    const { message, code } = JSON.parse(body) as { message: string, code: string }
    assert.deepEqual([statusCode, code], [401, 'TH_UNAUTHORIZED'])
    assert.match(message, says)
  }
})

test('the page of the API has the title and the icon of the project', async (t) => {
  const app = await appFor(t, stored, { BASE_PATH: '/hub' })
  const { body } = await app.inject('/hub/docs')
  assert.match(body, /<title>Tool-Hub: the API<\/title>/)
  const icon = /<link rel="icon" type="image\/svg\+xml" href="([^"]+)"/.exec(body)?.[1]
  const shown = await app.inject(String(icon))
  assert.equal(shown.statusCode, 200)
  const { body: script } = await app.inject('/hub/docs/static/swagger-initializer.js')
  assert.ok(script.includes(Buffer.from(shown.rawPayload).toString('base64')), 'in the top bar as well')
  for (const file of ['nothing.js', '..%2f..%2fpackage.json']) {
    assert.equal((await app.inject(`/hub/docs/static/${file}`)).statusCode, 404, file)
    assert.equal((await app.inject({ method: 'PUT', url: `/hub/docs/static/${file}` })).statusCode, 405, file)
  }
})
