// Policies as admins write them: what is stored, what a test of a call says, and what calls and lists then do.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { toActivity } from '../../../plugins/extensions/activities/describe.ts'
import type { FinishedCall } from '../../../plugins/gateway/hooks.ts'
import { toy } from '../../fakes/toy.ts'
import { appFor } from '../../helpers/app.ts'
import { at, KEY, settings, text, type Json } from '../../helpers/client.ts'
import { openSession } from '../../helpers/inject.ts'
import { addPolicy, apiOf, rule, startWithPolicies } from '../../helpers/policies.ts'

test('a policy with an unknown name or type is refused at its place', async (t) => {
  const app = await appFor(t, settings({}))
  const api = apiOf(app)
  const refused = async (when: string, then = 'deny'): Promise<unknown> => {
    const { status, body } = await api('POST', '/policies', rule('p', when, then))
    assert.equal(status, 400, JSON.stringify(body))
    return (body.errors as Json[])[0]
  }
  assert.deepEqual(await refused('tool.nam == "x"'), { path: 'body.when', message: 'is not valid at character 6: No such key: nam' })
  assert.deepEqual(await refused('principal.username == 1'), {
    path: 'body.when', message: 'is not valid at character 1: no such overload: string == int'
  })
  assert.match(JSON.stringify(await refused('who == "x"')), /Unknown variable: who/)
  assert.match(JSON.stringify(await refused('tool.annotations.destructivHint == true')), /no annotation .*destructivHint.*, only title, readOnlyHint/)
  assert.match(JSON.stringify(await refused('now.getHours("Europe/Berln") > 18')), /there is no time zone .*Europe\/Berln/)
  assert.match(JSON.stringify(await refused('args.a.matches("(")')), /character 16: the pattern/)
  assert.match(JSON.stringify(await refused('"text"')), /must be of type bool, not string/)
  assert.match(JSON.stringify(await refused('args.a == 1', 'hide')), /principal, tool and route only, not args/)
  assert.match(JSON.stringify(await refused('now > timestamp("2026-01-01T00:00:00Z")', 'hide')), /not now/)
  assert.match(JSON.stringify(await refused('args.l.all(a, args.l.all(b, args.l.all(c, a == b)))')), /more than 2 loops/)
  assert.equal((await api('POST', '/policies', rule('p', 'true', 'deny', { approvers: ['admin'] }))).status, 400)
})

test('policies, guards and quotas: PUT takes what GET gives, with its defaults, and no unknown member', async (t) => {
  const policy = rule('p', 'false', 'deny')
  const webhook = { url: 'https://guard.example/', secret: 'whsec_c2VjcmV0', whenAway: 'deny' }
  const guard = { name: 'g', on: 'both', detect: ['email'], webhook, action: 'mask' }
  const quota = { name: 'q', target: { user: '*' }, per: 'day', calls: 1 }
  const stored = (entry: object): Json => ({ ...entry, id: 'stored' })
  const app = await appFor(t, {
    ...settings({}), policies: [stored(policy)], guards: [stored(guard)], quotas: [stored(quota)]
  })
  const api = apiOf(app)
  for (const [path, entry] of Object.entries({ policies: policy, guards: guard, quotas: quota })) {
    const { body: { data } } = await api('GET', `/${path}/stored`)
    assert.equal(data.enabled, true, path)
    const changed = await api('PUT', `/${path}/stored`, { ...data, enabled: false })
    assert.deepEqual([changed.status, changed.body.data], [200, { ...data, enabled: false }], path)
    assert.equal((await api('POST', `/${path}`, entry)).body.data.enabled, true, path)
    const refused = await api('POST', `/${path}`, { ...entry, enabeld: false })
    assert.deepEqual([refused.status, at(refused.body, 'errors', 0, 'path')], [400, 'body.enabeld'], path)
  }
  const misspelt = await api('POST', '/guards', { ...guard, webhook: { ...webhook, timeout: 5 } })
  assert.deepEqual([misspelt.status, at(misspelt.body, 'errors', 0, 'path')], [400, 'body.webhook.timeout'])
  assert.equal((await api('POST', '/policies/test', { server: 'up', tool: 'read', args: {} })).status, 400)
})

