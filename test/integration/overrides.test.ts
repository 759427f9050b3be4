// Overrides of tools, prompts and resources: what survives reconnect, rename and restart, and who is told of a change.
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { test, type Test } from 'tap'
import { at, names, plain, Session, text, type Json, type Stream, silence } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { startHub, until } from '../helpers/hub.ts'
import { Api, enc, list, NOTE, offers, refused, started } from '../helpers/management.ts'

const ODD = [
  'echo', 'with space', 'dot.dot', '.hidden', 'a/b/c', '日本語', '__proto__', 'constructor', 'toggle', 'per%20cent%',
  'q?x=1&y#z', 'back\\slash', '"quoted"', 'plus+and;semi', 'x'.repeat(300)
]
const URIS = [
  NOTE, 'https://example.com/a b?x=1&y=%20#z', 'file:///etc/../x', '__proto__', 'mailto:a@b.c', 'urn:日本語',
  `fault://long/${'/'.repeat(2_048 - 13)}`, `fault://percent/${'%25'.repeat(677)}x`
]

/** What is said of every item, by the item's kind. */
const kinds = [['tools', 'tools/list', ODD], ['prompts', 'prompts/list', ODD], ['resources', 'resources/list', URIS]] as const

for (const [where, env] of [
  ['the file', async () => ({})],
  ['PostgreSQL', async (t: Test) => ({ DB_URL: (await database(t)).url })]
] as [string, (t: Test) => Promise<Record<string, string>>][]) {
  test(`overrides survive reconnect, rename and restart, on ${where}`, async (t) => {
    assert.ok(URIS.every((uri) => uri.length <= 2_048) && URIS.filter((uri) => uri.length === 2_048).length === 2,
      URIS.map((uri) => uri.length).join())
    const fake = await startUpstream(t, {
      tools: ODD.map((name) => tool(name, { description: `Upstream ${name}` })),
      prompts: ODD.map((name) => ({ name, description: `Upstream ${name}` })),
      resources: URIS.map((uri, n) => ({ uri, name: `resource ${n}`, description: `Upstream ${uri}` }))
    })
    const more = await env(t)
    const { hub, admin } = await started(t, {}, {}, { env: more })
    t.after(async () => { await rm(hub.folder, { recursive: true, force: true }) })
    await admin.add('odd', { url: fake.url })
    const connections = fake.count('initialize')
    const key = (item: Json): string => String(item.uri ?? item.name)

    await t.test('set, side by side: no write is lost', async () => {
      const described = kinds.flatMap(([kind, , all]) => all.map(async (name, n) => {
        const item = await admin.ok('PUT', `/servers/odd/${kind}/${enc(name)}/description`, { description: `Ours ${n}` })
        assert.deepEqual([key(item), item.description, item.enabled, item.overridden], [name, `Ours ${n}`, true, true])
      }))
      await Promise.all([
        ...described,
        ...['one', 'two', 'three'].map(async (name) => await admin.ok('POST', '/groups', { name, servers: ['odd'] }, 201)),
        admin.ok('PUT', '/system-config', { install: { npmRegistry: 'https://npm.example.com' } }),
        admin.ok('PUT', '/system-config', { toolResultCompression: { minTokens: 100 } })
      ])
      const { install, toolResultCompression } = await admin.system()
      assert.deepEqual([names(list(await admin.ask('GET', '/groups'))).sort(), at(install, 'npmRegistry'), at(toolResultCompression, 'minTokens')],
        [['one', 'three', 'two'], 'https://npm.example.com', 100])
    })

    await t.test('disabled, one by one', async () => {
      for (const [kind, , all] of kinds) {
        for (const name of all.filter((_, n) => n % 2 === 1)) {
          const item = await admin.ok('POST', `/servers/odd/${kind}/${enc(name)}/toggle`, { enabled: false })
          assert.equal(item.enabled, false, name)
        }
      }
    })

    const look = async (api: Api, name: string): Promise<void> => {
      const record = await api.server(name)
      const session = await Session.open(`${api.hub.url}/mcp/${enc(name)}`)
      for (const [kind, method, all] of kinds) {
        const expected = all.map((name, n) => [name, n % 2 === 0, `Ours ${n}`, true])
        assert.deepEqual(
          (record[kind] as Json[]).map((item) => [key(item), item.enabled, item.description, item.overridden]),
          expected,
          kind
        )
        assert.deepEqual((await session.list(method, kind)).map((item) => [key(item), item.description]),
          expected.filter(([, enabled]) => enabled).map(([name, , description]) => [name, description]), kind)
      }
      assert.equal(text(await session.call('__proto__', { message: 'runs' })), 'runs')
      refused(await api.ask('POST', `/tools/call/${enc(name)}`, { toolName: 'with space' }), 404, 'disabled')
    }

    await t.test('seen at once, without a new connection upstream', async () => {
      await look(admin, 'odd')
      assert.equal(fake.count('initialize'), connections)
    })

    await t.test('a longer URI, an unknown one, or half of one: 404 or 400, in the envelope', async () => {
      for (const uri of [`fault://${'x'.repeat(2_041)}`, 'fault://nope', 'fault', '%', '%2', '']) {
        const answer = await admin.ask('POST', `/servers/odd/resources/${enc(uri)}/toggle`, { enabled: false })
        assert.ok([400, 404, 414].includes(answer.status), answer.text)
        refused(answer, answer.status, uri)
      }
      const half = await plain(`http://127.0.0.1:${hub.port}/api/servers/odd/resources/%E6%97/toggle`, {
        method: 'POST',
        headers: { ...admin.headers, 'content-type': 'application/json' },
        body: '{"enabled":false}'
      })
      assert.deepEqual([half.status, at(JSON.parse(half.body), 'success')], [400, false])
    })

    await t.test('after a reload, and when the upstream has forgotten its sessions', async () => {
      await admin.ok('POST', '/servers/odd/reload')
      await until(() => fake.count('initialize') > connections, 'no new connection')
      await admin.has('odd', 'connected')
      await look(admin, 'odd')
      fake.expire()
      await until(
        async () => {
          await look(admin, 'odd')
          return true
        },
        'not the same after the upstream lost its sessions'
      )
    })

    await t.test('after an update of the config that says nothing of them', async () => {
      await admin.ok('PUT', '/servers/odd', { config: { url: fake.url, description: 'changed' } })
      await admin.has('odd', 'connected')
      await look(admin, 'odd')
    })

    await t.test('after a rename', async () => {
      await admin.ok('PUT', '/servers/odd', { config: { url: fake.url }, newName: 'even odder' })
      await admin.has('even odder', 'connected')
      await look(admin, 'even odder')
    })

    await t.test('after a restart, also while the upstream is away', async (t) => {
      assert.equal(await hub.stop(), 0)
      const second = await startHub(t, { folder: hub.folder, env: more })
      const again = await Api.login(second)
      await again.has('even odder', 'connected')
      await look(again, 'even odder')
    })

    await t.test('reset, each is as the upstream says it, and nothing of it stays stored', async (t) => {
      const third = await startHub(t, { folder: hub.folder, env: more })
      const again = await Api.login(third)
      await again.has('even odder', 'connected')
      await Promise.all(kinds.flatMap(([kind, , all]) => all.map(async (name, n) => {
        const route = `/servers/even%20odder/${kind}/${enc(name)}`
        const data = await again.ok('DELETE', `${route}/description`)
        assert.deepEqual([key(data), data.description], [name, `Upstream ${name}`])
        if (n % 2 === 1) assert.equal((await again.ok('POST', `${route}/toggle`, { enabled: true })).enabled, true)
      })))
      const record = await again.server('even odder')
      for (const [kind, , all] of kinds) {
        assert.deepEqual(
          (record[kind] as Json[]).map((item) => [key(item), item.enabled, item.description, item.overridden === true]),
          all.map((name) => [name, true, `Upstream ${name}`, false]),
          kind
        )
      }
      assert.ok(!JSON.stringify(await again.ok('GET', '/mcp-settings/export')).includes('Ours '), 'a description that was reset')
    })
  })
}

