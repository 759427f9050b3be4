// The settings file: what the API changes is stored, edits on disk take effect, and files of others are read as they are.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { test, type Test } from 'tap'
import bcrypt from 'bcryptjs'
import { startUpstream } from '../fakes/fault-http.ts'
import { login, manage, managed, parked, serverNames } from '../fakes/replica.ts'
import { assertPlain, at, connected, initialize, send, Session, settings, text, within, type Json, type Stream } from '../helpers/client.ts'
import { bearerKey, startHub, until, type Hub } from '../helpers/hub.ts'
import { onDisk, STDIO } from '../helpers/management.ts'

const groupId = '33333333-3333-4333-8333-333333333333'

const servers = (content: Json): Json => content.mcpServers as Json
const opens = async (url: string, key: string): Promise<number> => (await send(url, { key, body: initialize() })).status

// ---- edits on disk --------------------------------------------------------------------------------

/** Edits the file as a person's editor does: a new file in its place, or new content in the old one. */
async function edit (hub: Hub, change: (content: Json) => void, how: 'rename' | 'write' = 'write'): Promise<void> {
  const content = await onDisk(hub)
  change(content)
  const written = `${JSON.stringify(content, null, 4)}\n`
  if (how === 'write') { await writeFile(hub.settingsPath, written); return }
  await writeFile(`${hub.settingsPath}.swp`, written, { mode: 0o600 })
  await rename(`${hub.settingsPath}.swp`, hub.settingsPath)
}

const changed = (stream: Stream): number => stream.messages.filter(({ method }) => method === 'notifications/tools/list_changed').length

interface Edited {
  hub: Hub
  url: string
  global: Session
  heard: Stream
  pid: (server: string) => Promise<string>
  untouched: () => Promise<void>
}

/** A gateway with a server to edit and two to leave alone, whose sessions and connections `untouched` looks at. */
async function startEdited (t: Test): Promise<Edited> {
  const fake = await startUpstream(t)
  const groups = [{ id: groupId, name: 'team', servers: ['edited', 'other'] }]
  const remote = { type: 'streamable-http', url: fake.url }
  const hub = await startHub(t, { settings: settings({ edited: STDIO, other: STDIO, remote }, { groups }) })
  await connected(hub, 3)
  const url = `${hub.url}/mcp`
  const pid = async (server: string): Promise<string> => text(await (await Session.open(`${url}/${server}`)).call('pid'))
  const [global, other, far] = [await Session.open(url), await Session.open(`${url}/other`), await Session.open(`${url}/remote`)]
  const [heard, ...others] = [await global.listen(), await other.listen(), await far.listen()]
  t.after(() => { for (const stream of [heard, ...others]) stream.close() })
  const before = { other: await pid('other'), remote: fake.count('initialize') }
  assert.ok((await global.tools()).length > 3)
  const untouched = async (): Promise<void> => {
    assert.equal(await pid('other'), before.other, 'the other child')
    assert.equal(text(await other.call('pid')), before.other)
    assert.equal(text(await far.call('echo', { message: 'm' })), 'm')
    assert.equal(fake.count('initialize'), before.remote, 'the other link')
    assert.deepEqual(others.map((stream) => [changed(stream), stream.ended]), [[0, false], [0, false]])
  }
  return { hub, url, global, heard, pid, untouched }
}

