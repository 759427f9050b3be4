// Who gets in: forged tokens, pages from elsewhere, proxies, read-only, and bodies of any kind.
import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, sign as signWith } from 'node:crypto'
import { connect, type AddressInfo } from 'node:net'
import type { InjectOptions } from 'fastify'
import { test } from 'tap'
import bcrypt from 'bcryptjs'
import fc from 'fast-check'
import { parseSnapshot } from '../../../db/document.ts'
import type { Snapshot } from '../../../db/store.ts'
import { appFor } from '../../helpers/app.ts'
import { initialize, Session, within } from '../../helpers/client.ts'
import { holdClock } from '../../helpers/clock.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { bearerKey, deadline, until } from '../../helpers/hub.ts'
import { admin, alice, base64, claimsOf, hs, key, raw, start, type World } from '../../helpers/doors.ts'
import { fixedStore } from '../../helpers/snapshot.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'
import { settingsLimits } from '../../../plugins/settings/limits.ts'

test('login tokens: what is forged, old or of somebody else is none', async (t) => {
  const { app, url } = await start(t)
  const good = app.auth.createLoginToken(admin)
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
    ['another user\'s mark', hs('sha256', header, { ...claims, mark: claimsOf(app.auth.createLoginToken(alice)).mark })],
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
  const token = app.auth.createLoginToken(alice)
  assert.deepEqual(await ask(token), [200, false])
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: { ...alice, isAdmin: true } }])
  assert.deepEqual(await ask(token), [200, true], 'rights are read anew')
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: { ...alice, password: bcrypt.hashSync('Other-1234', 4) } }])
  assert.deepEqual(await ask(token), [401, undefined], 'another password')
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: undefined }])
  await app.settings.change(() => [{ entity: 'users', key: 'alice', value: { ...alice, createdAt: new Date().toISOString() } }])
  assert.deepEqual(await ask(token), [401, undefined], 'another account of the same name')
})

test('pages of trusted origins may read, others may not even ask', async (t) => {
  const { url } = await start(t, {
    env: { ALLOWED_ORIGINS: 'https://good.example' },
    settings: { systemConfig: { install: { baseUrl: 'https://hub.example/x' } } }
  })
  const asked = { 'access-control-request-method': 'POST' }
  const ask = async (method: 'OPTIONS' | 'POST', headers: Record<string, string>): Promise<Response> =>
    await fetch(`${url}/mcp`, { method, headers, ...method === 'POST' && { body: JSON.stringify(initialize()) } })
  for (const origin of ['https://good.example', 'https://hub.example']) {
    const preflight = await ask('OPTIONS', { origin, ...asked, 'access-control-request-headers': 'authorization,content-type,mcp-session-id' })
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers.get('access-control-allow-origin'), origin)
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /mcp-session-id/)
    const reply = await ask('POST', { origin, authorization: `Bearer ${key.token}`, 'content-type': 'application/json' })
    assert.equal(reply.status, 200)
    assert.equal(reply.headers.get('access-control-allow-origin'), origin)
    assert.match(reply.headers.get('access-control-expose-headers') ?? '', /mcp-session-id/)
  }
  for (const origin of ['https://evil.example', 'null', 'https://good.example.evil.example', 'http://good.example']) {
    const preflight = await ask('OPTIONS', { origin, ...asked })
    assert.equal(preflight.headers.get('access-control-allow-origin'), null, origin)
    const reply = await ask('POST', { origin, authorization: `Bearer ${key.token}`, 'content-type': 'application/json' })
    assert.equal(reply.status, 403, origin)
    assert.equal(reply.headers.get('access-control-allow-origin'), null, origin)
  }
  const safe = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    // The proxy knows whether there is TLS.
    'strict-transport-security': null,
    'access-control-allow-credentials': null
  }
  for (const path of ['/health', '/api/auth/user', '/docs/']) {
    const { headers } = await fetch(`${url}${path}`)
    assert.deepEqual(Object.fromEntries(Object.keys(safe).map((name) => [name, headers.get(name)])), safe, path)
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'self';.*frame-ancestors 'none'/, path)
  }
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
  const token = app.auth.createLoginToken(app.settings.current.users.get('admin') ?? admin)
  const account = { username: 'ada', password: 'Same-1234' }
  assert.deepEqual(await ask('POST', '/auth/register', account, { 'x-auth-token': token }), [201, 'no-store'])
  assert.deepEqual(await ask('POST', '/auth/keys', { name: 'one' }, { 'x-auth-token': token }), [201, 'no-store'])
  assert.deepEqual(await ask('GET', `/auth/user?token=${token}`), [200, 'no-store'])
  await app.annexes.openAll()
  for (const { method, url: path, scope } of app.routeTable.filter(({ scope }) => scope === 'api' || scope === 'admin')) {
    assert.deepEqual(await ask(method, path.replace('/api', '').replaceAll(':', '')), [401, 'no-store'], `${scope} ${path}`)
  }
})

