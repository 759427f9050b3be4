import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import bcrypt from 'bcryptjs'
import {
  assertPlain,
  at,
  connected,
  initialize,
  KEY,
  names,
  send,
  Session,
  settings,
  sleep,
  text,
  within,
  type Json,
  type Stream
} from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { bearerKey, path, spawnHub, until, type Hub, type ProcessHub } from '../helpers/hub.ts'

const rounds = Number(process.env.KILL_ROUNDS ?? 8)
const STDIO = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
const parked = (description = 'parked'): Json => ({ type: 'streamable-http', url: 'http://127.0.0.1:9/mcp', enabled: false, description })

interface Answer { status: number, text: string, body: unknown }

/** A request of the management API, by the key that `settings()` puts into every file. */
async function api (hub: Hub, method: string, route: string, body?: unknown): Promise<Answer> {
  const reply = await fetch(`${hub.url}/api${route}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body)
  })
  const answer = await reply.text()
  return { status: reply.status, text: answer, body: answer === '' ? undefined : JSON.parse(answer) }
}

/** As `api`, for what must succeed; its data. */
async function ok (hub: Hub, method: string, route: string, body?: unknown): Promise<Json> {
  const answer = await api(hub, method, route, body)
  assert.ok(answer.status === 200 || answer.status === 201, `${method} ${route}: ${answer.status} ${answer.text}`)
  return at(answer.body, 'data') as Json
}

/** Every page of a list. */
async function all (hub: Hub, route: string): Promise<Json[]> {
  const items: Json[] = []
  let cursor: unknown
  do {
    const answer = await api(hub, 'GET', `${route}?limit=500${cursor === undefined ? '' : `&cursor=${encodeURIComponent(String(cursor))}`}`)
    const data = at(answer.body, 'data')
    assert.ok(answer.status === 200 && Array.isArray(data), `${route}: ${answer.text.slice(0, 500)}`)
    items.push(...data as Json[])
    cursor = at(answer.body, 'nextCursor') ?? undefined
  } while (cursor !== undefined)
  return items
}

const onDisk = async (hub: Hub): Promise<Json> => JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json

/** A folder that outlives the gateways started in it. */
async function folderFor (t: Test, content?: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-hub-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  if (content !== undefined) await writeFile(join(folder, 'mcp_settings.json'), JSON.stringify(content, null, 2), { mode: 0o600 })
  return folder
}

/** Edits the file as a person's editor does: a new file in its place, or new content in the old one. */
async function edit (hub: Hub, change: (content: Json) => void, how: 'rename' | 'write' = 'write'): Promise<string> {
  const content = await onDisk(hub)
  change(content)
  const written = `${JSON.stringify(content, null, 4)}\n`
  if (how === 'write') await writeFile(hub.settingsPath, written)
  else {
    await writeFile(`${hub.settingsPath}.swp`, written, { mode: 0o600 })
    await rename(`${hub.settingsPath}.swp`, hub.settingsPath)
  }
  return written
}

const servers = (content: Json): Json => content.mcpServers as Json

/** The gateway ended by itself, with words and not with code 0. */
async function assertRefusesToStart (hub: ProcessHub): Promise<void> {
  if (hub.child.exitCode === null) await within('the exit', once(hub.child, 'exit'))
  await sleep(50)
  assert.ok(hub.child.exitCode !== null && hub.child.exitCode !== 0, `exit code ${hub.child.exitCode}`)
  assert.ok(hub.output().includes('mcp_settings.json'), `the file is not named: ${hub.output()}`)
  assert.doesNotMatch(hub.output(), /^\s+at .+:\d+:\d+\)?$/m)
}

const changed = (stream: Stream): number => stream.messages.filter(({ method }) => method === 'notifications/tools/list_changed').length

// ---- nothing acknowledged is lost -----------------------------------------------------------------

test('every kind of change survives a restart', async (t) => {
  const folder = await folderFor(
    t,
    settings(
      { fake: parked('from the file'), gone: parked() },
      { groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'old', servers: ['fake', 'gone'] }] }
    )
  )
  const hub = await spawnHub(t, { folder, env: { ADMIN_PASSWORD: 'Open-Sesame-1' } })
  await ok(hub, 'POST', '/servers', {
    name: 'Größe',
    config: {
      ...parked('ü€😀\u2028"\\'),
      headers: { 'X-Secret': 'kept-as-it-is-1' },
      options: { timeout: 1_234 },
      tools: { echo: { enabled: false, description: 'mine' } }
    }
  })
  await ok(hub, 'POST', '/servers', { name: 'child', config: { ...STDIO, env: { A: 'b' }, visibility: 'public' } })
  await ok(hub, 'POST', '/servers/child/toggle', { enabled: false })
  await ok(hub, 'PUT', '/servers/fake', { config: parked('updated') })
  await ok(hub, 'POST', '/servers', { name: 'before', config: parked() })
  await ok(hub, 'PUT', '/servers/before', { config: parked('renamed'), newName: 'after' })
  await ok(hub, 'DELETE', '/servers/gone')
  await ok(hub, 'POST', '/groups', {
    name: 'team',
    description: 'ours',
    servers: ['fake', { name: 'child', alias: 'c', tools: ['echo'], prompts: [], resources: 'all' }]
  })
  await ok(hub, 'POST', '/groups', { name: 'passing', servers: [] })
  await ok(hub, 'DELETE', '/groups/passing')
  await ok(hub, 'PUT', '/groups/old', { name: 'older', servers: ['after'] })
  const key = await ok(hub, 'POST', '/auth/keys', { name: 'kept', accessType: 'groups', allowedGroups: ['team'] })
  const lost = await ok(hub, 'POST', '/auth/keys', { name: 'lost' })
  await ok(hub, 'DELETE', `/auth/keys/${String(lost.id)}`)
  const look = async (where: Hub): Promise<unknown> => ({
    servers: (await all(where, '/servers')).map(({ name, config, createdAt, status }) => ({ name, config, createdAt, status })),
    groups: await all(where, '/groups'),
    team: await ok(where, 'GET', '/groups/team'),
    keys: (await all(where, '/auth/keys')).map(({ lastUsedAt, ...rest }) => rest)
  })
  const before = await look(hub)
  assert.deepEqual(names(at(before, 'servers')), ['fake', 'Größe', 'child', 'after'])
  assert.equal(await hub.stop(), 0)

  const again = await spawnHub(t, { folder })
  assert.deepEqual(await look(again), before)
  assert.equal(at(await onDisk(again), 'mcpServers', 'Größe', 'headers', 'X-Secret'), 'kept-as-it-is-1')
  assert.equal((await stat(again.settingsPath)).mode & 0o777, 0o600)
  assert.equal((await send(`${again.url}/mcp/team`, { key: String(key.token), body: initialize() })).status, 200)
  assert.equal((await send(`${again.url}/mcp`, { key: String(lost.token), body: initialize() })).status, 401)
  const login = await fetch(`${again.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: 'Open-Sesame-1' })
  })
  assert.equal(login.status, 200)
})

