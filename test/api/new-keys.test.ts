// What a new key opens is what was asked for by name; and bodies take no member that would be ignored.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at, KEY, type Json } from '../helpers/client.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { Api, fine, refused, started, users } from '../helpers/management.ts'

const shapeOf = ({ kind, owner, accessType, allowedGroups, allowedServers, createdBy }: Json): unknown[] =>
  [kind, owner, accessType, allowedGroups, allowedServers, createdBy]

test('a new key: its kind, scope and maker', async (t) => {
  const fake = await startUpstream(t, { tools: [tool('echo')] })
  const { hub, admin, bob } = await started(t, { daily: { url: fake.url, visibility: 'public' }, other: { url: fake.url } }, {
    groups: [{ id: 'g-1', name: 'team', servers: ['daily'] }],
    users: [...users, { username: 'root', isAdmin: true }]
  })
  const made = async (api: Api, body: Json): Promise<Json> => fine(await api.ask('POST', '/auth/keys', { name: 'x', ...body }), 201)
  const byKey = (token: unknown): Api => new Api(hub, { authorization: `Bearer ${String(token)}` })

  await t.test('by an admin: lists infer their scope; all of it is asked for by name', async () => {
    const table: Array<[body: Json, shape: unknown[]]> = [
      [{}, ['user', 'admin', 'all', [], [], 'admin']],
      [{ owner: 'bob' }, ['user', 'bob', 'all', [], [], 'admin']],
      [{ kind: 'user', owner: 'bob' }, ['user', 'bob', 'all', [], [], 'admin']],
      [{ allowedGroups: ['team'] }, ['system', undefined, 'groups', ['team'], [], 'admin']],
      [{ allowedServers: ['daily'] }, ['system', undefined, 'servers', [], ['daily'], 'admin']],
      [{ allowedGroups: ['team'], allowedServers: ['daily'] }, ['system', undefined, 'custom', ['team'], ['daily'], 'admin']],
      [{ allowedGroups: ['team'], allowedServers: [] }, ['system', undefined, 'groups', ['team'], [], 'admin']],
      [{ allowedGroups: [], allowedServers: ['daily'] }, ['system', undefined, 'servers', [], ['daily'], 'admin']],
      [{ allowedGroups: [] }, ['system', undefined, 'groups', [], [], 'admin']],
      [{ allowedServers: [] }, ['system', undefined, 'servers', [], [], 'admin']],
      [{ allowedGroups: [], allowedServers: [] }, ['system', undefined, 'custom', [], [], 'admin']],
      [{ kind: 'system', allowedServers: ['daily'] }, ['system', undefined, 'servers', [], ['daily'], 'admin']],
      [{ kind: 'user', owner: 'bob', allowedServers: ['daily'] }, ['user', 'bob', 'servers', [], ['daily'], 'admin']],
      [{ accessType: 'all' }, ['system', undefined, 'all', [], [], 'admin']],
      [{ kind: 'system', accessType: 'all' }, ['system', undefined, 'all', [], [], 'admin']],
      [{ accessType: 'all', owner: 'root' }, ['system', 'root', 'all', [], [], 'admin']]
    ]
    for (const [body, shape] of table) {
      const key = await made(admin, body)
      assert.deepEqual(shapeOf(key), shape, JSON.stringify(body))
      const [kind, , accessType] = shape
      const { status } = await byKey(key.token).ask('GET', '/servers')
      assert.equal(status, kind === 'system' && accessType === 'all' ? 200 : 401, `the management API, by ${JSON.stringify(body)}`)
    }
    for (const body of [
      { kind: 'system' }, { kind: 'user' }, { accessType: 'all', owner: 'bob' }, { allowedServers: ['daily'], owner: 'bob' }, { owner: 'ghost' }
    ]) refused(await admin.ask('POST', '/auth/keys', { name: 'x', ...body }), 400)
  })

  await t.test('by a user: the user\'s own, whatever is asked, and it says so', async () => {
    for (const body of [{}, { kind: 'system', accessType: 'all' }, { allowedServers: ['daily'] }, { owner: 'admin' }]) {
      const answer = await bob.ask('POST', '/auth/keys', { name: 'x', ...body })
      assert.deepEqual(shapeOf(fine(answer, 201)), ['user', 'bob', 'all', [], [], 'bob'], JSON.stringify(body))
      assert.deepEqual(
        at(answer.body, 'warnings') ?? [],
        Object.keys(body).filter((name) => name !== 'accessType').map((name) => `"${name}" is for admins only: your own keys give access to what you can see`)
      )
    }
  })

  await t.test('by a system key: it has that key\'s maker; without an account, an owner is named', async () => {
    const mine = await made(admin, { accessType: 'all' })
    for (const body of [{}, { accessType: 'all' }, { allowedServers: ['daily'] }]) {
      refused(await byKey(mine.token).ask('POST', '/auth/keys', { name: 'x', ...body }), 400)
      refused(await byKey(KEY).ask('POST', '/auth/keys', { name: 'x', ...body }), 400)
    }
    assert.deepEqual(shapeOf(await made(byKey(mine.token), { accessType: 'all', owner: 'root' })), ['system', 'root', 'all', [], [], 'admin'])
    assert.deepEqual(shapeOf(await made(byKey(mine.token), { owner: 'bob' })), ['user', 'bob', 'all', [], [], 'admin'])
    assert.deepEqual(shapeOf(await made(byKey(KEY), { accessType: 'all', owner: 'root' })), ['system', 'root', 'all', [], [], undefined])
    const owned = await made(admin, { accessType: 'all', owner: 'root' })
    assert.deepEqual(shapeOf(await made(byKey(owned.token), {})), ['user', 'root', 'all', [], [], 'admin'])
    assert.deepEqual(shapeOf(await made(byKey(owned.token), { accessType: 'all' })), ['system', 'root', 'all', [], [], 'admin'])
    refused(await byKey(owned.token).ask('POST', '/auth/keys', { name: 'x', accessType: 'all', owner: 'admin' }), 400)
  })

  await t.test('with an expiry in the past: it says so', async () => {
    const over = await admin.ask('POST', '/auth/keys', { name: 'x', expiresAt: '2020-01-01T00:00:00Z' })
    assert.equal(over.status, 201)
    assert.deepEqual(at(over.body, 'warnings'), ['"expiresAt" is over (2020-01-01T00:00:00.000Z), so this key is not valid'])
    assert.equal(at((await admin.ask('POST', '/auth/keys', { name: 'x', expiresAt: '2999-01-01T00:00:00Z' })).body, 'warnings'), undefined)
  })

  await t.test('a change: lists narrow a key that opened everything', async () => {
    const { id } = await made(admin, { accessType: 'all' })
    const changed = fine(await admin.ask('PUT', `/auth/keys/${String(id)}`, { allowedServers: ['daily'] }))
    assert.deepEqual([changed.accessType, changed.allowedServers], ['servers', ['daily']])
    assert.equal(fine(await admin.ask('PUT', `/auth/keys/${String(id)}`, { allowedGroups: ['team'] })).accessType, 'servers', 'it was narrowed already')
  })
})

