// Who gets into the management API: the first admin, logins, keys of a settings file; and BASE_PATH.
import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { at, KEY, settings, type Json } from '../helpers/client.ts'
import { claimsOf } from '../helpers/doors.ts'
import { spawnHub, startHub, until } from '../helpers/hub.ts'
import { Api, ask, onDisk, refused, WORDS, type Answer } from '../helpers/management.ts'

const PASSWORD = WORDS.admin

// ---- the first admin ------------------------------------------------------------------------------

test('the first admin', async (t) => {
  await t.test('has ADMIN_PASSWORD, which is printed nowhere and stored as a hash', async (t) => {
    const hub = await startHub(t, { env: { ADMIN_PASSWORD: PASSWORD } })
    const admin = await Api.login(hub)
    assert.equal(at((await admin.ask('GET', '/auth/user')).body, 'user', 'username'), 'admin')
    assert.ok(!hub.output().includes(PASSWORD), hub.output())
    const content = await readFile(hub.settingsPath, 'utf8')
    assert.ok(!content.includes(PASSWORD), content)
    assert.equal(at(JSON.parse(content), 'users', 0, 'username'), 'admin')
    assert.equal((await stat(hub.settingsPath)).mode & 0o777, 0o600)
  })

  await t.test('without it a random one is told at the first start only, and stays the one', async (t) => {
    const first = await spawnHub(t)
    await until(() => first.firstWords().includes(' call everything '), first.output)
    const words = first.firstWords()
    const password = /with password "([^"]+)"/.exec(words)?.[1] ?? ''
    assert.ok(password !== '' && !first.output().includes(password), first.output())
    const before = at(await onDisk(first), 'users')
    assert.ok(!JSON.stringify(before).includes(password))
    assert.equal(await first.stop(), 0)

    const again = await startHub(t, { folder: first.folder, env: { ADMIN_PASSWORD: 'Another-Word-2' } })
    await Api.login(again, 'admin', password)
    refused(await ask(again, 'POST', '/api/auth/login', { body: { username: 'admin', password: 'Another-Word-2' } }), 401)
    assert.deepEqual(at(await onDisk(again), 'users'), before)
    assert.equal(first.firstWords(), words)
    assert.ok(!/first-start\.txt/.test(again.output()) && !again.output().includes(password))
  })
})

// ---- who is asking --------------------------------------------------------------------------------

const user = { username: 'admin', isAdmin: true, permissions: { admin: true, servers: 'all', users: true, system: true } }

