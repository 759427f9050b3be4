// The management API as admins script it: every row of the specification's tables on servers, system configuration, groups and
// running things, and what must hold between them. Accounts, keys and the life of servers are in users.test.ts and api.test.ts.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { watch } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { test, type Test } from 'tap'
import bcrypt from 'bcryptjs'
import {
  assertPlain,
  at,
  initialize,
  KEY,
  names,
  plain,
  send,
  Session,
  settings,
  sleep,
  text,
  type Json,
  type Stream
} from '../helpers/client.ts'
import { Audit, type ShownEntry } from '../../plugins/audit/audit.ts'
import { MemoryTrail } from '../../plugins/audit/memory-trail.ts'
import type { Author } from '../../plugins/access/author.ts'
import { limits } from '../../plugins/limits/index.ts'
import type { Committed } from '../../plugins/settings/settings.ts'
import type { Snapshot } from '../../db/store.ts'
import { database } from '../helpers/database.ts'
import { Refusal, startUpstream, tool, type Options } from '../fakes/fault-http.ts'
import { bearerKey, path, startHub, until, type Hub, type HubOptions } from '../helpers/hub.ts'

const MASK = '••••'
const STDIO = { command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')] }
const NOTE = 'fault://note'
const WORDS = { admin: 'Open-Sesame-1', bob: 'Bobs-Word-1' }

// ---- the API as its clients see it ----------------------------------------------------------------

interface Answer { status: number, text: string, body: unknown }

/** Every answer in this file, for the search for secrets. */
const transcript: string[] = []

interface Extra { headers?: Record<string, string>, raw?: string }

/** Somebody at the management API; without credentials: nobody. */
class Api {
  readonly hub: Hub
  readonly headers: Record<string, string>
  constructor (hub: Hub, headers: Record<string, string> = {}) {
    this.hub = hub
    this.headers = headers
  }

  static async login (hub: Hub, username: keyof typeof WORDS = 'admin'): Promise<Api> {
    const answer = await new Api(hub).ask('POST', '/auth/login', { username, password: WORDS[username] })
    assert.equal(answer.status, 200, answer.text)
    return new Api(hub, { 'x-auth-token': String(at(answer.body, 'token')) })
  }

  async ask (method: string, route: string, body?: unknown, { headers, raw }: Extra = {}): Promise<Answer> {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const reply = await fetch(`${this.hub.url}/api${route}`, {
      method,
      headers: { ...(content === undefined ? {} : { 'content-type': 'application/json' }), ...this.headers, ...headers },
      body: content
    })
    const answer = await reply.text()
    transcript.push(answer)
    let parsed: unknown
    try {
      parsed = JSON.parse(answer)
    } catch {}
    return { status: reply.status, text: answer, body: parsed }
  }

  /** A request that must succeed; its data. */
  async ok (method: string, route: string, body?: unknown, status = 200): Promise<Json> {
    return fine(await this.ask(method, route, body), status)
  }

  async server (name: string): Promise<Json> {
    return await this.ok('GET', `/servers/${encodeURIComponent(name)}`)
  }

  /** Adds a server and waits until it is connected. */
  async add (name: string, config: Json): Promise<Json> {
    await this.ok('POST', '/servers', { name, config })
    return config.enabled === false ? await this.server(name) : await this.has(name, 'connected')
  }

  async has (name: string, status: string): Promise<Json> {
    let record: Json = {}
    await until(
      async () => {
        record = await this.server(name)
        return record.status === status
      },
      () => `${name} never became ${status}: ${JSON.stringify(record)}`
    )
    return record
  }

  async system (): Promise<Json> {
    return at(await this.ok('GET', '/settings'), 'systemConfig') as Json
  }
}

function fine (answer: Answer, status = 200): Json {
  assert.equal(answer.status, status, answer.text.slice(0, 2_000))
  assert.equal(at(answer.body, 'success'), true, answer.text.slice(0, 2_000))
  const data = at(answer.body, 'data')
  return (typeof data === 'object' && data !== null ? data : {}) as Json
}

/** The envelope of a failure: words for the caller, and nothing else but code and errors. */
function refused (answer: Answer, status: number, what = ''): void {
  assert.equal(answer.status, status, `${what} ${answer.text.slice(0, 1_000)}`)
  members(answer.body, ['success', 'message'], ['code', 'errors'])
  assert.equal(at(answer.body, 'success'), false, `${what} ${answer.text}`)
  const message = at(answer.body, 'message')
  assert.ok(typeof message === 'string' && message !== '', `${what} ${answer.text}`)
  assertPlain(answer.text)
}

/** Exactly these members, and none but these others. */
function members (value: unknown, required: readonly string[], optional: readonly string[] = []): void {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `no object: ${JSON.stringify(value)}`)
  const keys = Object.keys(value)
  for (const key of required) assert.ok(keys.includes(key), `no "${key}" in ${JSON.stringify(value).slice(0, 1_000)}`)
  for (const key of keys) {
    assert.ok(required.includes(key) || optional.includes(key), `"${key}" should not be in ${JSON.stringify(value).slice(0, 1_000)}`)
  }
}

/** An answer of this kind: `data` as given, a message where it is a write. */
const envelope = (answer: Answer, status: number, message: 'message' | 'no message'): Json => {
  const data = fine(answer, status)
  members(answer.body, ['success', 'data', ...(message === 'message' ? ['message'] : [])])
  if (message === 'message') assert.ok(typeof at(answer.body, 'message') === 'string' && at(answer.body, 'message') !== '', answer.text)
  return data
}

const deleted = (answer: Answer): void => {
  fine(answer)
  members(answer.body, ['success', 'message'])
}

const serverRecord = (value: unknown): void => {
  const sometimes = ['connectedAt', 'protocolVersion', 'era', 'oauth']
  members(value, ['name', 'enabled', 'status', 'error', 'tools', 'prompts', 'resources', 'config', 'createdAt'], sometimes)
  assert.ok(
    ['connecting', 'connected', 'disconnected', 'oauth_required', 'disabled'].includes(String(at(value, 'status'))),
    JSON.stringify(value)
  )
}
const groupRecord = (value: unknown): void => { members(value, ['id', 'name', 'servers', 'owner'], ['description']) }
const toolRecord = (value: unknown): void => {
  members(value, ['name', 'description', 'inputSchema', 'enabled'], ['title', 'outputSchema', 'annotations', 'overridden'])
}
const promptRecord = (value: unknown): void => { members(value, ['name', 'enabled'], ['description', 'arguments', 'title', 'overridden']) }
const resourceRecord = (value: unknown): void => {
  members(value, ['uri', 'name', 'enabled'], ['description', 'mimeType', 'title', 'overridden'])
}

const onDisk = async (hub: Hub): Promise<Json> => JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json
/** The settings file without what counts writes. */
const stored = async (hub: Hub): Promise<Json> => { const { version, ...rest } = await onDisk(hub); return rest }
const list = (answer: Answer): Json[] => { fine(answer); return at(answer.body, 'data') as Json[] }
const enc = encodeURIComponent

/** What an upstream of these tests offers. */
const offers: Options = {
  tools: [
    tool('echo'),
    tool('two-words'),
    tool('typed', {
      inputSchema: {
        type: 'object',
        properties: { n: { type: 'integer' }, list: { type: 'array', items: { type: 'string' } } },
        required: ['n']
      }
    })
  ],
  prompts: [{ name: 'greet', description: 'Greets', arguments: [{ name: 'who' }] }, { name: 'broken' }],
  resources: [{ name: 'note', uri: NOTE, description: 'A note' }],
  on ({ method, params }) {
    if (method === 'tools/call' && params.name === 'typed') return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] }
    if (method !== 'prompts/get') return undefined
    if (params.name === 'broken') return new Refusal(-32000, 'not today')
    return {
      description: 'A greeting',
      messages: [
        { role: 'user', content: { type: 'text', text: `Greet ${String(at(params, 'arguments', 'who') ?? 'all')}` } },
        { role: 'assistant', content: { type: 'image', data: 'aGk=', mimeType: 'image/png' } }
      ]
    }
  }
}

const users = [
  { username: 'admin', password: bcrypt.hashSync(WORDS.admin, 4), isAdmin: true },
  { username: 'bob', password: bcrypt.hashSync(WORDS.bob, 4), isAdmin: false }
]

/** A gateway with one admin, one who is none, and these servers. */
const started = async (
  t: Test,
  mcpServers: Json = {},
  more: Json = {},
  options: HubOptions = {}
): Promise<{ hub: Hub; admin: Api; bob: Api }> => {
  const hub = await startHub(t, { settings: settings(mcpServers, { users, ...more }), ...options })
  return { hub, admin: await Api.login(hub), bob: await Api.login(hub, 'bob') }
}

// ---- every row ------------------------------------------------------------------------------------

/** The tables of the specification, row by row. */
const rows = [
  'GET /servers',
  'GET /servers/:name',
  'POST /servers',
  'POST /servers/batch',
  'PUT /servers/:name',
  'DELETE /servers/:name',
  'POST /servers/:name/toggle',
  'POST /servers/:name/reload',
  ...['tools/:toolName', 'prompts/:promptName', 'resources/:resourceUri'].flatMap((item) => [
    `POST /servers/:serverName/${item}/toggle`,
    `PUT /servers/:serverName/${item}/description`,
    `DELETE /servers/:serverName/${item}/description`
  ]),
  'GET /settings',
  'PUT /system-config',
  'GET /groups',
  'POST /groups',
  'GET /groups/:id',
  'PUT /groups/:id',
  'DELETE /groups/:id',
  'POST /groups/:id/servers',
  'DELETE /groups/:id/servers/:serverName',
  'PUT /groups/:id/servers/batch',
  'GET /groups/:id/server-configs',
  'PUT /groups/:id/server-configs/:serverName/tools',
  'POST /tools/call/:server',
  'POST /mcp/:serverName/prompts/:promptName',
  'GET /mcp-settings/export'
]

