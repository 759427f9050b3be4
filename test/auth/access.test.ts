// The doors: forged tokens, odd paths, pages from elsewhere, proxies, read-only, and what a caller may send at all.
import assert from 'node:assert/strict'
import { createHash, createHmac, generateKeyPairSync, sign as signWith } from 'node:crypto'
import { connect, type AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import bcrypt from 'bcryptjs'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { read } from '../../db/document.ts'
import type { Snapshot, Store } from '../../db/store.ts'
import { originRules } from '../../plugins/auth/origin.ts'
import { exposureSigns } from '../../plugins/auth/warn-open.ts'
import { trustedProxies } from '../../plugins/config/trust-proxy.ts'
import { limits } from '../../plugins/limits/index.ts'
import { fromQuery } from '../../plugins/tools/given.ts'
import { readEnv, type Env } from '../../schemas/env.ts'
import { appFor } from '../helpers/app.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { bearerKey, spawnHub, startHub, until } from '../helpers/hub.ts'

const secret = 'a secret of the test that is long enough'
const password = bcrypt.hashSync('Same-1234', 4)
const admin = { username: 'admin', password, isAdmin: true }
const alice = { username: 'alice', password, isAdmin: false }
const key = bearerKey()

interface World { app: FastifyInstance, url: string, port: number }

async function start (t: Test, { env = {}, settings = {} }: { env?: Partial<Env>, settings?: object } = {}): Promise<World> {
  const app = await appFor(t, { users: [admin, alice], bearerKeys: [key], ...settings }, { JWT_SECRET: secret, ...env })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return { app, port, url: `http://127.0.0.1:${port}` }
}

const base64 = (value: unknown): string => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
const hs = (algorithm: string, header: object, claims: object, by: string | Buffer = secret): string => {
  const text = `${base64(header)}.${base64(claims)}`
  return `${text}.${createHmac(algorithm, by).update(text).digest('base64url')}`
}

/** One request as raw bytes, for paths and headers that fetch would mend. The status line's code; 0: closed without an answer. */
async function raw (port: number, text: string): Promise<{ status: number, text: string }> {
  return await new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => { socket.write(text) })
    socket.setTimeout(5_000, () => { socket.destroy() })
    socket.on('data', (chunk) => { answer += String(chunk); if (answer.includes('\r\n\r\n')) socket.end() })
    socket.on('close', () => { resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0), text: answer }) })
    socket.on('error', reject)
  })
}

test('what is no HTTP request is answered in the envelope, too', async (t) => {
  const { port, url } = await start(t)
  for (const [text, status, code] of [
    [`GET /api/servers/${'a'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'TH_HEADERS_TOO_LARGE'],
    ['GET /api/servers HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n', 400, 'TH_MALFORMED_REQUEST'],
    ['FETCH /api/servers HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'TH_MALFORMED_REQUEST'],
    ['POST /api/servers HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 400, 'TH_MALFORMED_REQUEST'],
    ['POST /api/servers HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400, 'TH_MALFORMED_REQUEST']
  ] as const) {
    const answer = await raw(port, text)
    assert.equal(answer.status, status, answer.text)
    const body = JSON.parse(answer.text.split('\r\n\r\n')[1] ?? '') as Record<string, unknown>
    assert.deepEqual([body.success, body.code, typeof body.message], [false, code, 'string'])
    assert.match(answer.text, /\r\nConnection: close\r\n/)
  }
  const uri = encodeURIComponent('字'.repeat(2_048))
  assert.equal((await fetch(`${url}/api/servers/x/resources/${uri}/toggle`, { method: 'POST' })).status, 401,
    'a URI of 2,048 characters fits')
})

test('login tokens: what is forged, old or of somebody else is none', async (t) => {
  const { app, url } = await start(t)
  const good = app.auth.login(admin)
  const claims = claimsOf(good)
  const header = { alg: 'HS256', typ: 'JWT' }
  const now = Math.floor(Date.now() / 1_000)
  const without = (name: string): object => Object.fromEntries(Object.entries(claims).filter(([each]) => each !== name))
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const rs = (): string => {
    const text = `${base64({ alg: 'RS256', typ: 'JWT' })}.${base64(claims)}`
    return `${text}.${signWith('sha256', Buffer.from(text), privateKey).toString('base64url')}`
  }
  const table: Array<[string, string]> = [
    ['alg none', `${base64({ alg: 'none', typ: 'JWT' })}.${base64(claims)}.`],
    ['alg None', `${base64({ alg: 'None', typ: 'JWT' })}.${base64(claims)}.`],
    ['no signature', good.split('.').slice(0, 2).join('.') + '.'],
    ['another key', hs('sha256', header, claims, 'another secret')],
    ['an empty key', hs('sha256', header, claims, '')],
    ['HS384 by our key', hs('sha384', { alg: 'HS384', typ: 'JWT' }, claims)],
    ['HS512 by our key', hs('sha512', { alg: 'HS512', typ: 'JWT' }, claims)],
    ['RS256', rs()],
    ['HS256 by a public key', hs('sha256', header, claims, publicKey.export({ type: 'spki', format: 'pem' }))],
    ['a key of its own in the header', hs('sha256', { ...header, jwk: { kty: 'oct', k: base64('mine') } }, claims, 'mine')],
    ['a key id that is a path', hs('sha256', { ...header, kid: '../../dev/null' }, claims, '')],
    ['no exp', hs('sha256', header, without('exp'))],
    ['past exp', hs('sha256', header, { ...claims, exp: now - 1 })],
    ['exp that is text', hs('sha256', header, { ...claims, exp: 'tomorrow' })],
    ['no iat', hs('sha256', header, without('iat'))],
    ['no iss', hs('sha256', header, without('iss'))],
    ['another iss', hs('sha256', header, { ...claims, iss: 'somebody' })],
    ['no aud', hs('sha256', header, without('aud'))],
    ['another aud', hs('sha256', header, { ...claims, aud: 'somebody' })],
    ['no sub', hs('sha256', header, without('sub'))],
    ['sub that is an object', hs('sha256', header, { ...claims, sub: { username: 'admin' } })],
    ['sub of nobody', hs('sha256', header, { ...claims, sub: 'nobody' })],
    ['sub __proto__', hs('sha256', header, { ...claims, sub: '__proto__' })],
    ['no mark', hs('sha256', header, without('mark'))],
    ['another mark', hs('sha256', header, { ...claims, mark: 'x'.repeat(22) })],
    ['another user\'s mark', hs('sha256', header, { ...claims, mark: claimsOf(app.auth.login(alice)).mark })],
    ['not yet', hs('sha256', header, { ...claims, nbf: now + 3_600 })],
    ['two tokens', `${good}.${good}`],
    ['nothing', ''],
    ['dots', '..']
  ]
  const ask = async (headers: Record<string, string>, query = ''): Promise<number> =>
    (await fetch(`${url}/api/auth/user${query}`, { headers })).status
  assert.equal(await ask({ 'x-auth-token': good }), 200)
  assert.equal(await ask({ 'x-auth-token': hs('sha256', header, claims) }), 200, 'the forger\'s own tools are right')
  assert.equal(await ask({}, `?token=${good}`), 200)
  for (const [name, token] of table) {
    assert.equal(await ask({ 'x-auth-token': token }), 401, name)
    assert.equal(await ask({}, `?token=${encodeURIComponent(token)}`), 401, `${name}, in the query`)
  }
  assert.equal(await ask({ authorization: `Bearer ${good}` }), 401, 'not in Authorization')
  assert.equal(await ask({ 'x-auth-token': key.token }), 401, 'a bearer key is no login token')
  assert.equal(await ask({}, `?token=${key.token}`), 401, 'a bearer key does not stand in a query')
  const mcp = async (headers: Record<string, string>, query = ''): Promise<number> =>
    (await fetch(`${url}/mcp${query}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' })).status
  assert.equal(await mcp({ 'x-auth-token': good }), 401, 'no login token on MCP')
  assert.equal(await mcp({}, `?token=${good}`), 401)
  assert.equal(await mcp({ authorization: `Bearer ${good}` }), 401)
})

test('an account that changed has other tokens', async (t) => {
  const { app, url } = await start(t)
  const ask = async (token: string): Promise<[number, unknown]> => {
    const reply = await fetch(`${url}/api/auth/user`, { headers: { 'x-auth-token': token } })
    return [reply.status, (await reply.json() as { user?: { isAdmin: boolean } }).user?.isAdmin]
  }
  const token = app.auth.login(alice)
  assert.deepEqual(await ask(token), [200, false])
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: { ...alice, isAdmin: true } }])
  assert.deepEqual(await ask(token), [200, true], 'rights are read anew')
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: { ...alice, password: bcrypt.hashSync('Other-1234', 4) } }])
  assert.deepEqual(await ask(token), [401, undefined], 'another password')
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: undefined }])
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: { ...alice, createdAt: new Date().toISOString() } }])
  assert.deepEqual(await ask(token), [401, undefined], 'another account of the same name')
})

