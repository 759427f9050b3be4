// What an admin leaves behind: nothing that was made with an admin's rights outlives them.
import assert from 'node:assert/strict'
import { test } from 'tap'
import bcrypt from 'bcryptjs'
import { changesForDemotion, changesForNewUser, changesForRemoval } from '../../../plugins/identity/users/account.ts'
import { keyCreatorOf } from '../../../plugins/identity/keys/key-input.ts'
import { startUpstream, tool } from '../../fakes/fault-http.ts'
import { at, initialize, KEY, send, type Json } from '../../helpers/client.ts'
import { until } from '../../helpers/hub.ts'
import { Api, onDisk, refused, started, STDIO, users, WORDS } from '../../helpers/management.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { emptySnapshot, snapshotOf } from '../../helpers/snapshot.ts'

// As it is written in a config.
const variable = '$' + '{DEPLOY_TOKEN}'

/** `bob` is an admin here. */
const bobAsAdmin = { username: 'bob', password: bcrypt.hashSync(WORDS.bob, 4), isAdmin: true }
const withBob = { users: [...users.slice(0, 1), bobAsAdmin] }
const withKey = ({ hub }: Api, token: string): Api => new Api(hub, { authorization: `Bearer ${token}` })
const opensMcp = async ({ hub }: Api, key: string, route = ''): Promise<boolean> =>
  (await send(`${hub.url}/mcp${route}`, { key, body: initialize() })).status === 200
const demote = async (admin: Api): Promise<void> => { await admin.ok('PUT', '/users/bob', { isAdmin: false }) }

test('who gives a key more is its maker; a name and less leave it as it is', async (t) => {
  const { hub, admin, bob } = await started(t, { a: { url: 'http://127.0.0.1:9/' } }, withBob)
  const operator = new Api(hub, { authorization: `Bearer ${KEY}` })
  const made = await admin.ok('POST', '/auth/keys', { name: 'k', allowedServers: ['a'] }, 201)
  const put = async (api: Api, id: unknown, body: Json): Promise<unknown> =>
    (await api.ok('PUT', `/auth/keys/${String(id)}`, body)).createdBy
  assert.equal(await put(bob, made.id, { name: 'other' }), 'admin')
  assert.equal(await put(bob, made.id, { enabled: false }), 'admin')
  assert.equal(await put(operator, made.id, { enabled: true }), 'admin', 'the operator has no name')
  assert.equal(await put(bob, made.id, { allowedServers: [] }), 'admin')
  assert.equal(await put(bob, made.id, { accessType: 'all' }), 'bob')
  assert.equal((await withKey(admin, String(made.token)).ask('GET', '/users')).status, 200)
  await demote(admin)
  const key = withKey(admin, String(made.token))
  assert.equal((await key.ask('PUT', '/users/bob', { isAdmin: true })).status, 401)
  assert.equal(await opensMcp(admin, String(made.token)), false)
})

test('many unknown servers in a scope do not hide the warning that the key is not valid', async (t) => {
  const allowedServers = Array.from({ length: 25 }, (_, index) => `later-${index}`)
  const id = 'wide'
  const wide = { id, name: id, token: `${id}-0123456789abcdef`, createdBy: 'gone', accessType: 'servers', allowedServers }
  const { admin } = await started(t, {}, { bearerKeys: [{ id: 'k', name: 'k', token: KEY, accessType: 'all' }, wide] })
  const { status, body } = await admin.ask('PUT', '/auth/keys/wide', { name: 'other' })
  assert.equal(status, 200)
  const warnings = at(body, 'warnings') as string[]
  assert.equal(warnings.filter((each) => each.startsWith('There is no server')).length, 20)
  assert.deepEqual(warnings.slice(20), [
    '5 more servers and groups do not exist yet', '"gone" is not an admin, so this system key is not valid'
  ])
})

