// Requests that are odd, hostile or no HTTP: each has its answer.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'
import { maxHeaderSize } from '../../../plugins/base/errors/client-error.ts'
import { parseQueryArguments } from '../../../plugins/downstream/tools/parse-arguments.ts'
import { admin, alice, key, raw, start, type World } from '../../helpers/doors.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'

test('what is no HTTP request is answered in the envelope, too', async (t) => {
  const { port, url } = await start(t)
  for (const [text, status, code] of [
    [`GET /api/servers/${'a'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414, 'TH_ADDRESS_TOO_LONG'],
    [`GET /api/servers HTTP/1.1\r\nHost: x\r\nX: ${'a b'.repeat(20_000)}\r\n\r\n`, 431, 'TH_HEADERS_TOO_LARGE'],
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

test('a call by GET that is too long for its arguments names the POST to the same path', async (t) => {
  const { port, url } = await start(t, { env: { BASE_PATH: '/base' } })
  const long = 'a'.repeat(100_000)
  for (const [path, named] of [
    [`/base/api/tools/up/echo?message=${long}`, '/base/api/tools/up/echo'],
    [`/base/api/daily/tools/up/echo?message=${long}`, '/base/api/daily/tools/up/echo'],
    [`/base/api/tools/up/echo/?a=1&b=${long.repeat(20)}`, '/base/api/tools/up/echo/'],
    // Nearly all of the room: the headers do not fit any more.
    [`/base/api/tools/up/echo?${'b'.repeat(maxHeaderSize - 60)}`, '/base/api/tools/up/echo']
  ] as const) {
    const answer = await fetch(`${new URL(url).origin}${path}`)
    const body = await answer.json() as Record<string, unknown>
    assert.deepEqual([answer.status, body.error, Object.keys(body)], [414, 'TH_ADDRESS_TOO_LONG', ['success', 'message', 'error']])
    assert.ok(String(body.message).endsWith(`with POST ${named}`), String(body.message))
  }
  for (const path of [`/base/api/tools/call/up?${long}`, `/base/api/servers?fields=${long}`, `/api/tools/up/echo?${long}`]) {
    const answer = await fetch(`${new URL(url).origin}${path}`)
    const body = await answer.json() as Record<string, unknown>
    assert.deepEqual([answer.status, body.code, 'error' in body], [414, 'TH_ADDRESS_TOO_LONG', false], path.slice(0, 40))
    assert.doesNotMatch(String(body.message), /tool/)
  }
  const part = await fetch(`${new URL(url).origin}/base/api/tools/up/${'c'.repeat(25_000)}`)
  const { message } = await part.json() as { message: string }
  assert.deepEqual([part.status, message], [414, 'A part of the path is too long'])
  // In packets as a network brings them, the beginning of the address is gone when it turns out to be too long.
  const answer = await pieces(port, 'GET /base/api/tools/up/echo?message=', 'a'.repeat(1_400), 40)
  assert.match(answer, /^HTTP\/1\.1 414 /)
  assert.match(answer, /POST to the same path","error":"TH_ADDRESS_TOO_LONG","code":"TH_ADDRESS_TOO_LONG"/)
})

test('what is no HTTP request ends a connection whose answer has begun, and is not written into that answer', async (t) => {
  const { port } = await start(t)
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  const closed = once(socket, 'close')
  socket.on('error', () => {})
  socket.write(`GET /api/logs/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key.token}\r\n\r\n`)
  await once(socket, 'data').then(([chunk]) => { answer += String(chunk) })
  socket.on('data', (chunk) => { answer += String(chunk) })
  socket.write('no HTTP\r\n\r\n')
  await closed
  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.doesNotMatch(answer, /TH_MALFORMED_REQUEST/)
})

/** What a gateway answers to a beginning and as many pieces, of which each is sent when the one before was. */
async function pieces (port: number, beginning: string, piece: string, count: number): Promise<string> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true)
  let answer = ''
  socket.on('data', (chunk) => { answer += String(chunk) })
  const closed = once(socket, 'close')
  for (const each of [beginning, ...Array<string>(count).fill(piece)]) {
    await new Promise<void>((resolve) => { socket.write(each, () => { setImmediate(resolve) }) })
  }
  await closed
  return answer
}

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
  const request = (method: string, path: string, more: string[] = [], body = ''): string => [
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
  assert.equal(status, 405)
})

test('names of the language and hostile names are names like others', async (t) => {
  const { app, url } = await start(t)
  const send = async (method: string, path: string, body?: unknown): Promise<number> =>
    (await fetch(`${url}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${key.token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    })).status
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

test('Host is checked on every loopback address, however HOST names it', async (t) => {
  for (const HOST of ['127.1', '::ffff:127.0.0.1']) {
    const { port } = await start(t, { env: { HOST } })
    for (const [host, isServed] of [['evil.example', false], ['localhost', true], ['127.0.0.1', true], ['127.1', HOST === '127.1']] as const) {
      const { status } = await raw(port, `GET /config HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      assert.equal(status !== 403, isServed, `${host} at ${HOST}`)
    }
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
    ['/health', [host], 200], [`http://${host}/health`, [host], 200], ['/health', [host, host], 400],
    ['/health', [host, 'localhost'], 400], [`http://localhost:${port}/health`, [host], 400],
    ['http://other.example/health', [host], 400], ['/mcp', [host, 'localhost'], 400],
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
  const token = app.auth.createLoginToken(admin)
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
  await app.annexes.openAll()
  const urls = (method: string): string[] =>
    app.routeTable
      .filter((row) => row.method === method && row.effect === 'read' && !/^(?:mcp|docs|console)/.test(row.scope))
      .map((row) => row.url)
      .sort()
  // A stream has no end that its head could tell of.
  assert.deepEqual(urls('HEAD'), urls('GET').filter((url) => url !== '/api/logs/stream'))
  assert.deepEqual(app.routeTable.filter(({ method, scope, effect }) => method === 'HEAD' && (effect !== 'read' || scope === 'mcp')), [])
})

test('a query with escapes that are no UTF-8 is refused, after who asks', async (t) => {
  const { app, url } = await start(t, { settings: { systemConfig: { routing: { enableBearerAuth: false } } } })
  const headers = { 'x-auth-token': app.auth.createLoginToken(alice) }
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
  const most = baseLimits.parameters
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
  // The bodies of these are read by the library (test/measure/auth-input.test.ts has the time that it takes).
  for (const path of ['/oauth/authorize', '/oauth/token', '/oauth/revoke']) {
    for (const payload of ['a&'.repeat(28_000), Array.from({ length: 8_000 }, (_, n) => `a${n}`).join('&')]) {
      assert.equal((await app.inject({ method: 'POST', url: path, headers, payload })).statusCode, 400, path)
    }
  }
})

test('a query is read into values, and what is repeated into lists', async () => {
  assert.deepEqual(parseQueryArguments('a=1&b&a=2&a=3&b=+%2B'), { a: ['1', '2', '3'], b: ['', ' +'] })
})

test('a body of another type: what to send, in every dialect', async (t) => {
  const { app, url } = await start(t)
  for (const path of ['/api/servers', '/api/auth/login', '/api/tools/a/b', '/mcp']) {
    for (const type of [
      'text/plain', 'nonsense', undefined, 'application/json; charset=latin1', 'application/json;charset="UTF-16"',
      'application/json; boundary=x; Charset = utf-7'
    ]) {
      const reply = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: {
          'x-auth-token': app.auth.createLoginToken(admin),
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
        origin === 'https://app.example' ? [204, origin] : [405, null], `${path} ${origin}`)
      if (reply.status === 204) continue
      assert.match(reply.headers.get('content-type') ?? '', /application\/json/)
      assert.match(reply.headers.get('allow') ?? '', /GET.*POST/)
    }
  }
})

test('a body with half a million wrong values is refused in a sentence', async (t) => {
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
    const reply = await fetch(`${url}/api${path}`, {
      method,
      headers: { 'x-auth-token': app.auth.createLoginToken(user), 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
    const answer = await reply.text()
    assert.equal(reply.status, 400, `${path} ${answer.slice(0, 200)}`)
    assert.ok(answer.length < 1_000, `${path}: ${answer.length} characters`)
  }
})
