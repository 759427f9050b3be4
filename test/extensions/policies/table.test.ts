// Each of 60 policies decides the same about the same calls in every way in which a call can be made, and the record names it. What
// policies deny or hide never reaches the server, whatever the order of policies and calls.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { FinishedCall } from '../../../plugins/gateway/hooks.ts'
import { KEY, OTHER, otherKey, settings, type Json } from '../../helpers/client.ts'
import { bearerKey } from '../../helpers/hub.ts'
import { openSession } from '../../helpers/inject.ts'
import { callersOf } from '../../helpers/policy-callers.ts'
import { addPolicy, rule, startWithPolicies } from '../../helpers/policies.ts'
import { seeded } from '../../helpers/random.ts'

type Caller = 'admin key' | 'ada' | 'nobody'
interface Call { readonly caller: Caller, readonly server: string, readonly tool: string, readonly args: Json }
interface Row { readonly when: string, readonly matches: (call: Call) => boolean }

const tools = ['read', 'write', 'delete'] as const
const row = (when: string, matches: Row['matches']): Row => ({ when, matches })

/** Conditions that hiding policies may have, too. */
const byItem: Row[] = [
  row('true', () => true),
  row('false', () => false),
  ...tools.map((name) => row(`tool.name == "${name}"`, ({ tool }) => tool === name)),
  ...tools.map((name) => row(`tool.name != "${name}" && tool.server == "up"`, ({ tool, server }) => tool !== name && server === 'up')),
  row('tool.server == "down"', ({ server }) => server === 'down'),
  row('tool.server in ["up", "sideways"]', ({ server }) => server === 'up'),
  row('tool.kind == "tool"', () => true),
  row('tool.kind == "prompt"', () => false),
  row('tool.annotations.readOnlyHint == true', ({ tool }) => tool === 'read'),
  row('tool.annotations.destructiveHint == true', ({ tool }) => tool !== 'read'),
  row('"safe" in tool.tags', ({ tool }) => tool === 'read'),
  row('tool.name.matches("^(read|write)$")', ({ tool }) => tool !== 'delete'),
  row('tool.name.startsWith("de")', ({ tool }) => tool === 'delete'),
  row('principal.isAdmin', ({ caller }) => caller === 'admin key'),
  row('!principal.isAdmin && tool.name == "write"', ({ caller, tool }) => caller !== 'admin key' && tool === 'write'),
  row('principal.username == "ada"', ({ caller }) => caller === 'ada'),
  row('principal.username == ""', ({ caller }) => caller === 'nobody'),
  row('principal.username in ["ada", "bob"] && tool.name == "delete"', ({ caller, tool }) => caller === 'ada' && tool === 'delete'),
  row('"writers" in principal.teams', ({ caller }) => caller === 'ada'),
  row('!("writers" in principal.teams) && tool.name == "write"', ({ caller, tool }) => caller !== 'ada' && tool === 'write'),
  row('principal.key.name == "other"', ({ caller }) => caller === 'ada'),
  row('principal.key.id == ""', ({ caller }) => caller === 'nobody'),
  row('principal.address.startsWith("127.")', () => true),
  row('principal.address == "192.0.2.1"', () => false),
  row('principal.client == ""', () => true),
  row('route.startsWith("/mcp")', () => true)
]
const byArguments: Row[] = [
  row('has(args.path)', ({ args }) => args.path !== undefined),
  row('has(args.path) && args.path.startsWith("/etc/")', ({ args }) => args.path === '/etc/passwd'),
  row('has(args.path) && args.path.matches("\\\\.\\\\.(/|$)")', ({ args }) => args.path === 'a/../b'),
  row('has(args.n) && args.n > 5', ({ args }) => args.n === 7 || args.n === 7.5),
  row('has(args.n) && args.n == 7', ({ args }) => args.n === 7),
  row('has(args.n) && args.n > 7.2', ({ args }) => args.n === 7.5),
  row('has(args.list) && args.list.exists(x, x == "b")', ({ args }) => Array.isArray(args.list)),
  row('has(args.list) && size(args.list) == 2', ({ args }) => Array.isArray(args.list)),
  row('has(args.deep) && args.deep.er.flag', ({ args }) => args.deep !== undefined),
  row('size(args) == 0', ({ args }) => Object.keys(args).length === 0),
  row('tool.name == "delete" && !has(args.confirm)', ({ tool, args }) => tool === 'delete' && args.confirm === undefined),
  row('now > timestamp("2020-01-01T00:00:00Z")', () => true),
  row('now.getFullYear() < 2020', () => false),
  row('principal.isAdmin || (tool.name == "write" && has(args.n))', ({ caller, tool, args }) =>
    caller === 'admin key' || (tool === 'write' && args.n !== undefined)),
  row('args.missing == 1 || true', () => true)
]
const argumentsOf: Json[] = [
  {}, { path: '/etc/passwd' }, { path: 'a/../b' }, { n: 7 }, { n: 7.5, confirm: true }, { list: ['a', 'b'], deep: { er: { flag: true } } }
]
/** Each policy as it denies; those about items as they hide, too. */
const policies = [
  ...[...byItem, ...byArguments].map((each) => ({ ...each, then: 'deny' as const })),
  ...byItem.slice(0, 60 - byItem.length - byArguments.length).map((each) => ({ ...each, then: 'hide' as const }))
]

