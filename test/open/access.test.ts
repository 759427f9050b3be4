// Who reaches which tools over plain HTTP.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { loggedIn, managed } from '../fakes/replica.ts'
import { at, connected, failure, KEY, OTHER, otherKey, Session, settings, type Json } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { document, echoArguments, get, operations, post, refused, run, valid } from '../helpers/open-tools.ts'
import { served } from '../helpers/served.ts'
import { gate } from '../helpers/wire.ts'

test('credentials are optional: each caller reaches what it may, and the rest is not there', async (t) => {
  const fake = await startUpstream(t, { tools: [tool('echo')], on: echoArguments })
  const at1 = (more: Json): Json => ({ url: fake.url, ...more })
  const third = `thk_${'c'.repeat(64)}`
  const fourth = `thk_${'d'.repeat(64)}`
  const fifth = `thk_${'e'.repeat(64)}`
  const file = settings({
    shared: at1({ visibility: 'public', owner: 'ann' }),
    unmarked: at1({}),
    // A mark of former versions.
    formerly: at1({ owner: 'root', visibilityDefaulted: true, visibility: 'private' }),
    shut: at1({ visibility: 'private' }),
    grouped: at1({ visibility: 'group', owner: 'root' }),
    anns: at1({ owner: 'ann', visibility: 'private' }),
    annsnew: at1({ owner: 'ann' }),
    bobs: at1({ owner: 'bob', visibility: 'private' })
  }, {
    users: [{ username: 'root', password: 'x', isAdmin: true }, { username: 'ann', password: 'x' }, { username: 'bob', password: 'x' }],
    groups: [{ id: 'g-shut', name: 'closed', servers: ['shut', 'bobs'] }, { id: 'g-mixed', name: 'mixed', servers: ['shut', 'shared'] }]
  })
  const keys = [
    ...file.bearerKeys as Json[],
    otherKey({ kind: 'user', owner: 'ann' }),
    otherKey({ id: '33333333-3333-4333-8333-333333333333', token: third, accessType: 'servers', allowedServers: ['shut', 'bobs'] }),
    otherKey({ id: '44444444-4444-4444-8444-444444444444', token: fourth, accessType: 'groups', allowedGroups: ['closed'] }),
    otherKey({ id: '55555555-5555-4555-8555-555555555555', token: fifth, enabled: false })
  ]
  // Admins' servers first, then users'.
  const every = ['unmarked', 'formerly', 'shut', 'grouped', 'shared', 'anns', 'annsnew', 'bobs']
  const inOrder = (names: string[]): string[] => every.filter((name) => names.includes(name))
  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })
  const anyone = { public: ['shared'], all: every, off: [] }

  for (const reach of ['public', 'all', 'off'] as const) {
    await t.test(`PUBLIC_TOOLS=${reach}`, async (t) => {
      // `public` is the default.
      const hub = await startHub(t, { env: reach === 'public' ? {} : { PUBLIC_TOOLS: reach }, settings: { ...file, bearerKeys: keys } })
      await connected(hub, every.length)
      await until(() => hub.output().includes('open to anyone'), 'nothing was told of what is open')
      assert.match(
        hub.output(),
        new RegExp(
          `open to anyone, without credentials: ${anyone[reach].length}, of ${anyone[reach].length} servers .PUBLIC_TOOLS=${reach}`
        )
      )
      const nobody: Array<Record<string, string>> = [
        {}, bearer('nope'), bearer(fifth), { 'x-auth-token': 'nope' }, { authorization: 'Basic abc' }
      ]
      const callers: Array<[Record<string, string>, string[]]> = [
        ...nobody.map((headers): [Record<string, string>, string[]] => [headers, anyone[reach]]),
        [bearer(KEY), every],
        [bearer(OTHER), inOrder([...anyone[reach], 'shared', 'anns', 'annsnew'])],
        [bearer(third), inOrder([...anyone[reach], 'shut', 'bobs'])],
        [bearer(fourth), anyone[reach]]
      ]
      for (const [headers, names] of callers) {
        const closed = reach === 'off' && nobody.includes(headers)
        if (closed) {
          for (const path of [
            '/api/openapi.json', '/api/openapi.yaml', '/api/openapi/servers', '/api/openapi/stats',
            '/api/shared/openapi.json', '/api/tools/shared/echo', '/api/nope/openapi.json'
          ]) { refused(await get(hub, path, headers), 404) }
          continue
        }
        const whole = await document(hub, '/api/openapi.json', headers)
        if (headers === nobody[0]) await valid(whole)
        assert.deepEqual(operations(whole).map(({ server }) => server), names)
        assert.deepEqual(at(whole, 'tags'), names.map((name) => ({ name })))
        assert.deepEqual(JSON.parse((await get(hub, '/api/openapi/servers', headers)).text), { success: true, data: names })
        assert.deepEqual(
          at(JSON.parse((await get(hub, '/api/openapi/stats', headers)).text), 'data', 'serverBreakdown'),
          names.map((name) => ({ name, toolCount: 1, status: 'connected' }))
        )
        assert.equal((await document(hub, `/api/openapi.json?servers=${every.join()}`, headers)).paths !== undefined, true)
        for (const operation of operations(whole)) assert.equal((await run(hub, whole, operation, true, headers)).status, 200, operation.id)
        const [noTool, noDocument] = [
          (await get(hub, '/api/tools/nowhere/echo', headers)).text,
          (await get(hub, '/api/nowhere/openapi.json', headers)).text
        ]
        for (const name of every) {
          const [called, described] = [
            await get(hub, `/api/tools/${name}/echo`, headers),
            await get(hub, `/api/${name}/openapi.json`, headers)
          ]
          assert.deepEqual(
            [called.status, described.status],
            names.includes(name) ? [200, 200] : [404, 404],
            `${name} ${JSON.stringify(headers)}`
          )
          if (!names.includes(name)) {
            assert.deepEqual([called, described].map(({ text }) => text.replace(name, 'nowhere')), [noTool, noDocument])
          }
        }
      }
      if (reach === 'all') return
      // A group shows what its caller may see, and is not there where that is nothing; a key for the group opens it.
      const of = async (name: string, headers: Record<string, string>): Promise<string[] | number> => {
        const answer = await get(hub, `/api/${name}/openapi.json`, headers)
        return answer.status === 200 ? operations(JSON.parse(answer.text)).map(({ server }) => server) : answer.status
      }
      assert.deepEqual(
        [await of('closed', {}), await of('mixed', {}), await of('closed', bearer(OTHER)), await of('mixed', bearer(OTHER))],
        [404, reach === 'off' ? 404 : ['shared'], 404, ['shared']]
      )
      assert.deepEqual(
        [await of('closed', bearer(fourth)), await of('mixed', bearer(fourth)), await of('closed', bearer(third))],
        [['shut', 'bobs'], reach === 'off' ? 404 : ['shared'], ['shut', 'bobs']]
      )
      const group = await document(hub, '/api/closed/openapi.json', bearer(fourth))
      assert.equal((await get(hub, '/api/closed/tools/shut/echo', bearer(fourth))).status, 200)
      assert.equal((await get(hub, '/api/tools/shut/echo?group=closed', bearer(fourth))).status, 200)
      assert.equal(
        (
          await get(
            hub,
            new URL(`${String(at(group, 'paths', '/tools/shut/echo', 'servers', 0, 'url'))}/tools/shut/echo`, hub.url).pathname,
            bearer(fourth)
          )
        ).status,
        200
      )
      for (const path of ['/api/tools/shut/echo', '/api/mixed/tools/shut/echo', '/api/closed/tools/unmarked/echo']) {
        refused(await get(hub, path, bearer(fourth)), 404)
      }
      refused(await get(hub, '/api/closed/tools/shut/echo'), 404)
      // Not even a good token makes an argument a credential.
      assert.equal((await get(hub, `/api/tools/shut/echo?token=${KEY}`)).status, 404)
    })
  }
})