/** What each entity may be, as far as its writer knows: the last acknowledged state, and those never answered. */
type Possible = Map<string, Set<string | undefined>>

/** One writer: makes, changes and removes servers, groups and keys until the gateway is gone. */
async function write (hub: Hub, mark: string, possible: Possible, tokens: string[], stopped: () => boolean): Promise<number> {
  let acknowledged = 0
  const run = async (
    entity: string,
    state: string | undefined,
    method: string,
    route: string,
    body?: unknown
  ): Promise<Json | undefined> => {
    const before = possible.get(entity) ?? new Set([undefined])
    possible.set(entity, new Set([...before, state]))
    let answer: Answer
    try {
      answer = await api(hub, method, route, body)
    } catch {
      return undefined
    }
    assert.ok(answer.status === 200 || answer.status === 201, `${method} ${route}: ${answer.status} ${answer.text}`)
    possible.set(entity, new Set([state]))
    acknowledged++
    return (at(answer.body, 'data') ?? {}) as Json
  }
  for (let n = 0; !stopped(); n++) {
    const name = `${mark}-${n}`
    if (await run(`server ${name}`, 'one', 'POST', '/servers', { name, config: parked('one') }) === undefined) break
    if (n % 2 === 0 && await run(`server ${name}`, 'two', 'PUT', `/servers/${name}`, { config: parked('two') }) === undefined) break
    if (n % 3 === 0 && await run(`group ${name}`, 'a', 'POST', '/groups', { name, description: 'a', servers: [] }) === undefined) break
    if (n % 3 === 0 && await run(`group ${name}`, 'b', 'PUT', `/groups/${name}`, { description: 'b' }) === undefined) break
    if (n % 4 === 0) {
      const key = await run(`key ${name}`, 'made', 'POST', '/auth/keys', { name })
      if (key === undefined) break
      tokens.push(String(key.token))
    }
    if (n % 5 === 0 && await run(`server ${name}`, undefined, 'DELETE', `/servers/${name}`) === undefined) break
    if (n % 6 === 0 && await run(`group ${name}`, undefined, 'DELETE', `/groups/${name}`) === undefined) break
  }
  return acknowledged
}