test('odd paths and methods lead nowhere', async (t) => {
  const { port } = await start(t, { env: { BASE_PATH: '' } })
  const { port: readonly } = await start(t, { env: { READONLY: true } })
  const paths = [
    '//api/users', '/API/users', '/api//users', '/api/./users', '/api/x/../users', '/%61pi/users', '/api%2fusers',
    '/api/%2e%2e/api/users', '/api/auth/login/../../users', '/api/users;x=1', '/api;x=1/users', '/api/users%00',
    '/api/users/', '/api/users?token', '/api/users#x', '/api/users%20', '/.%2e/api/users', '/api\\users',
    `http://127.0.0.1:${port}/api/users`, 'http://evil.example/api/users', '/health/../api/users',
    '/api/tools/../users', '/tools/../api/users'
  ]
  for (const path of paths) {
    const { status, text } = await raw(port, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`)
    assert.ok([400, 401, 404].includes(status), `GET ${path}: ${status}`)
    assert.ok(!text.includes('"username"'), `GET ${path}: ${text}`)
  }
  const request = (method: string, path: string, more: string[] = [], body = ''): string =>
    [
      `${method} ${path} HTTP/1.1`, `Host: 127.0.0.1:${readonly}`, `Authorization: Bearer ${key.token}`,
      'Content-Type: application/json', `Content-Length: ${body.length}`, 'Connection: close', ...more, '', body
    ].join('\r\n')
  const config = JSON.stringify({ name: 'NEW', config: { url: 'http://127.0.0.1:9/' } })
  for (const [method, path, more] of [
    ['POST', '/api/servers', []],
    ['POST', '/api/servers/', []],
    ['POST', '/api/tools/../servers', []],
    ['POST', '//api/servers', []],
    ['PUT', '/api/servers/x', []],
    ['GET', '/api/servers', ['X-HTTP-Method-Override: POST']],
    ['POST', '/api/tools/call/x/../../../servers', []],
    ['TRACE', '/api/servers', []],
    ['PATCH', '/api/servers', []],
    ['POST', '/api/auth/register', []],
    ['POST', '/api/nothing', []],
    ['PROPFIND', '/api/servers', []],
    ['DELETE', '/api/servers/x', []]
  ] as const) {
    const { status, text } = await raw(readonly, request(method, path, [...more], config))
    assert.ok(method === 'GET' ? status === 200 && !text.includes('NEW') : [400, 403, 404, 405, 501].includes(status),
      `${method} ${path}: ${status}`)
  }
  const { status } = await raw(readonly, request('HEAD', '/api/tools/x/y'))
  assert.equal(status, 404)
})

test('names of the language and hostile names are names like others', async (t) => {
  const { app, url } = await start(t)
  const send = async (method: string, path: string, body?: unknown): Promise<number> =>
    (
      await fetch(`${url}/api${path}`, {
        method,
        headers: { authorization: `Bearer ${key.token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
      })
    ).status
  const names = [
    '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', 'a/b', 'a\\b', '..', '.', '', ' ',
    'a\u202Eb', 'a\u200Bb', 'a\nb', 'a\u0000b', '\uD800', '%2e%2e', '$smart', '_x', 'x'.repeat(129), 'ａdmin ',
    'admin\u0301'.repeat(40)
  ]
  for (const name of names) {
    for (const [path, body] of [
      ['/servers', { name, config: { url: 'http://127.0.0.1:9/', enabled: false } }],
      ['/groups', { name, servers: [] }],
      ['/users', { username: name, password: 'Long-enough-1' }]
    ] as const) {
      // A username is letters, digits and @ . _ - +.
      const fits = path === '/users' && name === '_x'
      assert.equal(await send('POST', path, body), fits ? 201 : 400, `POST ${path} ${JSON.stringify(name)}`)
    }
    const encoded = encodeURIComponent(name.replace('\uD800', 'x'))
    if (encoded === '' || encoded === '.' || encoded === '..') continue
    for (const path of [`/servers/${encoded}`, `/groups/${encoded}`]) assert.equal(await send('GET', path), 404, `GET ${path}`)
  }
  assert.equal(
    await send(
      'POST',
      '/servers',
      '{"name":"fine","config":{"url":"http://127.0.0.1:9/","enabled":false,"__proto__":{"enabled":true},"env":{"__proto__":"x"}}}'
    ),
    200
  )
  assert.equal(({} as Record<string, unknown>).enabled, undefined)
  assert.equal(app.settings.current.servers.get('fine')?.config.enabled, false)
})

