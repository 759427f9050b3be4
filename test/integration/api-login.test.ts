// Who gets into the management API: the first admin, logins, keys of a settings file; and BASE_PATH.
import assert from 'node:assert/strict'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { at, connected, initialize, KEY, open, send, Session, settings, text, type Json } from '../helpers/client.ts'
import { bearerKey, spawnHub, startHub, until } from '../helpers/hub.ts'
import {
  PASSWORD, SECRET, ask, Api, fine, refused, invalid, onDisk, records, sign, claimsOf, printed, type Answer
} from '../helpers/management-client.ts'

// ---- the first admin ------------------------------------------------------------------------------

test('the first admin', async (t) => {
  await t.test('is there as soon as the gateway is ready; ADMIN_PASSWORD is its password, is printed nowhere, and is stored as a hash', async (t) => {
    const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD }, wait: false })
    await until(async () => (await fetch(`${hub.url}/health/ready`)).status === 200, () => hub.output())
    const admin = await Api.login(hub)
    assert.equal(at((await admin.ask('GET', '/auth/user')).body, 'user', 'username'), 'admin')
    assert.ok(!hub.output().includes(PASSWORD), hub.output())
    const content = await readFile(hub.settingsPath, 'utf8')
    assert.ok(!content.includes(PASSWORD), content)
    assert.equal(at(JSON.parse(content), 'users', 0, 'username'), 'admin')
    assert.equal((await stat(hub.settingsPath)).mode & 0o777, 0o600)
    assert.equal(await hub.stop(), 0)
  })

  await t.test('without it a random one is told at the first start only, and is still the one after the second start', async (t) => {
    const first = await spawnHub(t)
    t.after(async () => { await rm(first.folder, { recursive: true, force: true }) })
    await until(() => first.firstWords().includes(' call everything '), first.output)
    const words = first.firstWords()
    const password = printed(words)
    assert.ok(password !== '' && !first.output().includes(password), first.output())
    await Api.login(first, 'admin', password)
    const before = at(await onDisk(first), 'users')
    assert.ok(!JSON.stringify(before).includes(password))
    assert.equal(await first.stop(), 0)

    const second = await spawnHub(t, { folder: first.folder })
    await Api.login(second, 'admin', password)
    assert.equal(second.firstWords(), words)
    assert.doesNotMatch(second.output(), /first-start\.txt/)
    assert.ok(!second.output().includes(password))
    assert.equal(await second.stop(), 0)

    const third = await startHub(t, { folder: first.folder, env: { ADMIN_PASSWORD: 'Another-Word-2' } })
    await Api.login(third, 'admin', password)
    refused(await ask(third, 'POST', '/api/auth/login', { body: { username: 'admin', password: 'Another-Word-2' } }), 401)
    assert.deepEqual(at(await onDisk(third), 'users'), before)
  })
})

// ---- who is asking --------------------------------------------------------------------------------