test(`${rounds} rounds of kill -9 under continuous writes: acknowledged ⊆ stored ⊆ acknowledged ∪ unknown`, async (t) => {
  const lane = async (lane: number, count: number): Promise<void> => {
    const folder = await folderFor(t, settings({}))
    const file = join(folder, 'mcp_settings.json')
    const possible: Possible = new Map()
    const tokens: string[] = []
    let acknowledged = 0
    let looks = 0
    let reading = true
    const reader = (async () => {
      for (;;) {
        if (!reading) return
        const content = await readFile(file, 'utf8')
        try {
          JSON.parse(content)
        } catch {
          assert.fail(`look ${looks}: ${content.length} characters that do not parse: …${content.slice(-100)}`)
        }
        looks++
        await sleep(2)
      }
    })()
    reader.catch(() => {})
    for (let round = 0; round <= count; round++) {
      const hub = await spawnHub(t, { folder, env: { ADMIN_PASSWORD: 'x', LOG_LEVEL: 'error' } })
      const stored = new Map<string, string>()
      for (const { name, config } of await all(hub, '/servers')) stored.set(`server ${String(name)}`, String(at(config, 'description')))
      for (const { name, description } of await all(hub, '/groups')) stored.set(`group ${String(name)}`, String(description))
      for (const { name } of await all(hub, '/auth/keys')) if (name !== 'test') stored.set(`key ${String(name)}`, 'made')
      for (const [entity, states] of possible) {
        assert.ok(
          states.has(stored.get(entity)),
          `lane ${lane}, round ${round}: ${entity} is ${stored.get(entity)}, not one of ${[...states].join()}`
        )
        possible.set(entity, new Set([stored.get(entity)]))
      }
      for (const entity of stored.keys()) assert.ok(possible.has(entity), `lane ${lane}, round ${round}: nobody made ${entity}`)
      const token = tokens.at(-1)
      if (token !== undefined) {
        assert.equal(
          (await fetch(`${hub.url}/api/auth/user`, { headers: { authorization: `Bearer ${token}` } })).status,
          200,
          'an acknowledged key works'
        )
      }
      if (round === count) { await hub.stop(); break }
      let stopped = false
      const writers = [0, 1, 2, 3].map(async (writer) => await write(hub, `l${lane}r${round}w${writer}`, possible, tokens, () => stopped))
      await sleep(200 + Math.random() * 800)
      hub.child.kill('SIGKILL')
      await hub.stop()
      stopped = true
      for (const count of await Promise.all(writers)) acknowledged += count
    }
    reading = false
    await reader
    t.comment(`lane ${lane}: ${acknowledged} writes acknowledged in ${count} rounds, the file read ${looks} times`)
    assert.ok(acknowledged >= count * 2, `only ${acknowledged} writes in ${count} rounds`)
    assert.ok(looks > 20)
    const left = await readdir(folder)
    assert.ok(left.length < 8, `temporary files stay behind: ${left.join(' ')}`)
  }
  await Promise.all([lane(0, Math.ceil(rounds / 2)), lane(1, Math.floor(rounds / 2))])
})

