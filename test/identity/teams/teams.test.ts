// Teams and shared servers: who sees what, and what ends with a membership, a team or a user.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import bcrypt from 'bcryptjs'
import { startUpstream, tool, type Upstream } from '../../fakes/fault-http.ts'
import { appFor } from '../../helpers/app.ts'
import { at, open, send, Session, silence, within, type Json } from '../../helpers/client.ts'
import { until, type Hub } from '../../helpers/hub.ts'
import { Api, fine, members, refused, started, users, WORDS } from '../../helpers/management.ts'
import { modernRequest } from '../../helpers/modern-request.ts'

const carol = { username: 'carol', password: bcrypt.hashSync(WORDS.bob, 4), isAdmin: false }
/** Of the time before `@` was refused: the name of the team `old`, as servers would refer to it. */
const old = { username: '@old', password: bcrypt.hashSync(WORDS.bob, 4), isAdmin: false }

interface World { hub: Hub, admin: Api, bob: Api, carol: Api, upstream: Upstream }

/** `s` belongs to admin, has a secret, and is shared as given; bob and carol are users. */
async function world (t: Test, sharedWithUsers: string[], more: Json = {}): Promise<World> {
  const upstream = await startUpstream(t, {
    tools: [tool('echo'), tool('wait')],
    resources: [{ uri: 'r://one', name: 'one' }],
    capabilities: { resources: { subscribe: true } },
    on: ({ method, params }) => {
      if (method === 'tools/call' && params.name === 'wait') return 'never'
      return method === 'resources/read' ? { contents: [{ uri: params.uri, text: 'x' }] } : undefined
    }
  })
  const s = { url: upstream.url, headers: { 'x-secret': 'a-secret-of-the-admin' }, owner: 'admin', sharedWithUsers }
  const { hub, admin, bob } = await started(t, { s }, { users: [...users, carol, old], ...more })
  await admin.has('s', 'connected')
  return { hub, admin, bob, carol: await login(hub, 'carol'), upstream }
}

async function login (hub: Hub, username: string, password = WORDS.bob): Promise<Api> {
  const { token } = (await new Api(hub).ask('POST', '/auth/login', { username, password })).body as Json
  assert.equal(typeof token, 'string', username)
  return new Api(hub, { 'x-auth-token': String(token) })
}

const servers = async (api: Api): Promise<string[]> =>
  (await api.ok('GET', '/servers') as unknown as Json[]).map(({ name }) => String(name))
const teams = async (api: Api): Promise<Json[]> => await api.ok('GET', '/teams') as unknown as Json[]
const keyOf = async (api: Api, body: Json = {}): Promise<string> =>
  String((await api.ok('POST', '/auth/keys', { name: 'k', ...body }, 201)).token)

