// What is hidden from a caller answers as what is not there.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { tokenOf } from '../helpers/token.ts'
import { connected, initialize, send, Session, type Json, type SendOptions, type Stream } from '../helpers/client.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { manage, shared } from '../fakes/replica.ts'
import { bearerKey, startHub, until, type Hub } from '../helpers/hub.ts'

/**
 * One answer as far as a caller can tell two apart: without its date, its hash and the id of a new session, and with the names of the
 * thing replaced.
 */
function seenAs ({ status, headers, body }: Stream, ...names: string[]): string {
  const kept = [...headers].filter(([header]) => header !== 'date' && header !== 'mcp-session-id' && header !== 'etag').sort()
  return names.reduce((text, name, at) => text.replaceAll(name, `X${at}`), `${status}\n${JSON.stringify(kept)}\n${body}`)
}

interface Caller { name: string, key?: string | null, headers?: Record<string, string> }
/** A request that speaks of a thing by its name. */
type Way = readonly [method: string, route: string, body?: unknown]

/**
 * Names that must be unique are no secret: who takes one hears that it is taken, and a user who gives a group a server's name gets 400.
 * So making a server, a group or a copy of that name is not among these ways.
 */
const waysOf = (name: string, team: string): Way[] => [
  // test/api/rows.test.ts asks the other routes of the management API.
  ...['', '/', '?fields=name'].map((end): Way => ['GET', `/api/servers/${name}${end}`]),
  ['PUT', `/api/servers/${name}`, { config: { url: 'http://203.0.113.1/mcp' }, newName: 'shown' }],
  ...['secret', `${name}-secret`, 'nothing', ''].map((toolName): Way => ['POST', `/api/tools/call/${name}`, { toolName, arguments: {} }]),
  ...['secret', 'nothing'].flatMap((item): Way[] => [
    ['GET', `/api/tools/${name}/${item}`],
    ['GET', `/api/tools/${name}/${item}?a=1`],
    ['POST', `/api/tools/${name}/${item}`, {}],
    ['POST', `/api/tools/${name}/${item}`, '{'],
    ['GET', `/api/${team}/tools/${name}/${item}`],
    ['POST', `/api/${team}/tools/${name}/${item}`, {}],
    ['GET', `/api/shown/tools/${name}/${item}`],
    ['GET', `/api/public/tools/${name}/${item}`],
    ['GET', `/api/tools/${name}/${item}?group=${team}`],
    ['GET', `/api/tools/shown/echo?group=${team}`],
    ['GET', `/api/tools/${name}/${item}?group=public`]
  ]),
  ...['json', 'yaml'].flatMap((type): Way[] => [name, team].flatMap((word): Way[] => [
    ['GET', `/api/${word}/openapi.${type}`],
    ['GET', `/api/${word}/openapi.${type}?includeDisabled=true`],
    ['GET', `/api/openapi.${type}?servers=${word}`],
    ['GET', `/api/openapi.${type}?servers=shown,${word}`]
  ])
  ),
  // into a group of one's own
  ['POST', '/api/groups/mine/servers', { serverName: name }],
  ['DELETE', `/api/groups/mine/servers/${name}`],
  ['PUT', '/api/groups/mine', { servers: [name] }],
  ['PUT', '/api/groups/mine', { servers: [{ name, tools: ['secret'] }] }],
  ['PUT', '/api/groups/mine/servers/batch', { servers: ['shown', name] }],
  ['PUT', `/api/groups/mine/server-configs/${name}/tools`, { tools: ['secret'] }],
  ['POST', '/api/groups', { name: 'another', servers: [name] }],
  // MCP
  ...['/mcp', '/api/mcp', '/bob/mcp', '/alice/mcp', '/nobody/mcp'].flatMap((base) =>
    [name, team].flatMap((word): Way[] => [
      ['POST', `${base}/${word}`, initialize()],
      ['POST', `${base}/${word}`, '{'],
      ['POST', `${base}/${word}`, { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
      ['GET', `${base}/${word}`],
      ['DELETE', `${base}/${word}`]
    ])
  ),
  ...[name, team].flatMap((word): Way[] => [
    ['POST', `/api/mcp/group/${word}`, initialize()],
    ['GET', `/api/mcp/group/${word}`]
  ])
]

/** Requests of a session that speak of a thing by its name. */
const requestsOf = (name: string): Array<[string, Json]> => [
  ...[`${name}-secret`, `${name}-${name}`, `${name}_of_one`, name, `${name}-`].flatMap((item): Array<[string, Json]> => [
    ['tools/call', { name: item, arguments: {} }],
    ['tools/call', { name: item, arguments: 7 }],
    ['prompts/get', { name: item }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: item }, argument: { name: 'a', value: 'x' } }]
  ]),
  ...[`${name}://one`, `${name}://of/7`, `${name}://nothing`].flatMap((uri): Array<[string, Json]> => [
    ['resources/read', { uri }],
    ['resources/subscribe', { uri }],
    ['resources/unsubscribe', { uri }],
    ['completion/complete', { ref: { type: 'ref/resource', uri }, argument: { name: 'id', value: '7' } }]
  ]),
  ['completion/complete', { ref: { type: 'ref/resource', uri: `${name}://of/{id}` }, argument: { name: 'id', value: '7' } }]
]