test('an edit on disk touches only what it changes', async (t) => {
  const { hub, url, global, heard, pid, untouched } = await startEdited(t)

  for (const how of ['write', 'rename'] as const) {
    await t.test(`a server edited by ${how} reconnects alone`, async () => {
      const old = await pid('edited')
      await edit(hub, (content) => { servers(content).edited = { ...STDIO, env: { EDITED: how } } }, how)
      await until(async () => (await pid('edited')) !== old, 'still the old child')
      await untouched()
    })
  }

  await t.test('a server added, changed and removed: clients hear of it', async (t) => {
    const added = await startUpstream(t)
    for (const [what, config, isListed] of [
      ['added', { url: added.url, description: 'new' }, true],
      ['disabled', { url: added.url, enabled: false }, false],
      ['enabled', { url: added.url }, true],
      ['removed', undefined, false]
    ] as const) {
      const before = changed(heard)
      await edit(hub, (content) => { servers(content).added = config })
      await until(() => changed(heard) > before, `no list_changed: ${what}`)
      await until(async () => (await global.tools()).includes('added-echo') === isListed, `not so in the list: ${what}`)
    }
    assert.equal((await manage(hub, 'GET', '/servers/added')).status, 404)
    await untouched()
  })

  await t.test('groups and keys as well', async () => {
    const team = await Session.open(`${url}/team`)
    const stream = await team.listen()
    assert.ok((await team.tools()).includes('edited-pid'))
    const token = `thk_${'e'.repeat(64)}`
    await edit(hub, (content) => {
      const [group] = content.groups as Json[]
      content.groups = [{ ...group, servers: [{ name: 'other', tools: ['echo'] }] }]
      const key = bearerKey({ id: '55555555-5555-4555-8555-555555555555', name: 'by hand', token })
      content.bearerKeys = [...(content.bearerKeys as Json[]), key]
    })
    await until(() => changed(stream) > 0, 'no list_changed')
    assert.deepEqual(await team.tools(), ['other-echo'])
    assert.equal(await opens(url, token), 200)
    const open = await (await Session.open(url, { key: token })).listen()
    await edit(hub, (content) => { content.bearerKeys = (content.bearerKeys as Json[]).filter(({ name }) => name !== 'by hand') })
    await until(async () => await opens(url, token) === 401, 'the removed key still works')
    await within('the end of its stream', open.done)
    stream.close()
  })
})

test('a broken edit is ignored and reported, and no write goes over it', async (t) => {
  const { hub, global, untouched } = await startEdited(t)
  const good = await readFile(hub.settingsPath, 'utf8')
  const held = await serverNames(hub)
  const noise = hub.output().length
  const broken = good.slice(0, -20)
  await writeFile(hub.settingsPath, broken)
  const answer = await manage(hub, 'POST', '/servers', { name: 'over-it', config: parked() })
  assert.deepEqual([answer.status, at(answer.body, 'success')], [409, false], answer.text)
  assertPlain(answer.text)
  await until(() => /mcp_settings\.json|settings file/i.test(hub.output().slice(noise)), () => `not reported: ${hub.output().slice(noise)}`)
  assert.deepEqual(await serverNames(hub), held)
  assert.ok((await global.tools()).includes('remote-echo'))
  assert.equal((await manage(hub, 'POST', '/auth/keys', { name: 'k', accessType: 'all', owner: 'admin' })).status, 409)
  assert.equal((await manage(hub, 'GET', '/servers/remote')).status, 200)
  const told = await manage(hub, 'GET', '/settings/problems')
  assert.match(told.text, /settings file .* cannot be (?:used|parsed)|not valid JSON/i, 'an admin is told why')
  assert.equal(await readFile(hub.settingsPath, 'utf8'), broken)
  assert.equal((await fetch(`${hub.url}/health`)).status, 200)

  await writeFile(hub.settingsPath, good)
  await until(async () => !(await manage(hub, 'GET', '/settings/problems')).text.includes('settings file'), 'still told')
  const write = async (): Promise<number> => (await manage(hub, 'POST', '/servers', { name: 'after-it', config: parked() })).status
  await until(async () => await write() === 200, 'no write after the file was mended')
  assert.equal(at(await onDisk(hub), 'mcpServers', 'after-it', 'description'), 'parked')
  await untouched()
})

// ---- files of others ------------------------------------------------------------------------------