interface Row {
  /** Who may: everybody with an account, who sees the thing, who manages it, or admins. */
  who: 'anybody' | 'sees' | 'manages' | 'admin'
  /** Bodies that are 400 for whoever may, on what is there; undefined: no body at all. */
  bad?: unknown[]
  /** Parameters that name nothing there: 404 for whoever may. */
  absent?: Record<string, string>[]
  /** What goes well, and what it answers. */
  good: (admin: Api, bob: Api) => Promise<void>
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
): [string, Row][] => {
  const route = `/servers/alpha/${kind}/${enc(key)}`
  const find = async (api: Api): Promise<Json> =>
    (await api.server('alpha'))[kind] instanceof Array
      ? (((await api.server('alpha'))[kind] as Json[]).find((item) => item.name === key || item.uri === key) ?? {})
      : {}
  const absent = [{ [parameter]: 'nope' }, { [parameter]: '__proto__' }, { [parameter]: 'constructor' }]
  return [
    [
      `POST /servers/:serverName/${kind}/:${parameter}/toggle`,
      {
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
      }
    ],
    [
      `PUT /servers/:serverName/${kind}/:${parameter}/description`,
      {
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
      }
    ],
    [
      `DELETE /servers/:serverName/${kind}/:${parameter}/description`,
      {
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
    ]
  ]
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

const covered = (url: string): Map<string, Row> =>
  new Map<string, Row>([
    [
      'GET /servers',
      {
        who: 'anybody',
        async good (admin, bob) {
          const answer = await admin.ask('GET', '/servers')
          members(answer.body, ['success', 'data'])
          for (const record of list(answer)) serverRecord(record)
          assert.deepEqual(names(list(answer)), ['alpha', 'closed', 'own'], 'in the order of the configuration')
          assert.deepEqual(names(list(await bob.ask('GET', '/servers'))), ['alpha', 'own'])
        }
      }
    ],
    [
      'GET /servers/:name',
      {
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
      }
    ],
    [
      'POST /servers',
      {
        who: 'anybody',
        bad: [
          ...noObject,
          { name: 'x' },
          { config: { url } },
          { name: 7, config: { url } },
          { name: 'x', config: 'text' },
          { name: 'x', config: [] },
          { name: 'x', config: {} },
          { name: 'alpha', config: { url } },
          { name: 'batch', config: { url } }
        ],
        async good (admin) {
          const record = envelope(await admin.ask('POST', '/servers', { name: 'fresh', config: { url, enabled: false } }), 200, 'message')
          serverRecord(record)
          assert.deepEqual(
            [
              record.name,
              record.status,
              record.tools,
              at(record, 'config', 'owner'),
              at(record, 'config', 'visibility'),
              at(record, 'config', 'visibilityDefaulted')
            ],
            ['fresh', 'disabled', [], 'admin', 'private', true]
          )
          await admin.ok('DELETE', '/servers/fresh')
        }
      }
    ],
    [
      'POST /servers/batch',
      {
        who: 'anybody',
        bad: [...noServers, { servers: [] }],
        async good (admin) {
          const config = { url, enabled: false }
          const all = await admin.ask('POST', '/servers/batch', {
            servers: [
              { name: 'one', config },
              { name: 'two', config }
            ]
          })
          const data = fine(all)
          members(all.body, ['success', 'data'], ['message'])
          members(data, ['results', 'successCount', 'failureCount'])
          assert.deepEqual(data, {
            results: [
              { name: 'one', success: true },
              { name: 'two', success: true }
            ],
            successCount: 2,
            failureCount: 0
          })
          const some = await admin.ask('POST', '/servers/batch', {
            servers: [
              { name: 'one', config },
              { name: 'three', config }
            ]
          })
          assert.deepEqual(
            [some.status, at(some.body, 'success'), at(some.body, 'data', 'successCount'), at(some.body, 'data', 'failureCount')],
            [207, true, 1, 1],
            some.text
          )
          const none = await admin.ask('POST', '/servers/batch', {
            servers: [
              { name: 'one', config },
              { name: 'two', config }
            ]
          })
          assert.deepEqual(
            [none.status, at(none.body, 'success'), at(none.body, 'data', 'successCount'), at(none.body, 'data', 'failureCount')],
            [400, false, 0, 2],
            none.text
          )
          assert.equal((at(none.body, 'data', 'results') as unknown[]).length, 2)
          for (const name of ['one', 'two', 'three']) await admin.ok('DELETE', `/servers/${name}`)
        }
      }
    ],
    [
      'PUT /servers/:name',
      {
        who: 'manages',
        bad: [
          ...noObject,
          { config: 7 },
          { config: [] },
          { config: {} },
          { config: { url: 'nonsense' } },
          { config: { url }, newName: 7 },
          { config: { url }, newName: '' },
          { config: { url }, newName: 'own' },
          { config: { url }, newName: 'call' },
          { config: { url }, newName: 'a/b' }
        ],
        async good (admin, bob) {
          const record = envelope(await admin.ask('PUT', '/servers/own', { config: { url, description: 'changed' } }), 200, 'message')
          serverRecord(record)
          assert.deepEqual([record.name, at(record, 'config', 'description'), at(record, 'config', 'owner')], ['own', 'changed', 'bob'])
          await admin.has('own', 'connected')
          serverRecord(await bob.server('own'))
        }
      }
    ],
    [
      'DELETE /servers/:name',
      {
        who: 'manages',
        async good (admin) {
          await admin.add('gone', { url, enabled: false })
          deleted(await admin.ask('DELETE', '/servers/gone'))
          refused(await admin.ask('GET', '/servers/gone'), 404)
          refused(await admin.ask('DELETE', '/servers/gone'), 404)
        }
      }
    ],
    [
      'POST /servers/:name/toggle',
      {
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
      }
    ],
    [
      'POST /servers/:name/reload',
      {
        who: 'manages',
        async good (admin) {
          const record = envelope(await admin.ask('POST', '/servers/own/reload'), 200, 'message')
          serverRecord(record)
          assert.equal(record.name, 'own')
          await admin.has('own', 'connected')
        }
      }
    ],
    ...itemRows('tools', 'toolName', 'two-words', 'The tool two-words', toolRecord),
    ...itemRows('prompts', 'promptName', 'greet', 'Greets', promptRecord),
    ...itemRows('resources', 'resourceUri', NOTE, 'A note', resourceRecord),
    [
      'GET /settings',
      {
        who: 'anybody',
        async good (admin, bob) {
          const data = envelope(await admin.ask('GET', '/settings'), 200, 'no message')
          members(data, ['servers', 'mcpServers', 'groups', 'systemConfig'])
          for (const record of data.servers as Json[]) serverRecord(record)
          for (const record of data.groups as Json[]) groupRecord(record)
          assert.deepEqual(
            [names(data.servers), names(data.groups)],
            [
              ['alpha', 'closed', 'own'],
              ['team', 'hidden']
            ]
          )
          members(data.systemConfig, [
            'routing',
            'install',
            'smartRouting',
            'toolResultCompression',
            'mcpRouter',
            'nameSeparator',
            'enableSessionRebuild',
            'oauthServer'
          ])
          const { systemConfig, ...theirs } = envelope(await bob.ask('GET', '/settings'), 200, 'no message')
          assert.deepEqual([names(theirs.servers), names(theirs.groups)], [['alpha', 'own'], ['team']])
          for (const section of ['smartRouting', 'mcpRouter', 'oauthServer']) {
            assert.ok(!JSON.stringify(at(systemConfig, section) ?? '').match(/apiKey|ApiKey|dbUrl|baseUrl/i), JSON.stringify(systemConfig))
          }
          assert.equal(at(systemConfig, 'nameSeparator'), '-')
        }
      }
    ],
    [
      'PUT /system-config',
      {
        who: 'admin',
        bad: [
          ...noObject,
          { nonsense: true },
          { routing: 7 },
          { routing: { nonsense: true } },
          { apiKey: 'sk-1', model: 'gpt', temperature: 0.5, maxTokens: 100 }
        ],
        async good (admin) {
          const data = envelope(await admin.ask('PUT', '/system-config', { nameSeparator: '-' }), 200, 'message')
          assert.deepEqual(data, await admin.system())
        }
      }
    ],
    [
      'GET /groups',
      {
        who: 'anybody',
        async good (admin, bob) {
          const answer = await admin.ask('GET', '/groups')
          members(answer.body, ['success', 'data'])
          for (const record of list(answer)) groupRecord(record)
          assert.deepEqual(
            list(answer).map(({ name, servers }) => [name, servers]),
            [
              ['team', ['alpha', 'closed']],
              ['hidden', ['closed']]
            ],
            'names, whatever is selected'
          )
          assert.deepEqual(
            list(await bob.ask('GET', '/groups')).map(({ name, servers }) => [name, servers]),
            [['team', ['alpha']]]
          )
        }
      }
    ],
    [
      'POST /groups',
      {
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
      }
    ],
    [
      'GET /groups/:id',
      {
        who: 'sees',
        async good (admin, bob) {
          const byName = envelope(await admin.ask('GET', '/groups/team'), 200, 'no message')
          groupRecord(byName)
          assert.deepEqual(byName.servers, [{ name: 'alpha', tools: ['echo', 'typed'], prompts: 'all', resources: 'all' }, 'closed'])
          assert.deepEqual(await admin.ok('GET', `/groups/${String(byName.id)}`), byName)
          assert.deepEqual((await bob.ok('GET', '/groups/team')).servers, [
            { name: 'alpha', tools: ['echo', 'typed'], prompts: 'all', resources: 'all' }
          ])
        }
      }
    ],
    [
      'PUT /groups/:id',
      {
        who: 'manages',
        bad: [
          undefined,
          null,
          [],
          'text',
          7,
          { name: 7 },
          { name: '' },
          { name: 'hidden' },
          { description: 7 },
          { servers: 'alpha' },
          ...badMembers
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
      }
    ],
    [
      'DELETE /groups/:id',
      {
        who: 'manages',
        async good (admin) {
          for (const by of ['name', 'id'] as const) {
            const group = await admin.ok('POST', '/groups', { name: 'passing', servers: ['alpha'] }, 201)
            deleted(await admin.ask('DELETE', `/groups/${String(group[by])}`))
            for (const key of ['name', 'id'] as const) refused(await admin.ask('GET', `/groups/${String(group[key])}`), 404)
          }
        }
      }
    ],
    [
      'POST /groups/:id/servers',
      {
        who: 'manages',
        bad: [
          ...noObject,
          { serverName: 7 },
          { serverName: '' },
          { serverName: 'nope' },
          { serverName: null },
          { serverName: '__proto__' },
          { serverName: ['own'] }
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
      }
    ],
    [
      'DELETE /groups/:id/servers/:serverName',
      {
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
      }
    ],
    [
      'PUT /groups/:id/servers/batch',
      {
        who: 'manages',
        bad: [...noServers, ...badMembers],
        async good (admin) {
          await admin.ok('POST', '/groups', { name: 'replaced', servers: ['alpha'] }, 201)
          for (const [given, shown] of [
            [
              ['own', 'closed'],
              ['own', 'closed']
            ],
            [
              [
                { name: 'own', ...whole },
                { name: 'alpha', tools: [], prompts: ['greet'], resources: [NOTE] }
              ],
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
      }
    ],
    [
      'GET /groups/:id/server-configs',
      {
        who: 'sees',
        async good (admin, bob) {
          const { id } = await admin.ok('GET', '/groups/team')
          const alpha = { name: 'alpha', tools: ['echo', 'typed'], prompts: 'all', resources: 'all' }
          for (const key of [String(id), 'team']) {
            const answer = await admin.ask('GET', `/groups/${key}/server-configs`)
            members(answer.body, ['success', 'data'])
            assert.deepEqual(list(answer), [alpha, { name: 'closed', ...whole }])
          }
          assert.deepEqual(list(await bob.ask('GET', '/groups/team/server-configs')), [alpha])
        }
      }
    ],
    [
      'PUT /groups/:id/server-configs/:serverName/tools',
      {
        who: 'manages',
        bad: [...noObject, { tools: 'some' }, { tools: 7 }, { tools: null }, { tools: [7] }, { tools: { echo: true } }],
        absent: [{ serverName: 'nope' }, { serverName: 'own' }, { serverName: '__proto__' }],
        async good (admin) {
          await admin.ok('POST', '/groups', { name: 'picking', servers: [{ name: 'alpha', prompts: ['greet'], alias: 'a' }] }, 201)
          for (const tools of [['echo'], [], 'all', ['typed', 'echo']]) {
            const answer = await admin.ask('PUT', '/groups/picking/server-configs/alpha/tools', { tools })
            envelope(answer, 200, 'message')
            assert.deepEqual(
              list(await admin.ask('GET', '/groups/picking/server-configs')),
              [{ name: 'alpha', tools, prompts: ['greet'], resources: 'all', alias: 'a' }],
              'the rest of the member stays'
            )
          }
          await admin.ok('DELETE', '/groups/picking')
        }
      }
    ],
    [
      'POST /tools/call/:server',
      {
        who: 'sees',
        bad: [
          ...noObject,
          { toolName: 7 },
          { toolName: null },
          { toolName: 'echo', arguments: [] },
          { toolName: 'echo', arguments: 'text' },
          { toolName: 'echo', arguments: 7 }
        ],
        async good (admin, bob) {
          for (const api of [admin, bob]) {
            for (const toolName of ['two-words', 'alpha-two-words']) {
              const data = envelope(
                await api.ask('POST', '/tools/call/alpha', { toolName, arguments: { message: 'hi' } }),
                200,
                'no message'
              )
              members(data, ['content', 'toolName', 'arguments'])
              assert.deepEqual(data.content, [{ type: 'text', text: 'hi' }])
            }
          }
          const data = await admin.ok('POST', '/tools/call/alpha', { toolName: 'typed', arguments: { n: '7', list: 'a,b' } })
          assert.deepEqual(JSON.parse(text(data)), { n: 7, list: ['a', 'b'] }, 'converted to the types of the schema')
          for (const toolName of ['nope', '__proto__', 'own-echo']) {
            refused(await admin.ask('POST', '/tools/call/alpha', { toolName }), 404, toolName)
          }
        }
      }
    ],
    [
      'POST /mcp/:serverName/prompts/:promptName',
      {
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
      }
    ],
    [
      'GET /mcp-settings/export',
      {
        who: 'anybody',
        async good (admin) {
          const data = envelope(await admin.ask('GET', '/mcp-settings/export'), 200, 'no message')
          assert.deepEqual(
            [Object.keys(data.mcpServers as Json), names(data.groups)],
            [
              ['alpha', 'closed', 'own'],
              ['team', 'hidden']
            ]
          )
        }
      }
    ]
  ])

test('every row of the tables', async (t) => {
  const fake = await startUpstream(t, offers)
  const { hub, admin, bob } = await started(t)
  for (const [name, visibility, owner] of [
    ['alpha', 'public', 'admin'],
    ['closed', 'private', 'admin'],
    ['own', 'private', 'bob']
  ] as const) { await admin.add(name, { type: 'streamable-http', url: fake.url, visibility, owner }) }
  await admin.ok('POST', '/groups', { name: 'team', servers: [{ name: 'alpha', tools: ['echo', 'typed'] }, 'closed'] }, 201)
  await admin.ok('POST', '/groups', { name: 'hidden', servers: ['closed'] }, 201)
  const table = covered(fake.url)
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

  await t.test('none is left out', async () => {
    assert.deepEqual(rows.filter((row) => !table.has(row)), [])
    assert.deepEqual([...table.keys()].filter((row) => !rows.includes(row)), [])
  })

  await t.test('each stands in the document of the API', async () => {
    const document: unknown = await (await fetch(`${hub.url}/docs/json`)).json()
    const missing = rows.filter((row) => {
      const [method = '', route = ''] = row.split(' ')
      return at(document, 'paths', `/api${route.replace(/:(\w+)/g, '{$1}')}`, method.toLowerCase()) === undefined
    })
    assert.deepEqual(missing, [])
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
  for (const [name, row] of table) {
    const [method = '', route = ''] = name.split(' ')
    const writes = method !== 'GET' && method !== 'DELETE'
    await t.test(name, async () => {
      for (const headers of [{}, { 'x-auth-token': 'garbage' }, { authorization: 'Bearer thk_garbage' }] as Record<string, string>[]) {
        for (const body of writes ? [{}, { wrong: 7 }] : [undefined]) {
          refused(await new Api(hub, headers).ask(method, fill(route), body), 401, 'without a credential')
        }
        refused(
          await new Api(hub, headers).ask(
            method,
            fill(route, { name: 'nope', serverName: 'nope', server: 'nope', id: 'nope' }),
            writes ? {} : undefined
          ),
          401,
          'of what is not there'
        )
      }
      if (row.who === 'admin') refused(await bob.ask(method, fill(route), {}), 403)
      if (row.who === 'manages') {
        for (const body of writes ? [{}, fits] : [undefined]) {
          refused(await bob.ask(method, fill(route), body), 403, 'seen, but not managed')
        }
      }
      if (route.includes(':') && row.who !== 'admin') {
        for (const body of writes ? [fits] : [undefined]) {
          const [hidden, unknown] = [
            await bob.ask(
              method,
              fill(route, { name: 'closed', serverName: route.startsWith('/groups') ? 'alpha' : 'closed', server: 'closed', id: 'hidden' }),
              body
            ),
            await bob.ask(
              method,
              fill(route, { name: 'clothe', serverName: route.startsWith('/groups') ? 'alpha' : 'clothe', server: 'clothe', id: 'hiders' }),
              body
            )
          ]
          refused(hidden, 404, 'hidden')
          refused(unknown, 404, 'unknown')
          assert.equal(hidden.text, unknown.text, 'nothing tells the hidden from the unknown')
          refused(
            await admin.ask(
              method,
              fill(route, {
                name: '__proto__',
                serverName: route.startsWith('/groups') ? 'alpha' : '__proto__',
                server: '__proto__',
                id: '__proto__'
              }),
              body
            ),
            404,
            '__proto__'
          )
        }
      }
      for (const absent of row.absent ?? []) {
        refused(await admin.ask(method, fill(route, absent), writes ? fits : undefined), 404, JSON.stringify(absent))
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
      await row.good(admin, bob)
    })
  }

  await t.test('whether a thing exists comes before what the body says', async () => {
    const wrong: string[] = []
    const look = async (row: string, api: Api, more: Record<string, string>): Promise<void> => {
      const [method = '', route = ''] = row.split(' ')
      const json = { 'content-type': 'application/json' }
      for (const [body, extra] of [
        [{}],
        [7],
        [{ enabled: 'x', toolName: 7, arguments: 7, tools: 7 }],
        [undefined, { raw: '{bad', headers: json }],
        [undefined, { raw: 'x'.repeat(1_100_000), headers: json }],
        [undefined, { raw: 'x', headers: { 'content-type': 'text/plain' } }]
      ] as [unknown, Extra?][]) {
        const { status } = await api.ask(method, fill(route, more), body, extra)
        if (status !== 404) {
          wrong.push(`${row} ${JSON.stringify(more)} ${JSON.stringify(body)} ${String(extra?.raw?.slice(0, 4))}: ${status}`)
        }
      }
    }
    for (const [row, { absent, who }] of table) {
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
    assert.match(
      (await admin.ask('PUT', '/groups/own%20name', { servers: [null] })).text,
      /"message":"body\.servers\.0 must be string or object"/
    )
    assert.match(
      (await admin.ask('PUT', '/groups/own%20name/server-configs/alpha/tools', { tools: 'ALL' })).text,
      /body\.tools must be \\"all\\" or array/
    )
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

  await t.test('what a request leaves out has its default', async () => {
    const system = await admin.system()
    assert.deepEqual(system.routing, {
      enableGlobalRoute: true,
      enableGroupNameRoute: true,
      enableBearerAuth: true,
      bearerAuthHeaderName: 'Authorization',
      jsonBodyLimit: '1mb',
      skipAuth: false
    })
    assert.deepEqual(system.toolResultCompression, { enabled: false, minTokens: 2_000, maxOutputTokens: 1_200, strategy: 'auto', structuredContent: false })
    assert.deepEqual(
      [
        at(system, 'smartRouting', 'enabled'),
        at(system, 'smartRouting', 'embeddingDimensionsApiPassthrough'),
        at(system, 'oauthServer', 'enabled')
      ],
      [true, false, false]
    )
    assert.deepEqual([system.nameSeparator, system.enableSessionRebuild], ['-', false])
    const record = await admin.add('plain', { url: fake.url })
    assert.notEqual(at(record, 'config', 'enabled'), false)
    assert.deepEqual(
      [at(record, 'config', 'owner'), at(record, 'config', 'visibility'), at(record, 'config', 'visibilityDefaulted')],
      ['admin', 'private', true]
    )
    const data = await admin.ok('POST', '/tools/call/plain', { toolName: 'echo' })
    assert.deepEqual(data.arguments, {})
    await admin.ok('DELETE', '/servers/plain')
  })

  await t.test('READONLY refuses the writes, and nothing else', async (t) => {
    assert.equal(await hub.stop(), 0)
    const still = await startHub(t, { folder: hub.folder, env: { READONLY: 'true' } })
    const again = await Api.login(still)
    await again.has('alpha', 'connected')
    for (const row of rows) {
      const [method = '', route = ''] = row.split(' ')
      if (method === 'GET') fine(await again.ask(method, fill(route)))
      else if (route.startsWith('/tools/')) await again.ok(method, fill(route), { toolName: 'echo' })
      else if (route.startsWith('/mcp/')) await again.ok(method, fill(route), {})
      else {
        for (const api of [again, new Api(still)]) {
          refused(await api.ask(method, fill(route), method === 'DELETE' ? undefined : {}), 403, row)
        }
      }
    }
  })
})

// ---- overrides ------------------------------------------------------------------------------------

const ODD = [
  'echo',
  'with space',
  'dot.dot',
  '.hidden',
  'a/b/c',
  '日本語',
  '__proto__',
  'constructor',
  'toggle',
  'per%20cent%',
  'q?x=1&y#z',
  'back\\slash',
  '"quoted"',
  'plus+and;semi',
  'x'.repeat(300)
]
const URIS = [
  NOTE,
  'https://example.com/a b?x=1&y=%20#z',
  'file:///etc/../x',
  '__proto__',
  'mailto:a@b.c',
  'urn:日本語',
  `fault://long/${'/'.repeat(2_048 - 13)}`,
  `fault://percent/${'%25'.repeat(677)}x`
]

/** What is said of every item, by the item's kind. */
const kinds = [['tools', 'tools/list', ODD], ['prompts', 'prompts/list', ODD], ['resources', 'resources/list', URIS]] as const

for (const [where, env] of [
  ['the file', async () => ({})],
  ['PostgreSQL', async (t: Test) => ({ DB_URL: (await database(t)).url })]
] as [string, (t: Test) => Promise<Record<string, string>>][]) {
  test(`overrides survive reconnect, rename and restart, on ${where}`, async (t) => {
    assert.ok(
      URIS.every((uri) => uri.length <= 2_048) && URIS.filter((uri) => uri.length === 2_048).length === 2,
      URIS.map((uri) => uri.length).join()
    )
    const fake = await startUpstream(t, {
      tools: ODD.map((name) => tool(name, { description: `Upstream ${name}` })),
      prompts: ODD.map((name) => ({ name, description: `Upstream ${name}` })),
      resources: URIS.map((uri, n) => ({ uri, name: `resource ${n}`, description: `Upstream ${uri}` }))
    })
    const more = await env(t)
    const { hub, admin } = await started(t, {}, {}, { env: more })
    t.after(async () => {
      await rm(hub.folder, { recursive: true, force: true })
    })
    await admin.add('odd', { url: fake.url })
    const connections = fake.count('initialize')
    const key = (item: Json): string => String(item.uri ?? item.name)

    await t.test('set, one by one', async () => {
      for (const [kind, , all] of kinds) {
        for (const [n, name] of all.entries()) {
          const route = `/servers/odd/${kind}/${enc(name)}`
          const described = await admin.ok('PUT', `${route}/description`, { description: `Ours ${n}` })
          assert.deepEqual(
            [key(described), described.description, described.enabled, described.overridden],
            [name, `Ours ${n}`, true, true]
          )
          if (n % 2 === 1) assert.deepEqual([(await admin.ok('POST', `${route}/toggle`, { enabled: false })).enabled], [false], name)
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
        assert.deepEqual(
          (await session.list(method, kind)).map((item) => [key(item), item.description]),
          expected.filter(([, enabled]) => enabled).map(([name, , description]) => [name, description]),
          kind
        )
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

    await t.test('many writes side by side: none is lost', async () => {
      const answers = await Promise.all([
        ...ODD.flatMap((name, n) =>
          (['tools', 'prompts'] as const).map(
            async (kind) => await admin.ask('PUT', `/servers/odd/${kind}/${enc(name)}/description`, { description: `Side by side ${n}` })
          )
        ),
        ...['one', 'two', 'three'].map(async (name) => await admin.ask('POST', '/groups', { name, servers: ['odd'] })),
        admin.ask('PUT', '/system-config', { install: { npmRegistry: 'https://npm.example.com' } }),
        admin.ask('PUT', '/system-config', { toolResultCompression: { minTokens: 100 } })
      ])
      for (const answer of answers) assert.ok([200, 201].includes(answer.status), answer.text)
      const record = await admin.server('odd')
      for (const kind of ['tools', 'prompts'] as const) {
        assert.deepEqual(
          (record[kind] as Json[]).map(({ description, enabled }) => [description, enabled]),
          ODD.map((_, n) => [`Side by side ${n}`, n % 2 === 0])
        )
      }
      const system = await admin.system()
      assert.deepEqual(
        [
          names(list(await admin.ask('GET', '/groups'))).sort(),
          at(system, 'install', 'npmRegistry'),
          at(system, 'toolResultCompression', 'minTokens')
        ],
        [['one', 'three', 'two'], 'https://npm.example.com', 100]
      )
      await Promise.all(
        ODD.flatMap((name, n) =>
          (['tools', 'prompts'] as const).map(
            async (kind) => await admin.ok('PUT', `/servers/odd/${kind}/${enc(name)}/description`, { description: `Ours ${n}` })
          )
        )
      )
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
      for (const [kind, , all] of kinds) {
        for (const name of all) {
          const route = `/servers/even%20odder/${kind}/${enc(name)}`
          const data = await again.ok('DELETE', `${route}/description`)
          assert.deepEqual([key(data), data.description], [name, `Upstream ${name}`])
          assert.equal((await again.ok('POST', `${route}/toggle`, { enabled: true })).enabled, true)
        }
      }
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
  await admin.ok(
    'POST',
    '/groups',
    { name: 'without', servers: [{ name: 'alpha', tools: ['typed'], prompts: [], resources: [] }, 'beta'] },
    201
  )
  const streams = new Map<string, Stream>()
  const sessions = new Map<string, Session>()
  for (const route of ['', '/alpha', '/both', '/without', '/beta']) {
    const session = await Session.open(`${hub.url}/mcp${route}`)
    for (const method of ['tools/list', 'prompts/list', 'resources/list']) await session.ask(method)
    sessions.set(route, session)
    streams.set(route, await session.listen())
  }
  await sleep(500)
  const connections = fake.count('initialize')
  const told = (route: string): unknown[] => (streams.get(route)?.messages ?? []).map(({ method }) => method)

  for (const [kind, name, blind] of [
    ['tools', 'echo', ['/without', '/beta']],
    ['prompts', 'greet', ['/without', '/beta']],
    ['resources', NOTE, ['/without', '/beta']]
  ] as const) {
    const route = `/servers/alpha/${kind}/${enc(name)}`
    for (const [what, act] of Object.entries({
      disabled: async () => await admin.ok('POST', `${route}/toggle`, { enabled: false }),
      enabled: async () => await admin.ok('POST', `${route}/toggle`, { enabled: true }),
      described: async () => await admin.ok('PUT', `${route}/description`, { description: 'In other words' }),
      reset: async () => await admin.ok('DELETE', `${route}/description`)
    })) {
      await t.test(`${kind}: ${what}, those who see it are told within a second, and only they`, async () => {
        const before = new Map([...streams.keys()].map((one) => [one, told(one).length]))
        await act()
        const news = (one: string): unknown[] => told(one).slice(before.get(one))
        for (const one of ['', '/alpha', '/both']) {
          await until(
            () => news(one).includes(`notifications/${kind}/list_changed`),
            () => `no news on /mcp${one} within a second: ${JSON.stringify(news(one))}`
          )
        }
        await sleep(400)
        for (const one of streams.keys()) {
          assert.deepEqual(
            news(one),
            (blind as readonly string[]).includes(one) ? [] : [`notifications/${kind}/list_changed`],
            `on /mcp${one}`
          )
        }
      })
    }
  }

  await t.test('what changes nothing is no news', async () => {
    const before = [...streams.keys()].map((one) => told(one).length)
    await admin.ok('POST', '/servers/alpha/tools/echo/toggle', { enabled: true })
    await admin.ok('DELETE', '/servers/alpha/tools/echo/description')
    await sleep(500)
    assert.deepEqual([...streams.keys()].map((one) => told(one).length), before)
  })

  await t.test('a call in flight is not cut off, and the upstream is not connected again', async () => {
    assert.equal(fake.count('initialize'), connections)
    assert.equal(text(await (sessions.get('/alpha') ?? assert.fail()).call('echo', { message: 'still here' })), 'still here')
  })
  for (const stream of streams.values()) stream.close()
})

// ---- there and back -------------------------------------------------------------------------------

const canary = (what: string): string => `canary-${what}-${randomBytes(6).toString('hex')}-${what.slice(0, 2)}9z`

test('what GET gave, sent back by PUT, changes nothing', async (t) => {
  const fake = await startUpstream(t, offers)
  const secrets = Object.fromEntries(
    [
      'env',
      'arg',
      'flag',
      'header',
      'user',
      'query',
      'client',
      'proxy',
      'apikey',
      'bearer',
      'pass',
      'llm',
      'router',
      'db',
      'docs',
      'inline'
    ].map((what) => [what, canary(what)])
  )
  const { hub, admin } = await started(
    t,
    {},
    {
      systemConfig: {
        auth: { betterAuth: { basePath: '/api/auth/better', providers: { oidc: { enabled: false } } } },
        fromElsewhere: { kept: [1, 2] },
        smartRouting: { ofAnotherVersion: true }
      }
    }
  )
  const remote = new URL(fake.url)
  remote.username = 'user'
  remote.password = secrets.user ?? ''
  remote.searchParams.set('api_key', secrets.query ?? '')
  const servers: Record<string, Json> = {
    remote: {
      type: 'streamable-http',
      url: remote.href,
      description: 'every member',
      headers: { Authorization: `Bearer ${secrets.header}`, 'X-Plain': 'plain', 'X-None': '', 'X-Variable': '${' + 'NAME}' },
      keepAliveInterval: 30_000,
      enableKeepAlive: false,
      enabled: false,
      visibility: 'public',
      sharedWithUsers: ['bob'],
      passthroughHeaders: ['x-tenant'],
      isolation: 'session',
      options: { timeout: 5_000, resetTimeoutOnProgress: false, maxTotalTimeout: 50_000 },
      proxy: { url: `http://me:${secrets.proxy}@127.0.0.1:9`, noProxy: '127.0.0.1' },
      oauth: {
        clientId: 'me',
        clientSecret: secrets.client,
        scopes: ['a', 'b'],
        redirectUri: 'https://hub.example.com/oauth/callback',
        resource: 'https://mcp.example.com',
        authorizationEndpoint: 'https://id.example.com/a',
        tokenEndpoint: 'https://id.example.com/t',
        dynamicRegistration: { enabled: false }
      },
      tools: { echo: { enabled: false, description: 'Ours' }, __proto: { enabled: true } },
      prompts: { greet: { enabled: false } },
      resources: { [NOTE]: { description: 'Ours', enabled: true } },
      ofAnotherVersion: { kept: ['yes'] }
    },
    live: { url: fake.url, headers: { 'X-Api-Key': secrets.header } },
    local: {
      type: 'stdio',
      ...STDIO,
      args: [...STDIO.args, `--api-key=${secrets.arg}`, '--token', secrets.flag, '--verbose'],
      env: { API_TOKEN: secrets.env, PLAIN: 'plain' },
      cwd: '/',
      startOnDemand: true,
      idleTimeoutMs: 60_000,
      enabled: false,
      isolation: 'shared'
    },
    events: { type: 'sse', url: fake.url, enabled: false, visibility: 'group' },
    rest: {
      type: 'openapi',
      url: 'https://api.example.com/v1',
      openapi: {
        url: `https://docs.example.com/openapi.json?api_key=${secrets.docs}`,
        security: { type: 'apiKey', name: 'x-key', in: 'header', value: secrets.apikey },
        passthroughHeaders: ['x-tenant']
      },
      enabled: false
    },
    inline: {
      type: 'openapi',
      openapi: {
        schema: {
          openapi: '3.0.3',
          info: { title: 'Small', version: '1' },
          servers: [{ url: `https://me:${secrets.inline}@api.example.com/v1` }],
          paths: {}
        },
        security: { type: 'http', http: { scheme: 'basic', username: 'me', password: secrets.pass } }
      },
      headers: { Authorization: `Bearer ${secrets.bearer}` },
      enabled: false
    }
  }
  for (const [name, config] of Object.entries(servers)) await admin.add(name, config)

  for (const name of Object.keys(servers)) {
    await t.test(`server ${name}`, async () => {
      const before = await stored(hub)
      const shown = await admin.server(name)
      for (const [what, secret] of Object.entries(secrets)) assert.ok(!JSON.stringify(shown).includes(secret), `${what} is shown`)
      if (name === 'remote') {
        const { 'X-None': none, 'X-Variable': variable } = at(shown, 'config', 'headers') as Json
        assert.deepEqual([none, variable], ['', '${' + 'NAME}'], 'what is no secret is shown')
      }
      for (const body of [{ config: shown.config }, { ...shown }]) {
        const answer = await admin.ask('PUT', `/servers/${name}`, body)
        const record = fine(answer)
        assert.deepEqual(record.config, shown.config)
        assert.deepEqual((await admin.server(name)).config, shown.config)
        assert.deepEqual(await stored(hub), before)
      }
    })
  }

  await t.test('the server that was connected still is, on the connection it had', async () => {
    const connections = fake.count('initialize')
    await admin.ok('PUT', '/servers/live', { config: (await admin.server('live')).config })
    await sleep(500)
    assert.deepEqual([(await admin.server('live')).status, fake.count('initialize')], ['connected', connections])
  })

  await t.test('groups', async () => {
    await admin.ok(
      'POST',
      '/groups',
      {
        name: 'mixed',
        description: 'of both',
        servers: ['live', { name: 'remote', tools: ['echo'], prompts: [], resources: 'all', alias: 'r' }]
      },
      201
    )
    await admin.ok('POST', '/groups', { name: 'bare' }, 201)
    for (const name of ['mixed', 'bare']) {
      const before = await stored(hub)
      const shown = await admin.ok('GET', `/groups/${name}`)
      assert.deepEqual(await admin.ok('PUT', `/groups/${name}`, shown), shown)
      assert.deepEqual(await admin.ok('GET', `/groups/${name}`), shown)
      assert.deepEqual(await stored(hub), before)
      const configs = list(await admin.ask('GET', `/groups/${name}/server-configs`))
      await admin.ok('PUT', `/groups/${name}/servers/batch`, { servers: configs })
      assert.deepEqual(await admin.ok('GET', `/groups/${name}`), shown)
    }
  })

  const system = {
    routing: { jsonBodyLimit: '2mb', bearerAuthHeaderName: 'X-Key' },
    install: { baseUrl: 'https://hub.example.com', npmRegistry: 'https://npm.example.com' },
    smartRouting: {
      enabled: false,
      dbUrl: `postgres://me:${secrets.db}@db.example.com/vectors`,
      llmProviderBaseUrl: 'https://llm.example.com/v1',
      llmProviderApiKey: secrets.llm,
      embeddingModel: 'small',
      embeddingDimensions: 256
    },
    mcpRouter: { apiKey: secrets.router, baseUrl: 'https://router.example.com', referer: 'https://hub.example.com', title: 'Hub' },
    oauthServer: { accessTokenLifetime: 60 },
    nameSeparator: '__'
  }

  await t.test('system configuration', async () => {
    for (const body of [undefined, system]) {
      if (body !== undefined) await admin.ok('PUT', '/system-config', body)
      const before = await stored(hub)
      const shown = await admin.system()
      for (const [what, secret] of Object.entries(secrets)) assert.ok(!JSON.stringify(shown).includes(secret), `${what} is shown`)
      assert.deepEqual(await admin.ok('PUT', '/system-config', shown), shown)
      assert.deepEqual(await admin.system(), shown)
      assert.deepEqual(at(await stored(hub), 'systemConfig', 'auth'), at(before, 'systemConfig', 'auth'))
      assert.deepEqual(await stored(hub), before)
    }
    assert.deepEqual(at(await stored(hub), 'systemConfig', 'fromElsewhere'), { kept: [1, 2] })
    for (const body of [{ fromElsewhere: { kept: [1, 2, 3] } }, { fromElsewhere: null }, { smartRouting: { ofAnotherVersion: false } }]) {
      refused(await admin.ask('PUT', '/system-config', body), 400, JSON.stringify(body))
    }
  })

  await t.test('the secrets are those that were given', async () => {
    const bare = JSON.stringify(fine(await admin.ask('GET', '/mcp-settings/export?includeSecrets=true')))
    transcript.pop()
    for (const [what, secret] of Object.entries(secrets)) assert.ok(bare.includes(secret), `${what} is lost`)
  })

  await t.test('a mask that is sent to another target: 400', async () => {
    const shown = Object.fromEntries(
      await Promise.all(Object.keys(servers).map(async (name) => [name, (await admin.server(name)).config as Json] as const))
    )
    const other = 'http://127.0.0.1:9/other'
    const before = await stored(hub)
    for (const [what, name, config] of [
      ['url', 'live', { ...shown.live, url: other }],
      ['url with a masked password', 'remote', { ...shown.remote, url: String(shown.remote?.url).replace('/mcp', '/other') }],
      ['url on another host', 'remote', { ...shown.remote, url: String(shown.remote?.url).replace('127.0.0.1', '127.0.0.2') }],
      ['command', 'local', { ...shown.local, command: '/bin/cat' }],
      [
        'openapi.url',
        'rest',
        { ...shown.rest, openapi: { ...(shown.rest?.openapi as Json), url: 'https://evil.example.com/openapi.json' } }
      ],
      ['the API below openapi', 'rest', { ...shown.rest, url: 'https://evil.example.com/v1' }],
      ['a command in place of a url', 'live', { command: 'cat', env: shown.live?.headers }],
      [
        'a description in the config, beside the API',
        'rest',
        {
          ...shown.rest,
          openapi: {
            ...(shown.rest?.openapi as Json),
            schema: {
              openapi: '3.0.3',
              info: { title: 'x', version: '1' },
              paths: { '/x': { get: { servers: [{ url: 'https://evil.example.com' }], responses: {} } } }
            }
          }
        }
      ],
      ['a mask of another member', 'live', { ...shown.live, headers: { 'X-Other': at(shown.live, 'headers', 'X-Api-Key') } }],
      ['a mask that was never shown', 'live', { ...shown.live, headers: { 'X-Api-Key': `${MASK}zzzz` } }],
      [
        'proxy.url',
        'remote',
        { ...shown.remote, proxy: { url: String(at(shown.remote, 'proxy', 'url')).replace('127.0.0.1', 'evil.example.com') } }
      ],
      [
        'oauth.tokenEndpoint',
        'remote',
        { ...shown.remote, oauth: { ...(shown.remote?.oauth as Json), tokenEndpoint: 'https://evil.example.com/t' } }
      ]
    ] as [string, string, Json][]) { refused(await admin.ask('PUT', `/servers/${name}`, { config }), 400, what) }
    for (const [what, secretArgs, sentArgs] of [
      ['the other secret of two that look alike', ['--a-token', 'short1', '--b-password', 'short2'], ['--b-password', MASK]],
      ['the first of two goes', ['--verbose', '--a-token', 'short1', '--b-password', 'short2'], ['--a-token', MASK, '--b-password', MASK]],
      ['the same flag, once less', ['--token=short1', '--token=short2'], [`--token=${MASK}`]]
    ] as const) {
      await admin.ok('PUT', '/servers/local', { config: { ...servers.local, args: secretArgs } })
      refused(await admin.ask('PUT', '/servers/local', { config: { ...servers.local, args: sentArgs } }), 400, what)
    }
    await admin.ok('PUT', '/servers/local', {
      config: { ...servers.local, args: ['--port', '80', '--a-token', 'short1', '--b-password', 'short2', '--c'] }
    })
    await admin.ok('PUT', '/servers/local', {
      config: { ...servers.local, args: ['--port', '81', '--a-token', MASK, '--b-password', 'short3'] }
    })
    assert.deepEqual(at(await stored(hub), 'mcpServers', 'local', 'args'), [
      '--port',
      '81',
      '--a-token',
      'short1',
      '--b-password',
      'short3'
    ])
    await admin.ok('PUT', '/servers/local', { config: servers.local })
    for (const [name, config] of Object.entries(shown).filter(([, config]) => JSON.stringify(config).includes(MASK))) {
      refused(await admin.ask('POST', '/servers', { name: `${name}-copy`, config }), 400, name)
      const batch = await admin.ask('POST', '/servers/batch', { servers: [{ name: `${name}-copy`, config }] })
      assert.deepEqual([batch.status, at(batch.body, 'data', 'failureCount')], [400, 1], batch.text)
    }
    for (const body of [
      { smartRouting: { llmProviderBaseUrl: 'https://evil.example.com', llmProviderApiKey: `${MASK}${secrets.llm?.slice(-4)}` } },
      { mcpRouter: { baseUrl: 'https://evil.example.com', apiKey: `${MASK}${secrets.router?.slice(-4)}` } },
      { mcpRouter: { apiKey: `${MASK}zzzz` } },
      { smartRouting: { dbUrl: String(at(await admin.system(), 'smartRouting', 'dbUrl')).replace('db.example.com', 'evil.example.com') } }
    ]) refused(await admin.ask('PUT', '/system-config', body), 400, JSON.stringify(body))
    assert.deepEqual(await stored(hub), before, 'and nothing of it is stored')
  })

  await t.test('a mask on a name of one\'s own: 400', async () => {
    refused(await admin.ask('PUT', '/servers/events', { config: { ...servers.events, headers: { Authorization: `${MASK}abcd` } } }), 400)
    await admin.ok('PUT', '/system-config', { mcpRouter: { apiKey: null, baseUrl: 'https://router.example.com' } })
    refused(await admin.ask('PUT', '/system-config', { mcpRouter: { apiKey: `${MASK}${secrets.router?.slice(-4)}` } }), 400)
  })
})

// ---- system configuration -------------------------------------------------------------------------

interface Key { good: unknown[], bad: unknown[], value?: unknown, secret?: boolean }

const flag = (value?: boolean): Key => ({ good: [true, false], bad: ['true', 1, 0, [], {}], value })
const words = (...good: string[]): Key => ({ good, bad: [7, true, [], {}] })
/** @param max the largest that is taken */
const count = (value?: number, max?: number): Key => ({
  good: [1, max ?? 5_000], bad: ['7', -1, 1.5, true, [], {}, ...(max === undefined ? [] : [max + 1])], value
})

/** Every key of the specification; `value`: its default. */
const keys: Record<string, Key> = {
  'routing.enableGlobalRoute': flag(true),
  'routing.enableGroupNameRoute': flag(true),
  'routing.enableBearerAuth': flag(true),
  'routing.bearerAuthHeaderName': {
    good: ['X-Key', 'x-mcp-token'],
    bad: [7, true, '', 'two words', 'a:b', 'a\nb', [], {}],
    value: 'Authorization'
  },
  'routing.jsonBodyLimit': {
    good: ['512kb', '2mb', '100000b', '10MB', '1.5 Mb', '2048.7'],
    bad: [7, true, 'big', '-1mb', '', '1.5.5mb', [], {}],
    value: '1mb'
  },
  'routing.skipAuth': flag(false),
  'install.pythonIndexUrl': words('https://pypi.example.com/simple'),
  'install.npmRegistry': { ...words('https://npm.example.com'), bad: [7, 'npm', 'https://npm.example.com/\n--evil'] },
  'install.baseUrl': {
    ...words('https://hub.example.com', 'https://hub.example.com/a/@b'),
    bad: [7, 'https://u:word@hub.example.com/', 'https://hub.example.com/?x=1', 'https://hub.example.com/#x', 'ftp://hub.example.com']
  },
  'smartRouting.enabled': flag(true),
  'smartRouting.dbUrl': {
    ...words('postgres://db.example.com/vectors', 'postgresql://db.example.com/v', 'pglite://vectors'),
    bad: [7, 'mysql://db.example.com/vectors', 'vectors'],
    secret: true
  },
  'smartRouting.llmProviderBaseUrl': words('https://llm.example.com/v1'),
  'smartRouting.llmProviderApiKey': { ...words('sk-a-long-key-of-an-embeddings-api'), secret: true },
  'smartRouting.embeddingModel': words('small', 'large'),
  'smartRouting.embeddingDimensions': count(),
  'smartRouting.embeddingDimensionsApiPassthrough': flag(false),
  'smartRouting.progressiveDisclosure': flag(false),
  'toolResultCompression.enabled': flag(false),
  'toolResultCompression.minTokens': count(2_000),
  'toolResultCompression.maxOutputTokens': count(1_200),
  'toolResultCompression.structuredContent': flag(false),
  'toolResultCompression.strategy': {
    good: ['json', 'log', 'search', 'diff', 'text', 'auto'],
    bad: ['fast', '', 7, true, []],
    value: 'auto'
  },
  'mcpRouter.apiKey': { ...words('sk-a-long-key-of-a-router'), secret: true },
  'mcpRouter.referer': words('https://hub.example.com'),
  'mcpRouter.title': words('Hub'),
  'mcpRouter.baseUrl': words('https://router.example.com'),
  nameSeparator: { good: ['_', '::', '12345678', '-'], bad: ['', ' ', 'a b', '123456789', 'é', '\n', 7, true, []], value: '-' },
  enableSessionRebuild: flag(false),
  'oauthServer.enabled': flag(false),
  'oauthServer.accessTokenLifetime': count(3_600, 86_400),
  'oauthServer.refreshTokenLifetime': count(1_209_600, 31_536_000),
  'oauthServer.authorizationCodeLifetime': count(60, 600),
  'oauthServer.requireClientSecret': flag(false),
  'oauthServer.allowedScopes': { good: [['mcp'], ['mcp', 'manage']], bad: ['mcp', [7], {}], value: ['mcp', 'manage', 'profile', 'openid'] },
  'oauthServer.requireState': flag(false),
  'oauthServer.dynamicRegistration.enabled': flag(true),
  'oauthServer.dynamicRegistration.allowedGrantTypes': {
    good: [['authorization_code']],
    bad: ['authorization_code', [7], {}],
    value: ['authorization_code', 'refresh_token']
  },
  'oauthServer.dynamicRegistration.requiresAuthentication': flag(false)
}

/** A body that says just this. */
const saying = (key: string, value: unknown): Json =>
  key.split('.').reduceRight<unknown>((inner, part) => ({ [part]: inner }), value) as Json

test('the system configuration', async (t) => {
  const fake = await startUpstream(t, offers)
  const { hub, admin, bob } = await started(t)
  await admin.add('alpha', { url: fake.url })
  const put = async (body: unknown): Promise<Answer> => await admin.ask('PUT', '/system-config', body)
  const value = async (key: string): Promise<unknown> => at(await admin.system(), ...key.split('.'))

  await t.test('every key: what it takes, what not, its default, and null to have it back', async () => {
    for (const [key, { good, bad, value: usual, secret }] of Object.entries(keys)) {
      assert.deepEqual(await value(key), usual, `the default of ${key}`)
      for (const one of good) {
        const answer = await put(saying(key, one))
        const shown = at(fine(answer), ...key.split('.'))
        assert.deepEqual(await value(key), shown, key)
        if (secret !== true || !JSON.stringify(shown).includes(MASK)) assert.deepEqual(shown, one, key)
        else assert.ok(!answer.text.includes(String(one)), `${key} is shown`)
      }
      const before = await onDisk(hub)
      for (const one of bad) refused(await put(saying(key, one)), 400, `${key} = ${JSON.stringify(one)}`)
      assert.deepEqual(await onDisk(hub), before)
      fine(await put(saying(key, null)))
      assert.deepEqual(await value(key), usual, `${key} after null`)
    }
  })

  await t.test('what is absent stays, in the section and beside it, nested as well', async () => {
    fine(
      await put({
        install: { baseUrl: 'https://hub.example.com' },
        toolResultCompression: { minTokens: 100, strategy: 'log' },
        oauthServer: { dynamicRegistration: { enabled: false, requiresAuthentication: true } },
        nameSeparator: '_'
      })
    )
    fine(await put({ toolResultCompression: { minTokens: 200 } }))
    fine(await put({ oauthServer: { requireState: true } }))
    fine(await put({ install: {} }))
    const now = await admin.system()
    assert.deepEqual(
      [
        at(now, 'install', 'baseUrl'),
        at(now, 'toolResultCompression', 'minTokens'),
        at(now, 'toolResultCompression', 'strategy'),
        at(now, 'oauthServer', 'requireState'),
        at(now, 'oauthServer', 'dynamicRegistration', 'requiresAuthentication'),
        now.nameSeparator
      ],
      ['https://hub.example.com', 200, 'log', true, true, '_']
    )
    fine(await put({ toolResultCompression: null, install: null, oauthServer: null, nameSeparator: null }))
    const reset = await admin.system()
    assert.deepEqual(
      [reset.toolResultCompression, reset.install, at(reset, 'oauthServer', 'requireState'), reset.nameSeparator],
      [{ enabled: false, minTokens: 2_000, maxOutputTokens: 1_200, strategy: 'auto', structuredContent: false }, {}, false, '-']
    )
  })

  await t.test('what is not taken: unknown, nothing, the flat body of before, or half of it wrong', async () => {
    const before = await onDisk(hub)
    for (const body of [
      {},
      { unknown: true },
      { routing: { unknown: true } },
      { oauthServer: { dynamicRegistration: { unknown: true } } },
      { auth: { betterAuth: { basePath: '/x' } } },
      { apiKey: 'sk-1', model: 'x', temperature: 1, maxTokens: 100 },
      { openaiApiKey: 'sk-1' },
      { temperature: 0.5 },
      { nameSeparator: '_', unknown: true },
      { nameSeparator: '_', routing: { skipAuth: 'yes' } },
      { routing: [] },
      { routing: 'all' },
      { install: 7 },
      { mcpRouter: true },
      { systemConfig: { nameSeparator: '_' } },
      [{ nameSeparator: '_' }]
    ]) { refused(await put(body), 400, JSON.stringify(body)) }
    for (const raw of ['{"__proto__":{"nameSeparator":"_"}}', '{"constructor":{}}', '{"routing":{"__proto__":{"skipAuth":true}}}']) {
      const answer = await admin.ask('PUT', '/system-config', undefined, { raw, headers: { 'content-type': 'application/json' } })
      refused(answer, 400, raw)
    }
    refused(await bob.ask('PUT', '/system-config', { nameSeparator: '_' }), 403)
    assert.deepEqual(await onDisk(hub), before)
  })

  await t.test('a section that is no object, what a pattern wants in words', async () => {
    for (const section of ['routing', 'install', 'smartRouting', 'toolResultCompression', 'mcpRouter', 'oauthServer']) {
      for (const value of [[], 7, 'text']) refused(await put({ [section]: value }), 400, section)
    }
    assert.match((await put({ routing: { bearerAuthHeaderName: 'a b' } })).text, /expected the name of an HTTP header, without a colon or spaces/)
  })

  await t.test('the older names of the embeddings API are understood', async () => {
    fine(
      await put({
        smartRouting: {
          openaiApiBaseUrl: 'https://old.example.com/v1',
          openaiApiKey: 'sk-of-the-older-name-1234',
          openaiApiEmbeddingModel: 'older'
        }
      })
    )
    const shown = await value('smartRouting')
    assert.deepEqual(
      [at(shown, 'llmProviderBaseUrl'), at(shown, 'llmProviderApiKey'), at(shown, 'embeddingModel')],
      ['https://old.example.com/v1', `${MASK}1234`, 'older']
    )
    fine(await put({ smartRouting: null }))
  })

  await t.test('nameSeparator: the names of lists at once, told to open sessions', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    const stream = await session.listen()
    assert.ok((await session.tools()).includes('alpha-echo'))
    await sleep(300)
    for (const separator of ['__', '::', null]) {
      const seen = stream.messages.length
      fine(await put({ nameSeparator: separator }))
      const name = `alpha${separator ?? '-'}echo`
      await until(
        () => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
        `no news of ${String(separator)}`
      )
      assert.ok((await session.tools()).includes(name), name)
      assert.equal(text(await session.call(name, { message: 'named' })), 'named')
      assert.equal(text(await admin.ok('POST', '/tools/call/alpha', { toolName: name, arguments: { message: 'by REST' } })), 'by REST')
    }
    stream.close()
  })

  const opened = async (route: string, key: string | null = KEY, headers: Record<string, string> = {}): Promise<number> =>
    (await send(`${hub.url}${route}`, { key, headers, body: initialize() })).status

  await t.test('enableGlobalRoute, enableGroupNameRoute', async () => {
    const { id } = await admin.ok('POST', '/groups', { name: 'team', servers: ['alpha'] }, 201)
    const look = async (): Promise<number[]> =>
      await Promise.all(
        ['/mcp', '/mcp/team', `/mcp/${String(id)}`, '/mcp/alpha', '/api/mcp', '/api/mcp/group/team'].map(
          async (route) => await opened(route)
        )
      )
    assert.deepEqual(await look(), [200, 200, 200, 200, 200, 200])
    fine(await put({ routing: { enableGlobalRoute: false } }))
    assert.deepEqual(await look(), [403, 200, 200, 200, 403, 200])
    fine(await put({ routing: { enableGlobalRoute: null, enableGroupNameRoute: false } }))
    assert.deepEqual(await look(), [200, 404, 200, 200, 200, 404])
    fine(await put({ routing: { enableGroupNameRoute: true } }))
    assert.deepEqual(await look(), [200, 200, 200, 200, 200, 200])
  })

  await t.test('enableBearerAuth, bearerAuthHeaderName', async () => {
    assert.deepEqual([await opened('/mcp', null), await opened('/mcp')], [401, 200])
    fine(await put({ routing: { bearerAuthHeaderName: 'X-Hub-Key' } }))
    assert.deepEqual(
      [
        await opened('/mcp'),
        await opened('/mcp', null, { 'x-hub-key': KEY }),
        await opened('/mcp', null, { 'X-HUB-KEY': `Bearer ${KEY}` })
      ],
      [401, 200, 200]
    )
    for (const headers of [{ 'x-hub-key': KEY }, { authorization: `Bearer ${KEY}` }] as Record<string, string>[]) {
      assert.equal((await new Api(hub, headers).ask('GET', '/servers')).status, 200)
    }
    fine(await put({ routing: { bearerAuthHeaderName: null, enableBearerAuth: false } }))
    assert.deepEqual([await opened('/mcp', null), await opened('/mcp')], [200, 200])
    assert.equal((await new Api(hub).ask('GET', '/servers')).status, 401, 'MCP only')
    fine(await put({ routing: { enableBearerAuth: null } }))
    assert.equal(await opened('/mcp', null), 401)
  })

  await t.test('jsonBodyLimit, larger and smaller', async () => {
    const call = async (size: number): Promise<number[]> => {
      const rest = await admin.ask('POST', '/tools/call/alpha', { toolName: 'echo', arguments: { message: 'x'.repeat(size) } })
      if (rest.status === 413) refused(rest, 413)
      const mcp = await send(`${hub.url}/mcp/alpha`, { body: { ...initialize(), padding: 'x'.repeat(size) } })
      return [rest.status, mcp.status]
    }
    assert.deepEqual([await call(500_000), await call(1_100_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: '3mb' } }))
    assert.deepEqual([await call(2_500_000), await call(3_300_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: '10kb' } }))
    assert.deepEqual([await call(5_000), await call(20_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: '0.5MB' } }))
    assert.deepEqual([await call(500_000), await call(600_000)], [[200, 200], [413, 413]])
    fine(await put({ routing: { jsonBodyLimit: null } }))
    assert.deepEqual(await call(500_000), [200, 200])
  })

  await t.test('a limit that would lock everybody out is refused, or can be taken back', async () => {
    for (const jsonBodyLimit of ['0', '0mb', '1b', '10b']) {
      const answer = await put({ routing: { jsonBodyLimit } })
      if (answer.status === 200) fine(await put({ routing: { jsonBodyLimit: null } }))
      else refused(answer, 400, jsonBodyLimit)
    }
  })

  await t.test('enableSessionRebuild', async () => {
    const unknown = async (): Promise<number> =>
      (
        await send(`${hub.url}/mcp/alpha`, {
          headers: { 'mcp-session-id': 'f'.repeat(64), 'mcp-protocol-version': '2025-11-25' },
          body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }
        })
      ).status
    assert.equal(await unknown(), 404)
    fine(await put({ enableSessionRebuild: true }))
    assert.equal(await unknown(), 200)
    fine(await put({ enableSessionRebuild: null }))
    assert.equal(
      (
        await send(`${hub.url}/mcp/alpha`, {
          headers: { 'mcp-session-id': 'e'.repeat(64) },
          body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }
        })
      ).status,
      404
    )
  })

  await t.test('skipAuth: a guest who is an admin, on the API only', async () => {
    const nobody = new Api(hub)
    assert.equal((await nobody.ask('GET', '/servers')).status, 401)
    fine(await put({ routing: { skipAuth: true } }))
    assert.deepEqual(names(list(await nobody.ask('GET', '/servers'))), ['alpha'])
    const guest = await nobody.ask('GET', '/auth/user')
    assert.deepEqual([at(guest.body, 'user', 'username'), at(guest.body, 'user', 'isAdmin')], ['guest', true])
    assert.equal(at(await (await fetch(`${hub.url}/public-config`)).json(), 'data', 'skipAuth'), true)
    assert.equal((await nobody.ask('GET', '/mcp-settings/export')).status, 200)
    refused(await nobody.ask('GET', '/mcp-settings/export?includeSecrets=true'), 403)
    assert.equal(await opened('/mcp', null), 401)
    await nobody.ok('PUT', '/system-config', { routing: { skipAuth: false } })
    assert.equal((await nobody.ask('GET', '/servers')).status, 401)
    assert.equal(at(await (await fetch(`${hub.url}/public-config`)).json(), 'data', 'skipAuth'), false)
  })

  await t.test('bearerAuthKey on a gateway with keys is ignored; without keys it becomes one, and the answer and the log say what it opens', async (t) => {
    const made = 'a-key-that-a-client-made-up'
    for (const hasKeys of [true, false]) {
      const { hub, admin } = await started(t, {}, hasKeys ? {} : { bearerKeys: [] })
      const answer = await admin.ask('PUT', '/system-config', { routing: { enableBearerAuth: true, bearerAuthKey: made } })
      fine(answer)
      assert.ok(!answer.text.includes(made), answer.text)
      assert.ok(!JSON.stringify(await admin.system()).includes(made))
      assert.match(
        String(at(answer.body, 'message')),
        hasKeys ? /"routing\.bearerAuthKey" was ignored/ : /management API with the rights of an admin\. To narrow it/
      )
      const status = async (): Promise<number> => (await send(`${hub.url}/mcp`, { key: made, body: initialize() })).status
      assert.equal(await status(), hasKeys ? 401 : 200)
      assert.equal(/management API with the rights of an admin/.test(hub.output()), !hasKeys)
      const keyNames = list(await admin.ask('GET', '/auth/keys')).map(({ name }) => name)
      assert.equal(keyNames.includes('default'), !hasKeys)
      assert.ok(!(await readFile(hub.settingsPath, 'utf8')).includes(made))
      // Once only, whether keys are left or not.
      const again = await admin.ask('PUT', '/system-config', { routing: { bearerAuthKey: `${made}-again` } })
      fine(again)
      assert.match(String(at(again.body, 'message')), /"routing\.bearerAuthKey" was ignored/)
      assert.deepEqual(list(await admin.ask('GET', '/auth/keys')).map(({ name }) => name), keyNames)
      fine(await admin.ask('PUT', '/system-config', { routing: { bearerAuthKey: null } }))
    }
  })

  await t.test('bearerAuthKey that is edited into the file of a running gateway, too', async (t) => {
    const { hub, admin } = await started(t)
    const old = 'the-one-key-that-somebody-wrote-down'
    await writeFile(hub.settingsPath, JSON.stringify({ ...await onDisk(hub), systemConfig: { routing: { bearerAuthKey: old } } }))
    await until(async () => (await send(`${hub.url}/mcp`, { key: old, body: initialize() })).status === 200, () => hub.output())
    await until(async () => !(await readFile(hub.settingsPath, 'utf8')).includes(old))
    assert.ok(list(await admin.ask('GET', '/auth/keys')).some(({ name }) => name === 'default'))
  })
})

// ---- many at once, new names, owners --------------------------------------------------------------

/** How often the settings file is replaced until `stop`. */
const writes = (hub: Hub): { stop: () => Promise<number> } => {
  let seen = 0
  const watcher = watch(hub.folder, (event, name) => { if (event === 'rename' && name === 'mcp_settings.json') seen++ })
  return { stop: async () => { await sleep(300); watcher.close(); return seen } }
}

test('a batch of 500', async (t) => {
  const { hub, admin, bob } = await started(t, { taken: { url: 'http://127.0.0.1:9/mcp', enabled: false } })
  const config = { url: 'http://127.0.0.1:9/mcp', enabled: false, headers: { 'X-Key': 'a-key-of-each-of-them' } }
  const wrong: unknown[] = [
    { name: 'taken', config },
    { name: 'batch', config },
    { name: 'no-config' },
    { config },
    7,
    null,
    'text',
    { name: '__proto__', config },
    { name: 'bad-url', config: { url: 'nonsense' } },
    { name: 'twice', config: { type: 'pigeon' } },
    { name: 'server-0', config },
    { name: ['a'], config }
  ]
  const every = (good: boolean, bad: boolean, prefix: string): unknown[] =>
    Array.from({ length: 500 }, (_, n) =>
      n % 10 === 9
        ? bad
          ? wrong[((n - 9) / 10) % wrong.length]
          : undefined
        : good
          ? { name: `${prefix}-${n}`, config: { ...config, description: String(n) } }
          : undefined
    ).filter((one) => one !== undefined)
  const nameOf = (one: unknown): unknown => at(one, 'name')

  await t.test('each is answered, in order; the valid ones are stored in one write', async () => {
    const entries = every(true, true, 'server')
    assert.equal(entries.length, 500 - wrong.filter((one) => one === undefined).length)
    const watched = writes(hub)
    const answer = await admin.ask('POST', '/servers/batch', { servers: entries })
    assert.equal(await watched.stop(), 1, 'one commit')
    assert.deepEqual(
      [answer.status, at(answer.body, 'success'), at(answer.body, 'data', 'successCount'), at(answer.body, 'data', 'failureCount')],
      [207, true, 450, 50],
      answer.text.slice(0, 1_000)
    )
    const results = at(answer.body, 'data', 'results') as Json[]
    assert.equal(results.length, 500)
    for (const [n, result] of results.entries()) {
      members(result, ['name', 'success'], ['message'])
      assert.equal(result.success, n % 10 !== 9, JSON.stringify([entries[n], result]))
      if (typeof nameOf(entries[n]) === 'string') assert.equal(result.name, nameOf(entries[n]))
      if (result.success === false) assert.ok(typeof result.message === 'string' && result.message !== '', JSON.stringify(result))
    }
    const file = at(await onDisk(hub), 'mcpServers') as Json
    assert.deepEqual(Object.keys(file), ['taken', ...entries.filter((_, n) => n % 10 !== 9).map((one) => String(nameOf(one)))])
    assert.equal(at(file, 'server-498', 'description'), '498')
    assert.equal(list(await admin.ask('GET', '/servers')).length, 451)
  })

  await t.test('all of them good: 200', async () => {
    const watched = writes(hub)
    const answer = await admin.ask('POST', '/servers/batch', { servers: every(true, false, 'good') })
    assert.equal(await watched.stop(), 1, 'one commit')
    assert.deepEqual(
      [answer.status, at(answer.body, 'success'), at(answer.body, 'data', 'successCount'), at(answer.body, 'data', 'failureCount')],
      [200, true, 450, 0],
      answer.text.slice(0, 1_000)
    )
  })

  await t.test('none of them: 400 with the same data, and nothing is written', async () => {
    const before = await onDisk(hub)
    const watched = writes(hub)
    const entries = every(false, true, 'none')
    const answer = await admin.ask('POST', '/servers/batch', { servers: entries })
    assert.equal(await watched.stop(), 0)
    assert.deepEqual(
      [
        answer.status,
        at(answer.body, 'success'),
        at(answer.body, 'data', 'successCount'),
        at(answer.body, 'data', 'failureCount'),
        (at(answer.body, 'data', 'results') as unknown[]).length
      ],
      [400, false, 0, entries.length, entries.length],
      answer.text.slice(0, 1_000)
    )
    assert.equal(typeof at(answer.body, 'message'), 'string')
    assert.deepEqual(await onDisk(hub), before)
  })

  await t.test('the same name twice: the first one is it', async () => {
    const answer = await admin.ask('POST', '/servers/batch', {
      servers: [
        { name: 'same', config: { ...config, description: 'first' } },
        { name: 'same', config: { ...config, description: 'second' } }
      ]
    })
    assert.deepEqual((at(answer.body, 'data', 'results') as Json[]).map(({ success }) => success), [true, false], answer.text)
    assert.equal(at(await admin.server('same'), 'config', 'description'), 'first')
  })

  await t.test('who is no admin: nothing that runs a command or is of type openapi, the rest is theirs', async () => {
    const answer = await bob.ask('POST', '/servers/batch', {
      servers: [
        { name: 'bobs', config: { url: 'https://mcp.example.com/mcp', enabled: false } },
        { name: 'runs', config: STDIO },
        { name: 'rest', config: { type: 'openapi', url: 'https://api.example.com/openapi.json' } },
        { name: 'given', config: { url: 'https://mcp.example.com/mcp', enabled: false, owner: 'admin' } }
      ]
    })
    const results = at(answer.body, 'data', 'results') as Json[]
    assert.deepEqual([answer.status, ...results.slice(0, 3).map(({ success }) => success)], [207, true, false, false], answer.text)
    assert.deepEqual(names(list(await bob.ask('GET', '/servers'))), results.filter(({ success }) => success).map(({ name }) => name))
    for (const { config } of list(await bob.ask('GET', '/servers'))) assert.equal(at(config, 'owner'), 'bob')
  })
})

test('new names, owners, visibility, pages', async (t) => {
  const fake = await startUpstream(t, offers)
  const { hub, admin, bob } = await started(t)
  await admin.add('before', { url: fake.url, headers: { 'X-Key': 'a-key-that-is-kept' } })
  await admin.add('other', { url: fake.url, enabled: false })

  await t.test('a rename reaches groups, keys and overrides, in one write; what was defaulted stays so', async () => {
    await admin.ok('POST', '/groups', { name: 'one', servers: ['other', { name: 'before', tools: ['echo'], alias: 'b' }] }, 201)
    await admin.ok('POST', '/groups', { name: 'two', servers: ['before'] }, 201)
    const key = await admin.ok('POST', '/auth/keys', { name: 'k', accessType: 'servers', allowedServers: ['other', 'before'] }, 201)
    transcript.pop()
    await admin.ok('PUT', '/servers/before/tools/echo/description', { description: 'Ours' })
    const shown = await admin.server('before')
    const watched = writes(hub)
    const record = await admin.ok('PUT', '/servers/before', { config: shown.config, newName: 'after it' })
    assert.equal(await watched.stop(), 1, 'one commit')
    assert.equal(record.name, 'after it')
    await admin.has('after it', 'connected')
    refused(await admin.ask('GET', '/servers/before'), 404)
    assert.deepEqual((await admin.server('after it')).config, shown.config)
    assert.deepEqual((await admin.ok('GET', '/groups/one')).servers, [
      'other',
      { name: 'after it', tools: ['echo'], prompts: 'all', resources: 'all', alias: 'b' }
    ])
    assert.deepEqual((await admin.ok('GET', '/groups/two')).servers, ['after it'])
    assert.deepEqual(list(await admin.ask('GET', '/auth/keys')).find(({ id }) => id === key.id)?.allowedServers, ['other', 'after it'])
    assert.ok(!JSON.stringify(await stored(hub)).includes('"before"'), 'the old name is somewhere yet')
    assert.deepEqual(names(list(await admin.ask('GET', '/servers'))), ['after it', 'other'], 'its place in the order is the same')
    const session = await Session.open(`${hub.url}/mcp/one`, { key: String(key.token) })
    assert.deepEqual(await session.tools(), ['b-echo'])
    assert.equal((await send(`${hub.url}/mcp/before`, { body: initialize() })).status, 404)
    const { visibilityDefaulted } = (await admin.server('after it')).config as Json
    assert.equal(visibilityDefaulted, true)
  })

  await t.test('an open session follows a new name', async () => {
    const session = await Session.open(`${hub.url}/mcp`)
    const stream = await session.listen()
    assert.ok((await session.tools()).includes('after it-echo'))
    await sleep(300)
    for (const [from, to] of [['after it', 'for a while'], ['for a while', 'after it']] as const) {
      const seen = stream.messages.length
      await admin.ok('PUT', `/servers/${enc(from)}`, { config: (await admin.server(from)).config, newName: to })
      await until(
        () => stream.messages.slice(seen).some(({ method }) => method === 'notifications/tools/list_changed'),
        'no news of the new name'
      )
      await admin.has(to, 'connected')
      await until(async () => (await session.tools()).includes(`${to}-echo`), `${to}-echo is not listed`)
      assert.ok(!(await session.tools()).includes(`${from}-echo`))
      assert.equal(text(await session.call(`${to}-echo`, { message: 'called' })), 'called')
    }
    stream.close()
  })

  await t.test('a group takes many changes side by side', async () => {
    const many = Array.from({ length: 12 }, (_, n) => `member ${n}`)
    await admin.ok('POST', '/servers/batch', { servers: many.map((name) => ({ name, config: { url: fake.url, enabled: false } })) })
    await admin.ok('POST', '/groups', { name: 'crowd' }, 201)
    const key = await admin.ok('POST', '/auth/keys', { name: 'of the crowd', accessType: 'servers', allowedServers: many }, 201)
    transcript.pop()
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
    assert.deepEqual(
      list(await admin.ask('GET', '/auth/keys')).find(({ id }) => id === key.id)?.allowedServers,
      [],
      'and no key opens who comes next by that name'
    )
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
      '\u3164',
      'a\u034fb',
      'a\ufe0f',
      '\u0301x',
      'e\u0301t',
      'other',
      'call',
      'openapi.json',
      '__proto__',
      'toString',
      '.hidden',
      '$smart',
      '_x',
      'a/b',
      '',
      ' ',
      'x'.repeat(129),
      7,
      null,
      ['a']
    ]) { refused(await admin.ask('PUT', '/servers/after%20it', { config, newName }), 400, JSON.stringify(newName)) }
    assert.deepEqual(await stored(hub), before)
    assert.equal((await admin.ok('PUT', '/servers/after%20it', { config, newName: 'after it' })).name, 'after it')
    assert.deepEqual(await stored(hub), before)
  })

  await t.test('a group that is renamed keeps its keys, and leaves none behind for who takes its old name', async () => {
    const group = await admin.ok('POST', '/groups', { name: 'daily', servers: ['other'] }, 201)
    const key = await admin.ok('POST', '/auth/keys', { name: 'of the group', accessType: 'groups', allowedGroups: ['daily'] }, 201)
    transcript.pop()
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
    transcript.pop()
    const tools = async (name: string, token: unknown = KEY): Promise<string[]> =>
      await (await Session.open(`${hub.url}/mcp/${enc(name)}`, { key: String(token) })).tools()
    assert.deepEqual((await tools('squat'))[0], 'member-echo')
    const message = async (method: string, route: string, body: Json): Promise<string> => {
      const answer = await admin.ask(method, route, body)
      assert.ok(answer.status < 300, answer.text)
      return String(at(answer.body, 'message') ?? '') + String(at(answer.body, 'data', 'results', 0, 'message') ?? '')
    }
    assert.match(
      await message('POST', '/servers/batch', { servers: [{ name: 'squat', config: server }] }),
      /owned by "bob".*lead to the server/
    )
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
    const { admin } = await started(
      t,
      { other: { url: fake.url, enabled: false } },
      { groups: [{ id: '33333333-3333-4333-8333-333333333333', name: 'old', servers: [old] }] }
    )
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
      servers: Array.from({ length: limits.serversPerUser + 2 }, (_, n) => ({ name: `s${n}`, config }))
    })
    assert.deepEqual([batch.status, at(batch.body, 'data', 'failureCount')], [207, 2], batch.text.slice(-500))
    refused(await bob.ask('POST', '/servers', { name: 'more', config }), 429)
    await admin.ok('POST', '/servers', { name: 'more', config })
    for (let n = 0; n < limits.groupsPerUser; n++) await bob.ok('POST', '/groups', { name: `g${n}` }, 201)
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

  await t.test('visibilityDefaulted: kept where it is sent back or nothing is said, gone where it is meant', async () => {
    const put = async (config: Json): Promise<unknown[]> => {
      await admin.ok('PUT', '/servers/other', { config: { url: fake.url, enabled: false, ...config } })
      const shown = (await admin.server('other')).config as Json
      return [shown.visibility, shown.visibilityDefaulted ?? false]
    }
    assert.deepEqual(await put({}), ['private', true])
    assert.deepEqual(await put({ visibility: 'private', visibilityDefaulted: true }), ['private', true])
    assert.deepEqual(await put({ visibility: 'private' }), ['private', false])
    assert.deepEqual(await put({}), ['private', false])
    assert.deepEqual(await put({ visibility: 'public' }), ['public', false])
    assert.deepEqual(await put({}), ['public', false])
    assert.deepEqual(await put({ visibility: 'group' }), ['group', false])
    const lying = await admin.ask('PUT', '/servers/other', {
      config: { url: fake.url, enabled: false, visibility: 'public', visibilityDefaulted: true }
    })
    if (lying.status === 200) assert.notEqual(at(fine(lying), 'config', 'visibilityDefaulted'), true, 'public was never defaulted')
    assert.equal(
      at(
        await admin.ok('POST', '/servers', { name: 'explicit', config: { url: fake.url, enabled: false, visibility: 'private' } }),
        'config',
        'visibilityDefaulted'
      ) ?? false,
      false
    )
    await admin.ok('DELETE', '/servers/explicit')
  })

  await t.test(
    'a server of a file that says neither owner nor visibility: shown as it counts, and an admin who sends it back does not take it over',
    async () => {
      const { admin, bob, hub } = await started(t, {
        mine: { command: 'cat', enabled: false },
        open: { command: 'cat', enabled: false, visibility: 'public' }
      })
      const counts = { owner: 'admin', visibility: 'private', visibilityDefaulted: true }
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

  await t.test('group is private: nobody but the owner sees it', async () => {
    await admin.ok('PUT', '/servers/other', { config: { url: fake.url, enabled: false, visibility: 'group', sharedWithUsers: ['bob'] } })
    refused(await bob.ask('GET', '/servers/other'), 404)
    assert.deepEqual(names(list(await bob.ask('GET', '/servers'))), [])
  })

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

  await t.test('lists take limit, cursor and fields; a page goes on where the one before ended, whatever went meanwhile', async () => {
    for (let n = 0; n < 7; n++) {
      await admin.ok('POST', '/groups', { name: `page ${n}` }, 201)
      await admin.ok('POST', '/servers', { name: `page ${n}`, config: { url: fake.url, enabled: false } })
    }
    for (const route of ['/groups', '/servers']) {
      const all = names(list(await admin.ask('GET', route)))
      const seen: string[] = []
      let cursor: string | undefined
      for (let n = 0; n <= all.length; n++) {
        const answer = await admin.ask('GET', `${route}?limit=2${cursor === undefined ? '' : `&cursor=${enc(cursor)}`}`)
        members(answer.body, ['success', 'data'], ['nextCursor'])
        assert.ok(list(answer).length <= 2, answer.text)
        seen.push(...names(list(answer)))
        cursor = at(answer.body, 'nextCursor') as string | undefined
        if (cursor === undefined) break
      }
      assert.deepEqual(seen, all, route)
      for (const query of ['limit=0', 'limit=-1', 'limit=x', 'limit=1.5', 'limit=']) {
        refused(await admin.ask('GET', `${route}?${query}`), 400, `${route}?${query}`)
      }
    }
    assert.deepEqual(
      list(await admin.ask('GET', '/groups?fields=name,owner'))
        .map((group) => Object.keys(group).sort().join())
        .filter((one) => one !== 'name,owner'),
      []
    )
    const first = await admin.ask('GET', '/servers?limit=4')
    const last = String(list(first).at(-1)?.name)
    await admin.ok('DELETE', `/servers/${enc(last)}`)
    const next = await admin.ask('GET', `/servers?limit=1000&cursor=${enc(String(at(first.body, 'nextCursor')))}`)
    const all = names(list(await admin.ask('GET', '/servers')))
    if (next.status === 200) assert.deepEqual([...names(list(first)).filter((name) => name !== last), ...names(list(next))], all)
    else refused(next, 400, 'a cursor whose server went')
  })

  await t.test('a tool, a prompt and a list wait for a server that is connecting', async (t) => {
    const slow = await startUpstream(t, {
      ...offers,
      on: async (call) => {
        if (call.method === 'initialize') await sleep(2_500)
        return offers.on?.(call)
      }
    })
    await admin.ok('POST', '/servers', { name: 'slow', config: { url: slow.url } })
    const start = performance.now()
    const [called, filled] = await Promise.all([
      admin.ok('POST', '/tools/call/slow', { toolName: 'echo', arguments: { message: 'at last' } }),
      admin.ok('POST', '/mcp/slow/prompts/greet', { arguments: { who: 'you' } })
    ])
    assert.ok(performance.now() - start > 1_500)
    assert.deepEqual([text(called), at(filled, 'messages', 0, 'content', 'text')], ['at last', 'Greet you'])
    await admin.ok('DELETE', '/servers/slow')
  })
})

// ---- export and audit -----------------------------------------------------------------------------

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

  await t.test('what is named and not there stands in `warnings`, and in the message', async () => {
    const warned = async (method: string, route: string, body: object): Promise<string[] | undefined> => {
      const { status, body: answer, text } = await admin.ask(method, route, body)
      assert.ok(status < 300, text)
      const warnings = at(answer, 'warnings') as string[] | undefined
      for (const each of warnings ?? []) assert.ok(String(at(answer, 'message')).includes(each))
      return warnings
    }
    const zebra = { name: 'zebra', tools: ['echo', 'ecko'], prompts: ['nothing'], resources: 'all' }
    const ecko = 'The server "zebra" lists no tools "ecko": they belong to the group once it does'
    const nothing = 'The server "zebra" lists no prompts "nothing": they belong to the group once it does'
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
    const unknown = ['There is no group "tipo" yet', 'There is no server "zebbra" yet'].map((each) => `${each}: the key opens it as soon as there is one`)
    assert.deepEqual(await warned('POST', '/auth/keys', { name: 'scoped', ...scope }), unknown)
    const id = String(list(await admin.ask('GET', '/auth/keys')).find(({ name }) => name === 'scoped')?.id)
    assert.deepEqual(await warned('PUT', `/auth/keys/${id}`, { name: 'again' }), unknown)
    assert.deepEqual(await warned('PUT', `/auth/keys/${id}`, { allowedServers: ['zebra'] }), unknown.slice(0, 1))
    assert.equal(await warned('PUT', `/auth/keys/${id}`, { accessType: 'all' }), undefined, 'its lists do not count then')
    refused(await admin.ask('POST', '/auth/keys', { name: 'x', kind: 'user', owner: 'nobody-here' }), 400)
  })

  await t.test('the log tells of an edit of the file that is in force, and of tokens that became hashes', async () => {
    const file = await onDisk(hub)
    const token = 'a-plain-token-in-the-file'
    const scope = { accessType: 'custom', allowedServers: ['nothing-of-that-name'] }
    const key = { id: '44444444-4444-4444-8444-444444444444', name: 'by hand', token, kind: 'system', ...scope }
    await writeFile(hub.settingsPath, JSON.stringify({ ...file, bearerKeys: [...file.bearerKeys as Json[], key] }))
    await until(() => hub.output().includes('an edit of the settings file is in force: keys \\"by hand\\" (added)'), () => hub.output())
    await until(() => hub.output().includes('allows a server \\"nothing-of-that-name\\", which is not there'), () => hub.output())
    await admin.ok('PUT', '/groups/ownerless', { description: 'y' })
    assert.ok(hub.output().includes('hashes in place of the plain tokens of the bearer keys \\"by hand\\"'), hub.output())
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
  const key = await admin.ok('POST', '/auth/keys', { name: 'k' }, 201)
  transcript.pop()

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

  await t.test('what is no choice: 400', async () => {
    for (const query of ['?includeSecrets=maybe', '?download=perhaps']) {
      refused(await admin.ask('GET', `/mcp-settings/export${query}`), 400, query)
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
    assert.equal(
      (await new Api(other, { authorization: `Bearer ${String(key.token)}` }).ask('GET', '/servers')).status,
      200,
      'keys go along'
    )
    assert.equal((await Session.open(`${other.url}/mcp/team`, { key: String(key.token) })).init.protocolVersion, '2025-11-25')
  })
})

test('the audit of writes', async (t) => {
  const fake = await startUpstream(t, offers)
  const secret = { first: canary('first'), second: canary('second'), router: canary('router'), password: 'Canary-Pass-word-1' }
  const { hub, admin, bob } = await started(t)
  const entries = async (): Promise<Json[]> => list(await admin.ask('GET', '/audit?limit=100'))
  /** What a write leaves in the audit, oldest first. */
  const left = async (write: () => Promise<unknown>): Promise<Json[]> => {
    const before = new Set((await entries()).map(({ id }) => id))
    await write()
    return (await entries()).filter(({ id }) => !before.has(id)).reverse()
  }
  const one = async (write: () => Promise<unknown>): Promise<Json> => {
    const found = await left(write)
    assert.equal(found.length, 1, JSON.stringify(found))
    const entry = found[0] ?? {}
    assert.ok(
      !Number.isNaN(new Date(String(entry.timestamp)).getTime()) &&
        Math.abs(Date.now() - new Date(String(entry.timestamp)).getTime()) < 20_000,
      JSON.stringify(entry)
    )
    return entry
  }
  const said = (entry: Json): unknown[] => [entry.username, entry.action, entry.entity, entry.name]

  await t.test('servers: made, changed, toggled, renamed, removed', async () => {
    const made = await one(async () => await admin.add('alpha', { url: fake.url, headers: { 'X-Key': secret.first } }))
    assert.deepEqual(said(made), ['admin', 'create', 'server', 'alpha'])
    assert.equal(made.before ?? null, null)
    assert.deepEqual(
      [at(made, 'after', 'config', 'url'), at(made, 'after', 'config', 'headers', 'X-Key')],
      [fake.url, MASK + secret.first.slice(-4)]
    )

    const changed = await one(
      async () =>
        await admin.ok('PUT', '/servers/alpha', { config: { url: fake.url, headers: { 'X-Key': secret.second }, description: 'changed' } })
    )
    assert.deepEqual(said(changed), ['admin', 'update', 'server', 'alpha'])
    assert.deepEqual(
      [at(changed, 'before', 'config', 'description'), at(changed, 'after', 'config', 'description')],
      [undefined, 'changed']
    )
    assert.deepEqual(
      [at(changed, 'before', 'config', 'headers', 'X-Key'), at(changed, 'after', 'config', 'headers', 'X-Key')],
      [MASK + secret.first.slice(-4), MASK + secret.second.slice(-4)]
    )
    await admin.has('alpha', 'connected')

    const toggled = await one(async () => await admin.ok('POST', '/servers/alpha/toggle', { enabled: false }))
    assert.deepEqual([at(toggled, 'before', 'config', 'enabled') ?? true, at(toggled, 'after', 'config', 'enabled')], [true, false])
    await admin.ok('POST', '/servers/alpha/toggle', { enabled: true })
    await admin.has('alpha', 'connected')

    const tooled = await one(async () => await admin.ok('POST', '/servers/alpha/tools/echo/toggle', { enabled: false }))
    assert.deepEqual(
      [at(tooled, 'before', 'config', 'tools', 'echo', 'enabled') ?? true, at(tooled, 'after', 'config', 'tools', 'echo', 'enabled')],
      [true, false]
    )

    const renamed = await left(async () => await admin.ok('PUT', '/servers/alpha', { config: { url: fake.url }, newName: 'omega' }))
    assert.deepEqual(
      renamed.map((entry) => [entry.username, entry.action, entry.entity, at(entry, 'before', 'name'), at(entry, 'after', 'name')]),
      [['admin', 'update', 'server', 'alpha', 'omega']]
    )

    const removed = await one(async () => await admin.ok('DELETE', '/servers/omega'))
    assert.deepEqual([...said(removed), removed.after ?? null], ['admin', 'delete', 'server', 'omega', null])
    assert.equal(at(removed, 'before', 'config', 'url'), fake.url)
  })

  await t.test('a batch: an entry for each that was stored', async () => {
    const config = { url: fake.url, enabled: false }
    const found = await left(
      async () =>
        await admin.ask('POST', '/servers/batch', {
          servers: [
            { name: 'one', config },
            { name: 'call', config },
            { name: 'two', config }
          ]
        })
    )
    assert.deepEqual(found.map(said).sort(), [['admin', 'create', 'server', 'one'], ['admin', 'create', 'server', 'two']])
  })

  await t.test('groups, keys, users, system configuration', async () => {
    const group = await one(async () => await bob.ok('POST', '/groups', { name: 'bobs', description: 'first' }, 201))
    assert.deepEqual(said(group), ['bob', 'create', 'group', 'bobs'])
    const grown = await one(async () => await admin.ok('POST', '/groups/bobs/servers', { serverName: 'one' }))
    assert.deepEqual(
      [...said(grown), JSON.stringify(grown.before).includes('one'), JSON.stringify(grown.after).includes('"one"')],
      ['admin', 'update', 'group', 'bobs', false, true]
    )
    assert.deepEqual(said(await one(async () => await bob.ok('DELETE', '/groups/bobs'))), ['bob', 'delete', 'group', 'bobs'])

    let token = ''
    const key = await one(async () => { token = String((await admin.ok('POST', '/auth/keys', { name: 'k' }, 201)).token) })
    transcript.splice(transcript.findIndex((answer) => answer.includes(token)), 1)
    assert.deepEqual([key.username, key.action], ['admin', 'create'])
    assert.ok(
      !JSON.stringify(key).includes(token) && !/[0-9a-f]{64}/.test(JSON.stringify(key)),
      `neither the token nor its hash: ${JSON.stringify(key)}`
    )

    const byKey = await one(async () => {
      await new Api(hub, { authorization: `Bearer ${token}` }).ok('POST', '/groups', { name: 'by key', servers: [] }, 201)
    })
    assert.deepEqual([byKey.keyName, byKey.keyId, said(byKey)], ['k', at(key, 'after', 'id'), ['system', 'create', 'group', 'by key']])
    assert.ok(hub.output().includes('system by key \\"k\\": create group'), 'and in the log')
    await admin.ok('DELETE', '/groups/by%20key')

    const exported = await one(async () => { fine(await admin.ask('GET', '/mcp-settings/export?includeSecrets=true')) })
    assert.deepEqual([...said(exported), exported.after], ['admin', 'create', 'export', 'settings', { includeSecrets: true }])
    transcript.splice(-2)
    assert.deepEqual(await left(async () => await admin.ask('GET', '/mcp-settings/export')), [], 'without secrets it tells nothing new')

    const user = await one(async () => await admin.ok('POST', '/users', { username: 'eve', password: secret.password }, 201))
    assert.deepEqual([user.username, user.action, user.name], ['admin', 'create', 'eve'])
    const promoted = await one(async () => await admin.ok('PUT', '/users/eve', { isAdmin: true }))
    assert.deepEqual(
      [at(promoted, 'before', 'isAdmin'), at(promoted, 'after', 'isAdmin'), at(promoted, 'after', 'passwordChanged')],
      [false, true, undefined]
    )
    const rekeyed = await one(async () => await admin.ok('PUT', '/users/eve', { newPassword: 'Another-Canary-1' }))
    assert.equal(at(rekeyed, 'after', 'passwordChanged'), true)
    const gone = await left(async () => await admin.ok('DELETE', '/users/eve'))
    assert.ok(gone.some((entry) => entry.action === 'delete' && entry.name === 'eve'), JSON.stringify(gone))

    const system = await one(
      async () => await admin.ok('PUT', '/system-config', { mcpRouter: { apiKey: secret.router }, nameSeparator: '_' })
    )
    assert.deepEqual(
      [system.username, system.action, at(system, 'after', 'mcpRouter', 'apiKey'), at(system, 'after', 'nameSeparator')],
      ['admin', 'update', MASK + secret.router.slice(-4), '_']
    )
    await admin.ok('PUT', '/system-config', { nameSeparator: null })
  })

  await t.test('of what is too large: that it was written', async () => {
    const config = { url: fake.url, enabled: false, notes: 'x'.repeat(100_000) }
    const made = await one(async () => await admin.ok('POST', '/servers', { name: 'large', config }))
    assert.deepEqual([...said(made), made.after], ['admin', 'create', 'server', 'large', { name: 'large', truncated: true }])
    const cut = await one(async () => await admin.ok('PUT', '/servers/large', { config: { url: fake.url }, newName: 'small' }))
    assert.deepEqual(
      [cut.before, at(cut, 'after', 'name'), at(cut, 'after', 'config', 'url')],
      [{ name: 'large', truncated: true }, 'small', fake.url]
    )
  })

  await t.test('has a bound in entries, and in what they hold', async () => {
    const bounds = { entries: 50, part: 2_000, size: 10_000, stored: 50 }
    const audit = new Audit({ trail: new MemoryTrail(bounds), bounds, notify: () => {}, warn: () => {} })
    const current = { users: new Map() } as unknown as Snapshot
    const write = (name: string, length: number): void => {
      audit.add({
        by: { username: 'bob' },
        changes: [{ entity: 'users', key: name, value: { username: name } }],
        former: current,
        next: { ...current, users: new Map([[name, { username: name, note: 'x'.repeat(length) }]]) }
      } as unknown as Committed)
    }
    for (let at = 0; at < 60; at++) write(`u${at}`, 10)
    const list = async (limit: number): Promise<ShownEntry[]> => (await audit.list({ limit })).data
    assert.deepEqual([(await list(100)).length, (await list(1))[0]?.name], [50, 'u59'])
    for (let at = 0; at < 20; at++) write(`v${at}`, 1_000)
    assert.deepEqual((await list(100)).map(({ name }) => name), Array.from({ length: 9 }, (_, at) => `v${19 - at}`))
    for (let at = 0; at < 20; at++) write(`ж${at}`, 1_000)
    assert.equal((await list(100)).length, 4, 'texts beyond Latin-1 count twice')
    for (let at = 0; at < 60; at++) write(`w${at}`, 5_000)
    assert.deepEqual([(await list(100)).length, (await list(1))[0]?.after], [50, { truncated: true }])
  })

  await t.test('who makes changes without end removes his own entries, and nobody else\'s', async () => {
    const bounds = { entries: 1_000, part: 32_000, size: 1_000_000, stored: 1_000 }
    let isAway = false
    const memory = new MemoryTrail(bounds)
    const append = async (entries: Parameters<typeof memory.append>[0]): Promise<void> => {
      if (isAway) throw new Error('away')
      await memory.append(entries)
    }
    const trail = { append, list: memory.list.bind(memory), trim: memory.trim.bind(memory) }
    const audit = new Audit({ trail, bounds, notify: () => {}, warn: () => {} })
    const names = async (username: string): Promise<string[]> => (await audit.list({ username, limit: 2_000 })).data.map(({ name }) => name)
    const note = (by: Author, name: string, size = 0): void => {
      audit.note(by, { entity: 'key', name, after: { name, note: 'x'.repeat(size) } })
    }
    const eve = (n: number): Author => ({ username: 'eve', keyId: `k${n % 100}`, keyName: 'k' })
    const others: Author[] = [{ username: 'ann' }, { username: 'system', keyId: 'one', keyName: 'one' }]
    note({ username: 'ann' }, 'first')
    for (let n = 0; n < 1_050; n++) note(eve(n), `toggled ${n}`)
    assert.deepEqual(await names('ann'), ['first'])
    assert.deepEqual(await names('eve'), Array.from({ length: 999 }, (_, at) => `toggled ${1_049 - at}`), 'the newest of his own')
    for (const by of others) note(by, 'later')
    for (let n = 0; n < 1_050; n++) note({ username: 'system', keyId: 'two', keyName: 'two' }, `by key ${n}`)
    assert.deepEqual([await names('ann'), (await names('eve')).length], [['later', 'first'], 498], 'who had most')
    assert.ok((await names('system')).includes('later'), 'system keys are actors of their own')
    for (let n = 0; n < 100; n++) note(eve(n), `large ${n}`, 30_000)
    assert.deepEqual(await names('ann'), ['later', 'first'], 'by size as well')
    assert.ok((await names('system')).includes('by key 1049'))
    isAway = true
    note({ username: 'ann' }, 'while it was away')
    for (let n = 0; n < 1_050; n++) note(eve(n), `toggled again ${n}`)
    await assert.rejects(audit.list({}))
    isAway = false
    assert.deepEqual(await names('ann'), ['while it was away', 'later', 'first'], 'what waits, too')
  })

  await t.test('of a trail that cannot be written the log is told once, and once more when it can', async () => {
    const bounds = { entries: 50, part: 2_000, size: 10_000, stored: 50 }
    const memory = new MemoryTrail(bounds)
    const told: string[] = []
    let isAway = true
    const append = async (entries: Parameters<typeof memory.append>[0]): Promise<void> => {
      if (isAway) throw new Error('away')
      await memory.append(entries)
    }
    const trail = { append, list: memory.list.bind(memory), trim: memory.trim.bind(memory) }
    const audit = new Audit({ trail, bounds, notify: () => {}, warn: (sentence) => { told.push(sentence) } })
    for (let n = 0; n < 3; n++) {
      audit.note('bob', { entity: 'server', name: `s${n}`, after: { name: `s${n}` } })
      await assert.rejects(audit.list({}))
    }
    isAway = false
    assert.equal((await audit.list({})).data.length, 3)
    assert.deepEqual(told, ['the audit log cannot be written now: away', 'the audit log is written again'])
  })

  await t.test('by a key: who made it', async () => {
    const entry = await one(
      async () =>
        await new Api(hub, { authorization: `Bearer ${KEY}` }).ok('POST', '/servers', {
          name: 'by-key',
          config: { url: fake.url, enabled: false }
        })
    )
    assert.ok(typeof entry.username === 'string' && entry.username !== '', JSON.stringify(entry))
  })

  await t.test('what is refused, read or run leaves nothing', async () => {
    assert.deepEqual(await left(async () => {
      await admin.ask('POST', '/servers', { name: 'call', config: { url: fake.url } })
      await bob.ask('PUT', '/system-config', { nameSeparator: '_' })
      await admin.ask('DELETE', '/servers/nope')
      await admin.ask('GET', '/servers')
      await admin.ask('POST', '/tools/call/one', { toolName: 'echo' })
    }), [])
  })

  await t.test('for admins only, newest first, in pages, without a secret', async () => {
    refused(await bob.ask('GET', '/audit'), 403)
    refused(await new Api(hub).ask('GET', '/audit'), 401)
    const all = await entries()
    const times = all.map(({ timestamp }) => String(timestamp))
    assert.deepEqual(times, [...times].sort().reverse())
    const seen: unknown[] = []
    let cursor: unknown
    do {
      const answer = await admin.ask('GET', `/audit?limit=3${cursor === undefined ? '' : `&cursor=${enc(String(cursor))}`}`)
      seen.push(...list(answer).map(({ id }) => id))
      cursor = at(answer.body, 'nextCursor')
    } while (cursor !== undefined && seen.length < 500)
    assert.deepEqual(seen, all.map(({ id }) => id))
    assert.equal(
      at((await admin.ask('GET', `/audit?limit=1&cursor=${String(seen.at(-2))}`)).body, 'nextCursor'),
      undefined,
      'a page that ends with the last entry is the last'
    )
    refused(await admin.ask('GET', '/audit?cursor=forgotten'), 400)
    const whole = JSON.stringify(all)
    for (const [what, value] of Object.entries({ ...secret, ...WORDS })) assert.ok(!whole.includes(value), `${what} in the audit`)
    assert.doesNotMatch(whole, /\$2[aby]\$|scrypt|argon2|"password"|"tokenHash"/)
  })
})

test('no secret was in any answer of this file that did not ask for it', async () => {
  assert.ok(transcript.length > 500)
  for (const answer of transcript) {
    assert.doesNotMatch(answer, /\$2[aby]\$\d\d\$|scrypt|argon2/, 'a hash in an answer')
    assert.doesNotMatch(answer, /canary-[a-z]+-[0-9a-f]{12}-/, answer.slice(0, 2_000))
  }
})