test('admins write teams, members see theirs', async (t) => {
  const { admin, bob, carol } = await world(t, [])
  const made = await admin.ask('POST', '/teams', { name: 'web', description: 'The web team', members: ['bob', 'ghost'], claims: ['eng'] })
  assert.deepEqual(fine(made, 201), { name: 'web', description: 'The web team', members: ['bob', 'ghost'], claims: ['eng'] })
  assert.match(String(at(made.body, 'message')), /The users "ghost" do not exist yet/)
  assert.equal(made.headers.get('location'), '/api/teams/web')
  const seen = { name: 'web', description: 'The web team', members: ['bob', 'ghost'] }
  assert.deepEqual([await teams(bob), await bob.ok('GET', '/teams/web')], [[seen], seen], 'claims are for admins')
  assert.deepEqual(await teams(carol), [])
  const hidden = await carol.ask('GET', '/teams/web')
  refused(hidden, 404)
  assert.equal(hidden.text, (await carol.ask('GET', '/teams/none')).text.replace('none', 'web'))
  for (const [method, path, body] of [['POST', '', { name: 'x' }], ['PUT', '/web', { members: [] }], ['DELETE', '/web', undefined]] as const) {
    refused(await bob.ask(method, `/teams${path}`, body), 403)
  }
  refused(await new Api(admin.hub).ask('GET', '/teams'), 401)
  // What is not sent stays.
  assert.deepEqual(await admin.ok('PUT', '/teams/web', { members: ['carol', 'carol'] }), { ...seen, members: ['carol'], claims: ['eng'] })
  assert.deepEqual(await admin.ok('PUT', '/teams/web', { name: 'web', claims: [] }), { ...seen, members: ['carol'], claims: [] })
  refused(await admin.ask('PUT', '/teams/web', { name: 'other' }), 400)
  refused(await admin.ask('PUT', '/teams/web', { member: ['x'] }), 400)
  refused(await admin.ask('PUT', '/teams/none', { members: [] }), 404)
  for (const name of ['Web', 'WEB', '@web', '', 'a b', 'guest', '..', 'x'.repeat(129)]) {
    refused(await admin.ask('POST', '/teams', { name }), 400, name)
  }
  const audit = await admin.ok('GET', '/audit?entity=team') as unknown as Json[]
  assert.deepEqual(audit.map(({ action, name, username }) => [action, name, username]),
    [['update', 'web', 'admin'], ['update', 'web', 'admin'], ['create', 'web', 'admin']])
  const exported = (await admin.ask('GET', '/mcp-settings/export')).body
  assert.deepEqual(at(exported, 'teams') ?? at(exported, 'data', 'teams'), [{ name: 'web', description: 'The web team', members: ['carol'], claims: [] }])
  assert.equal((await carol.ask('GET', '/mcp-settings/export')).text.includes('"web"'), false)
  assert.equal((await admin.ask('DELETE', '/teams/web')).status, 200)
  refused(await admin.ask('GET', '/teams/web'), 404)
})

test('names with @ in front are refused; an old user of such a name is never read as a team', async (t) => {
  const { hub, admin } = await world(t, ['@old'])
  refused(await admin.ask('POST', '/users', { username: '@new', password: 'Analytical-1' }), 400)
  refused(await admin.ask('POST', '/auth/register', { username: '@new', password: 'Analytical-1' }), 400)
  const user = await login(hub, '@old')
  assert.deepEqual(await servers(user), [], 'the server is shared with a team')
  await admin.ok('POST', '/teams', { name: 'old', members: ['bob'] }, 201)
  assert.deepEqual(await servers(user), [])
  assert.deepEqual(await teams(user), [])
  // An owner of this name is the user, who was there first.
  const made = await admin.ask('POST', '/auth/keys', { name: 'k', kind: 'user', owner: '@old' })
  assert.match(String(at(made.body, 'message')), /is a user, and the owner/)
  const token = String(fine(made, 201).token)
  assert.deepEqual(await (await Session.open(`${hub.url}/mcp`, { key: token })).tools(), [])
  assert.equal((await admin.ask('DELETE', '/teams/old')).status, 200)
  assert.equal((await user.ok('GET', '/auth/keys') as unknown as Json[]).length, 1, 'her key is not the team\'s')
})