/** What a caller is listed: nothing of it may change when what is hidden from it goes. */
const lists = [
  '/api/servers', '/api/servers?limit=1', '/api/groups', '/api/groups/mixed', '/api/groups/mixed/server-configs',
  '/api/settings', '/api/mcp-settings/export', '/api/openapi.json', '/api/openapi.json?includeDisabled=true',
  '/api/openapi.yaml', '/api/openapi/servers', '/api/openapi/stats', '/api/mixed/openapi.json', '/api/auth/keys',
  '/api/auth/user', '/health/live', '/public-config'
]

const keys = {
  admin: bearerKey().token,
  bob: `thk_${'b'.repeat(64)}`,
  scoped: `thk_${'c'.repeat(64)}`,
  grouped: `thk_${'d'.repeat(64)}`,
  narrow: `thk_${'e'.repeat(64)}`,
  alice: `thk_${'f'.repeat(64)}`
}
const keyOf = (n: number, name: keyof typeof keys, more: Json): Json => ({
  ...bearerKey({ id: `${n}2222222-2222-4222-8222-222222222222`, name, token: keys[name], ...more })
})
/** Settings with a server that alice alone may see. @param names of that server, and of her group */
const content = (routing: Json, urls: { open: string, secret: string }, { hidden, team }: { hidden: string, team: string }): Json => ({
  users: [{ username: 'root', isAdmin: true }, { username: 'alice' }, { username: 'bob' }],
  mcpServers: {
    shown: { type: 'streamable-http', url: urls.open, visibility: 'public', owner: 'admin' },
    [hidden]: { type: 'streamable-http', url: urls.secret, visibility: 'private', owner: 'alice' }
  },
  groups: [
    { id: '33333333-3333-4333-8333-333333333333', name: team, servers: [hidden], owner: 'alice' },
    { id: '44444444-4444-4444-8444-444444444444', name: 'mixed', servers: ['shown', hidden], owner: 'alice' },
    { id: '55555555-5555-4555-8555-555555555555', name: 'mine', servers: ['shown'], owner: 'bob' },
    { id: '66666666-6666-4666-8666-666666666666', name: 'public', servers: ['shown'], owner: 'admin' }
  ],
  bearerKeys: [
    bearerKey(),
    keyOf(1, 'bob', { kind: 'user', owner: 'bob' }),
    keyOf(3, 'alice', { kind: 'user', owner: 'alice' }),
    keyOf(4, 'scoped', { accessType: 'servers', allowedServers: ['shown'] }),
    keyOf(5, 'grouped', { accessType: 'groups', allowedGroups: ['public'] }),
    keyOf(6, 'narrow', { kind: 'user', owner: 'bob', accessType: 'servers', allowedServers: ['shown'] })
  ],
  systemConfig: { routing }
})