test('policies are listed, added, replaced, ordered and removed', async (t) => {
  const app = await appFor(t, settings({}))
  const api = apiOf(app)
  const add = async (name: string): Promise<string> => {
    const { status, body } = await api('POST', '/policies', rule(name, 'false', 'deny', { message: 'No' }))
    assert.equal(status, 201, JSON.stringify(body))
    assert.deepEqual({ ...body.data, id: '' }, { id: '', name, when: 'false', then: 'deny', message: 'No', enabled: true, mode: 'enforce' })
    return String(body.data.id)
  }
  const [a, b, c] = [await add('a'), await add('b'), await add('c')]
  const names = async (): Promise<unknown[]> => ((await api('GET', '/policies')).body.data as unknown as Json[]).map(({ name }) => name)
  assert.equal((await api('PUT', '/policies/order', { ids: [c, a] })).status, 400)
  assert.equal((await api('PUT', '/policies/order', { ids: [c, a, a] })).status, 400)
  assert.equal((await api('PUT', '/policies/order', { ids: [c, a, 'x', b] })).status, 400)
  assert.equal((await api('PUT', '/policies/order', { ids: [c, a, b] })).status, 200)
  assert.deepEqual(await names(), ['c', 'a', 'b'])
  const { body } = await api('PUT', `/policies/${a}`, rule('A', 'true', 'allow'))
  assert.deepEqual(body.data, { id: a, name: 'A', when: 'true', then: 'allow', enabled: true, mode: 'enforce' }, 'the message is gone')
  assert.deepEqual(await names(), ['c', 'A', 'b'])
  assert.equal((await api('DELETE', `/policies/${c}`)).status, 200)
  assert.equal((await api('GET', `/policies/${c}`)).status, 404)
  assert.deepEqual(await names(), ['A', 'b'])
  const audited = (await api('GET', '/audit?entity=policy')).body.data as unknown as Json[]
  assert.deepEqual(audited.map(({ action, name }) => `${String(action)} ${String(name)}`),
    ['delete c', 'update A', 'update order', 'create c', 'create b', 'create a'])
})

test('the first enforced policy that matches decides; observing ones are recorded; a failing one denies', async (t) => {
  const app = await appFor(t, settings({}))
  app.gateway.addProvider(toy)
  const done: FinishedCall[] = []
  app.gateway.addHook('onDone', (call) => { done.push(call) })
  const api = apiOf(app)
  const session = await openSession(app, '/mcp', KEY)
  const call = async (args: object): Promise<string> => {
    const { result } = await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2, ...args } })
    return `${(result as Json).isError === true ? 'error: ' : ''}${text(result)}`
  }
  for (const each of [
    rule('watch', 'tool.name == "add"', 'deny', { mode: 'observe' }),
    rule('off', 'true', 'deny', { enabled: false }),
    rule('no sevens', 'args.a == 7', 'deny', { message: 'No sevens here' }),
    rule('eights', 'args.a == 8', 'allow'),
    rule('no eights', 'args.a == 8', 'deny'),
    rule('fragile', 'args.b < 0 && args.missing == 1', 'allow')
  ]) assert.equal((await api('POST', '/policies', each)).status, 201)

  assert.equal(await call({}), '3')
  assert.deepEqual({ ...done.at(-1)?.policy, id: '' }, { id: '', name: 'watch', mode: 'observe', decision: 'deny' })
  assert.equal(await call({ a: 7 }), 'error: No sevens here')
  const { observed: watching, ...deciding } = done.at(-1)?.policy ?? assert.fail()
  assert.deepEqual({ ...deciding, id: '' }, { id: '', name: 'no sevens', mode: 'enforce', decision: 'deny' })
  assert.deepEqual(watching?.map(({ name, decision }) => [name, decision]), [['watch', 'deny']])
  const described = toActivity(done.at(-1) ?? assert.fail(), { includesPayloads: false, redact: (_server, text) => text })
  assert.deepEqual([described.status, described.refused, described.errorMessage], ['error', true, 'No sevens here'])
  assert.equal(await call({ a: 8 }), '10')
  assert.deepEqual(done.at(-1)?.policy?.name, 'eights')
  assert.match(await call({ b: -1 }), /^error: The policy "fragile" failed, so this call is denied: No such key: missing/)

  const unknown = await api('POST', '/policies/test', { principal: { username: 'ada' }, server: 'toy', tool: 'add' })
  assert.deepEqual(unknown.body.errors, [{ path: 'body.principal.username', message: 'is not the name of a user' }])
  assert.equal((await api('POST', '/users', { username: 'ada', password: 'Open-Sesame-1' })).status, 201)
  const tested = async (args: object): Promise<Json> =>
    (await api('POST', '/policies/test', { principal: { username: 'ada' }, server: 'toy', tool: 'add', arguments: args })).body.data
  const { policy, observed, ...rest } = await tested({ a: 7, b: 1 })
  assert.deepEqual(rest, { decision: 'deny', mode: 'enforce', reason: 'Its condition is true' })
  assert.deepEqual([(policy as Json).name, (observed as Json[]).map(({ name }) => name)], ['no sevens', ['watch']])
  assert.equal((await tested({ a: 1, b: 1 })).policy, null)
  assert.match(String((await tested({ a: 1, b: -1 })).reason), /No such key: missing/)
})

test('arguments beyond the limits fail a rule that names them, and no other', async (t) => {
  const app = await appFor(t, settings({}))
  app.gateway.addProvider(toy)
  const api = apiOf(app)
  const { body } = await api('POST', '/policies', rule('p', 'tool.name == "other" || args.a == 5', 'deny'))
  const session = await openSession(app, '/mcp', KEY)
  const call = async (args: object): Promise<string> =>
    text((await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2, ...args } })).result)
  assert.equal(await call({ x: 'x'.repeat(60_000), l: Array(1_000).fill(0) }), '3')
  assert.match(await call({ x: 'x'.repeat(66_000) }), /larger than 64 KiB/)
  assert.match(await call({ l: Array(1_001).fill(0) }), /more than 1000 entries/)
  await api('PUT', `/policies/${String(body.data.id)}`, rule('p', 'tool.name == "other"', 'deny'))
  assert.equal(await call({ x: 'x'.repeat(66_000), l: Array(1_001).fill(0) }), '3')
})