test('the guest names an owner for a key, and it counts as long as that is an admin', async (t) => {
  const { hub, admin } = await started(t, {}, { systemConfig: { routing: { skipAuth: true } } })
  const guest = new Api(hub)
  for (const body of [{}, { accessType: 'all' }, { accessType: 'all', owner: 'bob' }, { accessType: 'all', owner: 'guest' }]) {
    refused(await guest.ask('POST', '/auth/keys', { name: 'x', ...body }), 400)
  }
  const key = fine(await guest.ask('POST', '/auth/keys', { name: 'x', accessType: 'all', owner: 'admin' }), 201)
  assert.deepEqual([key.owner, key.createdBy], ['admin', 'admin'])
  await admin.ok('PUT', '/system-config', { routing: { skipAuth: false } })
  assert.equal((await new Api(hub, { authorization: `Bearer ${String(key.token)}` }).ask('GET', '/users')).status, 200)
})

test('bodies of keys, users, groups and OAuth clients take no other members, and what was answered', async (t) => {
  const { admin } = await started(t, {}, { systemConfig: { oauthServer: { enabled: true } } })
  const key = await admin.ok('POST', '/auth/keys', { name: 'k', accessType: 'all' }, 201)
  const group = await admin.ok('POST', '/groups', { name: 'g', servers: [] }, 201)
  const callback = 'https://app.example.com/callback'
  const client = await admin.ok('POST', '/oauth/clients', { name: 'c', redirectUris: [callback] }, 201)
  const [keyRoute, groupRoute, clientRoute] = [`/auth/keys/${String(key.id)}`, `/groups/${String(group.id)}`, `/oauth/clients/${String(client.clientId)}`]

  await t.test('a misspelt one is named, with the one that was meant', async () => {
    const table: Array<[method: string, route: string, body: Json, path: string, meant: string]> = [
      ['POST', '/auth/keys', { name: 'x', allowedGroup: ['g'] }, 'allowedGroup', 'allowedGroups'],
      ['POST', '/auth/keys', { name: 'x', expires_at: '2030-01-01T00:00:00Z' }, 'expires_at', 'expiresAt'],
      ['PUT', keyRoute, { enabld: false }, 'enabld', 'enabled'],
      ['POST', '/users', { username: 'eve', password: 'Eves-Word-1', isadmin: true }, 'isadmin', 'isAdmin'],
      ['PUT', '/users/bob', { isAdmn: true }, 'isAdmn', 'isAdmin'],
      ['POST', '/groups', { name: 'x', server: [] }, 'server', 'servers'],
      ['POST', '/groups', { name: 'x', servers: [{ name: 'a', tool: [] }] }, 'servers.0.tool', 'tools'],
      ['PUT', groupRoute, { descripton: 'x' }, 'descripton', 'description'],
      ['POST', `${groupRoute}/servers`, { servername: 'x' }, 'servername', 'serverName'],
      ['POST', '/oauth/clients', { name: 'x', redirectUri: [callback] }, 'redirectUri', 'redirectUris'],
      ['POST', '/oauth/clients', { name: 'x', redirectUris: [callback], scope: ['mcp'] }, 'scope', 'scopes'],
      ['PUT', clientRoute, { requiresSecret: false }, 'requiresSecret', 'requireSecret']
    ]
    for (const [method, route, body, path, meant] of table) {
      const answer = await admin.ask(method, route, body)
      refused(answer, 400)
      const found = (at(answer.body, 'errors') as Json[]).find((each) => each.path === `body.${path}`)
      assert.equal(found?.message, `is not known: did you mean ${JSON.stringify(meant)}?`, answer.text)
    }
    const far = await admin.ask('PUT', '/users/bob', { role: 'admin' })
    refused(far, 400)
    assert.match(far.text, /body\.role is not known; there are .*isAdmin.*newPassword/)
  })

  await t.test('what GET gave comes back', async () => {
    const keys = at((await admin.ask('GET', '/auth/keys')).body, 'data') as Json[]
    for (const [route, record] of [
      [keyRoute, keys.find(({ id }) => id === key.id)],
      ['/users/bob', await admin.ok('GET', '/users/bob')],
      [groupRoute, await admin.ok('GET', groupRoute)],
      [`${groupRoute}/servers/batch`, await admin.ok('GET', groupRoute)],
      [clientRoute, await admin.ok('GET', clientRoute)]
    ] as const) assert.equal((await admin.ask('PUT', route, record)).status, 200, route)
  })

  await t.test('what the gateway sets is not changed', async () => {
    for (const [route, body] of [
      [keyRoute, { name: 'x', id: 'other' }], [keyRoute, { name: 'x', token: `thk_${'0'.repeat(64)}` }], [keyRoute, { name: 'x', createdBy: 'bob' }],
      [keyRoute, { name: 'x', createdAt: '2020-01-01T00:00:00.000Z' }], ['/users/bob', { username: 'eve', isAdmin: true }],
      [groupRoute, { id: 'other' }], [clientRoute, { clientId: 'other' }], [clientRoute, { origin: 'registered' }]
    ] as const) {
      const answer = await admin.ask('PUT', route, body)
      refused(answer, 400)
      assert.match(answer.text, /is set by the gateway, and cannot be changed/, answer.text)
    }
    assert.equal((await admin.ok('GET', '/users/bob')).isAdmin, false)
  })
})