test('a shared server is used, not managed: no route shows its config', async (t) => {
  const { admin, bob, carol, upstream } = await world(t, [])
  const config = { url: upstream.url, headers: { 'x-secret': 'a-secret-of-the-admin' } }
  const put = async (sharedWithUsers: string[]): Promise<string> =>
    String(at((await admin.ask('PUT', '/servers/s', { config: { ...config, sharedWithUsers } })).body, 'message'))
  await admin.ok('POST', '/teams', { name: 'web', members: ['carol'] }, 201)
  assert.match(await put(['bob', '@web', 'ghost', '@none']), /"sharedWithUsers": there is no "ghost", "@none" yet/)
  assert.doesNotMatch(await put(['bob', '@web']), /there is no/)
  for (const [who, api] of Object.entries({ bob, carol })) {
    const record = await api.server('s')
    assert.deepEqual(Object.keys(record.config as Json).sort(), ['enabled', 'owner', 'type', 'visibility'], who)
    const call = await api.ok('POST', '/tools/call/s', { toolName: 'echo', arguments: {} })
    assert.ok(Array.isArray(call.content), who)
    const read = ['/servers', '/servers/s', '/settings', '/mcp-settings/export', '/groups', '/openapi/stats', '/openapi.json', '/s/openapi.json', '/teams']
    for (const path of read) {
      const { text } = await api.ask('GET', path)
      assert.doesNotMatch(text, /a-secret-of|x-secret|sharedWithUsers|@web/, `${who} ${path}`)
    }
    for (const path of ['/servers', '/openapi.json', '/openapi/servers']) assert.match((await api.ask('GET', path)).text, /"s"|\/s\/echo/, `${who} ${path}`)
    for (const [method, path, body] of [
      ['PUT', '', { config }], ['DELETE', '', undefined], ['POST', '/toggle', { enabled: false }], ['POST', '/reload', undefined],
      ['GET', '/users', undefined], ['POST', '/tools/echo/toggle', { enabled: false }], ['DELETE', '/oauth', undefined]
    ] as const) refused(await api.ask(method, `/servers/s${path}`, body), 403, `${who} ${method} ${path}`)
  }
  // Who shares may take it back; a config without it shares with nobody.
  await admin.ok('PUT', '/servers/s', { config })
  assert.deepEqual([await servers(bob), await servers(carol)], [[], []])
})

test('a share that names nobody is stored, opens nothing and is told, until there is somebody of the name', async (t) => {
  const { admin, bob, carol, upstream } = await world(t, [])
  const names = ['ghost', '@none', 'Bob2', '@']
  const made = await admin.ask('POST', '/servers', { name: 'n', config: { url: upstream.url, sharedWithUsers: names } })
  assert.match(String(at(made.body, 'message')), /"sharedWithUsers": there is no "ghost", "@none", "Bob2", "@" yet, so the entry has no effect/)
  await admin.has('n', 'connected')
  assert.deepEqual(((await admin.server('n')).config as Json).sharedWithUsers, names)
  for (const api of [bob, carol]) {
    assert.deepEqual(await servers(api), [])
    refused(await api.ask('GET', '/servers/n'), 404)
    refused(await api.ask('POST', '/tools/call/n', { toolName: 'echo', arguments: {} }), 404)
  }
  assert.deepEqual(await admin.ok('GET', '/servers/n/users'), [{ username: 'admin', via: 'owner' }])
  await admin.ok('POST', '/teams', { name: 'none', members: ['carol'] }, 201)
  await admin.ok('POST', '/users', { username: 'ghost', password: WORDS.bob }, 201)
  const ghost = await login(admin.hub, 'ghost')
  assert.deepEqual([await servers(ghost), await servers(carol), await servers(bob)], [['n'], ['n'], []])
})

test('groups show a shared server to those with whom it is shared', async (t) => {
  const { hub, admin, bob, carol } = await world(t, ['@web'])
  await admin.ok('POST', '/groups', { name: 'g', servers: ['s'] }, 201)
  await admin.ok('POST', '/teams', { name: 'web', members: ['bob'] }, 201)
  assert.deepEqual((await bob.ok('GET', '/groups') as unknown as Json[]).map(({ name, servers }) => [name, servers]), [['g', ['s']]])
  assert.deepEqual(await carol.ok('GET', '/groups'), [])
  const tools = async (api: Api): Promise<string[]> => await (await Session.open(`${hub.url}/mcp/g`, { key: await keyOf(api) })).tools()
  assert.deepEqual(await tools(bob), ['s-echo', 's-wait'])
  assert.equal((await send(`${hub.url}/mcp/g`, modernRequest('server/discover', { key: await keyOf(carol) }))).status, 404)
})

