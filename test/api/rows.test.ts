// Every row of the specification's tables of the management API: what it answers, to whom, and what it refuses.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at, names, text, type Json } from '../helpers/client.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import {
  Api, deleted, enc, envelope, fine, groupRecord, list, members, NOTE, offers, onDisk, promptRecord, refused,
  resourceRecord, serverRecord, started, toolRecord, type Extra
} from '../helpers/management.ts'

interface Row {
  /** Who may: everybody with an account, who sees the thing, who manages it, or admins. */
  who: 'anybody' | 'sees' | 'manages' | 'admin'
  /** Bodies that are 400 for whoever may, on what is there; undefined: no body at all. */
  bad?: unknown[]
  /** Parameters that name nothing there: 404 for whoever may. */
  absent?: Record<string, string>[]
  /** What goes well, and what it answers. */
  good: (admin: Api, bob: Api, url: string) => Promise<void>
}

const noObject = [undefined, null, [], 'text', 7, {}]
const noToggle = [...noObject, { enabled: 'false' }, { enabled: 0 }, { enabled: null }, { enable: true }]
const noDescription = [...noObject, { description: 7 }, { description: null }, { description: ['x'] }, { text: 'x' }]

/** The three rows of one kind of item. */
const itemRows = (
  kind: 'tools' | 'prompts' | 'resources',
  parameter: string,
  key: string,
  own: string,
  record: (value: unknown) => void
): Record<string, Row> => {
  const route = `/servers/alpha/${kind}/${enc(key)}`
  const find = async (api: Api): Promise<Json> =>
    (await api.server('alpha'))[kind] instanceof Array
      ? (((await api.server('alpha'))[kind] as Json[]).find((item) => item.name === key || item.uri === key) ?? {})
      : {}
  const absent = [{ [parameter]: 'nope' }, { [parameter]: '__proto__' }, { [parameter]: 'constructor' }]
  return {
    [`POST /servers/:serverName/${kind}/:${parameter}/toggle`]: {
      who: 'manages',
      bad: noToggle,
      absent,
      async good (admin) {
        for (const enabled of [false, false, true, true]) {
          const data = envelope(await admin.ask('POST', `${route}/toggle`, { enabled }), 200, 'message')
          record(data)
          assert.equal(data.enabled, enabled)
          assert.equal((await find(admin)).enabled, enabled)
        }
      }
    },
    [`PUT /servers/:serverName/${kind}/:${parameter}/description`]: {
      who: 'manages',
      bad: noDescription,
      absent,
      async good (admin) {
        for (const description of ['In other words', 'In wörds – 日本語', 'x'.repeat(4_000)]) {
          const data = envelope(await admin.ask('PUT', `${route}/description`, { description }), 200, 'message')
          record(data)
          assert.deepEqual([data.description, data.overridden, data.enabled], [description, true, true])
          assert.deepEqual(await find(admin), data)
        }
      }
    },
    [`DELETE /servers/:serverName/${kind}/:${parameter}/description`]: {
      who: 'manages',
      absent,
      async good (admin) {
        for (let n = 0; n < 2; n++) {
          const data = envelope(await admin.ask('DELETE', `${route}/description`), 200, 'message')
          record(data)
          assert.deepEqual([data.description, data.enabled], [own, true])
          assert.notEqual(data.overridden, true)
          assert.deepEqual(await find(admin), data)
        }
      }
    }
  }
}

const noServers = [...noObject, { servers: 'alpha' }, { servers: {} }, { servers: null }]
const badMembers = [
  { servers: ['nope'] },
  { servers: [7] },
  { servers: [null] },
  { servers: [{}] },
  { servers: [{ name: 'nope' }] },
  { servers: [{ name: 'alpha', tools: 'some' }] },
  { servers: [{ name: 'alpha', prompts: 7 }] },
  { servers: [{ name: 'alpha', resources: [7] }] },
  { servers: [{ name: 'alpha', alias: 7 }] },
  { servers: ['__proto__'] }
]
const whole = { tools: 'all', prompts: 'all', resources: 'all' }