test('what an override tells, and whom', async (t) => {
  const fake = await startUpstream(t, offers)
  const { hub, admin } = await started(t)
  // Has nothing in common with the first: a URI that both list would stay in the lists.
  const beta = await startUpstream(t, { prompts: [{ name: 'part' }], resources: [{ name: 'other', uri: 'fault://other' }] })
  await admin.add('alpha', { url: fake.url })
  await admin.add('beta', { url: beta.url })
  await admin.ok('POST', '/groups', { name: 'both', servers: [{ name: 'alpha', tools: ['echo'] }, 'beta'] }, 201)
  await admin.ok('POST', '/groups',
    { name: 'without', servers: [{ name: 'alpha', tools: ['typed'], prompts: [], resources: [] }, 'beta'] }, 201)
  const streams = new Map<string, Stream>()
  const sessions = new Map<string, Session>()
  for (const route of ['', '/alpha', '/both', '/without', '/beta']) {
    const session = await Session.open(`${hub.url}/mcp${route}`)
    for (const method of ['tools/list', 'prompts/list', 'resources/list']) await session.ask(method)
    sessions.set(route, session)
    streams.set(route, await session.listen())
  }
  const connections = fake.count('initialize')
  const seeing = ['', '/alpha', '/both']
  const told = (route: string): unknown[] => (streams.get(route)?.messages ?? []).map(({ method }) => method)

  for (const [kind, name] of [['tools', 'echo'], ['prompts', 'greet'], ['resources', NOTE]] as const) {
    await t.test(`${kind}: those who see it are told once of each change, and only they; what changes nothing is no news`, async () => {
      const route = `/servers/alpha/${kind}/${enc(name)}`
      const before = new Map([...streams.keys()].map((one) => [one, told(one).length]))
      const news = (one: string): unknown[] => told(one).slice(before.get(one))
      for (const [n, act] of [
        async () => await admin.ok('POST', `${route}/toggle`, { enabled: true }),
        async () => await admin.ok('DELETE', `${route}/description`),
        async () => await admin.ok('POST', `${route}/toggle`, { enabled: false }),
        async () => await admin.ok('POST', `${route}/toggle`, { enabled: true }),
        async () => await admin.ok('PUT', `${route}/description`, { description: 'In other words' }),
        async () => await admin.ok('DELETE', `${route}/description`)
      ].entries()) {
        await act()
        // The first two change nothing.
        for (const one of seeing) await until(() => news(one).length >= n - 1, () => `no news on /mcp${one}: ${JSON.stringify(news(one))}`)
      }
      await silence(200)
      const each = Array.from({ length: 4 }, () => `notifications/${kind}/list_changed`)
      for (const one of streams.keys()) assert.deepEqual(news(one), seeing.includes(one) ? each : [], `on /mcp${one}`)
    })
  }

  await t.test('a call in flight is not cut off, and the upstream is not connected again', async () => {
    assert.equal(fake.count('initialize'), connections)
    assert.equal(text(await (sessions.get('/alpha') ?? assert.fail()).call('echo', { message: 'still here' })), 'still here')
  })
  for (const stream of streams.values()) stream.close()
})