test('200 parallel writes are all there after a restart', async (t) => {
  const folder = await folderFor(t, settings({}))
  const hub = await spawnHub(t, { folder })
  const wanted = Array.from({ length: 200 }, (_, n) => `server-${n}`)
  const answers = await Promise.all(wanted.map(async (name) => await api(hub, 'POST', '/servers', { name, config: parked(name) })))
  for (const answer of answers) assert.equal(answer.status, 200, answer.text)
  const race = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => await api(hub, 'POST', '/servers', { name: 'one-of-many', config: parked(`racer ${n}`) }))
  )
  assert.deepEqual(race.map(({ status }) => status).sort(), [200, ...Array<number>(19).fill(400)])
  const groups = await Promise.all(
    Array.from({ length: 20 }, async () => await api(hub, 'POST', '/groups', { name: 'one-of-many-groups' }))
  )
  assert.deepEqual(groups.map(({ status }) => status).sort(), [201, ...Array<number>(19).fill(400)])
  const winner = race.find(({ status }) => status === 200)
  assert.equal(await hub.stop(), 0)
  assert.deepEqual(Object.keys(servers(await onDisk(hub))).sort(), [...wanted, 'one-of-many'].sort())
  const again = await spawnHub(t, { folder })
  const stored = await all(again, '/servers')
  assert.deepEqual(names(stored).sort(), [...wanted, 'one-of-many'].sort())
  for (const { name, config } of stored) if (name !== 'one-of-many') assert.equal(at(config, 'description'), name)
  assert.equal(
    at(
      stored.find(({ name }) => name === 'one-of-many'),
      'config',
      'description'
    ),
    at(winner?.body, 'data', 'config', 'description')
  )
  assert.equal(await again.stop(), 0)
})

// ---- one file, one gateway ------------------------------------------------------------------------

test('a file that cannot be read is refused with a sentence', async (t) => {
  await t.test('a folder in its place', async (t) => {
    const folder = await folderFor(t)
    await mkdir(join(folder, 'mcp_settings.json'))
    await assertRefusesToStart(await spawnHub(t, { folder, wait: false }))
    assert.ok((await stat(join(folder, 'mcp_settings.json'))).isDirectory())
  })

  await t.test('no right to read it', { skip: process.getuid?.() === 0 ? 'root may read anything' : false }, async (t) => {
    const folder = await folderFor(t, settings({}))
    await chmod(join(folder, 'mcp_settings.json'), 0)
    await assertRefusesToStart(await spawnHub(t, { folder, wait: false }))
  })

  await t.test('broken, and its .bak as well: both stay as they are', async (t) => {
    const folder = await folderFor(t)
    const file = join(folder, 'mcp_settings.json')
    await writeFile(file, '{"mcpServers": {"a": {')
    await writeFile(`${file}.bak`, '{"mcpServers": ')
    await assertRefusesToStart(await spawnHub(t, { folder, wait: false }))
    assert.equal(await readFile(file, 'utf8'), '{"mcpServers": {"a": {')
    assert.equal(await readFile(`${file}.bak`, 'utf8'), '{"mcpServers": ')
  })
})

test('a second process on the same file refuses to start', async (t) => {
  const folder = await folderFor(t, settings({}))
  const first = await spawnHub(t, { folder })
  await until(async () => Array.isArray((await onDisk(first)).users), 'no first admin')
  const before = await readFile(first.settingsPath)
  const second = await spawnHub(t, { folder, wait: false })
  await assertRefusesToStart(second)
  assert.match(second.output(), new RegExp(`process|already|${first.pid}`, 'i'))
  assert.deepEqual(await readFile(first.settingsPath), before)
  await ok(first, 'POST', '/servers', { name: 'still', config: parked() })
  assert.equal(await first.stop(), 0)
  const third = await spawnHub(t, { folder })
  assert.deepEqual(names(await all(third, '/servers')), ['still'])
})

// ---- edits on disk --------------------------------------------------------------------------------

