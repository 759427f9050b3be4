import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import bcrypt from 'bcryptjs'
import { AttemptLimiter, type CountAttempt } from '../../plugins/identity/auth/attempts.ts'
import { Passwords } from '../../plugins/base/secrets/hash.ts'
import {
  as, ask, data, fine, loggedIn, login, onDisk, PASSWORD, refused, remains, rows, start, tokenOf, transcript, weak, withKey, withToken,
  type Answer, type Caller
} from '../helpers/accounts.ts'
import { at, initialize, send, Session, settings, within, type Json } from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { bearerKey, freePort, path, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'
import { identityLimits } from '../../plugins/identity/limits.ts'

// ---- users ----------------------------------------------------------------------------------------

test('users', async (t) => {
  const hub = await start(t)
  const admin = await loggedIn(hub, 'admin')

  await t.test('made, shown, changed, counted and removed, without their passwords', async () => {
    const made = await admin('POST', '/users', { username: 'ann', password: 'Anns-Word-1' })
    assert.deepEqual(data(made, 201), { username: 'ann', isAdmin: false })
    assert.deepEqual(data(await admin('POST', '/users', { username: 'zoë', password: 'Zoes-Word-1', isAdmin: true }), 201), {
      username: 'zoë',
      isAdmin: true
    })
    assert.deepEqual(rows(await admin('GET', '/users')), [
      { username: 'admin', isAdmin: true },
      { username: 'ann', isAdmin: false },
      { username: 'zoë', isAdmin: true }
    ])
    assert.deepEqual(fine(await admin('GET', '/users/ann')), { success: true, data: { username: 'ann', isAdmin: false } })
    assert.deepEqual(fine(await admin('GET', '/users-stats')), { success: true, data: { totalUsers: 3, adminUsers: 2, regularUsers: 1 } })
    for (const name of ['zo%C3%AB', 'zoe%CC%88']) {
      assert.equal(data(await admin('GET', `/users/${name}`)).username, 'zoë', 'however it is typed')
    }
    assert.deepEqual(data(await admin('PUT', '/users/ann', { isAdmin: true })), { username: 'ann', isAdmin: true })
    assert.deepEqual(data(await admin('PUT', '/users/ann', { isAdmin: false, newPassword: 'Anns-Word-2' })), {
      username: 'ann',
      isAdmin: false
    })
    refused(await login(hub, 'ann', 'Anns-Word-1'), 401)
    const user = fine(await login(hub, 'ann', 'Anns-Word-2')).user
    assert.deepEqual(user, {
      username: 'ann',
      isAdmin: false,
      permissions: { admin: false, servers: 'visible', users: false, system: false }
    })
    const gone = fine(await admin('DELETE', '/users/ann'))
    assert.deepEqual(Object.keys(gone), ['success', 'message'])
    refused(await admin('GET', '/users/ann'), 404)
    refused(await login(hub, 'ann', 'Anns-Word-2'), 401)
    fine(await admin('DELETE', '/users/zo%C3%AB'))
  })

  await t.test('what is no user: 400', async () => {
    for (const body of [{}, { username: 'x' }, { username: 'x', password: 'Good-Word-1', isAdmin: 'true' }, null, '{']) {
      refused(await admin('POST', '/users', body), 400, JSON.stringify(body))
    }
    for (const body of [{}, { password: 'Good-Word-1' }, { isAdmin: null }, '{']) {
      refused(await admin('PUT', '/users/admin', body), 400, JSON.stringify(body))
    }
    assert.deepEqual(rows(await admin('GET', '/users')), [{ username: 'admin', isAdmin: true }])
  })

  await t.test('passwords that an admin gives keep every rule', async () => {
    const cases: Array<[password: string, failing: number]> = [
      ['', 4], ['Ab1!', 1], ['Abcdef1', 2], ['abcdefgh', 2], ['12345678', 2], ['!!!!!!!!', 2], ['abcdefg1', 1],
      ['abcdefg!', 1], ['1234567!', 1], ['äöüßäöü1!', 1], ['٠١٢٣abcd!', 1], [`Ab1!${'x'.repeat(253)}`, 1],
      [`Ab1!${'ß'.repeat(127)}`, 1], ['Ab1!😀😀', 1]
    ]
    for (const [password, failing] of cases) {
      weak(await admin('POST', '/users', { username: 'x', password }), failing, password)
      weak(await admin('PUT', '/users/admin', { newPassword: password }), failing, password)
    }
    for (const [n, password] of [
      'Abcdef1!', 'a 1234567 _', `Ab1!${'x'.repeat(252)}`, `Ab1!${'ß'.repeat(126)}`, '1a😀😀😀😀😀😀', 'nul\u0000byte-1'
    ].entries()) {
      data(await admin('POST', '/users', { username: `good${n}`, password }), 201)
      fine(await login(hub, `good${n}`, password))
      fine(await admin('DELETE', `/users/good${n}`))
    }
  })

  await t.test('names: which are taken, and how they are told apart', async () => {
    const word = 'Good-Word-1'
    const bad = [
      '', ' ', 'a b', ' a', 'a ', 'a/b', 'a\\b', 'a%b', 'a:b', 'a;b', 'a,b', 'a#b', 'a?b', 'a"b', 'a\u0000b', 'a\nb',
      'a\u202Eb', 'a\u200Bb', 'a\u200Db', 'a\uFEFFb', 'a\u3164b', 'a\uFE0Fb', '\u0301a', 'a\uD800b', '😀', '.', '..',
      'x'.repeat(129), '𝒙'.repeat(129)
    ]
    const reserved = [
      'openapi.json', 'openapi.yaml', '.well-known',
      'console', 'guest', 'system', 'anonymous', 'api', 'mcp', 'sse', 'oauth', 'health', 'config', 'public-config',
      'tools', 'docs', 'metrics', 'GUEST', 'Ｓystem', 'ſse', 'ToolS', '__proto__', 'constructor', 'Constructor', 'toString',
      'hasOwnProperty', '__defineGetter__', 'prototype'
    ]
    for (const username of [...bad, ...reserved]) {
      refused(await admin('POST', '/users', { username, password: word }), 400, JSON.stringify(username))
    }
    refused(await admin('POST', '/users', { username: 'admin', password: word, isAdmin: true }), 400, 'taken')
    for (const [username, ...others] of [
      ['x'.repeat(128)], ['𝒙'.repeat(128)], ['Straße', 'STRASSE', 'strasse', 'Strasse'],
      ['Ann', 'ann', 'ANN', 'Ａnn', 'Ann'], ['K-1', '\u212A-1', 'k-1'], ['a@b.example+1_2'], ['李明'], ['अनिल'],
      ['é', 'e\u0301', 'É'], ['prototypes']
    ]) {
      const name = String(username)
      assert.equal(data(await admin('POST', '/users', { username: name, password: word }), 201).username, name.normalize('NFC'))
      for (const other of others) refused(await admin('POST', '/users', { username: other, password: word }), 400, `${other} after ${name}`)
      const caller = /^_|^é/.test(name) ? await loggedIn(hub, name.normalize('NFD'), word) : undefined
      if (caller) assert.deepEqual(at(fine(await caller('GET', '/auth/user')).user, 'isAdmin'), false)
      fine(await admin('DELETE', `/users/${encodeURIComponent(name)}`))
      if (caller) refused(await caller('GET', '/auth/user'), 401)
    }
    refused(await admin('GET', '/users/%00'), 404)
    refused(await admin('GET', '/users/ADMIN'), 404)
    refused(await admin('GET', '/users/%E0%A4%A'), 400)
  })

  await t.test('letters that are composed otherwise are the same user as an owner, too', async () => {
    fine(await admin('POST', '/users', { username: 'Ünï', password: PASSWORD }), 201)
    const owner = 'Ünï'.normalize('NFD')
    const key = fine(await admin('POST', '/auth/keys', { name: 'hers', kind: 'user', owner }), 201).data
    transcript.pop()
    assert.equal(at(key, 'owner'), 'Ünï')
    const entering = await fetch(`${hub.url}/${encodeURIComponent(owner)}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${String(at(key, 'token'))}`
      },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    })
    assert.equal(entering.status, 400, 'it enters, and has no session')
    const server = fine(
      await admin('POST', '/servers', { name: 'hers', config: { url: 'http://127.0.0.1:9/', enabled: false, owner } })
    ).data
    assert.equal(at(server, 'config', 'owner'), 'Ünï')
    fine(await admin('DELETE', '/servers/hers'))
    fine(await admin('DELETE', `/users/${encodeURIComponent(owner)}`))
  })

  await t.test('first who asks, then who is asked about, then the body', async () => {
    refused(await ask(hub, 'POST', '/users', '{'), 401)
    for (const [method, body] of [['PUT', {}], ['PUT', '{'], ['GET', undefined], ['DELETE', undefined]] as const) {
      refused(await admin(method, '/users/nobody', body), 404, `${method} ${JSON.stringify(body)}`)
    }
  })

  await t.test('oneself and the last admin stay', async () => {
    refused(await admin('DELETE', '/users/admin'), 400)
    remains(await withKey(hub)('DELETE', '/users/admin'))
    fine(await login(hub, 'admin', PASSWORD))
  })

  await t.test('the name admin owns what is nobody\'s, so it is an admin\'s', async () => {
    data(await admin('POST', '/users', { username: 'second', password: PASSWORD, isAdmin: true }), 201)
    const second = await loggedIn(hub, 'second')
    for (const body of [{ isAdmin: false }, { isAdmin: false, newPassword: 'Good-Word-1' }]) {
      assert.match(String(refused(await second('PUT', '/users/admin', body), 400).message), /owns everything that has no other owner/)
    }
    fine(await login(hub, 'admin', PASSWORD))
    fine(await second('DELETE', '/users/admin'))
    refused(await admin('GET', '/users'), 401)
    for (const by of [second, withKey(hub)]) remains(await by('PUT', '/users/second', { isAdmin: false, newPassword: 'Good-Word-1' }))
    fine(await login(hub, 'second', PASSWORD))
    refused(await second('POST', '/users', { username: 'admin', password: PASSWORD }), 400)
    data(await second('POST', '/users', { username: 'admin', password: PASSWORD, isAdmin: true }), 201)
    refused(await admin('GET', '/users'), 401, 'the token of who had the name')
  })
})