test('skipAuth makes a guest admin of the management API, and of nothing else', async (t) => {
  const { url } = await start(t, { settings: { systemConfig: { routing: { skipAuth: true } } } })
  const post = async (headers: Record<string, string>, body: string, path = '/api/servers'): Promise<number> =>
    (await fetch(`${url}${path}`, { method: 'POST', headers, body })).status
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
    assert.equal(await post({ 'content-type': 'application/json' }, '{}', path), 401, path)
  }
})

test('X-Forwarded-* counts where the proxy is trusted, and nowhere else', async (t) => {
  const plain = await start(t)
  const proxied = await start(t, { env: { TRUST_PROXY: '127.0.0.1', ALLOWED_HOSTS: 'hub.example' } })
  const hops = await start(t, { env: { TRUST_PROXY: '1', ALLOWED_HOSTS: 'hub.example' } })
  const ask = async ({ url }: World, origin: string): Promise<number> => (await fetch(`${url}/mcp`, {
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
  })).status
  assert.equal(await ask(plain, 'https://hub.example'), 403)
  assert.equal(await ask(proxied, 'https://hub.example'), 400, 'let in, and then told that this is no message')
  assert.equal(await ask(hops, 'https://hub.example'), 400)
  assert.equal(await ask(proxied, 'https://evil.example'), 403)
})

test('what is withdrawn ends open sessions, and those of nobody else', async (t) => {
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
  await until(() => app.upstreams.countByStatus().connected === 2)
  const begin = async (path: string, key: string): Promise<() => Promise<number>> => {
    const session = await Session.open(`${url}${path}`, { key })
    return async () => (await session.post({ jsonrpc: '2.0', id: 2, method: 'ping' })).status
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
  await until(() => app.upstreams.countByStatus().connected === 1)
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
  const others = [shared, first, await call('second'), await call('first', { 'x-auth-token': app.auth.createLoginToken(alice) })]
  assert.equal(new Set(others).size, others.length, 'another id, and another principal with the same id, share with nobody')
  assert.equal(await call('first', { authorization: `Bearer ${key.token}` }, '/api/tools/one/who', {}), first,
    'the open route, as the same principal')
  assert.equal(await call('first', {}, '/api/tools/one/who', {}), shared, 'an id is no credential')
  assert.equal(await call('x'.repeat(129)), '400')
  assert.equal(await call('a b'), '400')
})

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
          'name', 'config', 'url', 'command', 'args', 'env', 'headers', 'type', 'servers', 'username', 'password',
          'isAdmin', 'routing', 'toolName', 'arguments', '__proto__', 'constructor', 'enabled', 'description', 'tools',
          'jsonrpc', 'id', 'method', 'params', 'openapi', 'schema', 'owner', 'visibility', 'oauth', 'proxy', 'options'
        )
      ),
      tie('value'),
      { maxKeys: 5 }
    )
  )
})).value

test('hostile bodies over all routes: no 5xx, no hang', async (t) => {
  const runs = Number(process.env.HOSTILE_BODIES ?? 1_000)
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  t.comment(`seed ${seed}, ${runs} bodies`)
  const { app, url } = await start(t, {
    settings: {
      mcpServers: { thing: { url: 'http://127.0.0.1:9/', enabled: false } },
      groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'team', servers: ['thing'] }]
    }
  })
  await app.annexes.openAll()
  const rows = app.routeTable.filter(({ scope, method }) => scope !== 'docs' && method !== 'OPTIONS')
  const words = fc.constantFrom('thing', 'team', 'admin', '__proto__', '%00', 'a%2Fb', '%F0%9F%98%80',
    'x'.repeat(300), '33333333-3333-4333-8333-333333333333')
  const admins = { 'x-auth-token': app.auth.createLoginToken(admin) }
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
          signal: AbortSignal.timeout(deadline)
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
})