test('who may use a server, and what a user sees', async (t) => {
  const { admin, bob, carol } = await world(t, ['@web', 'bob'])
  await admin.ok('POST', '/users', { username: 'dora', password: 'Analytical-1' }, 201)
  await admin.ok('POST', '/teams', { name: 'web', members: ['bob', 'carol'] }, 201)
  assert.deepEqual(await admin.ok('GET', '/servers/s/users'), [
    { username: 'admin', via: 'owner' }, { username: 'bob', via: 'shared' }, { username: 'carol', via: '@web' }
  ])
  await admin.ok('PUT', '/servers/s', { config: { ...(await admin.server('s')).config as Json, visibility: 'public' } })
  const everybody = await admin.ok('GET', '/servers/s/users') as unknown as Json[]
  assert.deepEqual(everybody.map(({ username, via }) => [username, via]), [
    ['admin', 'owner'], ['bob', 'shared'], ['carol', '@web'], ['@old', 'public'], ['dora', 'public']
  ])
  await admin.ok('PUT', '/servers/s', { config: { ...(await admin.server('s')).config as Json, visibility: 'private' } })
  await admin.ok('POST', '/groups', { name: 'g', servers: ['s'] }, 201)
  const view = await admin.ok('GET', '/users/carol/view')
  members(view, ['servers', 'groups', 'tools'])
  assert.deepEqual(view.tools, [{ server: 's', name: 'echo' }, { server: 's', name: 'wait' }])
  assert.deepEqual((view.groups as Json[]).map(({ name }) => name), ['g'])
  assert.deepEqual(view.servers, await carol.ok('GET', '/servers'), 'as the user gets them')
  assert.deepEqual(await carol.ok('GET', '/users/carol/view'), view)
  assert.deepEqual((await admin.ok('GET', '/users/dora/view')), { servers: [], groups: [], tools: [] })
  refused(await carol.ask('GET', '/users/bob/view'), 403)
  refused(await carol.ask('GET', '/users/nobody/view'), 403)
  refused(await admin.ask('GET', '/users/nobody/view'), 404)
  refused(await bob.ask('GET', '/servers/none/users'), 404)
})

test('an owner who is no admin learns of users only with whom he shares', async (t) => {
  const { admin, bob, carol, upstream } = await world(t, [])
  await admin.ok('POST', '/users', { username: 'dora', password: 'Analytical-1' }, 201)
  await admin.ok('POST', '/teams', { name: 'web', members: ['bob', 'carol'] }, 201)
  await admin.ok('POST', '/teams', { name: 'ops', members: ['carol', 'dora'] }, 201)
  const put = async (sharedWithUsers: string[], visibility = 'private'): Promise<string> => String(at((
    await bob.ask('PUT', '/servers/own', { config: { url: upstream.url, visibility, sharedWithUsers } })
  ).body, 'message'))
  const usersOf = async (api: Api): Promise<unknown> =>
    (await api.ok('GET', '/servers/own/users') as unknown as Json[]).map(({ username, via }) => [username, via])
  await bob.ok('POST', '/servers', { name: 'own', config: { url: upstream.url } })
  assert.doesNotMatch(await put(['bob', '@web']), /sharedWithUsers/, 'he knows of himself and of his teams')
  assert.deepEqual(await usersOf(bob), [['bob', 'owner'], ['carol', '@web']])
  const told = await put(['ghost', 'dora', '@none', '@ops'])
  assert.match(told, /"sharedWithUsers": check the spelling of "ghost", "dora", "@none", "@ops": /)
  assert.deepEqual(await usersOf(bob), [['bob', 'owner'], ['ghost', 'shared'], ['dora', 'shared'], ['carol', '@ops']])
  assert.deepEqual(await usersOf(admin), [['bob', 'owner'], ['carol', '@ops'], ['dora', 'shared']])
  await put(['@ops', '@web'], 'public')
  assert.deepEqual(await usersOf(bob), [['bob', 'owner'], ['carol', '@web'], ['dora', '@ops']])
  assert.deepEqual(await usersOf(admin), [
    ['admin', 'public'], ['bob', 'owner'], ['carol', '@web'], ['@old', 'public'], ['dora', '@ops']
  ])
  refused(await carol.ask('GET', '/servers/own/users'), 403)
})

