// Records as clients read them, and the export of the settings.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'tap'
import { at, names, Session, type Json } from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { startHub, until } from '../helpers/hub.ts'
import {
  Api, canary, deleted, envelope, fine, list, MASK, offers, onDisk, refused, started
} from '../helpers/management.ts'

test('records as clients of such services read them', async (t) => {
  const fake = await startUpstream(t, offers)
  const { hub, admin, bob } = await started(
    t,
    {
      zebra: { url: fake.url, visibility: 'public', createdAt: '2020-01-02T03:04:05.000Z', headers: { 'X-Key': canary('header') } },
      7: { url: fake.url, enabled: false },
      alpha: { url: fake.url, enabled: false, visibility: 'public' }
    },
    { groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'ownerless', servers: ['zebra'] }] }
  )

  await t.test('`enabled` and `createdAt` stand beside `config`, in whatever answers a server', async () => {
    const answers = [
      ...list(await admin.ask('GET', '/servers')),
      ...(at(await admin.ok('GET', '/settings'), 'servers') as Json[]),
      await admin.ok('POST', '/servers', { name: 'made', config: { url: fake.url, enabled: false, createdAt: 'yesterday' } }),
      await admin.server('zebra'),
      await admin.ok('PUT', '/servers/made', { config: { url: fake.url } }),
      await admin.ok('POST', '/servers/alpha/toggle', { enabled: true }),
      await admin.ok('POST', '/servers/alpha/toggle', { enabled: false }),
      await admin.ok('POST', '/servers/zebra/reload'),
      ...list(await bob.ask('GET', '/servers'))
    ]
    assert.ok(answers.length > 10)
    for (const record of answers) {
      assert.equal(record.enabled, at(record, 'config', 'enabled'), JSON.stringify(record))
      assert.equal(record.enabled, record.status !== 'disabled')
      assert.ok(!Object.hasOwn(record.config as Json, 'createdAt'), JSON.stringify(record))
      if (record.name === 'zebra') assert.equal(record.createdAt, '2020-01-02T03:04:05.000Z')
      if (record.name === 'made') assert.ok(!Number.isNaN(Date.parse(String(record.createdAt))))
    }
    await admin.ok('PUT', '/servers/zebra', { config: (await admin.server('zebra')).config })
    assert.equal(at(await onDisk(hub), 'mcpServers', 'zebra', 'createdAt'), '2020-01-02T03:04:05.000Z')
    deleted(await admin.ask('DELETE', '/servers/made'))
  })

  await t.test('`mcpServers` in the settings: the same servers by name, filtered and masked as they are', async () => {
    for (const who of [admin, bob]) {
      const answer = await who.ask('GET', '/settings')
      const data = fine(answer)
      const records = data.servers as Json[]
      assert.deepEqual(data.mcpServers, Object.fromEntries(records.map(({ name, config }) => [name, config])))
      const positions = records.map(({ name }) => answer.text.indexOf(`${JSON.stringify(name)}:{`))
      assert.ok(positions.every((at) => at > 0), 'each is a member')
      assert.deepEqual(positions, [...positions].sort((one, other) => one - other), 'in the order of the servers')
    }
    assert.deepEqual(Object.keys((await bob.ok('GET', '/settings')).mcpServers as Json), ['zebra', 'alpha'])
  })

  await t.test('servers keep their order in an exported file, though names that are numbers come first in objects', async (t) => {
    await admin.ok('POST', '/servers', { name: '3', config: { url: fake.url, enabled: false } })
    const order = list(await admin.ask('GET', '/servers')).map(({ name }) => name)
    assert.deepEqual(order, ['7', 'zebra', 'alpha', '3'])
    const { text } = await admin.ask('GET', '/mcp-settings/export?download=1')
    assert.deepEqual([...text.matchAll(/^ {4}"([^"]+)": \{$/gm)].map(([, name]) => name).slice(0, 4), order)
    const { text: enveloped } = await admin.ask('GET', '/mcp-settings/export')
    const positions = order.map((name) => enveloped.indexOf(`${JSON.stringify(name)}:{"url"`))
    assert.ok(positions.every((at) => at > 0), enveloped)
    assert.deepEqual(positions, [...positions].sort((one, other) => one - other), 'and in an envelope')
    const reply = await fetch(`${hub.url}/api/mcp-settings/export?includeSecrets=true&download=1`, { headers: admin.headers })
    const other = await Api.login(await startHub(t, { settings: await reply.text() }))
    assert.deepEqual(list(await other.ask('GET', '/servers')).map(({ name }) => name), order)
    deleted(await admin.ask('DELETE', '/servers/3'))
  })

  await t.test('OAuth clients are in an export with secrets, which another gateway accepts', async () => {
    const client = { clientId: 'own-client', name: 'one', redirectUris: ['http://127.0.0.1:1/cb'], secretHash: 'a'.repeat(64) }
    const systemConfig = { oauthServer: { enabled: true } }
    const former = await Api.login(await startHub(t, { settings: { ...await onDisk(hub), systemConfig, oauthClients: [client] } }))
    assert.equal((await former.ok('GET', '/mcp-settings/export')).oauthClients, undefined)
    const { oauthClients, ...rest } = await former.ok('GET', '/mcp-settings/export?includeSecrets=true')
    assert.deepEqual((oauthClients as Json[]).map(({ clientId, secretHash }) => [clientId, secretHash]), [['own-client', client.secretHash]])
    const next = await Api.login(await startHub(t, { settings: { ...rest, oauthClients } }))
    assert.deepEqual(list(await next.ask('GET', '/oauth/clients')).map(({ clientId }) => clientId), ['own-client'])
  })

  await t.test('a group without an owner is the admins\'', async () => {
    assert.equal((await admin.ok('GET', '/groups/ownerless')).owner, 'admin')
    for (const route of ['/groups', '/settings', '/mcp-settings/export']) {
      const data = at((await admin.ask('GET', route)).body, 'data')
      const groups = (Array.isArray(data) ? data : at(data, 'groups')) as Json[]
      assert.equal(groups.find(({ name }) => name === 'ownerless')?.owner, 'admin', route)
    }
    await admin.ok('PUT', '/groups/ownerless', { description: 'x' })
    assert.equal(at(await onDisk(hub), 'groups', '0', 'owner'), 'admin')
  })

  await t.test('the bare name of a member keeps its selectors and its alias', async () => {
    const member = { name: 'zebra', tools: ['echo'], prompts: [], resources: 'all', alias: 'z' }
    for (const route of ['/groups/kept', '/groups/kept/servers/batch']) {
      await admin.ok('POST', '/groups', { name: 'kept', servers: [member] }, 201)
      const listed = list(await admin.ask('GET', '/groups')).find(({ name }) => name === 'kept')?.servers
      assert.deepEqual(listed, ['zebra'])
      for (const servers of [listed, ['alpha', 'zebra'], ['zebra']]) {
        await admin.ok('PUT', route, { servers })
        const now = (await admin.ok('GET', '/groups/kept')).servers as unknown[]
        assert.deepEqual(now.find((each) => typeof each === 'object'), member, `${route} ${JSON.stringify(servers)}`)
      }
      await admin.ok('PUT', route, { servers: [{ name: 'zebra' }] })
      assert.deepEqual((await admin.ok('GET', '/groups/kept')).servers, ['zebra'], 'an object says what it selects: all')
      deleted(await admin.ask('DELETE', '/groups/kept'))
    }
  })

  await t.test('a member from a client that does not know the selector of skills keeps it', async () => {
    const skills = ['skill://zebra/one']
    const known = { name: 'zebra', tools: ['echo'], prompts: [], resources: 'all' }
    for (const route of ['/groups/kept', '/groups/kept/servers/batch']) {
      await admin.ok('POST', '/groups', { name: 'kept', servers: [{ ...known, skills }] }, 201)
      for (const [given, shown] of [
        [known, { ...known, skills }],
        [{ name: 'zebra' }, { name: 'zebra', tools: 'all', prompts: 'all', resources: 'all', skills }],
        [{ ...known, skills: 'all' }, known],
        [{ name: 'zebra' }, 'zebra']
      ]) {
        await admin.ok('PUT', route, { servers: [given] })
        assert.deepEqual((await admin.ok('GET', '/groups/kept')).servers, [shown], `${route} ${JSON.stringify(given)}`)
      }
      deleted(await admin.ask('DELETE', '/groups/kept'))
    }
  })

  await t.test('what is named and not there stands in `warnings`, and in the message', async () => {
    const warned = async (method: string, route: string, body: object): Promise<string[] | undefined> => {
      const { status, body: answer, text } = await admin.ask(method, route, body)
      assert.ok(status < 300, text)
      const warnings = at(answer, 'warnings') as string[] | undefined
      for (const each of warnings ?? []) assert.ok(String(at(answer, 'message')).includes(each))
      return warnings
    }
    const zebra = { name: 'zebra', tools: ['echo', 'ecko'], prompts: ['nothing'], resources: 'all' }
    const ecko = 'The server "zebra" does not list the tools "ecko": they become part of the group once it does'
    const nothing = 'The server "zebra" does not list the prompts "nothing": they become part of the group once it does'
    assert.deepEqual(await warned('POST', '/groups', { name: 'typo', servers: [zebra] }), [ecko, nothing])
    assert.deepEqual(await warned('PUT', '/groups/typo', { servers: [{ ...zebra, prompts: 'all' }] }), [ecko])
    assert.equal(await warned('PUT', '/groups/typo', { description: 'x' }), undefined, 'nothing is selected')
    assert.deepEqual(await warned('PUT', '/groups/typo/servers/batch', { servers: ['zebra'] }), [ecko], 'as it is stored')
    assert.deepEqual(await warned('PUT', '/groups/typo/server-configs/zebra/tools', { tools: ['ecko'] }), [ecko])
    assert.equal(await warned('PUT', '/groups/typo/server-configs/zebra/tools', { tools: ['echo'] }), undefined)
    // Of a server that was never connected nobody knows what it lists.
    assert.equal(await warned('PUT', '/groups/typo', { servers: [{ name: 'alpha', tools: ['echo'] }] }), undefined)
    refused(await admin.ask('PUT', '/groups/typo', { servers: ['no-such-server'] }), 400)

    const scope = { accessType: 'custom', allowedGroups: ['typo', 'tipo'], allowedServers: ['zebra', 'zebbra'] }
    const unknown = ['There is no group "tipo" yet', 'There is no server "zebbra" yet'].map((each) => `${each}: the key gives access to it as soon as it exists`)
    assert.deepEqual(await warned('POST', '/auth/keys', { name: 'scoped', ...scope }), unknown)
    const id = String(list(await admin.ask('GET', '/auth/keys')).find(({ name }) => name === 'scoped')?.id)
    assert.deepEqual(await warned('PUT', `/auth/keys/${id}`, { name: 'again' }), unknown)
    assert.deepEqual(await warned('PUT', `/auth/keys/${id}`, { allowedServers: ['zebra'] }), unknown.slice(0, 1))
    assert.deepEqual(await warned('PUT', `/auth/keys/${id}`, { accessType: 'all' }), ['allowedGroups', 'allowedServers'].map((name) =>
      `"${name}" has no effect, since "accessType" is "all"`))
    refused(await admin.ask('POST', '/auth/keys', { name: 'x', kind: 'user', owner: 'nobody-here' }), 400)
  })

  await t.test('the log tells of an edit of the file that is in force, and of tokens that became hashes', async () => {
    const file = await onDisk(hub)
    const token = 'a-plain-token-in-the-file'
    const scope = { accessType: 'custom', allowedServers: ['nothing-of-that-name'] }
    const key = { id: '44444444-4444-4444-8444-444444444444', name: 'by hand', token, kind: 'system', ...scope }
    await writeFile(hub.settingsPath, JSON.stringify({ ...file, bearerKeys: [...file.bearerKeys as Json[], key] }))
    await until(() => hub.output().includes('an edit of the settings file is in effect: keys \\"by hand\\" (added)'), () => hub.output())
    await until(() => hub.output().includes('allows a server \\"nothing-of-that-name\\", which does not exist'), () => hub.output())
    await admin.ok('PUT', '/groups/ownerless', { description: 'y' })
    assert.ok(hub.output().includes('hashes instead of the plain tokens of the bearer keys \\"by hand\\"'), hub.output())
    assert.ok(!hub.output().includes(token))
  })

  await t.test('the log warns of a password that is no hash, by the name of its user', async () => {
    const file = await onDisk(hub)
    const password = canary('password')
    await writeFile(hub.settingsPath, JSON.stringify({ ...file, users: [...file.users as Json[], { username: 'eve', password }] }))
    await until(() => hub.output().includes('user \\"eve\\": \\"password\\" is not a usable hash'), () => hub.output())
    assert.ok((await readFile(hub.settingsPath, 'utf8')).includes(password), 'the account stays as it is')
    assert.ok(!hub.output().includes(password))
  })
})