test('login and tokens', async (t) => {
  const hub = await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD, LOG_LEVEL: 'debug' } })
  const login = async (body: unknown): Promise<Answer> => await ask(hub, 'POST', '/api/auth/login', { body })
  const me = async (headers: Record<string, string>, query = '', of = hub): Promise<Answer> =>
    await ask(of, 'GET', `/api/auth/user${query}`, { headers })

  await t.test('login answers a token and the user', async () => {
    const { status, body } = await login({ username: 'admin', password: PASSWORD })
    const { token, message, ...rest } = body as Json
    assert.deepEqual([status, typeof message, rest], [200, 'string', { success: true, user }])
    const { iat, exp } = claimsOf(String(token))
    assert.equal(Number(exp) - Number(iat), 24 * 3_600)
  })

  await t.test('a wrong password and an unknown user: the same 401', async () => {
    const wrong = await login({ username: 'admin', password: `${PASSWORD}x` })
    refused(wrong, 401)
    for (const username of ['nobody', '__proto__']) assert.deepEqual((await login({ username, password: PASSWORD })).body, wrong.body)
    for (const [username, password] of [['admin', ''], ['', PASSWORD], ['admin\u0000', PASSWORD], ['admin', 'x'.repeat(5_000)]]) {
      const answer = await login({ username, password })
      refused(answer, answer.status === 400 ? 400 : 401, username)
    }
  })

  await t.test('missing or wrong fields: 400 with errors', async () => {
    for (const body of [
      {}, { username: 'admin' }, { username: ['admin'], password: PASSWORD }, { username: 'admin', password: null },
      { username: 'admin', password: { $ne: '' } }, [], null, 'text'
    ]) {
      const answer = await login(body)
      refused(answer, 400, JSON.stringify(body))
      const errors = at(answer.body, 'errors') as Json[]
      assert.ok(errors.length > 0 && errors.every(({ path, message }) => typeof path === 'string' && typeof message === 'string'), answer.text)
    }
    refused(await ask(hub, 'POST', '/api/auth/login'), 400)
  })

  const { headers } = await Api.login(hub)
  const { 'x-auth-token': token = '' } = headers

  await t.test('GET /api/auth/user by x-auth-token, by ?token=, and by a key', async () => {
    for (const { body } of [await me(headers), await me({}, `?token=${token}`)]) assert.deepEqual(body, { success: true, user })
    const { body } = await me({ authorization: `Bearer ${KEY}` })
    assert.deepEqual([at(body, 'user', 'username'), at(body, 'user', 'isAdmin')], ['system', true])
  })

  await t.test('nothing, garbage, or a credential in the wrong place: 401', async () => {
    for (const wrong of [
      {},
      { authorization: 'Bearer' },
      { authorization: `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}` },
      { authorization: token },
      { cookie: `token=${token}` },
      { 'x-auth-token': `Bearer ${token}` },
      { authorization: `Bearer ${KEY}x` },
      { authorization: `Bearer ${KEY.slice(0, -1)}` }
    ] as Record<string, string>[]) { refused(await me(wrong), 401, JSON.stringify(wrong)) }
    refused(await me({}, '?token='), 401)
    refused(await me({}, `?Token=${token}`), 401)
  })

  await t.test('without JWT_SECRET a login outlives a restart, but for one with another DATA_DIR', async (t) => {
    assert.equal(await hub.stop(), 0)
    assert.doesNotMatch(hub.output(), /JWT_SECRET/)
    const path = join(hub.folder, '.tool-hub/login.key')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.ok(!hub.output().includes((await readFile(path, 'utf8')).trim()))
    const again = await startHub(t, { folder: hub.folder })
    assert.equal((await me(headers, '', again)).status, 200)
    await again.stop()
    const elsewhere = await startHub(t, { folder: hub.folder, env: { DATA_DIR: join(hub.folder, 'other') } })
    refused(await me(headers, '', elsewhere), 401)
  })
})

test('a weak ADMIN_PASSWORD, a short JWT_SECRET: taken, with a warning; JWT_EXPIRES_IN', async (t) => {
  const hub = await startHub(t, { env: { ADMIN_PASSWORD: 'kitten', JWT_EXPIRES_IN: '2h', JWT_SECRET: 'short-one' } })
  const admin = await Api.login(hub, 'admin', 'kitten')
  const token = String(admin.headers['x-auth-token'])
  const { iat, exp } = claimsOf(token)
  assert.equal(Number(exp) - Number(iat), 2 * 3_600)
  for (const secret of ['kitten', 'short-one', token]) assert.ok(!hub.output().includes(secret), hub.output())
  for (const name of [/JWT_SECRET/, /ADMIN_PASSWORD/]) assert.match(hub.output(), name)
})

// ---- in its own place -----------------------------------------------------------------------------

test('BASE_PATH stands in front of everything', async (t) => {
  const hub = await spawnHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD, BASE_PATH: '/deep/hub' } })
  const root = `http://127.0.0.1:${hub.port}`
  const { headers } = await Api.login(hub)
  for (const route of ['/health', '/health/live', '/health/ready', '/metrics', '/docs', '/docs/json', '/api/servers']) {
    assert.equal((await fetch(`${hub.url}${route}`, { headers })).status, 200, route)
    assert.equal((await fetch(`${root}${route}`, { headers })).status, 404, route)
  }
  const document: unknown = await (await fetch(`${hub.url}/docs/json`)).json()
  const route = Object.keys(at(document, 'paths') as Json).find((one) => one.endsWith('/servers')) ?? ''
  const full = new URL(`${String(at(document, 'servers', 0, 'url') ?? '').replace(/\/$/, '')}${route}`, root).pathname
  assert.equal(full, '/deep/hub/api/servers', 'a client of the document finds the API')
  const page = await fetch(`${hub.url}/docs`)
  for (const [, link = ''] of (await page.text()).matchAll(/(?:src|href)="([^"]+\.(?:js|css|png))"/g)) {
    const asset = new URL(link, page.url)
    assert.deepEqual([asset.origin, (await fetch(asset)).status], [root, 200], link)
  }
  assert.ok(hub.output().includes('/deep/hub/mcp'), 'the endpoint that is printed is the one that works')
})