test('pages of trusted origins may read, others may not even ask', async (t) => {
  const { url } = await start(t, {
    env: { ALLOWED_ORIGINS: 'https://good.example' },
    settings: { systemConfig: { install: { baseUrl: 'https://hub.example/x' } } }
  })
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } }
  })
  for (const origin of ['https://good.example', 'https://hub.example']) {
    const preflight = await fetch(`${url}/mcp`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,mcp-session-id'
      }
    })
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers.get('access-control-allow-origin'), origin)
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /mcp-session-id/)
    const reply = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { origin, authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
      body
    })
    assert.equal(reply.status, 200)
    assert.equal(reply.headers.get('access-control-allow-origin'), origin)
    assert.match(reply.headers.get('access-control-expose-headers') ?? '', /mcp-session-id/)
  }
  for (const origin of ['https://evil.example', 'null', 'https://good.example.evil.example', 'http://good.example']) {
    const preflight = await fetch(`${url}/mcp`, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } })
    assert.equal(preflight.headers.get('access-control-allow-origin'), null, origin)
    const reply = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { origin, authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
      body
    })
    assert.equal(reply.status, 403, origin)
    assert.equal(reply.headers.get('access-control-allow-origin'), null, origin)
  }
  for (const path of ['/health', '/api/auth/user', '/docs/']) {
    const { headers } = await fetch(`${url}${path}`)
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
    assert.equal(headers.get('x-frame-options'), 'DENY', path)
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'self';.*frame-ancestors 'none'/, path)
    assert.equal(headers.get('referrer-policy'), 'no-referrer', path)
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin', path)
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin', path)
    assert.equal(headers.get('strict-transport-security'), null, 'the proxy knows whether there is TLS')
    assert.equal(headers.get('access-control-allow-credentials'), null)
  }
})

test('a name that is not ours is served nowhere, save that the process lives', async (t) => {
  const paths = [
    '/metrics', '/config', '/public-config', '/docs/json', '/docs/', '/api/openapi.json', '/api/openapi/servers',
    '/api/tools/a/b', '/api/servers', '/api/auth/user', '/mcp', '/nothing', '/api/nothing'
  ]
  const health = ['/health', '/health/live', '/health/ready']
  const ask = async ({ port }: World, path: string, host: string, method = 'GET'): Promise<number> => {
    const { status, text } = await raw(port, `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    if (path !== '/mcp' && status === 403) assert.match(text, /TH_FOREIGN_HOST/, path)
    return status
  }
  const settings = { systemConfig: { install: { baseUrl: 'https://hub.example/x' } } }
  const local = await start(t, { settings })
  local.app.phase.name = 'ready'
  const listed = await start(t, { env: { HOST: '0.0.0.0', ALLOWED_HOSTS: 'listed.example' }, settings })
  const open = await start(t, { env: { HOST: '0.0.0.0' } })
  for (const path of paths) {
    for (const host of ['evil.example', `127.0.0.1.evil.example:${local.port}`]) {
      assert.equal(await ask(local, path, host), 403, `${path} at ${host}`)
      assert.equal(await ask(listed, path, host), 403, `${path} at ${host}`)
      assert.notEqual(await ask(open, path, host), 403, `${path} where nothing is known of names`)
    }
    for (const host of ['localhost', `127.0.0.1:${local.port}`, 'hub.example']) {
      assert.notEqual(await ask(local, path, host), 403, `${path} at ${host}`)
    }
    for (const host of ['listed.example:8080', 'hub.example']) assert.notEqual(await ask(listed, path, host), 403, `${path} at ${host}`)
  }
  for (const path of ['/api/auth/login', '/api/servers', '/mcp']) assert.equal(await ask(local, path, 'evil.example', 'POST'), 403, path)
  for (const path of health) assert.equal(await ask(local, path, '10.1.2.3:3000'), 200, path)
})

test('a request that names two hosts is refused', async (t) => {
  const { port } = await start(t)
  const host = `127.0.0.1:${port}`
  for (const [target, hosts, expected] of [
    ['/health', [host], 200],
    [`http://${host}/health`, [host], 200],
    ['/health', [host, host], 400],
    ['/health', [host, 'localhost'], 400],
    [`http://localhost:${port}/health`, [host], 400],
    ['http://other.example/health', [host], 400],
    ['/mcp', [host, 'localhost'], 400],
    ['/none', [host, 'localhost'], 400]
  ] as const) {
    const headers = [...hosts.map((each) => `Host: ${each}`), 'Connection: close'].join('\r\n')
    const { status, text } = await raw(port, `GET ${target} HTTP/1.1\r\n${headers}\r\n\r\n`)
    assert.equal(status, expected, `${target} ${hosts.join(' ')}: ${text}`)
  }
})

test('HEAD is answered wherever GET reads, and runs nothing', async (t) => {
  const { app, url } = await start(t)
  app.phase.name = 'ready'
  const token = app.auth.login(admin)
  for (const path of [
    '/health', '/health/live', '/health/ready', '/config', '/public-config', '/metrics', '/docs', '/docs/json',
    '/api/openapi.json', '/api/openapi/servers', '/api/servers', '/api/users/admin'
  ]) {
    const [head, get] = [
      await fetch(`${url}${path}`, { method: 'HEAD', headers: { 'x-auth-token': token } }),
      await fetch(`${url}${path}`, { headers: { 'x-auth-token': token } })
    ]
    assert.deepEqual([head.status, await head.text(), head.headers.get('content-type'), head.headers.get('etag')],
      [200, '', get.headers.get('content-type'), get.headers.get('etag')], path)
    assert.equal((await get.arrayBuffer()).byteLength > 0, true)
  }
  assert.deepEqual((await fetch(`${url}/api/servers`, { method: 'HEAD' })).status, 401)
  const urls = (method: string): string[] =>
    app.routeTable
      .filter((row) => row.method === method && row.effect === 'read' && !['mcp', 'docs'].includes(row.scope))
      .map((row) => row.url)
      .sort()
  // A stream has no end that its head could tell of.
  assert.deepEqual(urls('HEAD'), urls('GET').filter((url) => url !== '/api/logs/stream'))
  assert.deepEqual(app.routeTable.filter(({ method, scope, effect }) => method === 'HEAD' && (effect !== 'read' || scope === 'mcp')), [])
})