test('an operator\'s key that an admin widens is that admin\'s; by such a key it stays the operator\'s', async (t) => {
  const narrow = ['one', 'two'].map((name) =>
    ({ id: name, name, token: `narrow-${name}-0123456789abcdef`, accessType: 'servers', allowedServers: ['a'] }))
  const keys = { bearerKeys: [{ id: 'k', name: 'k', token: KEY, accessType: 'all' }, ...narrow] }
  const { hub, admin, bob } = await started(t, {}, { ...withBob, ...keys })
  const operator = new Api(hub, { authorization: `Bearer ${KEY}` })
  assert.equal((await bob.ok('PUT', '/auth/keys/one', { accessType: 'all' })).createdBy, 'bob')
  assert.equal((await operator.ok('PUT', '/auth/keys/two', { accessType: 'all' })).createdBy, undefined)
  await demote(admin)
  const opened = await Promise.all(narrow.map(async ({ token }) => await opensMcp(admin, token)))
  assert.deepEqual(opened, [false, true])
  assert.equal((await admin.ask('DELETE', '/users/bob')).status, 200)
  assert.deepEqual(((await onDisk(hub)).bearerKeys as Json[]).map(({ id }) => id), ['k', 'two'])
})

test('what rests on two people gives nothing to what cannot rest on both', async (t) => {
  assert.equal(keyCreatorOf(['ann'], undefined), 'ann')
  assert.equal(keyCreatorOf(['ann'], 'ann'), 'ann')
  assert.equal(keyCreatorOf(['ann', 'root'], 'root'), 'ann')
  assert.throws(() => keyCreatorOf(['ann', 'root'], undefined), /depends on the rights of "ann" and "root"/)
  const { admin } = await started(t, {}, withBob)
  // Of the admin, for bob: both know it.
  const asked = { name: 'both', kind: 'system', accessType: 'all', owner: 'bob' }
  const { token } = await admin.ok('POST', '/auth/keys', asked, 201)
  const both = withKey(admin, String(token))
  const { id } = await admin.ok('POST', '/auth/keys', { name: 'narrow', allowedServers: ['a'] }, 201)
  refused(await both.ask('PUT', `/auth/keys/${String(id)}`, { accessType: 'all' }), 403)
  await both.ok('PUT', `/auth/keys/${String(id)}`, { name: 'still narrow' })
  const user = await both.ok('POST', '/auth/keys', { name: 'u', kind: 'user', owner: 'admin' }, 201)
  assert.equal(user.createdBy, 'bob', 'the other one is its owner')
  await both.ok('POST', '/servers', { name: 'run', config: { ...STDIO, owner: 'admin' } })
  await admin.has('run', 'connected')
  await demote(admin)
  await until(async () => /"bob", who stored it, is not an admin/.test(String((await admin.server('run')).error)))
  assert.equal(await opensMcp(admin, String(user.token)), false)
})

test('a bearerAuthKey that is sent to the API rests on who sends it', async (t) => {
  const sent = { routing: { bearerAuthKey: 'a-key-that-a-client-made-up' } }
  const token = sent.routing.bearerAuthKey
  const of = async (api: Api): Promise<unknown> => at((await api.ask('GET', '/auth/keys')).body, 'data')
  const made = await started(t, {}, { ...withBob, bearerKeys: [] })
  await made.bob.ok('PUT', '/system-config', sent)
  assert.deepEqual([at(await of(made.admin), 0, 'createdBy'), at(await of(made.admin), 0, 'name')], ['bob', 'default'])
  assert.equal((await withKey(made.admin, token).ask('GET', '/users')).status, 200)
  await demote(made.admin)
  assert.equal((await withKey(made.admin, token).ask('GET', '/users')).status, 401)
  assert.equal(await opensMcp(made.admin, token), false)
  assert.equal((await made.admin.ask('DELETE', '/users/bob')).status, 200)
  assert.deepEqual(await of(made.admin), [])

  const open = await started(t, {}, { bearerKeys: [], systemConfig: { routing: { skipAuth: true } } })
  const guest = new Api(open.hub)
  const answer = await guest.ask('PUT', '/system-config', sent)
  assert.match(String(at(answer.body, 'message')), /was ignored.*no account/)
  assert.deepEqual([answer.status, await of(guest)], [200, []])
})