test('an edit on disk touches only what it changes', async (t) => {
  const fake = await startUpstream(t)
  const hub = await spawnHub(t, {
    env: { ADMIN_PASSWORD: 'x' },
    settings: settings(
      { edited: STDIO, other: STDIO, remote: { type: 'streamable-http', url: fake.url } },
      { groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'team', servers: ['edited', 'other'] }] }
    )
  })
  await connected(hub, 3)
  const url = `${hub.url}/mcp`
  const pid = async (server: string): Promise<string> => text(await (await Session.open(`${url}/${server}`)).call('pid'))
  const sessions = {
    global: await Session.open(url),
    other: await Session.open(`${url}/other`),
    remote: await Session.open(`${url}/remote`)
  }
  const streams = { global: await sessions.global.listen(), other: await sessions.other.listen(), remote: await sessions.remote.listen() }
  const before = { edited: await pid('edited'), other: await pid('other'), remote: fake.count('initialize') }
  assert.ok((await sessions.global.tools()).length > 3)
  await sleep(500)
  const untouched = async (): Promise<void> => {
    assert.equal(await pid('other'), before.other, 'the other child')
    assert.equal(text(await sessions.other.call('pid')), before.other)
    assert.equal(text(await sessions.remote.call('echo', { message: 'm' })), 'm')
    assert.equal(fake.count('initialize'), before.remote, 'the other link')
    assert.deepEqual([changed(streams.other), changed(streams.remote), streams.other.ended, streams.remote.ended], [0, 0, false, false])
  }

  for (const how of ['write', 'rename'] as const) {
    await t.test(`a server edited by ${how} reconnects alone, within 3 s`, async () => {
      const old = await pid('edited')
      await edit(hub, (content) => { servers(content).edited = { ...STDIO, env: { EDITED: how } } }, how)
      await until(async () => (await pid('edited')) !== old, 'still the old child')
      await untouched()
    })
  }

  await t.test('a server added, changed and removed: clients hear of it', async () => {
    for (const [what, change, holds] of [
      [
        'added',
        (content: Json) => {
          servers(content).added = { url: fake.url, description: 'new' }
        },
        (tools: string[]) => tools.includes('added-echo')
      ],
      [
        'disabled',
        (content: Json) => {
          servers(content).added = { url: fake.url, enabled: false }
        },
        (tools: string[]) => !tools.includes('added-echo')
      ],
      [
        'enabled',
        (content: Json) => {
          servers(content).added = { url: fake.url }
        },
        (tools: string[]) => tools.includes('added-echo')
      ],
      [
        'removed',
        (content: Json) => {
          delete servers(content).added
        },
        (tools: string[]) => !tools.includes('added-echo')
      ]
    ] as const) {
      const heard = changed(streams.global)
      await edit(hub, change)
      await until(() => changed(streams.global) > heard, `no list_changed: ${what}`)
      await until(async () => holds(await sessions.global.tools()), `not in the list: ${what}`)
    }
    assert.equal((await api(hub, 'GET', '/servers/added')).status, 404)
    assert.equal(await pid('other'), before.other)
    assert.deepEqual([changed(streams.other), changed(streams.remote), streams.other.ended, streams.remote.ended], [0, 0, false, false])
  })

  await t.test('groups and keys as well', async () => {
    const team = await Session.open(`${url}/team`)
    const stream = await team.listen()
    assert.ok((await team.tools()).includes('edited-pid'))
    await sleep(300)
    const token = `thk_${'e'.repeat(64)}`
    await edit(hub, (content) => {
      const [group] = content.groups as Json[]
      content.groups = [{ ...group, servers: [{ name: 'other', tools: ['echo'] }] }]
      content.bearerKeys = [
        ...(content.bearerKeys as Json[]),
        bearerKey({ id: '55555555-5555-4555-8555-555555555555', name: 'by hand', token })
      ]
    })
    await until(() => changed(stream) > 0, 'no list_changed')
    assert.deepEqual(await team.tools(), ['other-echo'])
    assert.equal((await send(url, { key: token, body: initialize() })).status, 200)
    const session = await Session.open(url, { key: token })
    const open = await session.listen()
    await edit(hub, (content) => { content.bearerKeys = (content.bearerKeys as Json[]).filter(({ name }) => name !== 'by hand') })
    await until(async () => (await send(url, { key: token, body: initialize() })).status === 401, 'the removed key still works')
    await within('the end of its stream', open.done)
    stream.close()
  })

  await t.test('other white space is no change', async () => {
    const old = await pid('edited')
    const heard = changed(streams.global)
    await writeFile(hub.settingsPath, JSON.stringify(await onDisk(hub), null, 7))
    await sleep(3_300)
    assert.equal(await pid('edited'), old)
    assert.equal(changed(streams.global), heard)
    assert.equal(await pid('other'), before.other)
  })

  await t.test('an edit and a write of the API at the same time: neither is lost in silence', async () => {
    await edit(hub, (content) => { servers(content)['by-hand'] = parked('by hand') })
    const answer = await api(hub, 'POST', '/servers', { name: 'by-api', config: parked('by api') })
    assert.ok(answer.status === 200 || answer.status === 409, answer.text)
    await until(async () => (await api(hub, 'GET', '/servers/by-hand')).status === 200, 'the edit never came')
    const stored = servers(await onDisk(hub))
    assert.equal(at(stored, 'by-hand', 'description'), 'by hand')
    assert.equal('by-api' in stored, answer.status === 200)
  })

  await t.test('a broken edit is ignored and reported, and no write goes over it', async () => {
    const good = await readFile(hub.settingsPath, 'utf8')
    const list = async (): Promise<string> => names(await all(hub, '/servers')).join()
    const held = await list()
    const noise = hub.output().length
    for (const [what, content] of Object.entries({
      truncated: good.slice(0, -20),
      empty: '',
      array: '[]',
      binary: '\u0000\u0001\u0002',
      'a word': '"mcpServers"'
    })) {
      await writeFile(hub.settingsPath, content)
      const bytes = await readFile(hub.settingsPath)
      const answer = await api(hub, 'POST', '/servers', { name: 'over-it', config: parked() })
      assert.equal(answer.status, 409, `${what}: ${answer.text}`)
      assert.equal(at(answer.body, 'success'), false)
      assertPlain(answer.text)
      assert.deepEqual(await readFile(hub.settingsPath), bytes, what)
    }
    await writeFile(hub.settingsPath, good.slice(0, -20))
    await until(
      () => /mcp_settings\.json|settings file/i.test(hub.output().slice(noise)),
      () => `not reported: ${hub.output().slice(noise)}`
    )
    await sleep(1_000)
    assert.equal(await list(), held)
    assert.equal(await pid('other'), before.other)
    assert.ok((await sessions.global.tools()).includes('remote-echo'))
    for (const [method, route, body] of [
      ['DELETE', '/servers/remote', undefined],
      ['POST', '/servers/remote/toggle', { enabled: false }],
      ['POST', '/groups', { name: 'g' }],
      ['POST', '/auth/keys', { name: 'k' }]
    ] as const) { assert.equal((await api(hub, method, route, body)).status, 409, `${method} ${route}`) }
    assert.equal((await api(hub, 'GET', '/servers/remote')).status, 200)
    assert.equal(await readFile(hub.settingsPath, 'utf8'), good.slice(0, -20))
    assert.equal((await fetch(`${hub.url}/health`)).status, 200)

    await writeFile(hub.settingsPath, good)
    await until(
      async () => (await api(hub, 'POST', '/servers', { name: 'after-it', config: parked() })).status === 200,
      'no write after the file was mended'
    )
    assert.equal(at(await onDisk(hub), 'mcpServers', 'after-it', 'description'), 'parked')
    assert.equal(await pid('other'), before.other)
  })

  for (const stream of Object.values(streams)) stream.close()
  assert.equal(await hub.stop(), 0)
})