test('a query with escapes that are no UTF-8 is refused, after who asks', async (t) => {
  const { app, url } = await start(t, { settings: { systemConfig: { routing: { enableBearerAuth: false } } } })
  const headers = { 'x-auth-token': app.auth.login(alice) }
  const ask = async (path: string, more: Record<string, string> = headers): Promise<{ status: number, body: Record<string, unknown> }> => {
    const reply = await fetch(`${url}${path}`, { headers: more })
    return { status: reply.status, body: await reply.json() as Record<string, unknown> }
  }
  for (const bad of ['%ff', '%E2%82', '%zz', '100%', 'x=1&y=%c0%af']) {
    for (const path of [
      '/api/openapi.json?title=', '/api/servers?cursor=', '/api/groups?fields=', '/api/openapi/servers?x=',
      '/api/tools/a/b?x=', '/health?x='
    ]) {
      const { status, body } = await ask(path + bad)
      assert.deepEqual([status, body.success], [path.startsWith('/api/tools') && status === 404 ? 404 : 400, false], path + bad)
    }
  }
  assert.equal((await ask('/api/servers?cursor=%ff', {})).status, 401)
  assert.equal((await ask('/api/audit?cursor=%ff')).status, 403)
  assert.equal((await ask('/api/nothing?x=%ff')).status, 404)
  assert.equal((await ask('/api/openapi.json?title=%E2%82%AC+%2B')).status, 200)
})

test('a query or form of too many parameters is refused on every route, before anybody reads it', async (t) => {
  const { app, url } = await start(t, { settings: { systemConfig: { oauthServer: { enabled: true } } } })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const most = limits.parameters
  const requests: Array<[what: string, ask: (parameters: string) => Promise<Response>]> = [
    ...['/oauth/authorize', '/api/tools/nope/echo', '/api/group/tools/nope/echo', '/api/activities', '/api/servers', '/health', '/mcp', '/nope']
      .map((path): typeof requests[number] => [path, async (parameters) => await fetch(`${url}${path}?${parameters}`)]),
    ['POST a tool', async (query) => await fetch(`${url}/api/tools/nope/echo?${query}`, { method: 'POST' })],
    ...['/oauth/authorize', '/oauth/interaction/nope/login'].map((path): typeof requests[number] =>
      [`POST ${path}`, async (body) => await fetch(`${url}${path}`, { method: 'POST', headers, body })])
  ]
  for (const [what, ask] of requests) {
    const reply = await ask('m&'.repeat(most))
    assert.equal(reply.status, 400, what)
    assert.equal(reply.headers.get('x-content-type-options'), 'nosniff', what)
    assert.match(await reply.text(), /The (query|form) has more than 1000 parameters/, what)
    assert.doesNotMatch(await (await ask('m&'.repeat(most - 1))).text(), /more than 1000 parameters/, what)
  }
  // The bodies of these are read by the library.
  for (const path of ['/oauth/authorize', '/oauth/token', '/oauth/revoke']) {
    for (const body of ['a&'.repeat(28_000), Array.from({ length: 8_000 }, (_, n) => `a${n}`).join('&')]) {
      const before = process.cpuUsage()
      const reply = await app.inject({ method: 'POST', url: path, headers, payload: body })
      const { user, system } = process.cpuUsage(before)
      assert.equal(reply.statusCode, 400, path)
      assert.ok(user + system < 300_000, `${path}: ${(user + system) / 1_000} ms`)
    }
  }
})

test('reading a query takes time in proportion to it, whatever is repeated', async () => {
  const cpu = (query: string): number => {
    let least = Infinity
    for (let run = 0; run < 3; run++) {
      const before = process.cpuUsage()
      fromQuery(query)
      const { user, system } = process.cpuUsage(before)
      least = Math.min(least, (user + system) / 1_000)
    }
    return least
  }
  assert.deepEqual(fromQuery('a=1&b&a=2&a=3&b=+%2B'), { a: ['1', '2', '3'], b: ['', ' +'] })
  for (const parameter of ['m&', 'm=1&', `${'n'.repeat(20)}=&`]) {
    const [small, large] = [cpu(parameter.repeat(5_000)), cpu(parameter.repeat(20_000))]
    assert.ok(large < 10 * small + 50, `${parameter}: ${small} and ${large} ms`)
  }
})

test('a body of another type: what to send, in every dialect', async (t) => {
  const { app, url } = await start(t)
  for (const path of ['/api/servers', '/api/auth/login', '/api/tools/a/b', '/mcp']) {
    for (const type of [
      'text/plain',
      'nonsense',
      undefined,
      'application/json; charset=latin1',
      'application/json;charset="UTF-16"',
      'application/json; boundary=x; Charset = utf-7'
    ]) {
      const reply = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: {
          'x-auth-token': app.auth.login(admin),
          authorization: `Bearer ${key.token}`,
          ...(type === undefined ? {} : { 'content-type': type })
        },
        body: new TextEncoder().encode('{}')
      })
      const text = await reply.text()
      assert.equal(reply.status, 415, `${path} ${type} ${text}`)
      assert.match(text, /The body must be application\/json/)
      assert.match(text, path === '/mcp' ? /"jsonrpc":"2\.0"/ : /TH_UNSUPPORTED_MEDIA_TYPE/)
    }
  }
})

test('what leads nowhere has safe headers, and OPTIONS is no plain text', async (t) => {
  const { url } = await start(t, { env: { ALLOWED_ORIGINS: 'https://app.example' } })
  for (const path of ['/nope', '/api/nope', '/mcp', '/mcp/nope', '/api/tools/a/b', '/health', '/docs']) {
    assert.equal((await fetch(`${url}${path}`)).headers.get('x-content-type-options'), 'nosniff', path)
  }
  for (const path of ['/mcp', '/api/servers']) {
    for (const origin of ['https://app.example', 'https://evil.example', undefined]) {
      const reply = await fetch(`${url}${path}`, { method: 'OPTIONS', headers: origin === undefined ? {} : { origin } })
      assert.deepEqual([reply.status, reply.headers.get('access-control-allow-origin')],
        origin === 'https://app.example' ? [204, origin] : [404, null], `${path} ${origin}`)
      if (reply.status === 404) assert.match(reply.headers.get('content-type') ?? '', /application\/json/)
    }
  }
})