const world = settings({}, {
  users: [{ username: 'ada', password: 'x', isAdmin: false }],
  teams: [{ name: 'writers', members: ['ada'] }],
  bearerKeys: [bearerKey(), otherKey({ name: 'other', kind: 'user', owner: 'ada' })],
  systemConfig: { routing: { enableBearerAuth: false } }
})
const tokens: Record<Caller, string | undefined> = { 'admin key': KEY, ada: OTHER, nobody: undefined }

test('60 policies decide the same over MCP of both eras, REST, open routes, $smart and tasks, and the record says so', async (t) => {
  assert.equal(policies.length, 60)
  const { app, api, up } = await startWithPolicies(t, world)
  const done: FinishedCall[] = []
  app.gateway.addHook('onDone', (call) => { if (call.exchange.method === 'tools/call' && call.provider === 'up') done.push(call) })
  const callers = await Promise.all(Object.entries(tokens).map(async ([caller, token]) =>
    [caller as Caller, await callersOf(app, token, caller === 'admin key')] as const))
  const id = await addPolicy(api, rule('table', 'false', 'deny'))
  let count = 0
  for (const [at, { when, then, matches }] of policies.entries()) {
    assert.equal((await api('PUT', `/policies/${id}`, rule('table', when, then))).status, 200, when)
    for (const [n, [caller, ways]] of callers.entries()) {
      // Each policy meets some of the arguments, and all of them over the table.
      const call: Call = {
        caller, server: 'up', tool: tools[(at + n) % 3] ?? 'read', args: argumentsOf[(at + n) % argumentsOf.length] ?? {}
      }
      const expected = matches(call) ? then === 'deny' ? 'denied' : 'unknown' : 'ran'
      for (const [way, run] of Object.entries(ways)) {
        const before = [up.reached.length, done.length]
        const what = `${when} → ${then}: ${caller} by ${way} ${call.tool} ${JSON.stringify(call.args)}`
        assert.equal(await run(call.server, call.tool, call.args), expected, what)
        assert.equal(up.reached.length - Number(before[0]), expected === 'ran' ? 1 : 0, what)
        const record = done.slice(before[1]).at(-1)?.policy
        assert.deepEqual(record && [record.name, record.decision], expected === 'denied' ? ['table', 'deny'] : undefined, what)
        count++
      }
      if (call.caller === 'nobody') continue
      const principal = caller === 'ada' ? { username: 'ada', keyId: String(otherKey().id) } : { keyId: bearerKey().id }
      // A test does not know the address of the caller.
      if (when.includes('address')) continue
      const { body } = await api('POST', '/policies/test', { principal, server: call.server, tool: call.tool, arguments: call.args })
      assert.equal(body.data.decision, expected === 'ran' ? 'allow' : then, `the test of ${when} for ${caller}`)
    }
  }
  t.comment(`${count} calls`)
})

test('prompts, resources, subscriptions and completions are decided as well', async (t) => {
  const { app, api, up } = await startWithPolicies(t, settings({}))
  const session = await openSession(app, '/mcp', KEY)
  const requests: Array<readonly [string, Json]> = [
    ['prompts/get', { name: 'up-greet' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'up-greet' }, argument: { name: 'a', value: '' } }],
    ['resources/read', { uri: 'note://one' }],
    ['resources/subscribe', { uri: 'note://one' }],
    ['resources/read', { uri: 'file:///etc/passwd' }]
  ]
  const all = async (): Promise<number[]> => {
    const codes: number[] = []
    for (const [method, params] of requests) codes.push(Number((await session.request(method, params)).error?.code ?? 0))
    return codes
  }
  assert.deepEqual(await all(), [0, 0, 0, 0, 0])
  const reached = up.reached.length
  const id = await addPolicy(api, rule('p', 'tool.kind == "prompt" && tool.name == "greet" || tool.name in ["note://one", "file:///etc/passwd"]', 'deny'))
  assert.deepEqual(await all(), [-32000, -32000, -32000, -32000, -32000])
  assert.equal((await api('PUT', `/policies/${id}`, rule('p', 'tool.kind != "tool"', 'hide'))).status, 200)
  assert.deepEqual(await all(), [-32602, -32602, -32002, -32002, -32002])
  assert.equal(up.reached.length, reached)
  assert.equal((await api('POST', '/resources/read', { uri: 'note://one' })).status, 404)
  assert.equal((await api('POST', '/mcp/up/prompts/greet', {})).status, 404)
})