/** A settings file as MCPHub writes it. */
const ofMcpHub = (url: string, bearerAuthKey: string, token: string): Json => ({
  mcpServers: {
    local: { ...STDIO, env: { A: 'b' } },
    remote: { url, headers: { 'X-A': 'b' }, enabled: true, owner: 'admin', keepAliveInterval: 60_000, tools: { nothing: { enabled: false } } },
    typed: { type: 'streamable-http', url, enabled: false }
  },
  users: [
    { username: 'admin', password: bcrypt.hashSync('Old-Password-1', 4), isAdmin: true },
    { username: 'ann', password: bcrypt.hashSync('Anns-Password-1', 4), isAdmin: false }
  ],
  groups: [
    { id: 'b1946ac9-2492-4d23-8f5e-2d5a3c0b7f11', name: 'tools', description: '', servers: ['local', 'remote'], owner: 'admin' },
    { id: 'b1946ac9-2492-4d23-8f5e-2d5a3c0b7f12', name: 'some', servers: [{ name: 'local', tools: ['echo'] }] }
  ],
  systemConfig: {
    routing: { enableGlobalRoute: true, enableGroupNameRoute: true, enableBearerAuth: true, bearerAuthKey, skipAuth: false },
    install: { pythonIndexUrl: '', npmRegistry: '', baseUrl: 'http://localhost:3000' },
    smartRouting: { enabled: false, dbUrl: '', openaiApiBaseUrl: '', openaiApiKey: '', openaiApiEmbeddingModel: '' },
    mcpRouter: { apiKey: '', referer: 'https://example.com', title: 'X', baseUrl: '' }
  },
  bearerKeys: [
    { id: '88888888-8888-4888-8888-888888888888', name: 'plain', token, enabled: true, accessType: 'all', allowedGroups: [], allowedServers: [] }
  ]
})

test('a file of MCPHub loads as it is', async (t) => {
  const fake = await startUpstream(t)
  const legacy = `old-${randomBytes(12).toString('hex')}`
  const plainKey = `mcphub-${randomBytes(12).toString('hex')}`
  const hub = await startHub(t, { settings: ofMcpHub(fake.url, legacy, plainKey) })
  await connected(hub, 2)
  const look = async (key: string): Promise<void> => {
    const session = await Session.open(`${hub.url}/mcp/tools`, { key })
    const tools = await session.tools()
    assert.ok(tools.includes('local-echo') && tools.includes('remote-echo'), tools.join(' '))
    assert.equal(text(await session.call('remote-echo', { message: key })), key)
    assert.deepEqual(await (await Session.open(`${hub.url}/mcp/some`, { key })).tools(), ['local-echo'])
    assert.equal((await manage(hub, 'GET', '/servers', undefined, { authorization: `Bearer ${key}` })).status, 200)
  }
  await t.test('its keys and groups', async () => { await look(plainKey) })

  await t.test('its users', async () => {
    const people = [['admin', 'Old-Password-1', true], ['ann', 'Anns-Password-1', false]] as const
    for (const wrong of ['wrong', 'admin123']) assert.equal((await login(hub, 'admin', wrong)).status, 401)
    for (const [username, password, isAdmin] of people) {
      const { status, body } = await login(hub, username, password)
      assert.equal(status, 200, username)
      assert.equal(at(body, 'user', 'isAdmin'), isAdmin)
      const seen = await serverNames(hub, { 'x-auth-token': String(at(body, 'token')) })
      if (isAdmin) assert.deepEqual(seen, ['local', 'remote', 'typed'])
    }
    const isRehashed = ({ password }: Json): boolean => !String(password).startsWith('$2')
    await until(async () => (at(await onDisk(hub), 'users') as Json[]).every(isRehashed), 'bcrypt hashes stay after a login')
    for (const [username, password] of people) assert.equal((await login(hub, username, password)).status, 200, 'with the new hash')
    const stored = await onDisk(hub)
    assert.ok(!JSON.stringify(stored).includes(plainKey), 'the key is still in plain')
    const [hash = ''] = /[0-9a-f]{64}/.exec(JSON.stringify(stored.bearerKeys)) ?? []
    assert.deepEqual([await opens(`${hub.url}/mcp`, plainKey), await opens(`${hub.url}/mcp`, hash)], [200, 401], 'the hash is no key')
    assert.deepEqual(
      [at(stored, 'systemConfig', 'mcpRouter', 'title'), at(stored, 'systemConfig', 'install', 'baseUrl'), at(stored, 'groups', 0, 'id')],
      ['X', 'http://localhost:3000', 'b1946ac9-2492-4d23-8f5e-2d5a3c0b7f11']
    )
  })

  await t.test('its routing.bearerAuthKey: once a system key named default, then cleared', async () => {
    await look(legacy)
    const keys = await managed(hub, 'GET', '/auth/keys', undefined, { authorization: `Bearer ${plainKey}` }) as unknown as Json[]
    assert.equal(keys.filter(({ name, kind }) => name === 'default' && kind === 'system').length, 1)
    assert.ok(!(await readFile(hub.settingsPath, 'utf8')).includes(legacy), 'it is still in plain')
  })
})