test('a user key that somebody else made goes with its maker', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('x')] })
  const { admin, bob } = await started(t, { own: { url: upstream.url, owner: 'admin' } }, withBob)
  const { token } = await bob.ok('POST', '/auth/keys', { name: 'for admin', kind: 'user', owner: 'admin' }, 201)
  const { id } = await admin.ok('POST', '/auth/keys', { name: 'mine' }, 201)
  assert.equal(await opensMcp(admin, String(token), '/own'), true)
  await demote(admin)
  assert.equal(await opensMcp(admin, String(token), '/own'), false)
  const own = await admin.ask('PUT', `/auth/keys/${String(id)}`, { enabled: true })
  assert.equal(at(own.body, 'warnings'), undefined)
  assert.equal((await admin.ask('DELETE', '/users/bob')).status, 200)
  const names = at((await admin.ask('GET', '/auth/keys')).body, 'data') as Json[]
  assert.ok(!names.some(({ name }) => name === 'for admin'))
})

test('a key that does not count says why: in the API, and in the log where somebody sends it', async (t) => {
  const { hub, admin, bob } = await started(t, {}, withBob)
  const { id, token, inactive } = await bob.ok('POST', '/auth/keys', { name: 'system', accessType: 'all' }, 201)
  assert.equal(inactive, undefined)
  await demote(admin)
  const shown = await admin.ok('GET', `/auth/keys/${String(id)}`)
  assert.equal(shown.inactive, '"bob", who created it, is not an admin')
  const listed = at((await admin.ask('GET', '/auth/keys')).body, 'data') as Json[]
  assert.ok(listed.some((each) => each.inactive === shown.inactive))
  const sentBack = await admin.ok('PUT', `/auth/keys/${String(id)}`, { ...shown, name: 'renamed' })
  assert.deepEqual([sentBack.name, sentBack.inactive, sentBack.createdBy], ['renamed', shown.inactive, 'bob'])
  refused(await withKey(admin, String(token)).ask('GET', '/users'), 401)
  assert.equal(await opensMcp(admin, String(token)), false)
  const said = 'sent the bearer key "renamed", which is not valid: "bob", who created it, is not an admin'
  await until(() => hub.output().replaceAll('\\"', '"').split(said).length === 3, () => hub.output())
  assert.ok(!hub.output().includes(String(token)))
  await admin.ok('PUT', `/auth/keys/${String(id)}`, { enabled: false })
  assert.equal((await admin.ok('GET', `/auth/keys/${String(id)}`)).inactive, 'it is disabled')
  // Who enables it gives it rights.
  const again = await admin.ok('PUT', `/auth/keys/${String(id)}`, { enabled: true })
  assert.deepEqual([again.inactive, again.createdBy], [undefined, 'admin'])
})