test('variables that cannot be right are named, with what they should be', async () => {
  const wrong: Record<string, [values: string[], said: RegExp]> = {
    PORT: [['1e3', '0x1000', '3000.5', '-1', '65536', ' 3000', 'web'], /a whole number from 0 to 65535/],
    JWT_EXPIRES_IN: [['0', '0h', 'soon', '10', '999', '999ms'], /at least a second/],
    BASE_PATH: [['hub', '/../x', '/a/.', '/./a', '/..'], /a path as "\/hub"/],
    REQUEST_TIMEOUT: [['soon', '1e3'], /a duration/],
    READONLY: [['enabled', '2'], /true or false/],
    PUBLIC_TOOLS: [['some'], /default, public, all, off/]
  }
  for (const [name, [values, said]] of Object.entries(wrong)) {
    for (const value of values) {
      assert.throws(
        () => readEnv({ [name]: value }),
        new RegExp(`^Error: The environment variable ${name} cannot be ${JSON.stringify(value).replace(/[.]/g, '\\.')}: expected`),
        value
      )
      assert.throws(() => readEnv({ [name]: value }), said, value)
    }
  }
  for (const [name, value, is] of [
    ['PORT', '08080', 8080], ['JWT_EXPIRES_IN', '1000', '1000'], ['JWT_EXPIRES_IN', '1s', '1s'],
    ['BASE_PATH', '/hub/..a/.b', '/hub/..a/.b'], ['READONLY', 'true', true], ['READONLY', '0', false]
  ] as const) { assert.equal(readEnv({ [name]: value })[name], is) }

  for (const text of [
    'nonsense', '10.0.0.1;10.0.0.2', '-1', 'abc', '10.0.0.0/99', '10.0.0.0/0', '10.0.0.0/255.0.255.0', 'fd00::/129',
    '127.0.0.1,'
  ]) { assert.throws(() => trustedProxies(text), /TRUST_PROXY cannot have ".*": expected true, false, a number/, text) }
  for (const text of ['127.0.0.1', '::1', '10.0.0.0/8, fd00::/8', 'loopback,uniquelocal', '10.0.0.0/255.0.0.0']) {
    assert.deepEqual(trustedProxies(text), text.split(/, */))
  }
  assert.deepEqual([trustedProxies('true'), trustedProxies('false'), trustedProxies('')], [true, false, false])

  for (const text of ['nonsense', '*', 'https://a/path', 'https://a?b', 'app.example', 'https://*.app.example', 'null']) {
    assert.throws(() => originRules('0.0.0.0', '', text), /ALLOWED_ORIGINS cannot have ".*": expected origins as/, text)
  }
  for (const text of ['http://x/', 'x/', '*', 'a b/c', 'a@b']) {
    assert.throws(() => originRules('0.0.0.0', text, ''), /ALLOWED_HOSTS cannot have ".*": expected names as/, text)
  }
  const { hosts, origins } = originRules('0.0.0.0', 'Hub.example:8080, ::1 [fd00::1]:80',
    'https://App.example/, http://b.example:80 chrome-extension://abcdef')
  assert.deepEqual([...hosts ?? []], ['hub.example', '[::1]', '[fd00::1]'])
  assert.deepEqual([...origins], ['https://app.example', 'http://b.example', 'chrome-extension://abcdef'])
})

test('a place that cannot be listened at is told of in a sentence', async (t) => {
  const hub = await spawnHub(t, { env: { HOST: '192.0.2.1' }, wait: false })
  await until(() => hub.child.exitCode !== null, hub.output)
  assert.match(hub.output(), /^HOST cannot be "192\.0\.2\.1": it is not an address of this machine/m)
  assert.equal(hub.child.exitCode, 1)
})

test('what the management API answers is kept by nobody on the way', async (t) => {
  const { app, url } = await start(t)
  const ask = async (
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {}
  ): Promise<[number, string | null]> => {
    const { status, headers: told } = await fetch(`${url}/api${path}`, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body)
    })
    return [status, told.get('cache-control')]
  }
  assert.deepEqual(await ask('POST', '/auth/login', { username: 'admin', password: 'Same-1234' }), [200, 'no-store'])
  const token = app.auth.login(app.settings.current.users.get('admin') ?? admin)
  assert.deepEqual(await ask('POST', '/auth/register', { username: 'ada', password: 'Same-1234' }, { 'x-auth-token': token }), [
    201,
    'no-store'
  ])
  assert.deepEqual(await ask('POST', '/auth/keys', { name: 'one' }, { 'x-auth-token': token }), [201, 'no-store'])
  assert.deepEqual(await ask('GET', `/auth/user?token=${token}`), [200, 'no-store'])
  for (const { method, url: path, scope } of app.routeTable.filter(({ scope }) => scope === 'api' || scope === 'admin')) {
    assert.deepEqual(await ask(method, path.replace('/api', '').replaceAll(':', '')), [401, 'no-store'], `${scope} ${path}`)
  }
})

test('skipAuth makes a guest admin of the management API, and of nothing else', async (t) => {
  const { url } = await start(t, { settings: { systemConfig: { routing: { skipAuth: true } } } })
  const post = async (headers: Record<string, string>, body: string): Promise<number> =>
    (await fetch(`${url}/api/servers`, { method: 'POST', headers, body })).status
  const one = (name: string): string => JSON.stringify({ name, config: { url: 'http://127.0.0.1:9/', enabled: false } })
  const user = await (await fetch(`${url}/api/auth/user`)).json() as { user: object }
  assert.deepEqual({ ...user.user, permissions: undefined }, { username: 'guest', isAdmin: true, permissions: undefined })
  assert.equal(await post({ 'content-type': 'application/json' }, one('one')), 200)
  assert.equal(await post({ 'content-type': 'text/plain' }, one('two')), 415, 'a form of any page could send this')
  assert.equal(await post({ 'content-type': 'application/x-www-form-urlencoded' }, one('two')), 415)
  assert.equal(await post({ 'content-type': 'application/json', origin: 'https://evil.example' }, one('two')), 403)
  assert.equal(
    (await raw(Number(new URL(url).port), 'GET /api/servers HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n')).status,
    403,
    'DNS rebinding'
  )
  for (const path of ['/mcp', '/api/mcp', '/api/mcp/one', '/guest/mcp']) {
    assert.equal(
      (await fetch(`${url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })).status,
      401,
      path
    )
  }
})

test('X-Forwarded-* counts where the proxy is trusted, and nowhere else', async (t) => {
  const plain = await start(t)
  const proxied = await start(t, { env: { TRUST_PROXY: '127.0.0.1', ALLOWED_HOSTS: 'hub.example' } })
  const hops = await start(t, { env: { TRUST_PROXY: '1', ALLOWED_HOSTS: 'hub.example' } })
  const ask = async ({ url }: World, origin: string): Promise<number> =>
    (
      await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key.token}`,
          'content-type': 'application/json',
          origin,
          'x-forwarded-proto': 'https',
          'x-forwarded-host': 'hub.example',
          'x-forwarded-for': '203.0.113.7'
        },
        body: '{}'
      })
    ).status
  assert.equal(await ask(plain, 'https://hub.example'), 403)
  assert.equal(await ask(proxied, 'https://hub.example'), 400, 'let in, and then told that this is no message')
  assert.equal(await ask(hops, 'https://hub.example'), 400)
  assert.equal(await ask(proxied, 'https://evil.example'), 403)
})