test('login and tokens', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD, JWT_SECRET: SECRET, LOG_LEVEL: 'debug' } })
  const login = async (body: unknown): Promise<Answer> => await ask(hub, 'POST', '/api/auth/login', { body })
  const me = async (headers: Record<string, string>, query = ''): Promise<Answer> =>
    await ask(hub, 'GET', `/api/auth/user${query}`, { headers })

  await Api.login(hub)

  await t.test('login answers a token and the user', async () => {
    const answer = await login({ username: 'admin', password: PASSWORD })
    assert.equal(answer.status, 200, answer.text)
    const { success, message, token, user } = answer.body as { success: unknown, message: unknown, token: unknown, user: Json }
    assert.equal(success, true)
    assert.equal(typeof message, 'string')
    assert.match(String(token), /^[\w-]+\.[\w-]+\.[\w-]+$/)
    assert.deepEqual(user, { username: 'admin', isAdmin: true, permissions: { admin: true, servers: 'all', users: true, system: true } })
  })

  await t.test('a wrong password and an unknown user: the same 401', async () => {
    const wrong = await login({ username: 'admin', password: `${PASSWORD}x` })
    const unknown = await login({ username: 'nobody', password: PASSWORD })
    refused(wrong, 401)
    refused(unknown, 401)
    assert.deepEqual(unknown.body, wrong.body)
    for (const [username, password] of [
      ['admin', ''], ['', PASSWORD], ['admin\u0000', PASSWORD], ['__proto__', PASSWORD], ['constructor', 'x'],
      ['admin', 'x'.repeat(5_000)]
    ]) {
      const answer = await login({ username, password })
      assert.ok(answer.status === 400 || answer.status === 401, `${username}: ${answer.text}`)
      refused(answer, answer.status)
    }
  })

  await t.test('missing or wrong fields: 400 with errors', async () => {
    for (const body of [
      {}, { username: 'admin' }, { password: PASSWORD }, { username: 7, password: PASSWORD },
      { username: 'admin', password: null }, { username: ['admin'], password: PASSWORD },
      { username: 'admin', password: { $ne: '' } }, [], null, 'text', 7
    ]) { invalid(await login(body), JSON.stringify(body)) }
    refused(await ask(hub, 'POST', '/api/auth/login'), 400)
  })

  const admin = await Api.login(hub)

  await t.test('GET /api/auth/user by x-auth-token and by ?token=', async () => {
    const user = { username: 'admin', isAdmin: true, permissions: { admin: true, servers: 'all', users: true, system: true } }
    for (const answer of [await me({ 'x-auth-token': admin.token }), await me({}, `?token=${admin.token}`)]) {
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, { success: true, user })
    }
    const other = await me({ authorization: `Bearer ${KEY}` })
    assert.equal(other.status, 200, other.text)
    assert.equal(at(other.body, 'user', 'username'), 'system')
    assert.equal(at(other.body, 'user', 'isAdmin'), true)
  })

  await t.test('nothing, garbage, or a token in the wrong place: 401', async () => {
    for (const headers of [
      {},
      { 'x-auth-token': '' },
      { 'x-auth-token': 'garbage' },
      { 'x-auth-token': 'a.b.c' },
      { 'x-auth-token': KEY },
      { authorization: 'Bearer' },
      { authorization: 'Bearer garbage' },
      { authorization: `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}` },
      { authorization: `Bearer ${admin.token}` },
      { authorization: admin.token },
      { cookie: `token=${admin.token}` },
      { 'x-auth-token': `Bearer ${admin.token}` },
      { authorization: `Bearer ${KEY}x` },
      { authorization: `Bearer ${KEY.slice(0, -1)}` }
    ] as Record<string, string>[]) { refused(await me(headers), 401, JSON.stringify(headers)) }
    refused(await me({}, `?token=${KEY}`), 401)
    refused(await me({}, '?token='), 401)
    refused(await me({}, `?Token=${admin.token}`), 401)
  })

  await t.test('a login is no credential of MCP', async () => {
    for (const [headers, query] of [
      [{ 'x-auth-token': admin.token }, ''],
      [{ authorization: `Bearer ${admin.token}` }, ''],
      [{}, `?token=${admin.token}`]
    ] as [Record<string, string>, string][]) {
      for (const route of ['/mcp', '/api/mcp']) {
        const reply = await send(`${hub.url}${route}${query}`, { key: null, headers, body: initialize() })
        assert.equal(reply.status, 401, `${route} ${JSON.stringify(headers)}: ${reply.body}`)
        assert.match(String(reply.headers.get('www-authenticate')), /^Bearer/)
      }
    }
  })

  await t.test('what is in a token, and what is not taken', async () => {
    const claims = claimsOf(admin.token)
    const now = Math.floor(Date.now() / 1_000)
    assert.equal(Number(claims.exp) - Number(claims.iat), 24 * 3_600)
    assert.equal(claims.sub, 'admin')
    assert.ok(claims.iss !== undefined && claims.aud !== undefined)
    assert.equal(at(JSON.parse(Buffer.from(admin.token.split('.')[0] ?? '', 'base64url').toString()), 'alg'), 'HS256')
    const as = async (token: string): Promise<number> => (await me({ 'x-auth-token': token })).status
    assert.equal(await as(sign(claims)), 200, 'the test signs as the gateway does')
    for (const [what, token] of Object.entries({
      expired: sign({ ...claims, iat: now - 7_200, exp: now - 3_600 }),
      'without expiry': sign(Object.fromEntries(Object.entries(claims).filter(([key]) => key !== 'exp'))),
      'of another issuer': sign({ ...claims, iss: 'somebody' }),
      'for another audience': sign({ ...claims, aud: 'something' }),
      'of a user who is not there': sign({ ...claims, sub: 'nobody' }),
      'of __proto__': sign({ ...claims, sub: '__proto__' }),
      unsigned: sign(claims, { alg: 'none' }),
      'by another algorithm': sign(claims, { alg: 'HS512' }),
      'by another secret': sign(claims, { secret: 'b'.repeat(40) }),
      'by an empty secret': sign(claims, { secret: '' }),
      'tampered with': `${admin.token.slice(0, -3)}AAA`
    })) assert.equal(await as(token), 401, what)
  })

  await t.test('the token of the query reaches no log line', async () => {
    await ask(hub, 'GET', `/api/servers?token=${admin.token}`)
    await ask(hub, 'GET', `/api/nope?token=${admin.token}`)
    for (const secret of [admin.token, admin.token.split('.')[2] ?? '', PASSWORD, KEY, `${PASSWORD}x`]) {
      assert.ok(
        !hub.output().includes(secret),
        `a secret in the log: ${hub.output().split('\n').find((line) => line.includes(secret))}`
      )
    }
  })

  await t.test('a login outlives a restart with the same JWT_SECRET, and no other', async (t) => {
    assert.equal(await hub.stop(), 0)
    const again = await startHub(t, { folder: hub.folder, env: { JWT_SECRET: SECRET } })
    assert.equal((await ask(again, 'GET', '/api/auth/user', { headers: admin.headers })).status, 200)
    await again.stop()
    const without = await startHub(t, { folder: hub.folder })
    refused(await ask(without, 'GET', '/api/auth/user', { headers: admin.headers }), 401)
    assert.doesNotMatch(again.output(), /JWT_SECRET/)
  })

  await t.test('without JWT_SECRET a login outlives a restart, but for one with another DATA_DIR', async (t) => {
    const first = await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD } })
    const { headers } = await Api.login(first)
    assert.equal(await first.stop(), 0)
    assert.doesNotMatch(first.output(), /JWT_SECRET/)
    const path = join(first.folder, '.tool-hub/login.key')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.ok(!first.output().includes((await readFile(path, 'utf8')).trim()))
    const again = await startHub(t, { folder: first.folder })
    assert.equal((await ask(again, 'GET', '/api/auth/user', { headers })).status, 200)
    await again.stop()
    const elsewhere = await startHub(t, { folder: first.folder, env: { DATA_DIR: join(first.folder, 'other') } })
    refused(await ask(elsewhere, 'GET', '/api/auth/user', { headers }), 401)
  })
})