test('a key of a team sees what the team sees, and is nobody\'s else', async (t) => {
  const { hub, admin, bob } = await world(t, ['@web'], {})
  await admin.ok('POST', '/teams', { name: 'web', members: ['bob'] }, 201)
  await admin.ok('POST', '/teams', { name: 'empty' }, 201)
  refused(await admin.ask('POST', '/auth/keys', { name: 'k', kind: 'user', owner: '@none' }), 400)
  refused(await admin.ask('POST', '/auth/keys', { name: 'k', kind: 'system', accessType: 'all', owner: '@web' }), 400)
  const made = await admin.ok('POST', '/auth/keys', { name: 'k', kind: 'user', owner: '@web' }, 201)
  assert.deepEqual([made.kind, made.owner, made.createdBy], ['user', '@web', 'admin'])
  const token = String(made.token)
  const other = await keyOf(admin, { kind: 'user', owner: '@empty' })
  assert.deepEqual(await (await Session.open(`${hub.url}/mcp`, { key: token })).tools(), ['s-echo', 's-wait'])
  assert.deepEqual(await (await Session.open(`${hub.url}/mcp`, { key: other })).tools(), [])
  assert.deepEqual((await (await Session.open(`${hub.url}/mcp/$smart`, { key: token })).call('search_tools', { query: 'echo' }) as Json).isError, undefined)
  const discover = async (path: string): Promise<number> => (await send(`${hub.url}${path}`, modernRequest('server/discover', { key: token }))).status
  assert.deepEqual([await discover('/mcp/s'), await discover('/bob/mcp'), await discover('/@web/mcp'), await discover('/web/mcp')], [200, 403, 403, 403])
  const key = new Api(hub, { authorization: `Bearer ${token}` })
  refused(await key.ask('GET', '/servers'), 401)
  const run = async (api: Api): Promise<number> => (await api.ask('POST', '/tools/s/echo', {})).status
  assert.deepEqual([await run(key), await run(new Api(hub, { authorization: `Bearer ${other}` })), await run(new Api(hub))], [200, 404, 404])
  assert.equal((await bob.ok('GET', '/auth/keys') as unknown as Json[]).length, 0, 'members do not manage it')
  refused(await bob.ask('GET', `/auth/keys/${String(made.id)}`), 403)
  for (const owner of ['@web', '@none']) {
    refused(await bob.ask('POST', '/auth/keys', { name: 'mine', kind: 'user', owner }), 403)
  }
  assert.equal((await bob.ok('GET', '/auth/keys') as unknown as Json[]).length, 0, 'nor a key of his own instead')
  // The team has no member left, and its key goes on: it is the team's.
  await admin.ok('PUT', '/teams/web', { members: [] })
  assert.equal(await run(key), 200)
  assert.equal((await admin.ask('DELETE', '/teams/web')).status, 200)
  assert.equal(await discover('/mcp'), 401)
  refused(await admin.ask('GET', `/auth/keys/${String(made.id)}`), 404)
})

/** What a member holds open: a session with a subscription, a stream of the other era, a route of the server alone, and a call. */
async function held (t: Test, { hub, upstream }: World, key: string) {
  const session = await Session.open(`${hub.url}/mcp`, { key })
  const stream = await session.listen()
  await session.ask('resources/subscribe', { uri: 'r://one' })
  const single = await Session.open(`${hub.url}/mcp/s`, { key })
  const filter = { notifications: { resourceSubscriptions: ['r://one'] } }
  const modern = await open(`${hub.url}/mcp`, modernRequest('subscriptions/listen', { key, params: filter }))
  await modern.wait(() => true)
  const before = upstream.count('tools/call')
  const call = session.request('tools/call', { name: 's-wait', arguments: {} })
  call.catch(() => {})
  await until(() => upstream.count('tools/call') > before, 'the call never came')
  t.after(() => { stream.close(); modern.close() })
  const told = (): number => [...stream.messages, ...modern.messages].filter(({ method }) => method === 'notifications/resources/updated').length
  const update = async (): Promise<void> => { await upstream.broadcast('notifications/resources/updated', { uri: 'r://one' }) }
  return { session, single, call, told, update }
}