test('export', async (t) => {
  const fake = await startUpstream(t, offers)
  const secret = { admin: canary('admin'), bob: canary('bob'), router: canary('router') }
  const { hub, admin, bob } = await started(t)
  await admin.add('alpha', { url: fake.url, headers: { 'X-Key': secret.admin }, visibility: 'public', description: 'for all' })
  await admin.add('closed', { url: fake.url, enabled: false, headers: { 'X-Key': secret.admin } })
  await bob.ok('POST', '/servers', {
    name: 'bobs',
    config: { url: 'https://mcp.example.com/mcp', enabled: false, headers: { 'X-Key': secret.bob } }
  })
  await admin.ok('POST', '/groups', { name: 'team', servers: ['alpha', { name: 'closed', tools: ['echo'], alias: 'c' }] }, 201)
  await bob.ok('POST', '/groups', { name: 'mine', servers: ['bobs', 'alpha'] }, 201)
  await admin.ok('PUT', '/system-config', { mcpRouter: { apiKey: secret.router }, nameSeparator: '_' })
  await admin.ok('PUT', '/servers/alpha/tools/echo/description', { description: 'Ours' })
  const key = await admin.ok('POST', '/auth/keys', { name: 'k', accessType: 'all' }, 201)

  await t.test('to an admin: everything, masked', async () => {
    const answer = await admin.ask('GET', '/mcp-settings/export')
    const data = envelope(answer, 200, 'no message')
    for (const one of Object.values(secret)) assert.ok(!answer.text.includes(one))
    assert.doesNotMatch(answer.text, /\$2[aby]\$|scrypt|argon2/, 'a hash of a password')
    assert.ok(!answer.text.includes(String(key.token)))
    assert.deepEqual(
      [
        Object.keys(data.mcpServers as Json),
        names(data.groups),
        at(data, 'systemConfig', 'nameSeparator'),
        at(data, 'mcpServers', 'alpha', 'headers', 'X-Key'),
        at(data, 'mcpServers', 'alpha', 'tools', 'echo', 'description')
      ],
      [['alpha', 'closed', 'bobs'], ['team', 'mine'], '_', MASK + secret.admin.slice(-4), 'Ours']
    )
  })

  await t.test('to others: what they manage, and no secrets', async () => {
    for (const query of ['', '?includeSecrets=false', '?download=1']) {
      const answer = await bob.ask('GET', `/mcp-settings/export${query}`)
      assert.equal(answer.status, 200, answer.text)
      const data = (query === '?download=1' ? answer.body : at(answer.body, 'data')) as Json
      assert.deepEqual([Object.keys(data.mcpServers as Json), names(data.groups)], [['bobs'], ['mine']], query)
      for (const one of Object.values(secret)) assert.ok(!answer.text.includes(one))
      for (const [section, value] of Object.entries(data)) {
        if (!['mcpServers', 'groups'].includes(section)) {
          assert.ok(!/admin|betterAuth|apiKey/.test(JSON.stringify(value)), `${section}: ${JSON.stringify(value)}`)
        }
      }
    }
    for (const query of ['?includeSecrets=true', '?includeSecrets=true&download=1']) {
      refused(await bob.ask('GET', `/mcp-settings/export${query}`), 403, query)
    }
  })

  await t.test('the file with its secrets is the settings file of another gateway', async (t) => {
    const reply = await fetch(`${hub.url}/api/mcp-settings/export?includeSecrets=true&download=1`, { headers: admin.headers })
    assert.equal(reply.status, 200)
    assert.match(String(reply.headers.get('content-disposition')), /^attachment.*mcp_settings.*\.json/)
    assert.match(String(reply.headers.get('content-type')), /^application\/json/)
    assert.match(String(reply.headers.get('cache-control')), /no-store/, 'secrets are kept nowhere on the way')
    const file = await reply.text()
    for (const one of Object.values(secret)) assert.ok(file.includes(one))
    const other = await startHub(t, { settings: file })
    assert.doesNotMatch(other.output(), /ignored|cannot be used/)
    const there = await Api.login(other)
    await there.has('alpha', 'connected')
    for (const route of ['/servers/closed', '/servers/bobs', '/groups/team', '/groups/mine']) {
      const [here, copy] = [await admin.ok('GET', route), await there.ok('GET', route)]
      assert.deepEqual(copy, here, route)
    }
    assert.deepEqual(await there.system(), await admin.system())
    assert.ok(fake.received.some(({ headers }) => headers['x-key'] === secret.admin), 'with the real key')
    assert.equal((await new Api(other, { authorization: `Bearer ${String(key.token)}` }).ask('GET', '/servers')).status,
      200, 'keys go along')
    assert.equal((await Session.open(`${other.url}/mcp/team`, { key: String(key.token) })).init.protocolVersion, '2025-11-25')
  })
})