test('a weak ADMIN_PASSWORD, a short JWT_SECRET: taken, with a warning; JWT_EXPIRES_IN', async (t) => {
  const hub = await startHub(t, { env: { ADMIN_PASSWORD: 'kitten', JWT_EXPIRES_IN: '2h', JWT_SECRET: 'short-one' } })
  const admin = await Api.login(hub, 'admin', 'kitten')
  assert.equal((await admin.ask('GET', '/auth/user')).status, 200)
  const claims = claimsOf(admin.token)
  assert.equal(Number(claims.exp) - Number(claims.iat), 2 * 3_600)
  const late = { ...claims, iat: Number(claims.iat) - 7_201, exp: Number(claims.exp) - 7_201 }
  const token = sign(late, { secret: 'short-one' })
  refused(await ask(hub, 'GET', '/api/auth/user', { headers: { 'x-auth-token': token } }), 401)
  for (const secret of ['kitten', 'short-one', admin.token]) assert.ok(!hub.output().includes(secret), hub.output())
  assert.match(hub.output(), /JWT_SECRET/)
  assert.match(hub.output(), /ADMIN_PASSWORD/)
})

// ---- in its own place -----------------------------------------------------------------------------

test('BASE_PATH stands in front of everything', async (t) => {
  const fake = await startUpstream(t)
  const hub = await spawnHub(t, { env: { ADMIN_PASSWORD: PASSWORD, BASE_PATH: '/deep/hub' } })
  const root = `http://127.0.0.1:${hub.port}`
  const admin = await Api.login(hub)
  await admin.add('fake', { url: fake.url })
  await admin.has('fake', 'connected')
  assert.equal(text(fine(await admin.run('fake', 'echo', { message: 'under' }))), 'under')
  const { token } = await admin.ok('POST', '/auth/keys', { name: 'k' }, 201)
  assert.ok((await (await Session.open(`${hub.url}/mcp`, { key: String(token) })).tools()).includes('fake-echo'))
  for (const route of ['/health', '/health/live', '/health/ready', '/metrics', '/docs', '/docs/json']) {
    assert.equal((await fetch(`${hub.url}${route}`, { headers: admin.headers })).status, 200, route)
    assert.equal((await fetch(`${root}${route}`)).status, 404, route)
  }
  for (const route of ['/api/servers', '/api/auth/user', '/mcp']) {
    assert.equal((await fetch(`${root}${route}`, { headers: admin.headers })).status, 404, route)
  }
  const document: unknown = await (await fetch(`${hub.url}/docs/json`)).json()
  const route = Object.keys(at(document, 'paths') as Json).find((one) => one.endsWith('/servers')) ?? ''
  const full = new URL(`${String(at(document, 'servers', 0, 'url') ?? '').replace(/\/$/, '')}${route}`, root).pathname
  assert.equal(full, '/deep/hub/api/servers', 'a client of the document finds the API')
  const page = await (await fetch(`${hub.url}/docs`)).text()
  for (const [, link] of page.matchAll(/(?:src|href)="([^"]+\.(?:js|css|png))"/g)) {
    const asset = new URL(link ?? '', `${root}/deep/hub/docs/`)
    assert.equal(asset.origin, root, 'nothing from elsewhere')
    const status = (await fetch(asset)).status
    const other = (await fetch(new URL(link ?? '', `${root}/deep/hub/docs`))).status
    assert.ok(status === 200 || other === 200, `${link}: ${status}`)
  }
  assert.ok(hub.output().includes('/deep/hub/mcp'), 'the endpoint that is printed is the one that works')
})