/** Where nobody listens. */
const url = 'http://127.0.0.1:9/mcp'

/** What is no config, or has a member of a wrong type. */
const badConfigs: unknown[] = [
  null, 'text', [], {}, { type: 'carrier-pigeon', url }, { type: 'stdio' }, { type: 'stdio', url }, { type: 'sse' },
  { type: 'streamable-http', command: 'node' }, { command: 7 }, { command: '' }, { command: 'node', args: '--version' },
  { command: 'node', args: [7] }, { command: 'node', env: { A: {} } }, { command: 'node', env: [] }, { url: 7 }, { url: '' },
  { url: 'nonsense' }, { url, headers: { a: {} } }, { url, headers: 'a: b' }, { url, visibility: 'everyone' }, { url, enabled: 'yes' },
  { url, keepAliveInterval: 'often' }, { url, isolation: 'none' }, { url, options: { timeout: 'long' } }, { url, passthroughHeaders: 'x-a' },
  { url, passthroughHeaders: [7] }, { url, sharedWithUsers: 'bob' }, { url, description: 7 }
]

/** What is asked of each row. */
const table: Record<string, Row> = {
  'GET /servers': {
    who: 'anybody',
    async good (admin, bob) {
      const answer = await admin.ask('GET', '/servers')
      members(answer.body, ['success', 'data'])
      for (const record of list(answer)) serverRecord(record)
      assert.deepEqual(names(list(answer)), ['alpha', 'closed', 'own'], 'in the order of the configuration')
      assert.deepEqual(names(list(await bob.ask('GET', '/servers'))), ['alpha', 'own'])
    }
  },
  'GET /servers/:name': {
    who: 'sees',
    async good (admin, bob) {
      for (const api of [admin, bob]) {
        const record = envelope(await api.ask('GET', '/servers/alpha'), 200, 'no message')
        serverRecord(record)
        assert.deepEqual([record.name, record.status, record.error], ['alpha', 'connected', null])
        for (const one of record.tools as Json[]) toolRecord(one)
        for (const one of record.prompts as Json[]) promptRecord(one)
        for (const one of record.resources as Json[]) resourceRecord(one)
        assert.deepEqual(names(record.tools), ['echo', 'two-words', 'typed'])
      }
    }
  },
  'POST /servers': {
    who: 'anybody',
    bad: [
      ...noObject, { name: 'x' }, { config: { url } }, { name: 7, config: { url } }, { name: 'alpha', config: { url } },
      { name: 'batch', config: { url } }, ...badConfigs.map((config) => ({ name: 'x', config }))
    ],
    async good (admin) {
      const record = envelope(await admin.ask('POST', '/servers', { name: 'fresh', config: { url, enabled: false } }), 200, 'message')
      serverRecord(record)
      assert.deepEqual(
        [
          record.name, record.status, record.tools, at(record, 'config', 'owner'), at(record, 'config', 'visibility')
        ],
        ['fresh', 'disabled', [], 'admin', 'private']
      )
      await admin.ok('DELETE', '/servers/fresh')
    }
  },
  'POST /servers/batch': {
    who: 'anybody',
    bad: [...noServers, { servers: [] }],
    async good (admin) {
      const config = { url, enabled: false }
      const all = await admin.ask('POST', '/servers/batch', {
        servers: [{ name: 'one', config }, { name: 'two', config }]
      })
      const data = fine(all)
      members(all.body, ['success', 'data'], ['message'])
      members(data, ['results', 'successCount', 'failureCount'])
      assert.deepEqual(data, {
        results: [{ name: 'one', success: true }, { name: 'two', success: true }],
        successCount: 2,
        failureCount: 0
      })
      for (const name of ['one', 'two']) await admin.ok('DELETE', `/servers/${name}`)
    }
  },
  'PUT /servers/:name': {
    who: 'manages',
    bad: [
      ...noObject, ...badConfigs.map((config) => ({ config })), { config: { url }, newName: 7 }, { config: { url }, newName: '' }, { config: { url }, newName: 'own' },
      { config: { url }, newName: 'call' }, { config: { url }, newName: 'a/b' }
    ],
    async good (admin, bob, url) {
      const record = envelope(await admin.ask('PUT', '/servers/own', { config: { url, description: 'changed' } }), 200, 'message')
      serverRecord(record)
      assert.deepEqual([record.name, at(record, 'config', 'description'), at(record, 'config', 'owner')], ['own', 'changed', 'bob'])
      await admin.has('own', 'connected')
      serverRecord(await bob.server('own'))
    }
  },
  'DELETE /servers/:name': {
    who: 'manages',
    async good (admin) {
      await admin.add('gone', { url, enabled: false })
      deleted(await admin.ask('DELETE', '/servers/gone'))
      refused(await admin.ask('GET', '/servers/gone'), 404)
      refused(await admin.ask('DELETE', '/servers/gone'), 404)
    }
  },
  'POST /servers/:name/toggle': {
    who: 'manages',
    bad: noToggle,
    async good (admin) {
      const off = envelope(await admin.ask('POST', '/servers/own/toggle', { enabled: false }), 200, 'message')
      serverRecord(off)
      assert.deepEqual([off.status, at(off, 'config', 'enabled')], ['disabled', false])
      const on = envelope(await admin.ask('POST', '/servers/own/toggle', { enabled: true }), 200, 'message')
      serverRecord(on)
      assert.notEqual(on.status, 'disabled')
      await admin.has('own', 'connected')
    }
  },
  'POST /servers/:name/reload': {
    who: 'manages',
    async good (admin) {
      const record = envelope(await admin.ask('POST', '/servers/own/reload'), 200, 'message')
      serverRecord(record)
      assert.equal(record.name, 'own')
      await admin.has('own', 'connected')
    }
  },
  ...itemRows('tools', 'toolName', 'two-words', 'The tool two-words', toolRecord),
  ...itemRows('prompts', 'promptName', 'greet', 'Greets', promptRecord),
  ...itemRows('resources', 'resourceUri', NOTE, 'A note', resourceRecord),
  'GET /settings': {
    who: 'anybody',
    async good (admin, bob) {
      const data = envelope(await admin.ask('GET', '/settings'), 200, 'no message')
      members(data, ['servers', 'mcpServers', 'groups', 'systemConfig'])
      for (const record of data.servers as Json[]) serverRecord(record)
      for (const record of data.groups as Json[]) groupRecord(record)
      assert.deepEqual([names(data.servers), names(data.groups)], [['alpha', 'closed', 'own'], ['team', 'hidden']])
      members(data.systemConfig, [
        'routing', 'install', 'smartRouting', 'toolResultCompression', 'mcpRouter', 'nameSeparator',
        'enableSessionRebuild', 'oauthServer', 'notifications'
      ])
      const { systemConfig, ...theirs } = envelope(await bob.ask('GET', '/settings'), 200, 'no message')
      assert.deepEqual([names(theirs.servers), names(theirs.groups)], [['alpha', 'own'], ['team']])
      for (const section of ['smartRouting', 'mcpRouter', 'oauthServer']) {
        assert.ok(!JSON.stringify(at(systemConfig, section) ?? '').match(/apiKey|ApiKey|dbUrl|baseUrl/i), JSON.stringify(systemConfig))
      }
      assert.equal(at(systemConfig, 'nameSeparator'), '-')
    }
  },
  'PUT /system-config': {
    who: 'admin',
    bad: noObject,
    async good (admin) {
      const data = envelope(await admin.ask('PUT', '/system-config', { nameSeparator: '-' }), 200, 'message')
      assert.deepEqual(data, await admin.system())
    }
  },
  'GET /groups': {
    who: 'anybody',
    async good (admin, bob) {
      const answer = await admin.ask('GET', '/groups')
      members(answer.body, ['success', 'data'])
      for (const record of list(answer)) groupRecord(record)
      assert.deepEqual(list(answer).map(({ name, servers }) => [name, servers]),
        [['team', ['alpha', 'closed']], ['hidden', ['closed']]], 'names, whatever is selected')
      assert.deepEqual(list(await bob.ask('GET', '/groups')).map(({ name, servers }) => [name, servers]),
        [['team', ['alpha']]])
    }
  },
  'POST /groups': {
    who: 'anybody',
    bad: [
      ...noObject,
      { name: 7 },
      { name: '' },
      { name: null },
      { name: 'team' },
      { name: 'x', description: 7 },
      { name: 'x', servers: 'alpha' },
      ...badMembers.map((body) => ({ name: 'x', ...body }))
    ],
    async good (admin, bob) {
      const bare = envelope(await admin.ask('POST', '/groups', { name: 'bare' }), 201, 'message')
      groupRecord(bare)
      assert.deepEqual([bare.name, bare.servers, bare.owner], ['bare', [], 'admin'])
      const full = envelope(
        await admin.ask('POST', '/groups', {
          name: 'full',
          description: 'all of it',
          servers: ['own', { name: 'alpha' }, { name: 'closed', tools: ['echo'], prompts: [], resources: 'all', alias: 'c' }]
        }),
        201,
        'message'
      )
      assert.deepEqual(full, {
        id: full.id,
        name: 'full',
        description: 'all of it',
        servers: ['own', 'alpha', { name: 'closed', tools: ['echo'], prompts: [], resources: 'all', alias: 'c' }],
        owner: 'admin'
      })
      for (const name of ['bare', 'full']) await admin.ok('DELETE', `/groups/${name}`)
      const bobs = await admin.ok('POST', '/groups', { name: 'for bob', owner: 'bob' }, 201)
      assert.equal(bobs.owner, 'bob')
      refused(await admin.ask('POST', '/groups', { name: 'for nobody', owner: 'nobody' }), 400)
      assert.equal((await bob.ok('PUT', '/groups/for bob', { owner: 'admin' })).owner, 'bob', 'only an admin gives a group away')
      refused(await admin.ask('PUT', '/groups/for bob', { owner: 'nobody' }), 400)
      assert.equal((await admin.ok('PUT', '/groups/for bob', { owner: 'admin' })).owner, 'admin')
      await admin.ok('DELETE', '/groups/for bob')
    }
  },
  'GET /groups/:id': {
    who: 'sees',
    async good (admin, bob) {
      const byName = envelope(await admin.ask('GET', '/groups/team'), 200, 'no message')
      groupRecord(byName)
      assert.deepEqual(byName.servers, [{ name: 'alpha', ...whole, tools: ['echo', 'typed'] }, 'closed'])
      assert.deepEqual(await admin.ok('GET', `/groups/${String(byName.id)}`), byName)
      assert.deepEqual((await bob.ok('GET', '/groups/team')).servers, [
        { name: 'alpha', ...whole, tools: ['echo', 'typed'] }
      ])
    }
  },
  'PUT /groups/:id': {
    who: 'manages',
    bad: [
      undefined, null, [], 'text', 7, { name: 7 }, { name: '' }, { name: 'hidden' }, { description: 7 },
      { servers: 'alpha' }, ...badMembers
    ],
    async good (admin) {
      const before = await admin.ok('GET', '/groups/team')
      for (const body of [{ description: 'ours' }, { name: 'crew' }, { name: 'team' }]) {
        const data = envelope(await admin.ask('PUT', `/groups/${String(before.id)}`, body), 200, 'message')
        groupRecord(data)
        assert.deepEqual(data.servers, before.servers, 'what is absent stays')
      }
      assert.deepEqual(await admin.ok('GET', '/groups/team'), { ...before, description: 'ours' })
    }
  },
  'DELETE /groups/:id': {
    who: 'manages',
    async good (admin) {
      for (const by of ['name', 'id'] as const) {
        const group = await admin.ok('POST', '/groups', { name: 'passing', servers: ['alpha'] }, 201)
        deleted(await admin.ask('DELETE', `/groups/${String(group[by])}`))
        for (const key of ['name', 'id'] as const) refused(await admin.ask('GET', `/groups/${String(group[key])}`), 404)
      }
    }
  },
  'POST /groups/:id/servers': {
    who: 'manages',
    bad: [
      ...noObject, { serverName: 7 }, { serverName: '' }, { serverName: 'nope' }, { serverName: null },
      { serverName: '__proto__' }, { serverName: ['own'] }
    ],
    async good (admin) {
      const { id } = await admin.ok('GET', '/groups/hidden')
      for (const key of [String(id), 'hidden']) {
        const data = envelope(await admin.ask('POST', `/groups/${key}/servers`, { serverName: 'own' }), 200, 'message')
        groupRecord(data)
        assert.deepEqual(data.servers, ['closed', 'own'])
        await admin.ok('DELETE', `/groups/${key}/servers/own`)
      }
      const again = await admin.ask('POST', '/groups/hidden/servers', { serverName: 'closed' })
      assert.ok(again.status === 200 || again.status === 400, again.text)
      assert.deepEqual((await admin.ok('GET', '/groups/hidden')).servers, ['closed'], 'a member is one once')
    }
  },
  'DELETE /groups/:id/servers/:serverName': {
    who: 'manages',
    absent: [{ serverName: 'nope' }, { serverName: 'own' }, { serverName: '__proto__' }],
    async good (admin) {
      await admin.ok('POST', '/groups', { name: 'shrinking', servers: ['alpha', { name: 'own', tools: ['echo'] }, 'closed'] }, 201)
      const answer = await admin.ask('DELETE', '/groups/shrinking/servers/own')
      fine(answer)
      members(answer.body, ['success', 'message'], ['data'])
      assert.deepEqual((await admin.ok('GET', '/groups/shrinking')).servers, ['alpha', 'closed'])
      await admin.ok('DELETE', '/groups/shrinking')
    }
  },
  'PUT /groups/:id/servers/batch': {
    who: 'manages',
    bad: [...noServers, ...badMembers],
    async good (admin) {
      await admin.ok('POST', '/groups', { name: 'replaced', servers: ['alpha'] }, 201)
      for (const [given, shown] of [
        [['own', 'closed'], ['own', 'closed']],
        [
          [{ name: 'own', ...whole }, { name: 'alpha', tools: [], prompts: ['greet'], resources: [NOTE] }],
          ['own', { name: 'alpha', tools: [], prompts: ['greet'], resources: [NOTE] }]
        ],
        [[], []]
      ]) {
        const data = envelope(await admin.ask('PUT', '/groups/replaced/servers/batch', { servers: given }), 200, 'message')
        groupRecord(data)
        assert.deepEqual(data.servers, shown)
        assert.deepEqual((await admin.ok('GET', '/groups/replaced')).servers, shown)
      }
      await admin.ok('DELETE', '/groups/replaced')
    }
  },
  'GET /groups/:id/server-configs': {
    who: 'sees',
    async good (admin, bob) {
      const { id } = await admin.ok('GET', '/groups/team')
      const alpha = { name: 'alpha', ...whole, tools: ['echo', 'typed'] }
      for (const key of [String(id), 'team']) {
        const answer = await admin.ask('GET', `/groups/${key}/server-configs`)
        members(answer.body, ['success', 'data'])
        assert.deepEqual(list(answer), [alpha, { name: 'closed', ...whole }])
      }
      assert.deepEqual(list(await bob.ask('GET', '/groups/team/server-configs')), [alpha])
    }
  },
  'PUT /groups/:id/server-configs/:serverName/tools': {
    who: 'manages',
    bad: [...noObject, { tools: 'some' }, { tools: 7 }, { tools: null }, { tools: [7] }, { tools: { echo: true } }],
    absent: [{ serverName: 'nope' }, { serverName: 'own' }, { serverName: '__proto__' }],
    async good (admin) {
      await admin.ok('POST', '/groups', { name: 'picking', servers: [{ name: 'alpha', prompts: ['greet'], alias: 'a' }] }, 201)
      for (const tools of [['echo'], [], 'all', ['typed', 'echo']]) {
        const answer = await admin.ask('PUT', '/groups/picking/server-configs/alpha/tools', { tools })
        envelope(answer, 200, 'message')
        assert.deepEqual(list(await admin.ask('GET', '/groups/picking/server-configs')),
          [{ name: 'alpha', ...whole, tools, prompts: ['greet'], alias: 'a' }], 'the rest of the member stays')
      }
      await admin.ok('DELETE', '/groups/picking')
    }
  },
  'POST /tools/call/:server': {
    who: 'sees',
    bad: [
      ...noObject, { toolName: 7 }, { toolName: null }, { toolName: 'echo', arguments: [] },
      { toolName: 'echo', arguments: 'text' }, { toolName: 'echo', arguments: 7 }
    ],
    async good (admin, bob) {
      for (const api of [admin, bob]) {
        for (const toolName of ['two-words', 'alpha-two-words']) {
          const data = envelope(await api.ask('POST', '/tools/call/alpha', { toolName, arguments: { message: 'hi' } }),
            200, 'no message')
          members(data, ['content', 'toolName', 'arguments'])
          assert.deepEqual(data.content, [{ type: 'text', text: 'hi' }])
        }
      }
      const data = await admin.ok('POST', '/tools/call/alpha', { toolName: 'typed', arguments: { n: '7', list: 'a,b' } })
      assert.deepEqual(JSON.parse(text(data)), { n: 7, list: ['a', 'b'] }, 'converted to the types of the schema')
      assert.deepEqual((await admin.ok('POST', '/tools/call/alpha', { toolName: 'echo' })).arguments, {})
      for (const toolName of ['nope', '__proto__', 'own-echo']) {
        refused(await admin.ask('POST', '/tools/call/alpha', { toolName }), 404, toolName)
      }
    }
  },
  'POST /mcp/:serverName/prompts/:promptName': {
    who: 'sees',
    bad: [[], 'text', 7, { arguments: 'text' }, { arguments: [] }, { arguments: 7 }],
    absent: [{ promptName: 'nope' }, { promptName: '__proto__' }],
    async good (admin, bob) {
      for (const [api, body, said] of [
        [admin, { arguments: { who: 'Bob' } }, 'Greet Bob'],
        [bob, {}, 'Greet all'],
        [admin, undefined, 'Greet all']
      ] as const) {
        const data = envelope(await api.ask('POST', '/mcp/alpha/prompts/greet', body), 200, 'no message')
        members(data, ['messages'], ['description'])
        assert.deepEqual(data.messages, [
          { role: 'user', content: { type: 'text', text: said } },
          { role: 'assistant', content: { type: 'image', data: 'aGk=', mimeType: 'image/png' } }
        ])
      }
      refused(await admin.ask('POST', '/mcp/alpha/prompts/broken', {}), 502)
      await admin.ok('POST', '/servers/alpha/prompts/greet/toggle', { enabled: false })
      refused(await admin.ask('POST', '/mcp/alpha/prompts/greet', {}), 404, 'disabled')
      await admin.ok('POST', '/servers/alpha/prompts/greet/toggle', { enabled: true })
    }
  },
  'GET /mcp-settings/export': {
    who: 'anybody',
    async good (admin) {
      const data = envelope(await admin.ask('GET', '/mcp-settings/export'), 200, 'no message')
      assert.deepEqual([Object.keys(data.mcpServers as Json), names(data.groups)],
        [['alpha', 'closed', 'own'], ['team', 'hidden']])
    }
  }
}