test('a resource is decided about in any spelling of its URI, and hidden with its template', async (t) => {
  const { app, api, up } = await startWithPolicies(t, settings({}))
  const routes = await Promise.all(['/mcp', '/mcp/up'].map(async (url) => await openSession(app, url, KEY)))
  const all = async (uris: readonly string[]): Promise<boolean[]> => {
    const refused: boolean[] = []
    for (const session of routes) {
      for (const method of ['resources/read', 'resources/subscribe']) {
        for (const uri of uris) refused.push((await session.request(method, { uri })).error !== undefined)
      }
    }
    return refused
  }
  const id = await addPolicy(api, rule('p', 'tool.name in ["note://one", "file:///etc/passwd"]', 'deny'))
  const spellings = [
    'NOTE://one', 'note://one#x', 'note://one?', 'FILE:///etc/passwd', 'file:///etc/x/../passwd', 'file:///etc/%70asswd',
    'file:///etc//passwd', 'file:///etc/passwd/', 'file:///etc/passwd?', 'file:///etc/passwd#x'
  ]
  assert.deepEqual([...new Set(await all(spellings))], [true])
  assert.equal(up.reached.length, 0)
  assert.deepEqual([...new Set(await all(['note://two', 'file:///etc/hosts']))], [false])
  assert.equal((await api('PUT', `/policies/${id}`, rule('p', 'tool.name == "file:///{path}"', 'hide'))).status, 200)
  up.reached.length = 0
  assert.deepEqual([...new Set(await all(['file:///etc/hosts', 'FILE:///etc/hosts']))], [true])
  assert.equal(up.reached.length, 0)
  assert.deepEqual([...new Set(await all(['note://one']))], [false])
})

test('whatever the order of policies and calls, nothing that is denied or hidden reaches the server', async (t) => {
  const { app, api, up } = await startWithPolicies(t, world)
  const callers = await Promise.all(Object.entries(tokens).map(async ([caller, token]) =>
    [caller as Caller, Object.entries(await callersOf(app, token, caller === 'admin key'))] as const))
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
  const random = seeded(seed)
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  const isListRule = (each: Row): boolean => byItem.includes(each)
  for (let round = 0; round < 12; round++) {
    const chosen = Array.from({ length: 6 }, () => {
      const each = pick([...byItem.slice(1), ...byArguments])
      return { each, then: pick(isListRule(each) ? ['allow', 'deny', 'hide'] as const : ['allow', 'deny'] as const) }
    })
    for (const { id } of (await api('GET', '/policies')).body.data as unknown as Json[]) await api('DELETE', `/policies/${String(id)}`)
    const ids: string[] = []
    for (const { each, then } of chosen) ids.push(await addPolicy(api, rule(each.when, each.when, then)))
    const order = chosen.map((_, at) => at).sort(() => random() - 0.5)
    assert.equal((await api('PUT', '/policies/order', { ids: order.map((at) => ids[at]) })).status, 200)
    const ordered = order.map((at) => chosen[at]).filter((each) => each !== undefined)
    const calls = Array.from({ length: 10 }, () => {
      const [caller, ways] = pick(callers)
      return { call: { caller, server: 'up', tool: pick(tools), args: pick(argumentsOf) } as Call, way: pick(ways) }
    })
    // All at once: what one call finds out may not decide about another one.
    await Promise.all(calls.map(async ({ call, way: [way, run] }) => {
      const hiding = ordered.filter(({ each }) => isListRule(each) && !each.when.includes('now')).find(({ each }) => each.matches(call))
      const first = hiding?.then === 'hide' ? hiding : ordered.find(({ each }) => each.matches(call))
      const expected = first?.then === 'deny' ? 'denied' : first?.then === 'hide' ? 'unknown' : 'ran'
      assert.equal(await run(call.server, call.tool, call.args), expected,
        `seed ${seed}: ${JSON.stringify(call)} by ${way} with ${ordered.map(({ each, then }) => `${each.when} → ${then}`).join('; ')}`)
    }))
  }
  assert.ok(up.reached.length > 0)
})