test('what is withdrawn ends open sessions within 5 s, and those of nobody else', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const other = bearerKey({
    id: '66666666-6666-4666-8666-666666666666',
    name: 'alice',
    token: `thk_${'b'.repeat(64)}`,
    kind: 'user',
    owner: 'alice'
  })
  const { app, url } = await start(t, {
    settings: {
      bearerKeys: [key, other],
      mcpServers: {
        hers: { type: 'streamable-http', url: upstream.url, owner: 'alice', visibility: 'private' },
        shown: { type: 'streamable-http', url: upstream.url, owner: 'admin', visibility: 'public' }
      }
    }
  })
  await until(() => app.upstreams.counts().connected === 2)
  const begin = async (path: string, token: string): Promise<() => Promise<number>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const reply = await fetch(`${url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
      })
    })
    assert.equal(reply.status, 200, path)
    const id = reply.headers.get('mcp-session-id') ?? ''
    return async () =>
      (
        await fetch(`${url}${path}`, {
          method: 'POST',
          headers: { ...headers, 'mcp-session-id': id },
          body: '{"jsonrpc":"2.0","id":2,"method":"ping"}'
        })
      ).status
  }
  const [mine, hers, shown] = [await begin('/mcp', key.token), await begin('/mcp', other.token), await begin('/mcp/shown', other.token)]
  assert.deepEqual([await mine(), await hers(), await shown()], [200, 200, 200])
  await app.settings.change(({ servers }) => [
    { entity: 'mcpServers', key: 'shown', value: { ...servers.get('shown')?.config, visibility: 'private' } }
  ])
  await until(async () => await shown() === 404, 'the route of a server that is hidden now still answers')
  assert.equal(await hers(), 200)
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: undefined }])
  await until(async () => await hers() === 401, 'a deleted user\'s key still works')
  assert.equal(await mine(), 200)
  await app.settings.change(({ keys }) =>
    [...keys.values()].filter(({ id }) => id === key.id)
      .map((each) => ({ entity: 'bearerKeys' as const, key: each.id, value: { ...each, enabled: false } }))
  )
  await until(async () => await mine() === 401, 'a disabled key still works')
})

test('x-session-id gives a REST caller connections of its own', async (t) => {
  const upstream = await startUpstream(t, {
    tools: [tool('who')],
    on: ({ method, session }) => (method === 'tools/call' ? { content: [{ type: 'text', text: session.id }] } : undefined)
  })
  const { app, url } = await start(t, {
    settings: { mcpServers: { one: { type: 'streamable-http', url: upstream.url, visibility: 'public' } } }
  })
  await until(() => app.upstreams.counts().connected === 1)
  const call = async (
    id: string | undefined,
    headers: Record<string, string> = { authorization: `Bearer ${key.token}` },
    route = '/api/tools/call/one',
    body: object = { toolName: 'who' }
  ): Promise<string> => {
    const reply = await fetch(`${url}${route}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', ...(id === undefined ? {} : { 'x-session-id': id }) },
      body: JSON.stringify(body)
    })
    const text = await reply.text()
    return reply.ok ? (/"text":"([^"]+)"/.exec(text)?.[1] ?? text) : String(reply.status)
  }
  const shared = await call(undefined)
  const [first, again] = [await call('first'), await call('first')]
  assert.equal(first, again)
  assert.equal(await call(undefined), shared)
  const others = [shared, first, await call('second'), await call('first', { 'x-auth-token': app.auth.login(alice) })]
  assert.equal(new Set(others).size, others.length, 'another id, and another principal with the same id, share with nobody')
  assert.equal(await call('first', { authorization: `Bearer ${key.token}` }, '/api/tools/one/who', {}), first,
    'the open route, as the same principal')
  assert.equal(await call('first', {}, '/api/tools/one/who', {}), shared, 'an id is no credential')
  assert.equal(await call('x'.repeat(129)), '400')
  assert.equal(await call('a b'), '400')
})

// ---- whatever a caller sends ----------------------------------------------------------------------

const hostile = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 5 },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.double(),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constantFrom('__proto__', '\u0000', '••••1234', 'x'.repeat(5_000), '$' + '{JWT_SECRET}', '../../etc/passwd',
      'all', 'stdio', 'admin', 'file:///etc/passwd'),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(
        fc.string({ maxLength: 10 }),
        fc.constantFrom(
          'name',
          'config',
          'url',
          'command',
          'args',
          'env',
          'headers',
          'type',
          'servers',
          'username',
          'password',
          'isAdmin',
          'routing',
          'toolName',
          'arguments',
          '__proto__',
          'constructor',
          'enabled',
          'description',
          'tools',
          'jsonrpc',
          'id',
          'method',
          'params',
          'openapi',
          'schema',
          'owner',
          'visibility',
          'oauth',
          'proxy',
          'options'
        )
      ),
      tie('value'),
      { maxKeys: 5 }
    )
  )
})).value

test('a body with half a million wrong values is refused in a sentence, at once', async (t) => {
  // A user for each body: large bodies have a pace.
  const users = Array.from({ length: 8 }, (_, index) => ({ ...alice, username: `user${index}` }))
  const { app, url } = await start(t, {
    settings: {
      users: [admin, ...users],
      groups: users.map(({ username }, index) => (
        { id: `33333333-3333-4333-8333-33333333333${index}`, name: `group${index}`, servers: [], owner: username }
      )),
      mcpServers: { thing: { url: 'http://127.0.0.1:9/', enabled: false, owner: 'user5' } }
    }
  })
  const many = Array.from({ length: 490_000 }, () => 1)
  const bodies: Array<[string, string, object]> = [
    ['POST', '/groups', { name: 'q', servers: many }],
    ['PUT', '/groups/group1', { servers: many }],
    ['PUT', '/groups/group2/servers/batch', { servers: many }],
    ['POST', '/servers/batch', { servers: many }],
    ['POST', '/servers', { name: 'q', config: { url: 'http://127.0.0.1:9/', args: many } }],
    [
      'PUT',
      '/servers/thing',
      { config: { url: 'http://127.0.0.1:9/', openapi: { passthroughHeaders: many }, passthroughHeaders: many.slice(0, 10) } }
    ],
    ['POST', '/auth/keys', { name: 'q', allowedGroups: many }],
    ['POST', '/auth/login', many]
  ]
  for (const [index, [method, path, body]] of bodies.entries()) {
    const user = users[index]
    assert.ok(user)
    const began = performance.now()
    const reply = await fetch(`${url}/api${path}`, {
      method,
      headers: { 'x-auth-token': app.auth.login(user), 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
    const answer = await reply.text()
    assert.equal(reply.status, 400, `${path} ${answer.slice(0, 200)}`)
    assert.ok(answer.length < 1_000, `${path}: ${answer.length} characters`)
    assert.ok(performance.now() - began < 3_000, `${path}: ${performance.now() - began} ms`)
  }
})

test(
  '2,000 hostile bodies over all routes: no 5xx, no hang',
  { timeout: process.env.HOSTILE_BODIES === undefined ? 170_000 : 3_600_000 },
  async (t) => {
    const runs = Number(process.env.HOSTILE_BODIES ?? 2_000)
    const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
    t.comment(`seed ${seed}, ${runs} bodies`)
    const { app, url } = await start(t, {
      settings: {
        mcpServers: { thing: { url: 'http://127.0.0.1:9/', enabled: false } },
        groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'team', servers: ['thing'] }]
      }
    })
    const rows = app.routeTable.filter(({ scope, method }) => scope !== 'docs' && method !== 'OPTIONS')
    const words = fc.constantFrom('thing', 'team', 'admin', '__proto__', '%00', 'a%2Fb', '%F0%9F%98%80',
      'x'.repeat(300), '33333333-3333-4333-8333-333333333333')
    const admins = { 'x-auth-token': app.auth.login(admin) }
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...rows),
        fc.array(words, { minLength: 3, maxLength: 3 }),
        hostile,
        fc.constantFrom('key', 'login', 'nobody'),
        async ({ method, url: route }, parts, value, who) => {
          let at = 0
          const path = route.replace(/:[A-Za-z]+|\*/g, () => parts[at++ % parts.length] ?? 'x')
          const body = method === 'GET' || method === 'HEAD' ? undefined : (JSON.stringify(value) ?? 'nonsense')
          const reply = await fetch(`${url}${path}`, {
            method,
            headers: {
              ...(who === 'key' ? { authorization: `Bearer ${key.token}` } : who === 'login' ? admins : {}),
              ...(body === undefined ? {} : { 'content-type': 'application/json' })
            },
            body,
            signal: AbortSignal.timeout(15_000)
          })
          // An event stream has no end; that it begins is its answer.
          const isStream = reply.headers.get('content-type') === 'text/event-stream'
          const text = isStream ? '' : await reply.text()
          if (isStream) await reply.body?.cancel()
          // A server that is not connected is the upstream's failure, and says so.
          assert.ok(reply.status < 500 || reply.status === 502 || reply.status === 503,
            `${method} ${path} ${body}: ${reply.status} ${text.slice(0, 300)}`)
          assert.doesNotMatch(text, /\bat .+\.(ts|js):\d+/)
        }
      ),
      { numRuns: runs, seed }
    )
    assert.equal((await fetch(`${url}/health`)).status, 200)
  }
)