test('a command that an admin stores, or passes on, for another one stops with the rights', async (t) => {
  const { hub, admin, bob } = await started(t, {}, withBob)
  await bob.add('given', { ...STDIO, owner: 'admin' })
  await bob.add('passed', STDIO)
  await bob.ok('PUT', '/servers/passed', { config: { ...STDIO, owner: 'admin' } })
  const schema = { openapi: '3.0.0', info: { title: 'x', version: '1' }, paths: { '/x': { get: {} } } }
  await bob.add('web', { type: 'openapi', url: 'http://127.0.0.1:9', openapi: { schema }, owner: 'admin' })
  const names = ['given', 'passed', 'web']
  for (const name of names) assert.ok(!JSON.stringify(await admin.server(name)).includes('storedBy'))
  for (const route of ['/export', '/export?includeSecrets=true', '/settings']) {
    assert.ok(!(await admin.ask('GET', route)).text.includes('storedBy'), route)
  }
  assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'given', 'storedBy'), ['bob'])
  await demote(admin)
  for (const name of names) {
    await until(async () => /"bob", who stored it, is not an admin/.test(String((await admin.server(name)).error)), name)
    refused(await admin.ask('POST', `/tools/call/${name}`, { toolName: 'echo', arguments: {} }), 404)
    assert.equal(await opensMcp(admin, KEY, `/${name}`), false)
  }
  await t.test('an admin who enables or saves it stands for it', async () => {
    await admin.ok('POST', '/servers/given/toggle', { enabled: true })
    await admin.ok('PUT', '/servers/passed', { config: STDIO })
    for (const name of ['given', 'passed']) await admin.has(name, 'connected')
    assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'passed', 'storedBy'), ['admin'])
  })
  await t.test('an override, or disabling it, says nothing about it', async () => {
    await admin.ok('POST', '/servers/web/toggle', { enabled: false })
    assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'web', 'storedBy'), ['bob'])
  })
  await t.test('so does sending back what is in force, and enabling it', async () => {
    await admin.ok('PUT', '/users/bob', { isAdmin: true })
    const { config } = await bob.server('given')
    assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'given', 'storedBy'), ['admin'])
    await bob.ok('PUT', '/servers/given', { config })
    await bob.ok('POST', '/servers/given/toggle', { enabled: true })
    assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'given', 'storedBy'), ['admin'])
    await bob.ok('PUT', '/servers/given', { config: { ...config as Json, args: [] } })
    assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'given', 'storedBy'), ['bob'])
  })
  await t.test('a storer in the body of a request is not one', async () => {
    await admin.ok('POST', '/servers', { name: 'said', config: { ...STDIO, enabled: false, storedBy: ['bob'] } })
    assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'said', 'storedBy'), ['admin'])
  })
})

test('a remote server loses with its admin\'s rights what only admins\' servers may', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('x')] })
  const env = { DEPLOY_TOKEN: 'the-token-of-the-deployment' }
  const isSent = (since: number): boolean =>
    upstream.received.slice(since).some(({ headers }) => headers['x-h'] === env.DEPLOY_TOKEN)
  const { hub, admin, bob } = await started(t, {}, withBob, { env })
  await bob.add('far', { url: upstream.url, headers: { 'x-h': variable } })
  assert.equal(isSent(0), true)
  const refusedNow = async (): Promise<void> => {
    await until(async () => /must be public/.test(String((await admin.server('far')).error)), 'it is reached')
  }
  await demote(admin)
  await refusedNow()
  const since = upstream.received.length
  assert.equal((await bob.ask('POST', '/servers/far/reload')).status, 200)
  await refusedNow()
  const saved = await bob.ask('PUT', '/servers/far', { config: { url: upstream.url } })
  assert.match(String(at(saved.body, 'message')), /will not be connected/)
  await admin.ok('PUT', '/servers/far', { config: { url: `${upstream.url}?again`, headers: { 'x-h': variable } } })
  assert.equal(isSent(since), false)
  await admin.has('far', 'connected')
  await until(() => isSent(since), 'an admin has written it')
  assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'far', 'storedBy'), ['admin'])
})

test('a template does not carry a variable on that is not filled in any more', async (t) => {
  const { admin, bob } = await started(t, {}, withBob, { env: { DEPLOY_TOKEN: 'the-token-of-the-deployment' } })
  const config = { url: 'http://127.0.0.1:9/', headers: { 'x-h': variable }, enabled: false }
  await bob.ok('POST', '/servers', { name: 'far', config })
  const exported = async (): Promise<string> =>
    (await admin.ask('POST', '/templates/export', { name: 'x', serverNames: ['far'] })).text
  assert.ok((await exported()).includes(variable))
  await demote(admin)
  assert.ok(!(await exported()).includes(variable))
})