test('a removed user leaves nothing to who gets the name', async (t) => {
  const fake = await startUpstream(t)
  const server = { url: fake.url, owner: 'bob' }
  const theirs = { allowedGroups: [], allowedServers: [], enabled: true, owner: 'bob' }
  const hub = await start(t, {
    settings: settings(
      {
        open: { ...server, visibility: 'public' },
        marked: { ...server, visibility: 'private', visibilityDefaulted: true },
        unsaid: server,
        other: { url: fake.url, visibility: 'public' }
      },
      {
        users: [{ username: 'root', isAdmin: true }, { username: 'bob' }],
        groups: [
          { id: '33333333-3333-4333-8333-333333333333', name: 'bobs', servers: ['open', { name: 'other', alias: 'o' }], owner: 'bob' }
        ],
        bearerKeys: [
          bearerKey(),
          bearerKey({ id: '22222222-2222-4222-8222-222222222222', name: 'system of bob', token: `thk_${'b'.repeat(64)}`, ...theirs }),
          bearerKey({ id: '44444444-4444-4444-8444-444444444444', name: 'bob', token: `thk_${'c'.repeat(64)}`, ...theirs, kind: 'user' })
        ]
      }
    )
  })
  const root = withToken(hub, tokenOf({ username: 'root' }))
  const bob = withToken(hub, tokenOf({ username: 'bob' }))
  fine(await bob('GET', '/auth/user'))
  const key = data(await bob('POST', '/auth/keys', { name: 'mine' }), 201)
  const session = await Session.open(`${hub.url}/mcp`, { key: String(key.token) })
  const stream = await session.listen()
  assert.equal(stream.status, 200)
  fine(await root('DELETE', '/users/bob'))
  refused(await bob('GET', '/auth/user'), 401)
  assert.equal((await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status, 401)
  await within('the end of the stream', stream.done)

  data(await root('POST', '/users', { username: 'bob', password: 'Bobs-Word-2' }), 201)
  refused(await bob('GET', '/auth/user'), 401, 'the token of who had the name')
  for (const token of [key.token, `thk_${'b'.repeat(64)}`, `thk_${'c'.repeat(64)}`]) {
    assert.equal((await send(`${hub.url}/mcp`, { key: String(token), body: initialize() })).status, 401)
    refused(await withKey(hub, token)('GET', '/servers'), 401)
  }
  const next = await loggedIn(hub, 'bob', 'Bobs-Word-2')
  assert.deepEqual(rows(await next('GET', '/servers')).map(({ name }) => name), ['other'])
  assert.deepEqual(rows(await next('GET', '/auth/keys')), [])
  refused(await next('PUT', '/groups/bobs', { description: 'mine' }), 403)
  assert.deepEqual(rows(await root('GET', '/auth/keys')).map(({ name }) => name), ['test'])
  for (const name of ['open', 'marked', 'unsaid']) {
    const { owner, visibility, visibilityDefaulted } = at(await onDisk(hub), 'mcpServers', name) as Json
    assert.deepEqual([owner, visibility, visibilityDefaulted], ['admin', 'private', undefined], name)
  }
  const group = data(await root('GET', '/groups/bobs'))
  assert.deepEqual(
    [group.owner, group.servers],
    ['admin', ['open', { name: 'other', tools: 'all', prompts: 'all', resources: 'all', alias: 'o' }]]
  )
})

test('who is deleted, demoted or revoked changes nothing more by requests that are on the way', async (t) => {
  const keys = ['a', 'b'].map((letter, n) =>
    bearerKey({ id: `2222222${n}-2222-4222-8222-222222222222`, token: `thk_${letter.repeat(64)}` })
  )
  const users = Object.entries({ root: true, deleted: true, demoted: true, gone: false }).map(([username, isAdmin]) => ({
    username,
    isAdmin
  }))
  const hub = await start(t, { settings: settings({}, { users, bearerKeys: keys }) })
  const [root, deleted, demoted, gone] = users.map((user) => withToken(hub, tokenOf(user))) as [Caller, Caller, Caller, Caller]
  const key = withKey(hub, keys[1]?.token)
  // Owners take turns: writes of their own keep their late requests waiting, which were let in before their rights ended.
  const busy = [...Array<Caller>(10).fill(root), ...[deleted, demoted, gone, key].flatMap((by) => Array<Caller>(15).fill(by))]
    .map(async (by, n) => await by('POST', '/groups', { name: `busy-${n}` }))
  const ends = [
    root('DELETE', '/users/deleted'), root('PUT', '/users/demoted', { isAdmin: false }), root('DELETE', '/users/gone'),
    root('DELETE', `/auth/keys/${keys[1]?.id}`)
  ]
  await until(async () => rows(await root('GET', '/groups')).length > 3)
  const server = { name: 'late', config: { type: 'sse', url: 'http://127.0.0.1:9/', enabled: false } }
  const late = [
    ...[deleted, gone, key].flatMap((by) => [
      by('POST', '/servers', server),
      by('POST', '/groups', { name: 'late' }),
      by('POST', '/auth/keys', { name: 'late' })
    ]),
    deleted('PUT', '/system-config', { mcpRouter: { title: 'late' } })
  ]
  const asAdmin = [demoted('PUT', '/system-config', { mcpRouter: { title: 'late' } }), demoted('DELETE', `/auth/keys/${keys[0]?.id}`)]
  for (const answer of await Promise.all(late)) refused(answer, 401)
  for (const answer of await Promise.all(asAdmin)) refused(answer, 403)
  for (const answer of await Promise.all(ends)) fine(answer)
  const statuses = (await Promise.all(busy)).map(({ status }) => status)
  assert.deepEqual([...new Set(statuses.slice(0, 10))], [201])
  assert.ok(statuses.includes(401), 'rights ended while requests waited')
  const stored = await onDisk(hub)
  const groups = (stored.groups as Json[]).filter(({ name }) => !String(name).startsWith('busy-'))
  assert.deepEqual([stored.mcpServers, groups, (stored.bearerKeys as Json[]).length, stored.systemConfig], [{}, [], 1, undefined])
})

// ---- passwords ------------------------------------------------------------------------------------

test('change-password', async (t) => {
  const hub = await start(t, {
    settings: settings(
      {},
      {
        bearerKeys: [bearerKey(), bearerKey({ id: '22222222-2222-4222-8222-222222222222', token: `thk_${'b'.repeat(64)}`, owner: 'admin' })]
      }
    )
  })
  const admin = await loggedIn(hub, 'admin')
  data(await admin('POST', '/users', { username: 'bob', password: 'Bobs-Word-1' }), 201)
  const [bob, elsewhere] = [await loggedIn(hub, 'bob', 'Bobs-Word-1'), await loggedIn(hub, 'bob', 'Bobs-Word-1')]
  const change = async (by: Caller, currentPassword: unknown, newPassword: unknown): Promise<Answer> =>
    await by('POST', '/auth/change-password', { currentPassword, newPassword })

  refused(await ask(hub, 'POST', '/auth/change-password', {}), 401)
  for (const body of [
    {}, { currentPassword: 'x' }, { newPassword: 'Bobs-Word-2' }, { currentPassword: 7, newPassword: 'Bobs-Word-2' },
    { currentPassword: 'Bobs-Word-1', newPassword: null }, []
  ]) { refused(await bob('POST', '/auth/change-password', body), 400, JSON.stringify(body)) }
  for (const short of ['', 'Ab1!x', '😀😀😀']) weak(await change(bob, 'Bobs-Word-1', short), 1, short)
  weak(await change(bob, 'Bobs-Word-1', 'x'.repeat(257)), 1)
  refused(await change(bob, 'Bobs-Word-2', 'Bobs-Word-3'), 401)
  refused(await change(withKey(hub), 'x', 'Bobs-Word-3'), 403, 'there is no account behind it')
  fine(await bob('GET', '/auth/user'))

  const changed = fine(await change(bob, 'Bobs-Word-1', 'sesame'))
  assert.equal(typeof changed.message, 'string')
  assert.equal((changed.warnings as string[]).length, 2)
  for (const caller of [bob, elsewhere]) refused(await caller('GET', '/auth/user'), 401, 'a login of before')
  const again = withToken(hub, changed.token)
  assert.equal(at(fine(await again('GET', '/auth/user')).user, 'username'), 'bob')
  refused(await login(hub, 'bob', 'Bobs-Word-1'), 401)
  fine(await login(hub, 'bob', 'sesame'))
  assert.equal(fine(await change(again, 'sesame', 'Bobs-Word-4')).warnings, undefined)
  fine(await change(withKey(hub, `thk_${'b'.repeat(64)}`), PASSWORD, PASSWORD))
  refused(await admin('GET', '/auth/user'), 401)

  const latest = await loggedIn(hub, 'bob', 'Bobs-Word-4')
  const statuses = (await Promise.all(Array.from({ length: 5 }, async (_, n) => await change(latest, 'Bobs-Word-4', `Parallel-${n}`)))).map(
    ({ status }) => status
  )
  assert.equal(statuses.filter((status) => status === 200).length, 1, 'of parallel changes one holds')
  assert.ok(statuses.every((status) => status === 200 || status === 401), statuses.join())
})

test('npm run dev: a password that everybody knows, and a login with it says so', async (t) => {
  const [folder, port] = [await temporaryFolder(t), await freePort()]
  const { TOOL_HUB_TEST_BUILD: build } = process.env
  const program = build === undefined ? ['--import', 'tsx', path('server.ts')] : [path(build)]
  const child = spawn(process.execPath, ['--import', path('test/helpers/cheap-hashes.mjs'), ...program, '--dev'], {
    env: { PATH: process.env.PATH ?? '', PORT: String(port), SETTINGS_PATH: join(folder, 'mcp_settings.json') },
    stdio: 'ignore'
  })
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const hub = { url: `http://127.0.0.1:${port}` } as Hub
  await until(async () => (await fetch(`${hub.url}/health/ready`)).ok)
  const answer = fine(await login(hub, 'admin', 'admin123'))
  assert.equal(answer.isUsingDefaultPassword, true)
  const changed = fine(
    await withToken(hub, answer.token)('POST', '/auth/change-password', { currentPassword: 'admin123', newPassword: PASSWORD })
  )
  assert.equal(changed.warnings, undefined)
  assert.equal(fine(await login(hub, 'admin', PASSWORD)).isUsingDefaultPassword, undefined)
})

test('register', async (t) => {
  const registered = (answer: Answer): Json => {
    const { success, message, token, user, ...rest } = fine(answer, 201)
    assert.deepEqual([success, typeof message, typeof token], [true, 'string', 'string'])
    return { ...user as Json, ...rest }
  }

  await t.test('closed: for admins only, who make anybody', async (t) => {
    const hub = await start(t, { settings: settings({}, { users: [{ username: 'root', isAdmin: true }, { username: 'bob' }] }) })
    const [root, bob] = [withToken(hub, tokenOf({ username: 'root' })), withToken(hub, tokenOf({ username: 'bob' }))]
    for (const body of [{ username: 'new', password: PASSWORD }, { username: 'new', password: PASSWORD, isAdmin: true }, {}, '{']) {
      refused(await ask(hub, 'POST', '/auth/register', body), 401)
      refused(await bob('POST', '/auth/register', body), 403)
    }
    const made = await root('POST', '/auth/register', { username: 'new', password: PASSWORD, isAdmin: true })
    assert.deepEqual(registered(made), {
      username: 'new',
      isAdmin: true,
      permissions: { admin: true, servers: 'all', users: true, system: true }
    })
    fine(await withToken(hub, made.body.token)('GET', '/users'))
    assert.equal(registered(await withKey(hub)('POST', '/auth/register', { username: 'newer', password: 'sesame' })).isAdmin, false)
    for (const body of [
      { username: 'new', password: PASSWORD }, { username: 'NEW', password: PASSWORD },
      { username: 'x', password: PASSWORD, isAdmin: 'true' }, { username: 'x' }, { username: 'a b', password: PASSWORD }
    ]) { refused(await root('POST', '/auth/register', body), 400, JSON.stringify(body)) }
    weak(await root('POST', '/auth/register', { username: 'x', password: 'short' }), 1)
  })

  await t.test('open: never an admin, and not without end', async (t) => {
    const hub = await start(t, {
      env: { ALLOW_REGISTRATION: 'true', TRUST_PROXY: 'true' },
      settings: settings({}, { users: [{ username: 'root', isAdmin: true }] })
    })
    const from = (address: string): Caller => as(hub, { 'x-forwarded-for': address })
    const stranger = from('203.0.113.1')
    const made = await stranger('POST', '/auth/register', { username: 'new', password: 'sesame' })
    const { warnings, ...user } = registered(made)
    assert.deepEqual(user, {
      username: 'new',
      isAdmin: false,
      permissions: { admin: false, servers: 'visible', users: false, system: false }
    })
    assert.equal((warnings as string[]).length, 2)
    assert.equal(
      registered(await stranger('POST', '/auth/register', { username: 'strong', password: 'Ab1!xy', isAdmin: false })).warnings,
      undefined
    )
    refused(await withToken(hub, made.body.token)('GET', '/users'), 403)
    refused(await stranger('POST', '/auth/register', { username: 'boss', password: PASSWORD, isAdmin: true }), 403)
    for (const username of ['admin', 'Admin', 'ａdmin', 'guest', 'new', 'ROOT']) {
      refused(await stranger('POST', '/auth/register', { username, password: PASSWORD }), 400, username)
    }
    const last = await stranger('POST', '/auth/register', { username: 'y', password: PASSWORD })
    assert.equal(last.status, 201, 'the tenth')
    const beyond = await stranger('POST', '/auth/register', { username: 'z', password: PASSWORD })
    refused(beyond, 429)
    assert.ok(Number(beyond.headers.get('retry-after')) > 0)
    registered(await from('203.0.113.2')('POST', '/auth/register', { username: 'z', password: PASSWORD }))
    registered(
      await as(hub, { 'x-forwarded-for': '203.0.113.1', 'x-auth-token': tokenOf({ username: 'root' }) })('POST', '/auth/register', {
        username: 'admin',
        password: PASSWORD,
        isAdmin: true
      })
    )
  })
})

// ---- guesses --------------------------------------------------------------------------------------

const zero = async (): Promise<number> => 0
const uncounted = { registration: zero, client: zero, secret: zero, authorization: zero, template: zero, social: zero }
const unheard = { note: () => {}, noteLockOut: () => {} }

test('what counts as one user and one address', async () => {
  const keyOf = async (username: string, ip: string): Promise<string> => {
    let counted = ''
    const failure: CountAttempt<{ ip: string }> = async (_request, key) => {
      counted = key
      return 0
    }
    await new AttemptLimiter({ failure, ...uncounted }, async () => {}, unheard).checkPassword({ ip }, username, async () => undefined)
    return counted
  }
  for (const [[name, ip], [otherName, otherIp], same] of [
    [['admin', '203.0.113.1'], ['ADMIN', '::ffff:203.0.113.1'], true],
    [['Straße', '::1'], ['STRASSE', '::1'], true],
    [['é', '::1'], ['e\u0301', '::1'], true],
    [['admin', '2001:db8::1'], ['admin', '2001:db8:0:0:ffff::1'], true],
    [['admin', '2001:db8::1'], ['admin', '2001:db8:0:1::1'], false],
    [['admin', '203.0.113.1'], ['admin', '203.0.113.2'], false],
    [['admin', '203.0.113.1'], ['admin2', '03.0.113.1'], false],
    [['a\n::1', '::1'], ['a', '::1\n::1'], false]
  ] as const) {
    assert.equal((await keyOf(name, ip)) === (await keyOf(otherName, otherIp)), same, `${name} ${ip}, ${otherName} ${otherIp}`)
  }
})

test('what strangers may have open at once has a bound', async () => {
  const never = new Promise<never>(() => {})
  const counted: string[] = []
  const failure: CountAttempt<{ ip: string }> = async (_request, key) => {
    counted.push(key)
    return 0
  }
  const attempts = (): AttemptLimiter<{ ip: string }> => new AttemptLimiter({ failure, ...uncounted }, async () => {}, unheard)
  const [one, many] = [attempts(), attempts()]
  for (let n = 0; n < identityLimits.passwordChecksPerUser; n++) void one.checkPassword({ ip: '203.0.113.1' }, 'admin', async () => await never)
  await assert.rejects(one.checkPassword({ ip: '203.0.113.1' }, 'ADMIN', async () => await never), { statusCode: 429 })
  void one.checkPassword({ ip: '203.0.113.2' }, 'admin', async () => await never)
  for (let n = 0; n < identityLimits.passwordRequests * 3 / 4; n++) void many.checkPassword({ ip: '203.0.113.1' }, `user-${n}`, async () => await never)
  await assert.rejects(many.checkPassword({ ip: '203.0.113.1' }, 'admin', async () => await never), { name: 'ShareError', isOwnerLimit: true })
  await assert.rejects(many.registerAccount({ ip: '203.0.113.1' }, async () => await never), { name: 'ShareError', isOwnerLimit: true })
  for (let n = 0; n < identityLimits.passwordRequests / 4; n++) void many.checkPassword({ ip: `198.51.100.${n}` }, 'admin', async () => await never)
  await assert.rejects(many.checkPassword({ ip: '198.51.100.200' }, 'admin', async () => await never), { isOwnerLimit: false })
  await new Promise((resolve) => { setImmediate(resolve) })
  assert.equal(new Set(counted).size, counted.length, 'one at a time of each')
  assert.ok(counted.every((key) => /^login [0-9a-f]{64}$/.test(key)), 'neither name nor address in it')

  const fair = attempts()
  const order: string[] = []
  const slow = (ip: string) => async (): Promise<true> => {
    order.push(ip)
    await new Promise((resolve) => { setImmediate(resolve) })
    return true
  }
  const crowd = Array.from({ length: 90 }, async (_, n) => await fair.checkPassword({ ip: '203.0.113.1' }, `user-${n}`, slow('crowd')))
  await fair.checkPassword({ ip: '203.0.113.9' }, 'admin', slow('admin'))
  assert.ok(order.indexOf('admin') <= 4, `addresses take turns: ${order.indexOf('admin')} of the crowd came before`)
  await Promise.all(crowd)

  const failing = attempts()
  for (let n = 0; n < identityLimits.passwordRequests * 2; n++) {
    await assert.rejects(
      failing.checkPassword({ ip: '::1' }, 'admin', async () => { throw new Error('away') }),
      { message: 'away' }
    )
  }
})

test('passwords: kept as hashes, and no less work where there is nothing to compare with', async (t) => {
  const passwords = new Passwords()
  const kept = await passwords.hash('Straße-1')
  assert.notEqual(kept, await passwords.hash('Straße-1'))
  assert.equal(await passwords.verify('Straße-1', kept), true)
  assert.equal(await passwords.verify('Straße-1'.normalize('NFKD'), kept), true)
  assert.equal(await passwords.verify('Open-Sesame-1', await bcrypt.hash('Open-Sesame-1', 4)), true)

  /** The work of each check: what scrypt costs, and the costs of the bcrypt hashes that are compared with. */
  const work: unknown[] = []
  const counted = new Passwords(async (_password, _salt, length, cost) => {
    work.push([length, cost.N, cost.r, cost.p])
    return Buffer.alloc(length)
  })
  const compared = comparedHashes(t)
  const workOf = async (stored: string | undefined, all: string[] = []): Promise<unknown> => {
    assert.equal(await counted.verify('wrong', stored, all), false)
    return [work.splice(0), compared.splice(0).map((hash) => hash.slice(0, 7))]
  }
  const cheap = await bcrypt.hash('x', 4)
  const whole = [[32, 2 ** 15, 8, 3]]
  assert.deepEqual(await workOf(kept), [whole, []])
  for (const stored of [
    undefined, '', 'plain', 'scrypt$1$1$1$AA==$AA==',
    'scrypt$1048576$8$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=', '$2b$04$short'
  ]) assert.deepEqual((await workOf(stored) as unknown[])[0], whole, String(stored))
  assert.deepEqual(await workOf(cheap), [whole, ['$2b$04$']])
  // Where some are imported, no name is told by its time.
  const costly = `$2b$12$${cheap.slice(7)}`
  for (const stored of [undefined, kept, costly]) assert.deepEqual(await workOf(stored, [kept, cheap, costly]), [whole, ['$2b$12$']], stored)
})

/** The bcrypt hashes that passwords are compared with from now on, which takes no time. */
function comparedHashes (t: Cleanup): string[] {
  const { compare } = bcrypt
  const hashes: string[] = []
  t.after(() => { bcrypt.compare = compare })
  bcrypt.compare = async (_password, hash) => {
    hashes.push(hash)
    return false
  }
  return hashes
}

test('a login with an unknown name does the work of one with a wrong password', async (t) => {
  const password = await bcrypt.hash(PASSWORD, 4)
  const hub = await start(t, { settings: settings({}, { users: [{ username: 'root', isAdmin: true, password }] }) })
  const compared = comparedHashes(t)
  for (const username of ['root', 'nobody', 'Root', '__proto__']) {
    refused(await login(hub, username, 'Wrong-Word-3'), 401)
    assert.deepEqual(compared.splice(0), [password], username)
  }
})

// ---- keys -----------------------------------------------------------------------------------------

test('bearer keys are changed', async (t) => {
  const fake = await startUpstream(t)
  const hub = await start(t, {
    settings: settings(
      { fake: { url: fake.url, visibility: 'public' }, two: { url: fake.url, visibility: 'public' } },
      { users: [{ username: 'root', isAdmin: true }, { username: 'bob' }, { username: 'eve' }] }
    )
  })
  const [root, bob, eve] = [
    withToken(hub, tokenOf({ username: 'root' })),
    withToken(hub, tokenOf({ username: 'bob' })),
    withToken(hub, tokenOf({ username: 'eve' }))
  ]
  const opens = async (token: unknown, route = ''): Promise<number> =>
    (await send(`${hub.url}/mcp${route}`, { key: String(token), body: initialize() })).status
  const system = data(await root('POST', '/auth/keys', { name: 'system', accessType: 'all' }), 201)
  const mine = data(await bob('POST', '/auth/keys', { name: 'mine' }), 201)

  await t.test('by an admin: the name, whether it works, and what it opens; at once', async () => {
    const { token } = system
    const answer = await root('PUT', `/auth/keys/${String(system.id)}`, {
      name: 'renamed',
      accessType: 'servers',
      allowedServers: ['fake']
    })
    const changed = data(answer)
    assert.deepEqual({ ...changed }, {
      ...changed,
      id: system.id,
      name: 'renamed',
      kind: 'system',
      accessType: 'servers',
      allowedServers: ['fake'],
      allowedGroups: [],
      enabled: true,
      createdAt: system.createdAt
    })
    assert.equal(changed.token, `${String(token).slice(0, 8)}...${String(token).slice(-4)}`)
    assert.deepEqual([await opens(token), await opens(token, '/fake'), await opens(token, '/two')], [403, 200, 403])
    refused(await withKey(hub, token)('GET', '/servers'), 401)
    const session = await Session.open(`${hub.url}/mcp/fake`, { key: String(token) })
    const stream = await session.listen()
    assert.equal(data(await root('PUT', `/auth/keys/${String(system.id)}`, { enabled: false })).enabled, false)
    assert.equal(await opens(token, '/fake'), 401)
    await within('the end of the stream', stream.done)
    // what came back as it was shown is no change
    assert.deepEqual(
      data(await root('PUT', `/auth/keys/${String(system.id)}`, { ...changed, enabled: true, accessType: 'all', allowedServers: [] }))
        .enabled,
      true
    )
    assert.equal(await opens(token), 200)
    assert.match(
      String(
        fine(
          await root('PUT', `/auth/keys/${String(system.id)}`, {
            accessType: 'custom',
            allowedServers: ['fake', 'ghost'],
            allowedGroups: ['nogroup']
          })
        ).message
      ),
      /"nogroup".*"ghost"/
    )
    fine(await root('PUT', `/auth/keys/${String(system.id)}`, { accessType: 'all' }))
  })

  await t.test('by a user: name and enabled of its own', async () => {
    const route = `/auth/keys/${String(mine.id)}`
    assert.equal(data(await bob('PUT', route, { name: 'still mine', enabled: false })).enabled, false)
    assert.equal(await opens(mine.token), 401)
    const shown = data(await bob('PUT', route, { enabled: true }))
    assert.equal(await opens(mine.token), 200)
    data(await bob('PUT', route, shown))
    for (const body of [
      { accessType: 'servers' }, { allowedServers: ['fake'] }, { allowedGroups: ['x'] }, { kind: 'system' },
      { owner: 'eve' }, { name: 'x', kind: 'system' }
    ]) { refused(await bob('PUT', route, body), 403, JSON.stringify(body)) }
    for (const id of [mine.id, system.id]) {
      for (const body of [{ name: 'x' }, { wrong: 1 }, { name: 7 }, '{']) refused(await eve('PUT', `/auth/keys/${String(id)}`, body), 403)
    }
    refused(await eve('DELETE', route), 403)
    assert.deepEqual(rows(await eve('GET', '/auth/keys')), [])
    for (const id of ['nope', '__proto__', '00000000-0000-4000-8000-000000000000']) {
      for (const caller of [root, eve]) {
        refused(await caller('PUT', `/auth/keys/${id}`, { wrong: 1 }), 404, id)
        refused(await caller('DELETE', `/auth/keys/${id}`), 404, id)
      }
    }
  })

  await t.test('what is not taken', async () => {
    for (const body of [
      {}, { token: 'x' }, { name: '' }, { name: 'x'.repeat(129) }, { name: 'a\u0000b' }, { name: 'a\u202Eb' }, { kind: 'user' }, { owner: 'bob' }, null, '{'
    ]) refused(await root('PUT', `/auth/keys/${String(system.id)}`, body), 400, JSON.stringify(body))
    for (const body of [{ name: 'x', kind: 'user', owner: 'ghost' }, { name: 'a\nb' }, {}, { name: '' }, { name: 'prototype' }, null]) {
      refused(await root('POST', '/auth/keys', body), 400, JSON.stringify(body))
    }
    const token = `thk_${'0'.repeat(64)}`
    const own = await root('POST', '/auth/keys', { name: 'x', token })
    assert.ok(own.status === 400 || at(own.body, 'data', 'token') !== token, 'nobody chooses their own token')
    refused(await ask(hub, 'PUT', `/auth/keys/${String(system.id)}`, { wrong: 1 }), 401)
  })

  await t.test('a user has so many keys', async (t) => {
    setLimits(t, identityLimits, { keysPerUser: 5 })
    for (let n = rows(await eve('GET', '/auth/keys')).length; n < 5; n++) {
      data(await eve('POST', '/auth/keys', { name: `key ${n}` }), 201)
    }
    assert.equal(refused(await eve('POST', '/auth/keys', { name: 'one more' }), 429).code, 'TH_SHARE_USED')
    data(await bob('POST', '/auth/keys', { name: 'another user' }), 201)
  })
})

test('when a key was used is shown at once, written later, and the token never', async (t) => {
  const hub = await start(t, { settings: settings({}, { users: [{ username: 'root', isAdmin: true }] }) })
  const root = withToken(hub, tokenOf({ username: 'root' }))
  const shown = async (caller = root): Promise<Json> => rows(await caller('GET', '/auth/keys'))[0] ?? {}
  assert.equal((await shown()).lastUsedAt, undefined)
  const before = Date.now()
  fine(await withKey(hub)('GET', '/servers'))
  const first = String((await shown()).lastUsedAt)
  assert.ok(Date.parse(first) >= before && Date.parse(first) <= Date.now(), first)
  assert.equal((await send(`${hub.url}/mcp`, { body: initialize() })).status, 200)
  const last = String((await shown()).lastUsedAt)
  assert.ok(last >= first)
  assert.equal(at(await onDisk(hub), 'bearerKeys', 0, 'lastUsedAt'), undefined, 'not written for each use')
  assert.equal(await hub.stop(), 0)
  const [stored] = (await onDisk(hub)).bearerKeys as Json[]
  assert.equal(stored?.lastUsedAt, last)
  assert.equal(stored?.token, undefined, 'a write hashes what was plain')
})

test('READONLY: nothing is written that nobody asked for', async (t) => {
  const text = JSON.stringify(
    settings({}, {
      users: [{ username: 'admin', password: await bcrypt.hash(PASSWORD, 4), isAdmin: true }],
      systemConfig: { routing: { bearerAuthKey: 'an-old-key-that-somebody-chose' } }
    }),
    null,
    2
  )
  const hub = await start(t, { settings: text, env: { READONLY: 'true' } })
  await until(async () => (await fetch(`${hub.url}/health/ready`)).ok)
  const admin = await loggedIn(hub, 'admin')
  fine(await admin('GET', '/users'))
  fine(await withKey(hub)('GET', '/auth/keys'))
  refused(await admin('POST', '/auth/change-password', {}), 403)
  assert.equal(await hub.stop(), 0)
  assert.equal(await readFile(hub.settingsPath, 'utf8'), text)
})

test('no answer held a password or a hash', async () => {
  assert.ok(transcript.length > 300)
  for (const answer of transcript) assert.doesNotMatch(answer, /scrypt\$|\$2[aby]\$|"password"|tokenHash|Open-Sesame|Bobs-Word|Anns-Word/)
})