test('the signs that others than this machine come', async () => {
  const table: Array<[host: string, allowedHosts: string, baseUrl: string | undefined, signs: string[]]> = [
    ['127.0.0.1', '', undefined, []],
    ['localhost', 'localhost, 127.0.0.1:3000', 'http://localhost:3000', []],
    ['::1', '', 'http://[::1]:3000', []],
    ['0.0.0.0', '', undefined, ['HOST=0.0.0.0']],
    ['127.0.0.1', 'hub.example.com', undefined, ['ALLOWED_HOSTS=hub.example.com']],
    ['127.0.0.1', '', 'https://hub.example.com', ['install.baseUrl=https://hub.example.com']],
    ['::', 'a.example', 'no address', ['HOST=::', 'ALLOWED_HOSTS=a.example']]
  ]
  for (const [host, allowedHosts, baseUrl, signs] of table) assert.deepEqual(exposureSigns({ host, allowedHosts, baseUrl }), signs)
})

test('tools that are open to the world are warned of, even while bearer keys are required', async (t) => {
  const server = { url: 'http://127.0.0.1:9/mcp' }
  const mcpServers = {
    unmarked: server,
    marked: { ...server, visibility: 'public' },
    own: { ...server, visibility: 'private' },
    disabled: { ...server, enabled: false }
  }
  const published = { install: { baseUrl: 'https://hub.example.com' } }
  const said = async (systemConfig: object, env: Record<string, string>, servers: object = mcpServers): Promise<string[]> => {
    const hub = await startHub(t, { settings: { mcpServers: servers, systemConfig }, env })
    return hub.output().split('\n').filter((line) => line.includes('without credentials, under'))
  }
  const [warning = ''] = await said(published, {})
  assert.equal((JSON.parse(warning) as { level: unknown }).level, 40)
  assert.match(warning, /tools of 2 of its servers .*\/api\/tools.*enableBearerAuth.*install\.baseUrl=https.*PUBLIC_TOOLS=public/)
  assert.equal((await said({}, { ALLOWED_HOSTS: 'hub.example.com' })).length, 1)
  assert.equal((await said({}, {})).length, 0, 'nobody else comes')
  assert.equal((await said(published, { PUBLIC_TOOLS: 'public' })).length, 0, 'the operator decided')
  assert.equal((await said(published, { PUBLIC_TOOLS: 'off' })).length, 0)
  assert.equal((await said(published, {}, { own: mcpServers.own })).length, 0, 'nothing is open')
  const unlocked = { ...published, routing: { enableBearerAuth: false } }
  const [overMcp = ''] = await said(unlocked, { PUBLIC_TOOLS: 'off' })
  assert.match(overMcp, /tools of 2 of its servers without credentials, under \/mcp, since .*enableBearerAuth is off .*or routing.enableBearerAuth on/)
  assert.match((await said(unlocked, {})).join(), /\/api\/tools.*and under \/mcp.*or PUBLIC_TOOLS=off and routing.enableBearerAuth on/)
  assert.equal((await said(unlocked, { PUBLIC_TOOLS: 'public' })).length, 0, 'the operator decided')
})

test('skipAuth is told loudly where others than this machine come, by whatever shows it', async (t) => {
  const said = async (baseUrl: string | undefined, env: Record<string, string>): Promise<Array<[level: unknown, sentence: string]>> => {
    const systemConfig = { routing: { skipAuth: true }, ...baseUrl === undefined ? {} : { install: { baseUrl } } }
    const hub = await startHub(t, { settings: { systemConfig }, env })
    return hub.output().split('\n').filter((line) => line.includes('routing.skipAuth is on')).map((line) => {
      const { level, msg } = JSON.parse(line) as { level: unknown, msg: string }
      return [level, msg]
    })
  }
  const local = 'routing.skipAuth is on: everybody on this machine is an admin here, and may start processes'
  const loud = (signs: string): [number, string] => [50, `routing.skipAuth is on and other machines reach the gateway (${signs}): ` +
    'everybody who reaches it is an admin here, and may start processes. Turn it off']
  assert.deepEqual(await said(undefined, {}), [[40, local]])
  assert.deepEqual(await said('http://localhost:3000', {}), [[40, local]])
  assert.deepEqual(await said('https://hub.example.com', {}), [loud('install.baseUrl=https://hub.example.com')])
  assert.deepEqual(await said(undefined, { ALLOWED_HOSTS: 'hub.example.com' }), [loud('ALLOWED_HOSTS=hub.example.com')])
  assert.deepEqual(await said(undefined, { TRUST_PROXY: 'loopback' }), [loud('TRUST_PROXY=loopback')])
})