test('a login counts in x-auth-token, and a page that is allowed may call', async (t) => {
  const fake = await startUpstream(t, { tools: [tool('echo')], on: echoArguments })
  const hub = await startHub(t, {
    env: { ADMIN_PASSWORD: 'Open-Sesame-1', ALLOWED_ORIGINS: 'https://app.example' },
    settings: settings({ shut: { url: fake.url, visibility: 'private' }, open: { url: fake.url, visibility: 'public' } })
  })
  await connected(hub, 2)
  const login = await loggedIn(hub, 'admin', 'Open-Sesame-1')
  const token = login['x-auth-token']
  assert.equal((await get(hub, '/api/tools/shut/echo', login)).status, 200)
  assert.equal((await get(hub, `/api/tools/shut/echo?token=${token}`)).status, 404)
  assert.deepEqual(at(JSON.parse((await get(hub, `/api/tools/open/echo?token=${token}`)).text), 'structuredContent', 'args'), {
    token
  })
  assert.equal((await get(hub, '/api/tools/open/echo', { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' })).status, 200)
  const secured = await document(hub, '/api/openapi.json', login)
  await valid(secured)
  assert.deepEqual(at(secured, 'security'), [{ bearerAuth: [] }, { login: [] }])
  assert.deepEqual(at(await document(hub), 'security'), [{}, { bearerAuth: [] }], 'without credentials, too')
})
test('a call that waits or runs when access is withdrawn ends without an answer of the tool', async (t) => {
  const answer = gate()
  const fake = await startUpstream(t, {
    tools: [tool('slow')],
    on: async ({ method }) => {
      if (method !== 'tools/call') return undefined
      await answer.promise
      return { content: [] }
    }
  })
  const hub = await startHub(t, {
    env: { ADMIN_PASSWORD: 'Open-Sesame-1' },
    settings: settings({ one: { url: fake.url, visibility: 'public' }, two: { url: fake.url, visibility: 'public' } })
  })
  await connected(hub, 2)
  await managed(hub, 'POST', '/users', { username: 'eve', password: 'Open-Sesame-2' })
  const login = await loggedIn(hub, 'eve', 'Open-Sesame-2')
  const calls = [
    get(hub, '/api/tools/one/slow'),
    post(hub, '/api/tools/call/one', { toolName: 'slow' }, login),
    post(hub, '/api/tools/call/two', { toolName: 'slow' }, login),
    get(hub, '/api/tools/two/slow')
  ] as const
  await until(() => fake.received.filter(({ message }) => message.method === 'tools/call').length === 4)
  await managed(hub, 'PUT', '/servers/one', { config: { url: fake.url, visibility: 'private' } })
  for (const call of calls.slice(0, 2)) assert.match((await call).text, /access was withdrawn. The request may have run/)
  await managed(hub, 'DELETE', '/users/eve')
  assert.equal((await calls[2]).status, 401)
  answer.open()
  assert.equal((await calls[3]).status, 200, 'who may still call has the answer')
  assert.equal(fake.received.filter(({ message }) => message.method === 'notifications/cancelled').length, 3)
})

test('a call that runs when its server is disabled, renamed or removed fails with the words that it may have run', async (t) => {
  const fake = await startUpstream(t, { tools: [tool('slow')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const config = { url: fake.url, visibility: 'public' }
  const changes: Record<string, [string, string, Json?]> = {
    disabled: ['POST', '/toggle', { enabled: false }], renamed: ['PUT', '', { config, newName: 'other' }], removed: ['DELETE', '']
  }
  const hub = await served(t, Object.fromEntries(Object.keys(changes).map((name) => [name, config])))
  const session = await Session.open(`${hub.url}/mcp`)
  for (const [name, [method, path, body]] of Object.entries(changes)) {
    const before = fake.count('tools/call')
    const calls = [get(hub, `/api/tools/${name}/slow`), post(hub, `/api/tools/call/${name}`, { toolName: 'slow' }, { authorization: `Bearer ${KEY}` })]
    const merged = session.request('tools/call', { name: `${name}-slow`, arguments: {} })
    await until(() => fake.count('tools/call') === before + 3)
    await managed(hub, method, `/servers/${name}${path}`, body)
    for (const { status, text } of await Promise.all(calls)) assert.match(`${status} ${text}`, /^502 .*The request may have run/)
    assert.match(failure(await merged), /The request may have run/)
  }
})