test('who sends slowly is cut off in time, head or body', async (t) => {
  assert.ok(baseLimits.slowSenders.request + baseLimits.slowSenders.interval <= 35_000)
  const app = await appFor(t, {}, {}, { slowSenders: { headers: 300, request: 600, interval: 100 } })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const head = 'POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
  const begun = ['POST /mcp HTTP/1.1\r\nHost: loc', `${head}Content-Length: 1000\r\n\r\n{"username":`]
  for (const part of begun) {
    let drips = 0
    const answer = await within('the end of a slow request', new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => { socket.write(part) })
      // One byte at a time keeps no connection.
      const drip = setInterval(() => { if (socket.writable) socket.write('x'); drips++ }, 50)
      let received = ''
      socket.on('data', (chunk) => { received += String(chunk) })
      socket.on('error', reject)
      socket.on('close', () => { clearInterval(drip); resolve(received) })
    }).catch(String))
    assert.ok(drips > 0, 'it was waited for')
    if (answer.startsWith('HTTP')) assert.match(answer, /^HTTP\/1\.1 408 /)
  }
})

/** The key as a database has it. */
const stored = { ...key, token: undefined, tokenHash: createHash('sha256').update(key.token).digest('hex') }

test('a key that another replica has just stored is looked up before it is refused; a wrong one is refused', async (t) => {
  const before = parseSnapshot({}, 1).snapshot
  const after = parseSnapshot({ bearerKeys: [stored] }, 2).snapshot
  let notify = (_snapshot: Snapshot): void => {}
  let lookUps = 0
  let isStored = false
  const store = fixedStore(before, {
    onChange: (listener) => { notify = listener; return () => {} },
    refresh: async () => {
      lookUps++
      if (isStored) notify(after)
    }
  })
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
  holdClock(t)
  for (let n = 0; n < 100; n++) assert.equal(await ask(`thk_${n}`), 401)
  assert.ok(lookUps <= 2 * settingsLimits.freshLookUps.perSecond + 2, `${lookUps} look-ups`)
})

test('an access token is looked up before it is refused on an MCP route, if keys come in another header', async (t) => {
  const { snapshot } = parseSnapshot({ systemConfig: { routing: { bearerAuthHeaderName: 'x-api-key' } } }, 1)
  let lookUps = 0
  const app = await appFor(t, {}, {}, { store: fixedStore(snapshot, { refresh: async () => { lookUps++ } }) })
  for (const [authorization, expected] of [['Basic eDp5', 0], [`Bearer tht_${'0'.repeat(43)}`, 1]] as const) {
    const payload = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const { statusCode } = await app.inject({ url: '/mcp', method: 'POST', headers: { authorization }, payload })
    assert.deepEqual([statusCode, lookUps], [401, expected], authorization)
  }
})

test('what is unknown here is 503 while the storage of several replicas is away; what is known counts as before', async (t) => {
  const { snapshot } = parseSnapshot({ bearerKeys: [stored] }, 1)
  let away: string | undefined
  let fails = true
  const store = fixedStore(snapshot, { refresh: async () => { if (fails) throw new Error('away') }, health: () => away })
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
    settings: { mcpServers: { one: { type: 'streamable-http', url: upstream.url, visibility: 'public' } } },
    env: { MEMORY_BUDGET: 64 * 1024 * 1024, OUTBOUND_ALLOW: '127.0.0.0/8' }
  })
  /** Begins bodies that do not end, and waits until one of them is refused. */
  const hold = async (count: number, length: number): Promise<void> => {
    const head = `POST /api/auth/login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n{`
    await within(`a 429 for ${length} bytes`, new Promise<void>((resolve) => {
      for (let n = 0; n < count; n++) {
        const socket = connect(port, '127.0.0.1', () => { socket.write(head) })
        socket.on('error', () => {}).on('data', (chunk) => { if (String(chunk).startsWith('HTTP/1.1 429')) resolve() })
        t.after(() => { socket.destroy() })
      }
    }))
  }
  await hold(40, 1_000_000)
  // What the address may hold is used up.
  await hold(80, 5_000)

  const token = { 'x-auth-token': app.auth.createLoginToken(alice) }
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
  const manager = { 'x-auth-token': app.auth.createLoginToken(admin) }
  assert.equal(await post('/api/tools/call/one', manager, JSON.stringify({ toolName: 'echo', arguments: { message: 'x'.repeat(8_000) } })), 200)
})