test('what a removal makes of servers and keys', async () => {
  const servers = {
    own: { command: 'x', owner: 'ann', storedBy: ['ann'] },
    ownOfFile: { url: 'http://x/', owner: 'ann' },
    ownByOther: { url: 'http://x/', owner: 'ann', storedBy: ['root'] },
    lent: { command: 'x', owner: 'root', storedBy: ['ann'] },
    shared: { url: 'http://x/', owner: 'root', storedBy: ['root', 'ann'] },
    others: { url: 'http://x/', owner: 'root', storedBy: ['root'] }
  }
  const [user, other] = [{ kind: 'user' as const, owner: 'root', createdBy: 'ann' }, { createdBy: 'root' }]
  const keys = new Map<string, BearerKey>([['user', { id: 'user', name: 'u', ...user }], ['other', { id: 'other', name: 'o', ...other }]])
  const result = (admins: string[], by: string[]): Json => {
    const snapshot = { ...snapshotOf({ admins, users: admins.includes('ann') ? [] : ['ann'], servers }), keys }
    return Object.fromEntries(changesForRemoval(snapshot, 'ann', by).map((change) => {
      if (change.entity !== 'mcpServers') return ['key' in change ? change.key : '', change.entity]
      const { owner, storedBy, enabled } = change.value ?? {}
      return [change.key, [owner, storedBy, enabled]]
    }))
  }
  assert.deepEqual(result(['root', 'ann'], ['root']), {
    ann: 'users',
    user: 'bearerKeys',
    own: ['admin', ['root'], undefined],
    ownOfFile: ['admin', undefined, undefined],
    ownByOther: ['admin', ['root'], undefined],
    lent: ['root', ['ann (removed)'], undefined],
    shared: ['root', ['root', 'ann (removed)'], undefined]
  })
  assert.deepEqual(result(['root', 'ann'], []).own, ['admin', undefined, undefined], 'the operator stands for it')
  assert.deepEqual(result(['root'], ['root']).own, ['admin', ['ann (removed)'], undefined], 'it was not in force')
  const before = snapshotOf({ admins: ['ann'], servers: { ...servers, ran: { command: 'x', owner: 'ann' } } })
  assert.deepEqual(changesForDemotion(before, 'ann'), [
    { entity: 'mcpServers', key: 'ownOfFile', value: { url: 'http://x/', owner: 'ann', storedBy: ['ann'] } }
  ])
  assert.deepEqual(changesForRemoval(emptySnapshot, 'ann', []), [{ entity: 'users', key: 'ann', value: undefined }])
})

test('a new user owns nothing of one whose entry was removed from the settings file by hand', async (t) => {
  const own = { id: 'own', name: 'own', token: 'own-0123456789abcdef', kind: 'user', owner: 'ada' }
  const config = { url: 'http://127.0.0.1:9/', enabled: false }
  const servers = { hers: { ...config, owner: 'ada' }, shared: { ...config, sharedWithUsers: ['ada', 'bob'] } }
  const { hub, admin } = await started(t, servers, { bearerKeys: [{ id: 'k', name: 'k', token: KEY, accessType: 'all' }, own] })
  await admin.ok('POST', '/users', { username: 'ada', password: 'Another-Word-1' }, 201)
  const stored = await onDisk(hub)
  assert.deepEqual((stored.bearerKeys as Json[]).map(({ id }) => id), ['k'])
  const { hers, shared } = stored.mcpServers as Record<string, Json>
  assert.deepEqual([hers?.owner, hers?.visibility, shared?.sharedWithUsers], ['admin', 'private', ['ada', 'bob']])
  assert.equal(await opensMcp(admin, own.token), false)
})

test('a command that a hand-removed admin stored for somebody else waits for an admin, also with a new user of that name', async () => {
  const run = { command: 'x', owner: 'root', storedBy: ['root', 'ada'], sharedWithUsers: ['ada'] }
  const other = { command: 'x', owner: 'root', sharedWithUsers: ['ada'] }
  assert.deepEqual(changesForNewUser(snapshotOf({ admins: ['root'], servers: { run, other } }), 'ada'), [
    { entity: 'mcpServers', key: 'run', value: { ...run, storedBy: ['root', 'ada (removed)'] } }
  ])
})