test('what is hidden answers as what is not there', async (t) => {
  // The same length, so that no answer tells by its own.
  const [hidden, absent, team, nobodys] = ['hidden', 'absent', 'team-h', 'team-a']
  const secret = await startUpstream(t, {
    tools: [tool('secret'), tool(hidden), tool(`${hidden}_of_one`)],
    prompts: [{ name: 'secret', arguments: [{ name: 'a' }] }, { name: hidden }],
    resources: [{ uri: `${hidden}://one`, name: 'one' }],
    resourceTemplates: [{ uriTemplate: `${hidden}://of/{id}`, name: 'of' }],
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {} }
  })
  const open = await startUpstream(t, {
    tools: [tool('echo')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'shown://one', name: 'one' }],
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {} }
  })
  const start = async (routing: Json): Promise<Hub> => {
    const hub = await startHub(t, { env: { JWT_SECRET: shared.JWT_SECRET, LOG_LEVEL: 'error' }, settings: content(routing, { open: open.url, secret: secret.url }, { hidden, team }) })
    await until(async () => (await fetch(`${hub.url}/health/ready`)).ok, () => hub.output())
    await connected(hub, 2)
    return hub
  }
  const hub = await start({})
  const anonymous = await start({ enableBearerAuth: false })
  const bob = { 'x-auth-token': tokenOf({ username: 'bob' }) }
  const callers: Array<Caller & { hub: Hub, route: string }> = [
    { name: 'another user', key: null, headers: bob, hub, route: '' },
    { name: 'a user key', key: keys.bob, hub, route: '/mcp' },
    { name: 'a user key, its own route', key: keys.bob, hub, route: '/bob/mcp' },
    { name: 'a user key, in a group', key: keys.bob, hub, route: '/mcp/mixed' },
    { name: 'a user key, at a server', key: keys.bob, hub, route: '/mcp/shown' },
    { name: 'a scoped key', key: keys.scoped, hub, route: '/mcp/shown' },
    { name: 'a key for a group', key: keys.grouped, hub, route: '/mcp/public' },
    { name: 'a user key with a scope', key: keys.narrow, hub, route: '/mcp/shown' },
    { name: 'nobody', key: null, hub: anonymous, route: '/mcp' },
    { name: 'nobody, at a server', key: null, hub: anonymous, route: '/mcp/shown' },
    { name: 'nobody, where a key is needed', key: null, hub, route: '' }
  ]
  const told: string[] = []
  let count = 0
  const same = (what: string, one: string, other: string): void => {
    count++
    if (one !== other) {
      told.push(`${what}\n  hidden: ${one.replaceAll('\n', ' ').slice(0, 400)}\n  absent: ${other.replaceAll('\n', ' ').slice(0, 400)}`)
    }
  }

  await t.test('and who may see it does', async () => {
    const session = await Session.open(`${hub.url}/mcp`, { key: keys.alice })
    for (const [method, params] of [
      ['tools/call', { name: `${hidden}-secret`, arguments: {} }],
      ['prompts/get', { name: `${hidden}-secret` }],
      ['resources/subscribe', { uri: `${hidden}://one` }]
    ] as const) {
      const before = secret.count(method)
      await session.request(method, params)
      assert.equal(secret.count(method), before + 1, method)
    }
    assert.ok((await session.tools()).includes(`${hidden}-secret`))
  })
  secret.received.length = 0

  await t.test('by its name, over HTTP', async () => {
    for (const { name, hub: { url }, key, headers = {} } of callers.filter(
      (caller, at, all) =>
        all.findIndex(({ key, headers, hub }) => key === caller.key && headers === caller.headers && hub === caller.hub) === at
    )) {
      const [one, other] = [waysOf(hidden, team), waysOf(absent, nobodys)]
      for (const [at, [method, route, body]] of one.entries()) {
        const [, otherRoute = '', otherBody] = other[at] ?? []
        const ask = async (route: string, body: unknown): Promise<Stream> =>
          await send(`${url}${route}`, { method, key, headers, ...(body === undefined ? {} : { body }) } satisfies SendOptions)
        const [first, second] = [await ask(route, body), await ask(otherRoute, otherBody)]
        same(`${name}: ${method} ${route} ${JSON.stringify(body) ?? ''}`, seenAs(first, hidden, team), seenAs(second, absent, nobodys))
      }
    }
  })

  const listed = async (): Promise<Map<string, string>> => {
    const found = new Map<string, string>()
    for (const { name, hub: { url }, key, headers = {}, route } of callers) {
      for (const list of lists) {
        found.set(
          `${name}: ${list}`,
          seenAs(await send(`${url}${list}`, { method: 'GET', key, headers })).replace(
            /"timestamp":"[^"]*"|"uptime":[\d.]+|"lastUsedAt":"[^"]*"/g, ''
          )
        )
      }
      if (route === '') continue
      const session = await Session.open(`${url}${route}`, { key })
      found.set(`${name}: initialize`, JSON.stringify(session.init))
      for (const method of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']) {
        found.set(`${name}: ${method}`, JSON.stringify(await session.request(method, {})))
      }
    }
    return found
  }

  await t.test('by its name, in a session', async () => {
    const stranger = await Session.open(`${hub.url}/mcp`, { key: keys.alice })
    for (const { name, hub: { url }, key, route } of callers) {
      if (route === '') continue
      const session = await Session.open(`${url}${route}`, { key })
      const other = requestsOf(absent)
      for (const [at, [method, params]] of requestsOf(hidden).entries()) {
        const [first, second] = [
          await session.post({ jsonrpc: '2.0', id: 7, method, params }),
          await session.post({ jsonrpc: '2.0', id: 7, method, params: other[at]?.[1] })
        ]
        same(`${name}: ${method} ${JSON.stringify(params)}`, seenAs(first, hidden), seenAs(second, absent))
      }
      const asked = async (id: string): Promise<string> => seenAs(
        await send(`${url}${route}`, {
          key,
          headers: { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' },
          body: { jsonrpc: '2.0', id: 7, method: 'ping' }
        }),
        id
      )
      if (url === hub.url) {
        same(`${name}: the session of somebody else`, await asked(stranger.id), await asked(`${stranger.id.slice(0, -4)}AAAA`))
      }
    }
  })

  await t.test('in lists', async () => {
    const before = await listed()
    for (const { url } of [hub, anonymous]) {
      for (const route of [`/groups/${team}`, `/servers/${hidden}`]) {
        assert.equal((await manage({ url }, 'DELETE', route, undefined, { authorization: `Bearer ${keys.admin}` })).status, 200)
      }
    }
    count += before.size
    let changed: string[] = []
    await until(async () => {
      const after = await listed()
      changed = [...before].filter(([what, text]) => after.get(what) !== text).map(([what, text]) => `${what}\n  ${text}\n  ${after.get(what)}`)
      return changed.length === 0
    }, () => changed.join('\n').slice(0, 4_000))
  })

  t.comment(`${count} pairs of answers`)
  assert.equal(
    secret.received.filter(({ message }) =>
      ['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe', 'completion/complete'].includes(message.method ?? '')
    ).length,
    0,
    'what is hidden was reached'
  )
  assert.deepEqual(told, [])
})
