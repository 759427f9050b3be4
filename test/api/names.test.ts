// New names, owners, visibility, limits of a user, and pages of lists.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at, initialize, KEY, names, send, Session, text, type Json } from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'
import {
  Api, deleted, enc, fine, list, MASK, offers, onDisk, refused, started, STDIO, stored, users, countWrites
} from '../helpers/management.ts'
import { managementLimits } from '../../plugins/management/limits.ts'

test('new names, owners, visibility, pages', async (t) => {
  const fake = await startUpstream(t, offers)
  const writes = countWrites(t)
  const { hub, admin, bob } = await started(t)
  await admin.add('before', { url: fake.url, headers: { 'X-Key': 'a-key-that-is-kept' } })
  await admin.add('other', { url: fake.url, enabled: false })

  await t.test('a rename reaches groups, keys and overrides, in one write', async () => {
    await admin.ok('POST', '/groups', { name: 'one', servers: ['other', { name: 'before', tools: ['echo'], alias: 'b' }] }, 201)
    await admin.ok('POST', '/groups', { name: 'two', servers: ['before'] }, 201)
    const key = await admin.ok('POST', '/auth/keys', { name: 'k', accessType: 'servers', allowedServers: ['other', 'before'] }, 201)
    await admin.ok('PUT', '/servers/before/tools/echo/description', { description: 'Ours' })
    const guard = await admin.ok('POST', '/guards', { name: 'g', on: 'results', detect: ['email'], servers: ['before'], action: 'mask' }, 201)
    const quota = await admin.ok('POST', '/quotas', { name: 'q', target: { server: 'before' }, per: 'day', calls: 1_000 }, 201)
    const shown = await admin.server('before')
    const former = writes()
    const record = await admin.ok('PUT', '/servers/before', { config: shown.config, newName: 'after it' })
    assert.equal(writes() - former, 1, 'one commit')
    assert.equal(record.name, 'after it')
    await admin.has('after it', 'connected')
    refused(await admin.ask('GET', '/servers/before'), 404)
    assert.deepEqual((await admin.server('after it')).config, shown.config)
    assert.deepEqual((await admin.ok('GET', '/groups/one')).servers, [
      'other',
      { name: 'after it', tools: ['echo'], prompts: 'all', resources: 'all', alias: 'b' }
    ])
    assert.deepEqual((await admin.ok('GET', '/groups/two')).servers, ['after it'])
    assert.deepEqual((await admin.ok('GET', `/guards/${String(guard.id)}`)).servers, ['after it'])
    assert.deepEqual((await admin.ok('GET', `/quotas/${String(quota.id)}`)).target, { server: 'after it' })
    assert.deepEqual(list(await admin.ask('GET', '/auth/keys')).find(({ id }) => id === key.id)?.allowedServers, ['other', 'after it'])
    assert.ok(!JSON.stringify(await stored(hub)).includes('"before"'), 'the old name is somewhere yet')
    assert.deepEqual(names(list(await admin.ask('GET', '/servers'))), ['after it', 'other'], 'its place in the order is the same')
    const session = await Session.open(`${hub.url}/mcp/one`, { key: String(key.token) })
    assert.deepEqual(await session.tools(), ['b-echo'])
    assert.equal((await send(`${hub.url}/mcp/before`, { body: initialize() })).status, 404)
  })

  await t.test('an open session follows a new name', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    const stream = await session.listen()
    assert.ok((await session.tools()).includes('after_it-echo'))
    for (const [from, to] of [['after it', 'for a while'], ['for a while', 'after it']] as const) {
      const seen = stream.messages.length
      await admin.ok('PUT', `/servers/${enc(from)}`, { config: (await admin.server(from)).config, newName: to })
      await until(() => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
        'no news of the new name')
      await admin.has(to, 'connected')
      const [shown, former] = [to, from].map((name) => `${name.replaceAll(' ', '_')}-echo`)
      await until(async () => (await session.tools()).includes(String(shown)), `${shown} is not listed`)
      assert.ok(!(await session.tools()).includes(String(former)))
      assert.equal(text(await session.call(`${to}-echo`, { message: 'called' })), 'called')
    }
    stream.close()
  })

  await t.test('an open session follows a toggle, with news', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    const stream = await session.listen()
    for (const enabled of [true, false]) {
      const seen = stream.messages.length
      await admin.ok('POST', '/servers/other/toggle', { enabled })
      await until(() => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'), 'no news of it')
      await until(async () => (await session.tools()).includes('other-echo') === enabled, `enabled ${enabled}`)
    }
    stream.close()
  })

  await t.test('a group takes many changes side by side', async () => {
    const many = Array.from({ length: 12 }, (_, n) => `member ${n}`)
    await admin.ok('POST', '/servers/batch', { servers: many.map((name) => ({ name, config: { url: fake.url, enabled: false } })) })
    await admin.ok('POST', '/groups', { name: 'crowd' }, 201)
    const key = await admin.ok('POST', '/auth/keys', { name: 'of the crowd', accessType: 'servers', allowedServers: many }, 201)
    for (const answer of await Promise.all(
      many.map(async (serverName) => await admin.ask('POST', '/groups/crowd/servers', { serverName }))
    )) { fine(answer) }
    assert.deepEqual(((await admin.ok('GET', '/groups/crowd')).servers as string[]).sort(), [...many].sort())
    await Promise.all(many.slice(0, 6).map(async (name) => await admin.ask('DELETE', `/groups/crowd/servers/${enc(name)}`)))
    assert.deepEqual(((await admin.ok('GET', '/groups/crowd')).servers as string[]).sort(), many.slice(6).sort())
    for (const name of many) await admin.ok('DELETE', `/servers/${enc(name)}`)
    const left = await admin.ok('GET', '/groups/crowd')
    assert.deepEqual(await admin.ok('PUT', '/groups/crowd', left), left, 'also after its members went, what GET gives can be sent back')
    assert.deepEqual(left.servers, [], 'who is removed is no member')
    assert.deepEqual(list(await admin.ask('GET', '/auth/keys')).find(({ id }) => id === key.id)?.allowedServers, [],
      'and no key opens who comes next by that name')
    await admin.ok('DELETE', `/auth/keys/${String(key.id)}`)
    await admin.ok('DELETE', '/groups/crowd')
  })

  await t.test('a member that its owner took away is told of to nobody else', async () => {
    await admin.ok('POST', '/servers', { name: 'lent', config: { url: fake.url, enabled: false, visibility: 'public' } })
    await bob.ok('POST', '/groups', { name: 'borrowed', servers: ['lent'] }, 201)
    await bob.ok('POST', '/groups/borrowed/servers', { serverName: 'lent' })
    await admin.ok('PUT', '/servers/lent', { config: { url: fake.url, enabled: false, visibility: 'private' } })
    const [hidden, absent] = [
      await bob.ask('POST', '/groups/borrowed/servers', { serverName: 'lent' }),
      await bob.ask('POST', '/groups/borrowed/servers', { serverName: 'tnel' })
    ]
    refused(hidden, 400)
    assert.equal(hidden.text.replace('lent', 'tnel'), absent.text)
    assert.deepEqual((await admin.ok('GET', '/groups/borrowed')).servers, ['lent'])
    await admin.ok('DELETE', '/groups/borrowed')
    await admin.ok('DELETE', '/servers/lent')
  })

  await t.test('a name that is taken, reserved or none changes nothing; its own name is no change', async () => {
    const before = await stored(hub)
    const { config } = await admin.server('after it')
    for (const newName of [
      ' lead', 'trail ', '😀', 'a?b', '\u3164', 'a\u034fb', 'a\ufe0f', '\u0301x', 'e\u0301t', 'other', 'call', 'openapi.json', 'openapi.yaml', '__proto__', 'toString',
      'openapi', 'servers', 'stats', 'batch', 'group', 'groups', 'mcp', 'sse', 'messages', 'api', 'oauth', 'tools', 'prompts', 'resources',
      '.hidden', '$smart', '_x', 'a/b', '', ' ', 'x'.repeat(129), 7, null, ['a'], '33333333-3333-4333-8333-33333333333A'
    ]) { refused(await admin.ask('PUT', '/servers/after%20it', { config, newName }), 400, JSON.stringify(newName)) }
    assert.deepEqual(await stored(hub), before)
    assert.equal((await admin.ok('PUT', '/servers/after%20it', { config, newName: 'after it' })).name, 'after it')
    assert.deepEqual(await stored(hub), before)
    const id = await admin.ask('POST', '/servers', { name: '33333333-3333-4333-8333-33333333333A', config })
    assert.deepEqual([id.status, at(id.body, 'message')], [400, '"name" must not look like an id'])
    for (const name of ['10', 'with inner space', 'Größe.1_2-3', '日本語', 'x'.repeat(128)]) {
      assert.equal((await admin.add(name, { url: fake.url, enabled: false })).name, name)
      deleted(await admin.ask('DELETE', `/servers/${enc(name)}`))
    }
  })

  await t.test('a user takes no name that differs from another\'s by case only, an admin may; nor stores a user what runs a command', async () => {
    const config = { url: 'https://mcp.example.com/mcp', enabled: false }
    await admin.add('bobs', { ...config, owner: 'bob' })
    for (const [method, route, body] of [
      ['POST', '/servers', { name: 'OTHER', config }], ['POST', '/servers/test', { name: 'OTHER', config }],
      ['PUT', '/servers/bobs', { config, newName: 'Other' }]
    ] as const) {
      const answer = await bob.ask(method, route, body)
      refused(answer, 400, route)
      assert.match(answer.text, /differs from .* only by case; only an admin/)
    }
    await bob.ok('PUT', '/servers/bobs', { config, newName: 'BOBS' })
    await admin.add('OTHER', config)
    deleted(await admin.ask('DELETE', '/servers/OTHER'))
    for (const runs of [STDIO, { type: 'stdio', command: 'id' }, { type: 'openapi', url: 'https://api.example.com/openapi.json' }]) {
      refused(await bob.ask('POST', '/servers', { name: 'mine', config: runs }), 403, JSON.stringify(runs))
      refused(await bob.ask('PUT', '/servers/BOBS', { config: runs }), 403, JSON.stringify(runs))
    }
    refused(await admin.ask('GET', '/servers/mine'), 404)
    deleted(await bob.ask('DELETE', '/servers/BOBS'))
  })

  await t.test('a group that is renamed keeps its keys, and leaves none behind for who takes its old name', async () => {
    const group = await admin.ok('POST', '/groups', { name: 'daily', servers: ['other'] }, 201)
    const key = await admin.ok('POST', '/auth/keys', { name: 'of the group', accessType: 'groups', allowedGroups: ['daily'] }, 201)
    await admin.ok('PUT', '/groups/daily', { name: 'weekly' })
    await admin.ok('POST', '/groups', { name: 'daily', servers: ['other'] }, 201)
    const opens = async (route: string): Promise<number> =>
      (await send(`${hub.url}${route}`, { body: initialize(), key: String(key.token) })).status
    assert.deepEqual([await opens('/mcp/weekly'), await opens('/mcp/daily')], [200, 403])
    await admin.ok('DELETE', `/auth/keys/${String(key.id)}`)
    for (const name of ['daily', String(group.id)]) deleted(await admin.ask('DELETE', `/groups/${name}`))
  })

  await t.test('a key that stands in the file in plain keeps up with the first write, and is hashed by it', async (t) => {
    const plainKey = (name: string, digit: string, more: Json): Json => ({
      id: `${digit.repeat(8)}-1111-4111-8111-111111111111`,
      name,
      token: `plain-token-of-${name}`,
      kind: 'system',
      enabled: true,
      ...more
    })
    const bearerKeys = [
      plainKey('one', '3', { accessType: 'servers', allowedServers: ['a', 'b'] }),
      plainKey('two', '4', { accessType: 'groups', allowedGroups: ['g'] })
    ]
    const mcpServers = { a: { url: fake.url, enabled: false }, b: { url: fake.url, enabled: false } }
    for (const [method, route, body, serversNow, groupsNow] of [
      ['PUT', '/servers/a', { config: mcpServers.a, newName: 'z' }, ['z', 'b'], ['g']],
      ['DELETE', '/servers/a', undefined, ['b'], ['g']],
      ['PUT', '/groups/g', { name: 'h' }, ['a', 'b'], ['h']]
    ] as const) {
      const hub = await startHub(t, {
        settings: {
          mcpServers,
          users,
          groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'g', servers: ['b'] }],
          bearerKeys: [...bearerKeys, bearerKey()]
        }
      })
      // By a key: a login would write something first.
      const answer = await new Api(hub, { authorization: `Bearer ${KEY}` }).ask(method, route, body)
      assert.equal(answer.status, 200, answer.text)
      const [one, two] = (await onDisk(hub)).bearerKeys as Json[]
      assert.deepEqual([one?.allowedServers, two?.allowedGroups], [serversNow, groupsNow], `${method} ${route}`)
      assert.doesNotMatch(JSON.stringify([one, two]), /plain-token/)
    }
  })

  await t.test('groups: reserved names, and the name of a server', async () => {
    refused(await bob.ask('POST', '/groups', { name: 'other' }), 400, 'a server\'s name, for who is no admin')
    const answer = await admin.ask('POST', '/groups', { name: 'other' })
    fine(answer, 201)
    assert.match(String(at(answer.body, 'message')), /other|server/i)
    deleted(await admin.ask('DELETE', '/groups/other'))
    for (const name of ['\u3164', 'a\u034fb', '\u0301x', 'e\u0301t']) {
      refused(await admin.ask('POST', '/groups', { name }), 400, JSON.stringify(name))
    }
    const mine = await bob.ok('POST', '/groups', { name: 'bobs' }, 201)
    refused(await bob.ask('PUT', '/groups/bobs', { name: 'other' }), 400, 'nor by a change')
    const many = [{ name: 'bobs', tools: Array.from({ length: 20_000 }, (_, n) => `t${n}`) }]
    const tooMany = await bob.ask('PUT', '/groups/bobs', { servers: many })
    refused(tooMany, 400, 'more selected items than a group may have')
    assert.match(String(at(tooMany.body, 'message')), /20000 members and selected items/)
    deleted(await bob.ask('DELETE', `/groups/${String(mine.id)}`))
  })

  await t.test('of a group and a server of one name, admins decide which the routes lead to', async () => {
    const config = { url: 'https://mcp.example.com/mcp', enabled: false }
    const server = { url: fake.url, visibility: 'public' }
    await admin.add('member', server)
    await bob.ok('POST', '/groups', { name: 'squat', servers: ['member'] }, 201)
    await admin.ok('POST', '/groups', { name: 'ours', servers: ['member'] }, 201)
    await bob.ok('POST', '/servers', { name: 'bobs own', config })
    for (const name of ['squat', 'ours']) {
      for (const [method, route, body] of [
        ['POST', '/servers', { name, config }],
        ['PUT', '/servers/bobs%20own', { config, newName: name }],
        ['POST', '/servers/batch', { servers: [{ name, config }] }]
      ] as const) {
        const answer = await bob.ask(method, route, body)
        assert.equal(answer.status, 400, answer.text)
        assert.match(answer.text, /a group named/)
      }
    }
    const key = await bob.ok('POST', '/auth/keys', { name: 'mine' }, 201)
    const tools = async (name: string, token: unknown = KEY): Promise<string[]> =>
      await (await Session.open(`${hub.url}/mcp/${enc(name)}`, { key: String(token) })).tools()
    assert.deepEqual((await tools('squat'))[0], 'member-echo')
    const message = async (method: string, route: string, body: Json): Promise<string> => {
      const answer = await admin.ask(method, route, body)
      assert.ok(answer.status < 300, answer.text)
      return String(at(answer.body, 'message') ?? '') + String(at(answer.body, 'data', 'results', 0, 'message') ?? '')
    }
    assert.match(await message('POST', '/servers/batch', { servers: [{ name: 'squat', config: server }] }),
      /owned by "bob".*lead to the server/)
    await admin.has('squat', 'connected')
    for (const token of [KEY, key.token]) assert.equal((await tools('squat', token))[0], 'echo', 'the server itself')
    const { paths } = (await (await fetch(`${hub.url}/api/squat/openapi.json`)).json()) as { paths: Json }
    assert.ok('/tools/squat/echo' in paths && !('/tools/member/echo' in paths), Object.keys(paths).join())
    assert.match(await message('PUT', '/groups/squat', { description: 'still bob\'s' }), /lead to the server/)
    await admin.ok('DELETE', '/servers/squat')
    await admin.add('moved', server)
    assert.match(await message('PUT', '/servers/moved', { config: server, newName: 'squat' }), /owned by "bob".*lead to the server/)
    assert.match(await message('POST', '/servers', { name: 'ours', config: server }), /owned by "admin".*lead to the group/)
    for (const token of [KEY, key.token]) assert.equal((await tools('ours', token))[0], 'member-echo')
    for (const name of ['squat', 'ours']) deleted(await admin.ask('DELETE', `/groups/${name}`))
    for (const name of ['squat', 'ours', 'member', 'bobs%20own']) deleted(await admin.ask('DELETE', `/servers/${name}`))
    await admin.ok('DELETE', `/auth/keys/${String(key.id)}`)
  })

  await t.test('a member\'s alias keeps the grammar of servers\' names, since it stands in their place', async (t) => {
    const member = { name: 'other', tools: 'all', prompts: 'all', resources: 'all' }
    const old = { ...member, alias: 'a b/c' }
    const { admin } = await started(t, { other: { url: fake.url, enabled: false } },
      { groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'old', servers: [old] }] })
    await admin.ok('POST', '/groups', { name: 'fresh' }, 201)
    for (const alias of ['a/b', 'a b\n', 'a\u202eb', 'a\u200bb', '\u3164', '_x', '.x', ' ', 'e\u0301t', 'x'.repeat(129), 'prototype', 'toString']) {
      refused(await admin.ask('POST', '/groups', { name: 'worse', servers: [{ name: 'other', alias }] }), 400, JSON.stringify(alias))
      for (const group of ['fresh', 'old']) {
        for (const route of [`/groups/${group}`, `/groups/${group}/servers/batch`]) {
          refused(await admin.ask('PUT', route, { servers: [{ name: 'other', alias }] }), 400, `${route} ${JSON.stringify(alias)}`)
        }
      }
    }
    for (const alias of ['été', '日本 1', 'a_b.c-d', 'call', 'tools']) {
      assert.deepEqual((await admin.ok('PUT', '/groups/fresh', { servers: [{ name: 'other', alias }] })).servers, [{ ...member, alias }])
    }
    assert.deepEqual((await admin.ok('PUT', '/groups/old', { servers: [old], description: 'as it was shown' })).servers, [old])
  })

  await t.test('what one user may have has an end, what admins may have has none', async (t) => {
    const { admin, bob } = await started(t)
    const config = { url: 'https://mcp.example.com/mcp', enabled: false }
    const batch = await bob.ask('POST', '/servers/batch', {
      servers: Array.from({ length: managementLimits.serversPerUser + 2 }, (_, n) => ({ name: `s${n}`, config }))
    })
    assert.deepEqual([batch.status, at(batch.body, 'data', 'failureCount')], [207, 2], batch.text.slice(-500))
    refused(await bob.ask('POST', '/servers', { name: 'more', config }), 429)
    await admin.ok('POST', '/servers', { name: 'more', config })
    for (let n = 0; n < managementLimits.groupsPerUser; n++) await bob.ok('POST', '/groups', { name: `g${n}` }, 201)
    refused(await bob.ask('POST', '/groups', { name: 'more groups' }), 429)
    await admin.ok('POST', '/groups', { name: 'more groups' }, 201)
    deleted(await bob.ask('DELETE', '/servers/s0'))
    await bob.ok('POST', '/servers', { name: 'again', config })

    const large = { config: { ...config, description: 'x'.repeat(900_000) } }
    const statuses: number[] = []
    for (let n = 0; n < 6; n++) statuses.push((await bob.ask('PUT', '/servers/again', large)).status)
    assert.deepEqual([statuses[0], statuses.at(-1), new Set(statuses)], [200, 429, new Set([200, 429])])
    refused(await bob.ask('POST', '/servers/again/toggle', { enabled: false }), 429, 'a large config is stored again')
    refused(await bob.ask('POST', '/groups', { name: 'more groups' }), 429)
    for (let n = 0; n < 4; n++) await admin.ok('PUT', '/servers/more', large)
  })

  await t.test('an admin stands for the values that his edit writes, and for no other that a user stored', async () => {
    const home = '$' + '{HOME}'
    const config = { url: 'https://mcp.example.com/mcp', headers: { 'X-Home': `${home}-and-more`, 'X-Plain': home }, enabled: false }
    await bob.ok('POST', '/servers', { name: 'planted', config })
    const byUser = async (name = 'planted'): Promise<unknown> => at(await onDisk(hub), 'mcpServers', name, 'storedByUser')
    assert.equal(await byUser(), true)
    const { mcpServers } = await admin.ok('GET', '/mcp-settings/export?includeSecrets=true')
    const exported = { planted: (mcpServers as Json).planted }
    assert.equal(at(await admin.ok('POST', '/servers/batch', { mcpServers: exported }), 'results', 0, 'unchanged'), true)
    assert.equal(await byUser(), true)
    const all = ['/url', '/headers/X-Home', '/headers/X-Plain']
    const shown = (await admin.server('planted')).config as Json
    await admin.ok('PUT', '/servers/planted', { config: { ...shown, description: 'masks and all' } })
    assert.deepEqual(await byUser(), all)
    await admin.ok('PUT', '/servers/planted', { config: { ...config, description: 'in plain' } })
    assert.deepEqual(await byUser(), all, 'what is sent back as it was is not written')
    await admin.ok('PUT', '/servers/planted', { config, newName: 'renamed' })
    assert.deepEqual(await byUser('renamed'), all, 'nor what has another name')
    const headers = { 'X-Other': `${home}-and-more`, 'X-Plain': `${home}/mine`, 'X-New': home }
    await admin.ok('PUT', '/servers/renamed', { config: { ...config, headers } })
    assert.deepEqual(await byUser('renamed'), ['/url', '/headers/X-Other'])
    await admin.ok('PUT', '/servers/renamed', { config: { ...config, url: 'https://mcp.example.com/', headers: { 'X-New': home } } })
    assert.equal(await byUser('renamed'), undefined)
    await bob.ok('PUT', '/servers/renamed', { config: { ...config, headers: { 'X-New': home } } })
    assert.equal(await byUser('renamed'), true, "a user's edit makes all of it the user's")
    deleted(await admin.ask('DELETE', '/servers/renamed'))
  })

  await t.test('an admin who adds what was exported does not stand for what a user wrote in it', async () => {
    const config = { url: 'https://mcp.example.com/${' + 'HOME}', enabled: false, owner: 'bob' }
    for (const [said, kept] of [[true, true], [['/url'], ['/url']], [false, undefined], [[], undefined], [7, undefined]] as const) {
      await admin.ok('POST', '/servers', { name: 'moved', config: { ...config, storedByUser: said } })
      assert.deepEqual(at(await onDisk(hub), 'mcpServers', 'moved', 'storedByUser'), kept, JSON.stringify(said))
      deleted(await admin.ask('DELETE', '/servers/moved'))
    }
    await bob.ok('POST', '/servers', { name: 'moved', config: { ...config, storedByUser: false } })
    assert.equal(at(await onDisk(hub), 'mcpServers', 'moved', 'storedByUser'), true)
    deleted(await admin.ask('DELETE', '/servers/moved'))
  })

  await t.test('a variable alone is shown, and is no more expanded after an admin\'s edit than before', async () => {
    const config = {
      url: 'https://mcp.example.com/${' + 'NAME}',
      headers: { 'X-Home': '${' + 'HOME}', 'X-None': '', 'X-Mixed': 'a ${' + 'HOME}' },
      enabled: false
    }
    await bob.ok('POST', '/servers', { name: 'variable', config })
    const byUser = async (): Promise<unknown> => at(await onDisk(hub), 'mcpServers', 'variable', 'storedByUser')
    const shown = (await admin.server('variable')).config as Json
    assert.deepEqual([shown.url, shown.headers], [config.url, { ...config.headers, 'X-Mixed': `${MASK}` }])
    // Not one mask among them: what stays is the variable.
    for (const { headers, url } of [{ headers: { 'X-Home': '${' + 'HOME}' }, url: 'https://mcp.example.com/' }, { url: config.url }]) {
      await admin.ok('PUT', '/servers/variable', { config: { url, headers, enabled: false, description: 'edited' } })
      const left = url === config.url ? '/url' : '/headers/X-Home'
      assert.deepEqual(await byUser(), [left])
      await bob.ok('PUT', '/servers/variable', { config })
    }
    await admin.ok('PUT', '/servers/variable', { config: { url: 'https://mcp.example.com/', headers: { 'X-Home': 'x' } } })
    assert.equal(await byUser(), undefined)
    deleted(await admin.ask('DELETE', '/servers/variable'))
  })

  await t.test('a visibility stays where nothing is said; the mark of former versions beside one is not read', async () => {
    const put = async (config: Json): Promise<unknown[]> => {
      await admin.ok('PUT', '/servers/other', { config: { url: fake.url, enabled: false, ...config } })
      const shown = (await admin.server('other')).config as Json
      assert.ok(!JSON.stringify(await stored(hub)).includes('visibilityDefaulted'))
      return [shown.visibility, shown.visibilityDefaulted]
    }
    for (const [sent, visibility] of [
      [{}, 'private'], [{ visibility: 'private', visibilityDefaulted: true }, 'private'], [{ visibility: 'public' }, 'public'], [{}, 'public'],
      [{ visibility: 'public', visibilityDefaulted: true }, 'public'], [{ visibilityDefaulted: true }, 'public'],
      [{ visibility: 'group', visibilityDefaulted: false }, 'group']
    ] as const) assert.deepEqual(await put(sent), [visibility, undefined], JSON.stringify(sent))
  })

  await t.test(
    'a server of a file that says neither owner nor visibility: shown as it counts, and an admin who sends it back does not take it over',
    async () => {
      const { admin, bob, hub } = await started(t, {
        mine: { command: 'cat', enabled: false },
        open: { command: 'cat', enabled: false, visibility: 'public' }
      })
      const counts = { owner: 'admin', visibility: 'private' }
      const config = (await admin.server('mine')).config as Json
      assert.deepEqual(config, { command: 'cat', enabled: false, ...counts })
      assert.deepEqual((await bob.server('open')).config, { type: 'stdio', visibility: 'public', owner: 'admin', enabled: false })
      await admin.ok('PUT', '/users/bob', { isAdmin: true })
      for (const sent of [
        config,
        { command: 'cat', enabled: false, visibility: 'private', visibilityDefaulted: true },
        { command: 'cat' }
      ]) {
        await bob.ok('PUT', '/servers/mine', { config: sent })
        assert.deepEqual(at(await stored(hub), 'mcpServers', 'mine'), { command: 'cat', enabled: false, ...counts })
      }
      await bob.ok('PUT', '/servers/mine', { config: { command: 'cat', visibility: 'private' } })
      assert.deepEqual((await admin.server('mine')).config, { command: 'cat', enabled: false, owner: 'admin', visibility: 'private' })
    }
  )

  await t.test('owners: the caller, or admin; only admins give servers away', async () => {
    const config = { url: 'https://mcp.example.com/mcp', enabled: false }
    assert.equal(
      at(await new Api(hub, { authorization: `Bearer ${KEY}` }).ok('POST', '/servers', { name: 'by-key', config }), 'config', 'owner'),
      'admin'
    )
    assert.equal(at(await bob.ok('POST', '/servers', { name: 'bobs', config }), 'config', 'owner'), 'bob')
    for (const [method, route, body] of [
      ['POST', '/servers', { name: 'grab', config: { ...config, owner: 'admin' } }],
      ['PUT', '/servers/bobs', { config: { ...config, owner: 'admin' } }]
    ] as const) {
      const answer = await bob.ask(method, route, body)
      assert.ok(answer.status === 400 || answer.status === 403 || at(answer.body, 'data', 'config', 'owner') === 'bob', answer.text)
    }
    assert.equal(at(await admin.server('bobs'), 'config', 'owner'), 'bob')
    for (const owner of ['nobody yet', 'system', 'Bob']) {
      refused(await admin.ask('PUT', '/servers/by-key', { config: { ...config, owner } }), 400, owner)
      refused(await admin.ask('POST', '/servers', { name: 'orphan', config: { ...config, owner } }), 400, owner)
    }
    const { createdAt } = await admin.server('by-key')
    await admin.ok('PUT', '/servers/by-key', { config: { ...config, owner: 'bob', createdAt: 'yesterday' } })
    assert.equal((await admin.server('by-key')).createdAt, createdAt, 'when it was made is no matter of opinion')
    assert.equal((await bob.server('by-key')).name, 'by-key')
    await bob.ok('PUT', '/servers/by-key', { config: { ...config, description: 'mine now' }, newName: 'really mine' })
    assert.equal(at(await admin.server('really mine'), 'config', 'owner'), 'bob')
    refused(await bob.ask('PUT', '/servers/after%20it', { config, newName: 'stolen' }), 404)
    for (const name of ['bobs', 'really mine']) deleted(await bob.ask('DELETE', `/servers/${enc(name)}`))
    const left = await bob.ask('DELETE', '/servers/grab')
    assert.ok([200, 404].includes(left.status), left.text)
  })
})