// ---- files of others ------------------------------------------------------------------------------

test('unknown keys are kept', async (t) => {
  const strange = { deep: [{ er: null }, 'ü', 1.5, { '': '' }], comment: 'mine' }
  const content = settings({ fake: { ...parked(), 'x-note': strange } }, {
    $schema: 'https://example.com/schema.json',
    'x-top': strange,
    groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'team', servers: ['fake'], color: 'red' }],
    systemConfig: { 'x-section': strange, routing: { 'x-route': 7 } },
    users: [{ username: 'admin', password: bcrypt.hashSync('Open-Sesame-1', 4), isAdmin: true, nick: 'boss' }],
    bearerKeys: [bearerKey({ note: 'for tests' })]
  })
  const hub = await spawnHub(t, { settings: content })
  await ok(hub, 'POST', '/servers', { name: 'new', config: parked() })
  await ok(hub, 'POST', '/groups', { name: 'other', servers: ['new'] })
  await ok(hub, 'PUT', '/groups/team', { description: 'changed' })
  await ok(hub, 'POST', '/servers/fake/toggle', { enabled: false })
  const stored = await onDisk(hub)
  assert.equal(stored.$schema, 'https://example.com/schema.json')
  assert.deepEqual(stored['x-top'], strange)
  assert.deepEqual(at(stored, 'mcpServers', 'fake', 'x-note'), strange)
  assert.deepEqual([at(stored, 'groups', 0, 'color'), at(stored, 'groups', 0, 'description')], ['red', 'changed'])
  assert.deepEqual(stored.systemConfig, content.systemConfig)
  assert.deepEqual([at(stored, 'users', 0, 'nick'), at(stored, 'bearerKeys', 0, 'note')], ['boss', 'for tests'])
})