test('keys of a settings file', async (t) => {
  const fake = await startUpstream(t)
  const scopes = { group: `thk_${'c'.repeat(64)}`, disabled: `thk_${'d'.repeat(64)}`, odd: 'an-old-key-of-another-shape' }
  const hub = await startHub(t, {
    env: { ADMIN_PASSWORD: PASSWORD },
    settings: settings({ fake: { url: fake.url }, two: { url: fake.url } }, {
      bearerKeys: [
        bearerKey(),
        bearerKey({
          id: '55555555-5555-4555-8555-555555555555',
          name: 'group',
          token: scopes.group,
          accessType: 'groups',
          allowedGroups: ['team']
        }),
        bearerKey({ id: '66666666-6666-4666-8666-666666666666', name: 'disabled', token: scopes.disabled, enabled: false }),
        bearerKey({ id: '77777777-7777-4777-8777-777777777777', name: 'odd', token: scopes.odd })
      ],
      groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'team', servers: ['fake'] }]
    })
  })
  await connected(hub, 2)
  const url = `${hub.url}/mcp`
  const look = async (): Promise<void> => {
    for (const key of [KEY, scopes.odd]) {
      assert.equal((await Api.key(hub, key).ask('GET', '/servers')).status, 200)
      assert.equal((await send(url, { key, body: initialize() })).status, 200)
    }
    refused(await Api.key(hub, scopes.disabled).ask('GET', '/servers'), 401)
    assert.equal((await send(url, { key: scopes.disabled, body: initialize() })).status, 401)
    refused(await Api.key(hub, scopes.group).ask('GET', '/servers'), 401)
    assert.equal((await send(`${url}/team`, { key: scopes.group, body: initialize() })).status, 200)
    for (const route of ['', '/fake', '/two']) {
      assert.equal((await send(`${url}${route}`, { key: scopes.group, body: initialize() })).status, 403, route)
    }
  }

  await t.test('plain ones work, and are hashed at the next write', async () => {
    await look()
    const admin = await Api.login(hub)
    await admin.add('third', { url: fake.url, enabled: false })
    const file = await readFile(hub.settingsPath, 'utf8')
    for (const token of [KEY, ...Object.values(scopes)]) assert.ok(!file.includes(token), `${token} is still in plain`)
    await look()
    const listed = records(await admin.ask('GET', '/auth/keys'))
    assert.equal(listed.find(({ name }) => name === 'test')?.token, `${KEY.slice(0, 8)}...${KEY.slice(-4)}`)
    const hash = /[0-9a-f]{64}/.exec(JSON.stringify(at(await onDisk(hub), 'bearerKeys')))?.[0]
    if (hash !== undefined) refused(await Api.key(hub, hash).ask('GET', '/servers'), 401, 'the hash is no key')
  })

  await t.test('and after a restart', async (t) => {
    assert.equal(await hub.stop(), 0)
    const again = await startHub(t, { folder: hub.folder })
    assert.equal((await Api.key(again, KEY).ask('GET', '/servers')).status, 200)
    const stream = await open(`${again.url}/mcp`, { key: scopes.odd, body: initialize() })
    assert.equal(stream.status, 200)
    stream.close()
  })
})