const rows = Object.keys(table)

test('every row of the tables', async (t) => {
  const fake = await startUpstream(t, offers)
  const { hub, admin, bob } = await started(t)
  for (const [name, visibility, owner] of [
    ['alpha', 'public', 'admin'], ['closed', 'private', 'admin'], ['own', 'private', 'bob']
  ] as const) { await admin.add(name, { type: 'streamable-http', url: fake.url, visibility, owner }) }
  await admin.ok('POST', '/groups', { name: 'team', servers: [{ name: 'alpha', tools: ['echo', 'typed'] }, 'closed'] }, 201)
  await admin.ok('POST', '/groups', { name: 'hidden', servers: ['closed'] }, 201)
  const there: Record<string, string> = {
    name: 'alpha',
    serverName: 'alpha',
    server: 'alpha',
    id: 'team',
    toolName: 'echo',
    promptName: 'greet',
    resourceUri: NOTE
  }
  const fill = (route: string, more: Record<string, string> = {}): string =>
    route.replace(/:(\w+)/g, (_, key: string) => enc(more[key] ?? there[key] ?? ''))

  await t.test('each stands in the document of the API', async () => {
    const document: unknown = await (await fetch(`${hub.url}/docs/json`)).json()
    const missing = rows.filter((row) => {
      const [method = '', route = ''] = row.split(' ')
      return at(document, 'paths', `/api${route.replace(/:(\w+)/g, '{$1}')}`, method.toLowerCase()) === undefined
    })
    assert.deepEqual(missing, [])
    const change = at(document, 'paths', '/api/servers/{name}', 'put') as { parameters: Array<{ in: string, name: string }> }
    assert.ok(change.parameters.some((each) => each.in === 'header' && each.name === 'if-match'))
    assert.ok(at(change, 'responses', '412') !== undefined)
    assert.ok(at(document, 'paths', '/api/servers', 'get', 'responses', '304') !== undefined)
    for (const path of ['/api/tools/{server}/{tool}', '/api/{name}/tools/{server}/{tool}', '/api/logs/stream']) {
      const responses = at(document, 'paths', path, 'get', 'responses') as object
      assert.ok('200' in responses && !('304' in responses), path)
    }
  })

  /** Has what every row asks for. */
  const fits = {
    enabled: true,
    description: 'x',
    serverName: 'alpha',
    servers: [],
    tools: 'all',
    config: { url: fake.url },
    toolName: 'echo',
    arguments: {}
  }
  for (const [name, row] of Object.entries(table)) {
    const [method = '', route = ''] = name.split(' ')
    const writes = method !== 'GET' && method !== 'DELETE'
    await t.test(name, async () => {
      // Who may ask what: test/integration/access-matrix.test.ts.
      const body = writes ? fits : undefined
      refused(await new Api(hub).ask(method, fill(route), body), 401)
      if (row.who === 'admin' || row.who === 'manages') refused(await bob.ask(method, fill(route), body), 403)
      const inGroup = route.startsWith('/groups')
      const odd = { name: '__proto__', serverName: inGroup ? 'alpha' : '__proto__', server: '__proto__', id: '__proto__' }
      if (route.includes(':')) refused(await admin.ask(method, fill(route, odd), body), 404, '__proto__')
      if (route.includes(':') && row.who !== 'admin') {
        const [hidden, unknown] = await Promise.all([['closed', 'hidden'], ['clothe', 'hiders']].map(async ([server = '', id = '']) => {
          const answer = await bob.ask(method, fill(route, { name: server, serverName: inGroup ? 'alpha' : server, server, id }), body)
          refused(answer, 404)
          return answer.text.replace(server, 'X').replace(id, 'X')
        }))
        assert.equal(hidden, unknown, 'nothing tells the hidden from the unknown')
      }
      for (const absent of row.absent ?? []) {
        refused(await admin.ask(method, fill(route, absent), body), 404, JSON.stringify(absent))
      }
      const before = await onDisk(hub)
      for (const body of row.bad ?? []) refused(await admin.ask(method, fill(route), body), 400, JSON.stringify(body))
      if (row.bad?.includes(undefined) === true) {
        for (const raw of ['', '{', '{"enabled":']) {
          refused(
            await admin.ask(method, fill(route), undefined, { raw, headers: { 'content-type': 'application/json' } }),
            400,
            `"${raw}"`
          )
        }
      }
      assert.deepEqual(await onDisk(hub), before, 'what is refused is not stored')
      await row.good(admin, bob, fake.url)
    })
  }

  await t.test('whether a thing exists comes before what the body says', async () => {
    const wrong: string[] = []
    const json = { 'content-type': 'application/json' }
    const large = { raw: 'x'.repeat(1_100_000), headers: json }
    const look = async (row: string, api: Api, more: Record<string, string>): Promise<void> => {
      const [method = '', route = ''] = row.split(' ')
      for (const [body, extra] of [
        [{}],
        [7],
        [{ enabled: 'x', toolName: 7, arguments: 7, tools: 7 }],
        [undefined, { raw: '{bad', headers: json }],
        [undefined, { raw: 'x', headers: { 'content-type': 'text/plain' } }],
        // Once for each row: it costs more than all the others.
        ...more.name === 'closed' ? [[undefined, large]] : []
      ] as [unknown, Extra?][]) {
        const { status } = await api.ask(method, fill(route, more), body, extra)
        if (status !== 404) {
          wrong.push(`${row} ${JSON.stringify(more)} ${JSON.stringify(body)} ${String(extra?.raw?.slice(0, 4))}: ${status}`)
        }
      }
    }
    for (const [row, { absent, who }] of Object.entries(table)) {
      if (!row.includes(':') || row.startsWith('GET') || who === 'admin') continue
      for (const more of [
        { name: 'closed', serverName: 'closed', server: 'closed', id: 'hidden' },
        { name: 'nope', serverName: 'nope', server: 'nope', id: 'nope' }
      ]) { await look(row, bob, more) }
      for (const more of absent ?? []) await look(row, admin, more)
    }
    assert.deepEqual(wrong, [])
  })

  await t.test('a route takes what is its own, and says of two forms the one that is nearly right', async () => {
    await admin.ok('POST', '/groups', { name: 'own name', description: 'own words' }, 201)
    for (const name of ['renamed', 5, {}, []]) {
      const group = await admin.ok('PUT', '/groups/own%20name/servers/batch', { servers: ['alpha'], name, description: 'changed' })
      assert.deepEqual([group.name, group.description], ['own name', 'own words'])
    }
    const answer = await admin.ask('PUT', '/groups/own%20name', { servers: [{ name: 'alpha', tools: 'some' }] })
    refused(answer, 400)
    assert.equal(at(answer.body, 'message'), 'body.servers.0.tools must be "all" or array')
    assert.deepEqual(at(answer.body, 'errors'), [
      { path: 'body.servers.0', message: 'must be string' },
      { path: 'body.servers.0.tools', message: 'must be "all" or array' }
    ])
    assert.match((await admin.ask('PUT', '/groups/own%20name', { servers: [null] })).text,
      /"message":"body\.servers\.0 must be string or object"/)
    assert.match((await admin.ask('PUT', '/groups/own%20name/server-configs/alpha/tools', { tools: 'ALL' })).text,
      /body\.tools must be \\"all\\" or array/)
    assert.deepEqual(
      (at((await admin.ask('POST', '/users', { isAdmin: 'yes' })).body, 'errors') as Json[]).map(({ path }) => path),
      ['body.username', 'body.password', 'body.isAdmin']
    )
    await admin.ok('DELETE', '/groups/own%20name')
    const item = await admin.ok('PUT', '/servers/alpha/tools/echo/description', { description: 'x', enabled: false })
    assert.deepEqual([item.description, item.enabled], ['x', true])
    await admin.ok('DELETE', '/servers/alpha/tools/echo/description')
    await admin.ok('POST', '/servers', { name: 'off', config: { url: fake.url, enabled: false } })
    assert.match(String(at((await admin.ask('POST', '/servers/off/reload')).body, 'message')), /disabled/)
    await admin.ok('DELETE', '/servers/off')
  })
})