const ways: ReadonlyArray<readonly [string, (admin: Api) => Promise<unknown>]> = [
  ['who leaves the team', async (admin) => await admin.ok('PUT', '/teams/web', { members: ['carol'] })],
  ['whose team is removed', async (admin) => await admin.ask('DELETE', '/teams/web')],
  ['with whose team the server is shared no longer', async (admin) => {
    const { config } = await admin.server('s')
    return await admin.ok('PUT', '/servers/s', { config: { ...config as Json, sharedWithUsers: ['@other'] } })
  }]
]
for (const [what, end] of ways) {
  test(`a member ${what} loses at once what is open`, async (t) => {
    const it = await world(t, ['@web'])
    const { admin, bob } = it
    await admin.ok('POST', '/teams', { name: 'web', members: ['bob', 'carol'] }, 201)
    await admin.ok('POST', '/teams', { name: 'other', members: ['carol'] }, 201)
    const key = await keyOf(bob)
    const { session, single, call, told, update } = await held(t, it, key)
    await until(async () => { await update(); return told() >= 2 }, 'it hears of nothing')
    await end(admin)
    // No time passes: the next request is refused.
    assert.deepEqual(await session.tools(), [])
    assert.match((await session.request('tools/call', { name: 's-echo', arguments: {} })).error?.message ?? '', /Unknown tool/)
    assert.equal((await single.post({ jsonrpc: '2.0', id: 9, method: 'ping' })).status, 404)
    assert.match((await within('the answer to the call', call)).error?.message ?? '', /access was withdrawn/)
    assert.deepEqual(await servers(bob), [])
    const before = told()
    await update()
    await session.tools()
    await silence(50)
    assert.equal(told(), before, 'it is still told')
  })
}

test('a later user or team of the same name inherits nothing', async (t) => {
  const { hub, admin, bob } = await world(t, ['carol', '@web', '@crew'])
  await admin.ok('POST', '/teams', { name: 'web', members: ['bob'] }, 201)
  await admin.ok('POST', '/teams', { name: 'crew', members: ['carol'] }, 201)
  const key = await keyOf(admin, { kind: 'user', owner: '@web' })
  assert.equal((await admin.ask('DELETE', '/users/carol')).status, 200)
  assert.equal((await admin.ask('DELETE', '/teams/web')).status, 200)
  assert.deepEqual(at((await admin.server('s')).config, 'sharedWithUsers'), ['@crew'])
  assert.deepEqual((await admin.ok('GET', '/teams/crew')).members, [])
  await admin.ok('POST', '/users', { username: 'carol', password: 'Analytical-1' }, 201)
  await admin.ok('POST', '/teams', { name: 'web', members: ['bob'] }, 201)
  assert.deepEqual(await servers(await login(hub, 'carol', 'Analytical-1')), [])
  assert.deepEqual(await servers(bob), [])
  assert.equal((await send(`${hub.url}/mcp`, modernRequest('server/discover', { key }))).status, 401)
})

test('with READONLY, a login changes no membership', async (t) => {
  for (const READONLY of [false, true]) {
    const app = await appFor(t, { users: [carol], teams: [{ name: 'web', claims: ['eng'] }] }, { READONLY })
    const before = app.settings.current
    await app.teams.recordLoginGroups('carol', ['eng', 'other'])
    assert.equal(app.settings.current === before, READONLY)
    assert.deepEqual(app.settings.current.users.get('carol')?.loginGroups, READONLY ? undefined : ['eng'])
  }
})