test('who sends slowly is cut off in time, head or body', async (t) => {
  assert.ok(limits.slowSenders.request + limits.slowSenders.interval <= 35_000)
  const app = await appFor(t, {}, {}, { slowSenders: { headers: 300, request: 600, interval: 100 } })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const head = 'POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
  const begun = ['POST /mcp HTTP/1.1\r\nHost: loc', `${head}Content-Length: 1000\r\n\r\n{"username":`]
  for (const [at, part] of begun.entries()) {
    const started = Date.now()
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => { socket.write(part) })
      // One byte at a time keeps no connection.
      const drip = setInterval(() => { if (socket.writable) socket.write('x') }, 50)
      let received = ''
      socket.on('data', (chunk) => { received += String(chunk) })
      socket.on('error', reject)
      socket.on('close', () => { clearInterval(drip); resolve(received) })
    }).catch(String)
    const took = Date.now() - started
    assert.ok(took >= (at === 0 ? 250 : 550) && took < 5_000, `${took} ms`)
    if (answer.startsWith('HTTP')) assert.match(answer, /^HTTP\/1\.1 408 /)
  }
})

test('a key that another replica has just stored is looked up before it is refused; a wrong one is refused', async (t) => {
  const stored = { ...key, token: undefined, tokenHash: createHash('sha256').update(key.token).digest('hex') }
  const before = read({}, 1).snapshot
  const after = read({ bearerKeys: [stored] }, 2).snapshot
  let notify = (_snapshot: Snapshot): void => {}
  let lookUps = 0
  let isStored = false
  const store: Store = {
    load: async () => before,
    commit: async () => before,
    onChange: (listener) => { notify = listener; return () => {} },
    refresh: async () => {
      lookUps++
      if (isStored) notify(after)
    },
    health: () => undefined,
    close: async () => {}
  }
  const app = await appFor(t, {}, {}, { store })
  const ask = async (token?: string): Promise<number> => (await app.inject({
    url: '/api/servers',
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` }
  })).statusCode
  assert.equal(await ask(), 401)
  assert.equal(lookUps, 0, 'there is nothing to look up')
  assert.equal(await ask(key.token), 401)
  assert.equal(lookUps, 1)
  isStored = true
  assert.equal(await ask(key.token), 200)
  assert.equal(lookUps, 2)
  assert.equal(await ask(key.token), 200)
  assert.equal(lookUps, 2, 'a known key makes no query')
  for (let n = 0; n < 100; n++) assert.equal(await ask(`thk_${n}`), 401)
  assert.ok(lookUps <= 2 * limits.freshLookUps.perSecond + 2, `${lookUps} look-ups`)
})

test('what is unknown here is 503 while the storage of several replicas is away; what is known counts as before', async (t) => {
  const stored = { ...key, token: undefined, tokenHash: createHash('sha256').update(key.token).digest('hex') }
  const { snapshot } = read({ bearerKeys: [stored] }, 1)
  let away: string | undefined
  let fails = true
  const store: Store = {
    load: async () => snapshot,
    commit: async () => snapshot,
    onChange: () => () => {},
    refresh: async () => { if (fails) throw new Error('away') },
    health: () => away,
    close: async () => {}
  }
  const app = await appFor(t, {}, {}, { store })
  const unknown = { authorization: `Bearer thk_${'0'.repeat(64)}` }
  const asks = [
    { url: '/api/servers', headers: unknown },
    { url: '/api/tools/a/b', method: 'POST' as const, headers: unknown, payload: {} },
    { url: '/mcp', method: 'POST' as const, headers: unknown, payload: { jsonrpc: '2.0', id: 1, method: 'ping' } },
    { url: '/api/auth/login', method: 'POST' as const, payload: { username: 'nobody', password: 'Some-Password-1' } }
  ]
  for (const reason of [undefined, 'The database cannot be used.']) {
    away = reason
    for (const ask of asks) {
      const { statusCode, headers } = await app.inject(ask)
      assert.deepEqual([ask.url, statusCode, headers['retry-after']], [ask.url, 503, '5'])
    }
    assert.equal((await app.inject({ url: '/api/servers', headers: { authorization: `Bearer ${key.token}` } })).statusCode, 200)
    assert.equal((await app.inject({ url: '/api/servers' })).statusCode, 401, 'nothing is to be looked up')
  }
  away = undefined
  fails = false
  assert.equal((await app.inject({ url: '/api/servers', headers: unknown })).statusCode, 401)
})

test('bodies of callers without credentials leave room for callers with some, at the same address', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('echo')] })
  const { app, port, url } = await start(t, {
    settings: { mcpServers: { one: { type: 'streamable-http', url: upstream.url } } },
    env: { MEMORY_BUDGET: 64 * 1024 * 1024, OUTBOUND_ALLOW: '127.0.0.0/8' }
  })
  /** Begins bodies that do not end. @returns whether some were refused */
  const hold = async (count: number, length: number): Promise<boolean> => {
    const head = `POST /api/auth/login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n{`
    const sockets = Array.from({ length: count }, () => {
      const socket = connect(port, '127.0.0.1', () => { socket.write(head) })
      return socket
    })
    t.after(() => { for (const socket of sockets) socket.destroy() })
    const answers = await Promise.all(sockets.map(async (socket) => await new Promise<string>((resolve) => {
      socket.on('error', () => {}).once('data', (chunk) => { resolve(String(chunk)) })
      setTimeout(resolve, 1_500, '')
    })))
    return answers.some((answer) => answer.startsWith('HTTP/1.1 429'))
  }
  assert.ok(await hold(40, 1_000_000))
  assert.ok(await hold(80, 5_000), 'what the address may hold is used up')

  const token = { 'x-auth-token': app.auth.login(alice) }
  const bearer = { authorization: `Bearer ${key.token}` }
  const body = JSON.stringify({ message: 'x'.repeat(8_000) })
  const pieces = (text: string): ReadableStream => new Blob([text]).stream()
  const post = async (path: string, headers: Record<string, string>, body: string | ReadableStream): Promise<number> => (await fetch(`${url}${path}`, {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body, ...{ duplex: 'half' }
  })).status
  // A long body of a caller with credentials counts in the caller's share; one of unknown length counts once it is long.
  for (const headers of [token, bearer]) {
    assert.equal(await post('/api/tools/one/echo', headers, body), 200)
    assert.equal(await post('/api/tools/one/echo', headers, pieces('{"message":"hi"}')), 200)
  }
  assert.equal(await post('/api/tools/one/echo', {}, pieces('{"message":"hi"}')), 200)
  assert.equal(await post('/api/tools/one/echo', {}, body), 429)
  assert.equal(await post('/api/tools/one/echo', {}, pieces(body)), 429)
  const manager = { 'x-auth-token': app.auth.login(admin) }
  assert.equal(await post('/api/tools/call/one', manager, JSON.stringify({ toolName: 'echo', arguments: { message: 'x'.repeat(8_000) } })), 200)
})