test('a replica that lost its database for a minute refuses every credential with 503, and is not ready', async (t) => {
  const { snapshot } = parseSnapshot({ bearerKeys: [stored], users: [alice], systemConfig: { oauthServer: { enabled: true } } }, 1)
  let now = Date.now()
  t.intercept(Date, 'now', { value: () => now })
  let away: string | undefined
  const store = fixedStore(snapshot, { refresh: async () => {}, health: () => away })
  const localToken = `thl_${'b'.repeat(64)}`
  const app = await appFor(t, {}, {}, { store, localToken })
  app.phase.name = 'ready'
  const warned = t.capture(app.log, 'warn')
  const tellsOfIt = (): number => warned().filter(({ args: [sentence] }) => /^The database cannot be used\. .* are refused \(503\)/.test(String(sentence))).length
  const bearer = { authorization: `Bearer ${key.token}` }
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'server/discover' }
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
  const accept = { accept: 'application/json, text/event-stream' }
  const asks: Array<[says: string, ask: InjectOptions, known: number]> = [
    ['the API, a key', { url: '/api/servers', headers: bearer }, 200],
    ['the API, a login', { url: '/api/auth/user', headers: { 'x-auth-token': app.auth.createLoginToken(alice) } }, 200],
    ['legacy MCP', { url: '/mcp', method: 'POST', headers: { ...bearer, ...accept }, payload: initialize() }, 200],
    ['modern MCP', {
      url: '/mcp', method: 'POST', headers: { ...bearer, ...accept, ...modern }, payload: { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: meta } }
    }, 200],
    ['a password', { url: '/api/auth/login', method: 'POST', payload: { username: 'nobody', password: 'wrong password' } }, 401],
    ['an unknown key', { url: '/mcp', method: 'POST', headers: { authorization: 'Bearer thk_0' }, payload: initialize() }, 401],
    ['an open route', { url: '/api/openapi.json', headers: bearer }, 200],
    ['the metrics', { url: '/metrics', headers: bearer }, 200],
    ['nobody, on MCP', { url: '/mcp', method: 'POST', headers: accept, payload: initialize() }, 401],
    ['nobody, on an open route', { url: '/api/openapi.json' }, 200],
    ['the command line', { url: '/api/servers', headers: { authorization: `Bearer ${localToken}` } }, 200],
    ['the supervisor', { url: '/health/live' }, 200],
    ['the balancer', { url: '/health/ready' }, 200]
  ]
  const look = async (isLost: boolean): Promise<void> => {
    for (const [says, ask, known] of asks) {
      const { statusCode, headers, body } = await app.inject(ask)
      const isFree = /^(nobody|the command line|the supervisor)/.test(says)
      assert.equal(statusCode, isLost && !isFree ? 503 : known, `${says}: ${body}`)
      if (statusCode === 503) assert.ok(Number(headers['retry-after']) > 0, says)
    }
  }
  await look(false)
  away = 'The database cannot be used.'
  assert.equal(app.settings.outageReason, undefined)
  now += settingsLimits.storageAway - 1_000
  assert.equal((await app.inject({ url: '/api/servers', headers: bearer })).statusCode, 200, 'what is known counts for a while')
  assert.equal((await app.inject({ url: '/health/ready' })).statusCode, 200)
  assert.equal(tellsOfIt(), 0)
  now += 1_000
  await look(true)
  await look(true)
  assert.equal(tellsOfIt(), 1, 'once an outage')
  away = undefined
  await look(false)
  away = 'The database cannot be used.'
  assert.equal((await app.inject({ url: '/api/servers', headers: bearer })).statusCode, 200, 'the next outage begins anew')
})