test('a file of MCPHub loads as it is', async (t) => {
  const fake = await startUpstream(t)
  const legacy = `old-${randomBytes(12).toString('hex')}`
  const plainKey = `mcphub-${randomBytes(12).toString('hex')}`
  const hub = await spawnHub(t, {
    settings: {
      mcpServers: {
        local: { ...STDIO, env: { A: 'b' } },
        remote: {
          url: fake.url,
          headers: { 'X-A': 'b' },
          enabled: true,
          owner: 'admin',
          keepAliveInterval: 60_000,
          tools: { nothing: { enabled: false } }
        },
        typed: { type: 'streamable-http', url: fake.url, enabled: false }
      },
      users: [
        { username: 'admin', password: bcrypt.hashSync('Old-Password-1', 10), isAdmin: true },
        { username: 'ann', password: bcrypt.hashSync('Anns-Password-1', 10), isAdmin: false }
      ],
      groups: [
        { id: 'b1946ac9-2492-4d23-8f5e-2d5a3c0b7f11', name: 'tools', description: '', servers: ['local', 'remote'], owner: 'admin' },
        { id: 'b1946ac9-2492-4d23-8f5e-2d5a3c0b7f12', name: 'some', servers: [{ name: 'local', tools: ['echo'] }] }
      ],
      systemConfig: {
        routing: { enableGlobalRoute: true, enableGroupNameRoute: true, enableBearerAuth: true, bearerAuthKey: legacy, skipAuth: false },
        install: { pythonIndexUrl: '', npmRegistry: '', baseUrl: 'http://localhost:3000' },
        smartRouting: { enabled: false, dbUrl: '', openaiApiBaseUrl: '', openaiApiKey: '', openaiApiEmbeddingModel: '' },
        mcpRouter: { apiKey: '', referer: 'https://example.com', title: 'X', baseUrl: '' }
      },
      bearerKeys: [
        {
          id: '88888888-8888-4888-8888-888888888888',
          name: 'plain',
          token: plainKey,
          enabled: true,
          accessType: 'all',
          allowedGroups: [],
          allowedServers: []
        }
      ]
    }
  })
  await connected(hub, 2)
  const login = async (username: string, password: string): Promise<{ status: number, body: unknown }> => {
    const reply = await fetch(`${hub.url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username, password })
    })
    return { status: reply.status, body: await reply.json() }
  }
  const look = async (key: string): Promise<void> => {
    const session = await Session.open(`${hub.url}/mcp/tools`, { key })
    const tools = await session.tools()
    assert.ok(tools.includes('local-echo') && tools.includes('remote-echo'), tools.join(' '))
    assert.equal(text(await session.call('remote-echo', { message: key })), key)
    assert.deepEqual(await (await Session.open(`${hub.url}/mcp/some`, { key })).tools(), ['local-echo'])
    assert.equal((await fetch(`${hub.url}/api/servers`, { headers: { authorization: `Bearer ${key}` } })).status, 200)
  }
  await t.test('its keys and groups', async () => { await look(plainKey) })

  await t.test('its users', async () => {
    assert.equal((await login('admin', 'wrong')).status, 401)
    assert.equal((await login('admin', 'admin123')).status, 401)
    for (const [username, password, isAdmin] of [['admin', 'Old-Password-1', true], ['ann', 'Anns-Password-1', false]] as const) {
      const { status, body } = await login(username, password)
      assert.equal(status, 200, username)
      assert.equal(at(body, 'user', 'isAdmin'), isAdmin)
      const token = String(at(body, 'token'))
      const listed: unknown = await (await fetch(`${hub.url}/api/servers`, { headers: { 'x-auth-token': token } })).json()
      assert.equal(at(listed, 'success'), true)
      if (isAdmin) assert.deepEqual(names(at(listed, 'data')), ['local', 'remote', 'typed'])
    }
    await until(
      async () => (at(await onDisk(hub), 'users') as Json[]).every(({ password }) => !String(password).startsWith('$2')),
      'bcrypt hashes stay after a login'
    )
    for (const [username, password] of [
      ['admin', 'Old-Password-1'],
      ['ann', 'Anns-Password-1']
    ] as const) { assert.equal((await login(username, password)).status, 200, 'with the new hash') }
    const stored = await onDisk(hub)
    assert.ok(!JSON.stringify(stored).includes(plainKey), 'the key is still in plain')
    assert.deepEqual(
      [at(stored, 'systemConfig', 'mcpRouter', 'title'), at(stored, 'systemConfig', 'install', 'baseUrl'), at(stored, 'groups', 0, 'id')],
      ['X', 'http://localhost:3000', 'b1946ac9-2492-4d23-8f5e-2d5a3c0b7f11']
    )
  })

  await t.test('its routing.bearerAuthKey: once a system key named default, then cleared', async () => {
    await look(legacy)
    const keys: unknown = await (await fetch(`${hub.url}/api/auth/keys`, { headers: { authorization: `Bearer ${plainKey}` } })).json()
    assert.equal((at(keys, 'data') as Json[]).filter(({ name, kind }) => name === 'default' && kind === 'system').length, 1)
    assert.ok(!(await readFile(hub.settingsPath, 'utf8')).includes(legacy), 'it is still in plain')
  })
})

// ---- many -----------------------------------------------------------------------------------------

test('10,000 servers and 1,000 groups', async (t) => {
  const many: Json = {}
  for (let n = 0; n < 10_000; n++) {
    many[`server-${n}`] = n % 2 === 0 ? parked(`number ${n}`) : { ...STDIO, enabled: false, env: { TOKEN: `secret-${n}` } }
  }
  const groups = Array.from({ length: 1_000 }, (_, n) => ({
    id: `33333333-3333-4333-8333-${String(n).padStart(12, '0')}`,
    name: `group-${n}`,
    servers: Array.from({ length: 5 }, (_, m) => `server-${(n * 5 + m) % 10_000}`)
  }))
  const start = performance.now()
  const hub = await spawnHub(t, { settings: settings(many, { groups }), env: { ADMIN_PASSWORD: 'x' } })
  assert.equal(at((await api(hub, 'GET', '/servers?limit=1')).body, 'data', 0, 'name'), 'server-0')
  const took = performance.now() - start
  const median = async (what: () => Promise<void>): Promise<number> => {
    const times: number[] = []
    for (let n = 0; n < 9; n++) {
      const begin = performance.now()
      await what()
      times.push(performance.now() - begin)
    }
    return times.sort((a, b) => a - b)[4] ?? 0
  }
  const page = await median(async () => { assert.equal((await ok(hub, 'GET', '/servers?limit=100')).length, 100) })
  const groupPage = await median(async () => { assert.equal((await ok(hub, 'GET', '/groups?limit=100')).length, 100) })
  let made = 0
  const post = await median(async () => { await ok(hub, 'POST', '/servers', { name: `made-${made++}`, config: parked() }) })
  t.comment(
    `start ${Math.round(took)} ms; a page of servers ${Math.round(page)} ms, of groups ${Math.round(groupPage)} ms; a write ` +
    `${Math.round(post)} ms`
  )
  assert.ok(took < 8_000, `start: ${took} ms`)
  assert.ok(page < 200, `a page of servers: ${page} ms`)
  assert.ok(groupPage < 200, `a page of groups: ${groupPage} ms`)
  assert.ok(post < 200, `a write: ${post} ms`)
  const session = await Session.open(`${hub.url}/mcp`)
  assert.deepEqual(await session.tools(), [])
  assert.equal(Object.keys(servers(await onDisk(hub))).length, 10_009)
  assert.equal(await within('the exit', hub.stop()), 0)
})