test('a pattern that would take exponential time takes linear time', async (t) => {
  const app = await appFor(t, settings({}))
  app.gateway.addProvider(toy)
  const api = apiOf(app)
  for (const when of ['args.s.matches("^(a+)+$")', 'args.l.exists(s, s.matches(args.p))', 'cel.bind(s, args.s, s.matches("(a|a)*$b"))']) {
    assert.equal((await api('POST', '/policies', rule('p', `has(args.s) && ${when}`, 'deny'))).status, 201)
  }
  const session = await openSession(app, '/mcp', KEY)
  const s = `${'a'.repeat(20_000)}!`
  const { result } = await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2, s, l: [s], p: '^(a+)+$' } })
  assert.equal(text(result), '3')
})

test('what a policy hides is in no list or document, and unknown to a call; sessions are told', async (t) => {
  const app = await appFor(t, { ...settings({}), systemConfig: { smartRouting: { enabled: true } } })
  app.gateway.addProvider(toy)
  const api = apiOf(app)
  const session = await openSession(app, '/mcp', KEY)
  const listed = async (): Promise<unknown[]> => ((await session.request('tools/list', {})).result as { tools: Json[] }).tools.map(({ name }) => name)
  assert.deepEqual(await listed(), ['toy-add', 'toy-fail'])
  const { body } = await api('POST', '/policies', rule('hide', 'tool.name in ["add", "greet"]', 'hide'))
  assert.deepEqual(await listed(), ['toy-fail'])
  assert.deepEqual((await session.request('prompts/list', {})).result, { prompts: [] })
  const { error } = await session.request('tools/call', { name: 'toy-add', arguments: { a: 1, b: 2 } })
  assert.deepEqual(error, { code: -32602, message: 'Unknown tool: toy-add' })
  assert.equal((await session.request('prompts/get', { name: 'toy-greet' })).error?.message, 'Unknown prompt: toy-greet')
  assert.equal((await api('POST', '/tools/call/toy', { toolName: 'add', arguments: { a: 1, b: 2 } })).status, 404)
  const smart = await openSession(app, '/mcp/$smart', KEY)
  const named = await smart.request('tools/call', { name: 'call_tool', arguments: { toolName: 'toy-add', arguments: { a: 1, b: 2 } } })
  assert.match(JSON.stringify(named), /Unknown tool|There is no tool/)
  await api('PUT', `/policies/${String(body.data.id)}`, rule('hide', 'principal.username == "somebody"', 'hide'))
  assert.deepEqual(await listed(), ['toy-add', 'toy-fail'])
})

test('the route of a tool that $smart calls is that of $smart', async (t) => {
  const app = await appFor(t, { ...settings({}), systemConfig: { smartRouting: { enabled: true } } })
  app.gateway.addProvider(toy)
  const api = apiOf(app)
  const [merged, smart] = [await openSession(app, '/mcp', KEY), await openSession(app, '/mcp/$smart', KEY)]
  const args = { a: 1, b: 2 }
  const results = async (): Promise<string[]> => [
    text((await merged.request('tools/call', { name: 'toy-add', arguments: args })).result),
    text((await smart.request('tools/call', { name: 'call_tool', arguments: { toolName: 'toy-add', arguments: args } })).result)
  ]
  const { body } = await api('POST', '/policies', rule('no', 'route == "/mcp/$smart" && tool.name == "add"', 'deny'))
  assert.deepEqual(await results(), ['3', 'The policy "no" denies this call'])
  await api('PUT', `/policies/${String(body.data.id)}`, rule('no', 'route == "/mcp" && tool.name == "add"', 'deny'))
  assert.deepEqual(await results(), ['The policy "no" denies this call', '3'])
})

test('a test of a policy reads URIs as calls do: in all their spellings, and as made of templates', async (t) => {
  const { api } = await startWithPolicies(t, settings({}))
  const id = await addPolicy(api, rule('p', 'tool.name in ["note://one", "file:///etc/passwd"]', 'deny'))
  const decision = async (tool: string): Promise<unknown> =>
    (await api('POST', '/policies/test', { principal: {}, server: 'up', tool, kind: 'resource' })).body.data.decision
  for (const uri of ['note://one', 'NOTE://one', 'note://one#x', 'file:///etc/x/../passwd', 'FILE:///etc/%70asswd', 'file:///etc//passwd']) {
    assert.equal(await decision(uri), 'deny', uri)
  }
  assert.equal(await decision('note://two'), 'allow')
  assert.equal((await api('PUT', `/policies/${id}`, rule('p', 'tool.name == "file:///{path}"', 'hide'))).status, 200)
  assert.deepEqual([await decision('FILE:///etc/hosts'), await decision('note://one')], ['hide', 'allow'])
})
