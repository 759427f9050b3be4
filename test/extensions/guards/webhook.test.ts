// A guard's webhook decides about arguments and results; tasks are guarded like calls; the API keeps the guards.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'tap'
import { memoryBudget } from '../../../plugins/base/limits/index.ts'
import { GuardWebhooks } from '../../../plugins/extensions/guards/webhooks.ts'
import { startUpstream, tool, type Upstream } from '../../fakes/fault-http.ts'
import { manage, managed } from '../../fakes/replica.ts'
import { restApi, type Seen } from '../../fakes/rest-api.ts'
import { startLegacyTasks, startModernTasks } from '../../fakes/task-servers.ts'
import { Session, settings, text, type Json } from '../../helpers/client.ts'
import { startHub, type Cleanup, type Hub } from '../../helpers/hub.ts'
import { served } from '../../helpers/served.ts'
import { legacyWithoutTasks, legacyWithTasks, modernWithoutTasks, modernWithTasks } from '../../helpers/task-clients.ts'

type Asks = Parameters<GuardWebhooks['ask']>
type Decide = (asked: Json) => string | number | 'never'

/** A webhook that answers with this JSON or this status. */
async function startWebhook (t: Cleanup, decide: Decide): Promise<{ url: string, asked: Seen[] }> {
  const { url, seen, answer } = await restApi(t)
  answer(({ body }, reply) => {
    const decided = decide(JSON.parse(String(body)) as Json)
    if (decided === 'never') return
    if (typeof decided === 'number') reply.writeHead(decided, { location: '/other' }).end()
    else reply.end(decided)
  })
  return { url: `${url}/hook`, asked: seen }
}

interface World { hub: Hub, upstream: Upstream, call: (args?: Json) => Promise<[isError: boolean, text: string]> }

const secret = `whsec_${Buffer.from('a secret of this webhook').toString('base64')}`

async function world (t: Cleanup, webhook: Json, more: Json = {}): Promise<World> {
  const upstream = await startUpstream(t, {
    tools: [tool('say')],
    on: ({ method, params }) => method === 'tools/call'
      ? { content: [{ type: 'text', text: `said ${JSON.stringify(params.arguments)}` }] }
      : undefined
  })
  const guard = { id: 'g', name: 'Asks', on: 'arguments', action: 'mask', webhook: { secret, whenAway: 'deny', ...webhook }, ...more }
  const hub = await served(t, { up: { url: upstream.url } }, { guards: [guard] })
  const session = await Session.open(`${hub.url}/mcp`)
  const call = async (args: Json = { a: 1 }): Promise<[boolean, string]> => {
    const { result } = await session.request('tools/call', { name: 'up-say', arguments: args })
    return [result?.isError === true, text(result)]
  }
  return { hub, upstream, call }
}

test('a webhook is asked, signed, about what detection has left; it accepts, rejects and replaces', async (t) => {
  let answer = '{"action":"accept"}'
  const hook = await startWebhook(t, () => answer)
  const { upstream, call } = await world(t, { url: hook.url }, { detect: ['email'] })
  assert.deepEqual(await call({ to: 'bob@x.com', n: 1 }), [false, 'said {"to":"[email]","n":1}'])
  const [{ headers, body }] = hook.asked as [Seen]
  const { principal, ...asked } = JSON.parse(String(body)) as { principal: Json }
  assert.deepEqual(asked, { type: 'call', server: 'up', tool: 'say', kind: 'tool', arguments: { to: '[email]', n: 1 } })
  assert.deepEqual([principal.username, principal.isAdmin, (principal.key as Json).name, principal.teams], ['system', true, 'test', []])
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${String(body)}`
  const key = Buffer.from('a secret of this webhook')
  assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)

  answer = '{"action":"replace","arguments":{"big":12345678901234567890}}'
  await call()
  assert.match(upstream.received.at(-1)?.body ?? '', /"arguments":\{"big":12345678901234567890\}/)
  const before = upstream.received.length
  answer = '{"action":"reject","message":"Not on a Sunday"}'
  assert.deepEqual(await call(), [true, 'Not on a Sunday'])
  answer = '{"action":"reject"}'
  assert.deepEqual(await call(), [true, 'The guard "Asks" refuses this call'])
  assert.equal(upstream.received.length, before)
})

test('a webhook judges results', async (t) => {
  const hook = await startWebhook(t, ({ type, result }) => {
    assert.equal(type, 'result')
    return JSON.stringify({ action: 'replace', result: { content: [{ type: 'text', text: `not ${JSON.stringify(result)}` }] } })
  })
  const { call } = await world(t, { url: hook.url }, { on: 'results' })
  assert.deepEqual(await call({}), [false, 'not {"content":[{"type":"text","text":"said {}"}]}'])
})

test('whenAway decides where the webhook has no valid answer in time', async (t) => {
  let answer: ReturnType<Decide> = 500
  const hook = await startWebhook(t, () => answer)
  const open = await world(t, { url: hook.url, timeoutMs: 50, whenAway: 'allow' })
  const closed = await world(t, { url: hook.url, timeoutMs: 50 })
  for (answer of [500, 302, 'never', '', '[]', '{"action":"maybe"}', '{"action":"replace"}', '{"action":"replace","arguments":[]}'] as const) {
    assert.deepEqual(await open.call(), [false, 'said {"a":1}'], String(answer))
    assert.deepEqual(await closed.call(), [true, 'The guard "Asks" cannot decide now: its webhook is unavailable'], String(answer))
  }
})

test('results of tasks are guarded, whichever era the server and the client have', async (t) => {
  const servers = { legacy: await startLegacyTasks(t), modern: await startModernTasks(t) }
  for (const [era, server] of Object.entries(servers)) {
    const guards = [{ id: 'g', name: 'No mail', on: 'results', detect: ['email'], action: 'mask' }]
    const hub = await served(t, { up: { url: server.url } }, { guards })
    for (const [name, caller] of Object.entries({ legacyWithTasks, legacyWithoutTasks, modernWithTasks, modernWithoutTasks })) {
      // A server of that era begins no task for a client without the extension.
      if (era === 'modern' && name === 'modernWithoutTasks') continue
      const { text: said } = await caller(t, `${hub.url}/mcp/up`, 'long', 'bob@x.com')
      assert.equal(said.trim(), 'long [email]', `${era}, ${name}: ${said}`)
    }
  }
})

test('the API keeps guards in their order, without showing a secret', async (t) => {
  const hub = await startHub(t, { settings: settings({}) })
  const webhook = { url: 'https://example.com/hook', secret: 'canary-secret-of-a-hook', whenAway: 'deny' }
  const made = await managed(hub, 'POST', '/guards', { name: 'One', on: 'both', webhook, action: 'flag' })
  const { id, webhook: shown } = made as { id: string, webhook: Json }
  assert.match(String(shown.secret), /^••••/)
  const second = await managed(hub, 'POST', '/guards', { name: 'Two', on: 'results', detect: ['card'], action: 'mask' })
  await managed(hub, 'PUT', `/guards/${id}`, { name: 'First', on: 'both', webhook: { ...shown, timeoutMs: 100 }, action: 'flag' })
  const { guards } = await managed(hub, 'GET', '/mcp-settings/export?includeSecrets=true') as { guards: Json[] }
  assert.deepEqual(guards[0], { id, name: 'First', on: 'both', webhook: { ...webhook, timeoutMs: 100 }, action: 'flag' })
  await managed(hub, 'PUT', '/guards/order', { ids: [second.id, id] })
  assert.deepEqual((await managed(hub, 'GET', '/guards') as unknown as Json[]).map(({ name }) => name), ['Two', 'First'])
  for (const wrong of [
    { name: 'x', on: 'both', action: 'mask' },
    { name: 'x', on: 'both', detect: ['faces'], action: 'mask' },
    { name: 'x', on: 'both', detect: ['email'], servers: [], action: 'mask' },
    { name: 'x', on: 'both', detect: ['email'], tools: [], action: 'mask' },
    { name: 'x', on: 'both', webhook: { ...webhook, url: 'ftp://x' }, action: 'mask' },
    { name: 'x', on: 'both', webhook: { ...webhook, secret: '••••hook' }, action: 'mask' }
  ]) assert.equal((await manage(hub, 'POST', '/guards', wrong)).status, 400, JSON.stringify(wrong))
  assert.equal((await manage(hub, 'DELETE', `/guards/${id}`)).status, 200)
  assert.equal(JSON.stringify(await managed(hub, 'GET', '/audit')).includes('canary-secret'), false)
})

test('a webhook judges results of tasks, whichever era the server and the client have', async (t) => {
  const replaced = { content: [{ type: 'text', text: 'judged' }] }
  const hook = await startWebhook(t, ({ result }) =>
    JSON.stringify((result as Json).content === undefined ? { action: 'accept' } : { action: 'replace', result: replaced }))
  for (const server of [await startLegacyTasks(t), await startModernTasks(t)]) {
    const guards = [{ id: 'g', name: 'Asks', on: 'results', action: 'mask', webhook: { url: hook.url, secret, whenAway: 'deny' } }]
    const hub = await served(t, { up: { url: server.url } }, { guards })
    for (const caller of [legacyWithTasks, modernWithTasks]) {
      assert.equal((await caller(t, `${hub.url}/mcp/up`, 'long', 'bob@x.com')).text, 'judged', caller.name)
    }
  }
})

test('a result that looks like one that begins a task is judged', async (t) => {
  const task = { taskId: 't', status: 'working', statusMessage: 'forbidden' }
  const upstream = await startUpstream(t, {
    tools: [tool('say')],
    resources: [{ uri: 'test://one', name: 'one' }],
    on: ({ method }) => method === 'resources/read'
      ? { contents: [{ uri: 'test://one', text: 'forbidden' }], task }
      : method === 'tools/call' ? { task } : undefined
  })
  const hook = await startWebhook(t, ({ result }) =>
    JSON.stringify({ action: JSON.stringify(result).includes('forbidden') ? 'reject' : 'accept', message: 'not that' }))
  const guards = [{ id: 'g', name: 'Asks', on: 'results', action: 'mask', webhook: { url: hook.url, secret, whenAway: 'deny' } }]
  const hub = await served(t, { up: { url: upstream.url } }, { guards })
  const session = await Session.open(`${hub.url}/mcp/up`)
  for (const answer of [
    await session.request('resources/read', { uri: 'test://one' }),
    await session.request('tools/call', { name: 'say', arguments: {} })
  ]) assert.doesNotMatch(JSON.stringify(answer), /forbidden/)
  assert.equal(hook.asked.length, 2)
})

test('a webhook is asked about resources, subscriptions and completions, and cannot change what is asked for', async (t) => {
  const upstream = await startUpstream(t, {
    resources: [{ uri: 'test://one', name: 'one' }],
    prompts: [{ name: 'greet', arguments: [{ name: 'who' }] }],
    capabilities: { resources: { subscribe: true }, prompts: {}, completions: {} },
    on: ({ method }) => method === 'completion/complete'
      ? { completion: { values: [] } }
      : method === 'resources/read' ? { contents: [{ uri: 'test://one', text: 'one' }] } : undefined
  })
  let answer: Json = { action: 'accept' }
  const hook = await startWebhook(t, () => JSON.stringify(answer))
  const guards = [{ id: 'g', name: 'Asks', on: 'arguments', action: 'mask', webhook: { url: hook.url, secret, whenAway: 'deny' } }]
  const hub = await served(t, { up: { url: upstream.url } }, { guards })
  const session = await Session.open(`${hub.url}/mcp/up`)
  const ref = { type: 'ref/prompt', name: 'greet' }
  const complete = { ref, argument: { name: 'who', value: 'bo' } }
  await session.request('resources/read', { uri: 'test://one' })
  await session.request('completion/complete', complete)
  await session.request('resources/subscribe', { uri: 'test://one' })
  const asked = hook.asked.map(({ body }) => JSON.parse(String(body)) as Json).map(({ kind, arguments: args }) => [kind, args])
  assert.deepEqual(asked, [['resource', { uri: 'test://one' }], ['completion', complete], ['resource', { uri: 'test://one' }]])

  const methods = (): Array<string | undefined> => upstream.received.map(({ message }) => message.method)
  const before = methods().length
  const refusals: unknown[] = []
  for (answer of [
    { action: 'reject', message: 'Not this' }, { action: 'replace', arguments: { uri: 'test://two', ref: { ...ref, name: 'other' } } }
  ]) {
    refusals.push((await session.request('resources/read', { uri: 'test://one' })).error?.message)
    refusals.push((await session.request('completion/complete', complete)).error?.message)
    refusals.push((await session.request('resources/subscribe', { uri: 'test://one' })).error?.message)
  }
  const other = 'The guard "Asks" refuses this call: its webhook replaced the name or URI of the item'
  assert.deepEqual(refusals, ['Not this', 'Not this', 'Not this', other, other, other])
  assert.deepEqual(methods().slice(before), [])
  answer = { action: 'replace', arguments: { ref, argument: { name: 'who', value: 'al' } } }
  await session.request('completion/complete', complete)
  assert.match(upstream.received.findLast(({ message }) => message.method === 'completion/complete')?.body ?? '', /"value":"al"/)
})

test('texts that wait for a webhook count towards the memory budget, with a share for each caller', async (t) => {
  const held: number[] = []
  const webhooks = new GuardWebhooks({
    snapshot: () => ({ teams: new Map(), users: new Map() }),
    outbound: {
      fetch: async () => {
        held.push(memoryBudget.held)
        return { status: 200, headers: {}, body: Buffer.from('{"action":"accept"}') }
      }
    },
    warn: (error: unknown) => { throw error }
  } as unknown as ConstructorParameters<typeof GuardWebhooks>[0])
  const ask = async (owner: string): Promise<string> => {
    const view = { principal: { key: 'user ann', kind: 'user', user: 'ann', username: 'ann', isAdmin: false } }
    const call = { exchange: { method: 'tools/call', client: { owner }, view }, provider: 's', item: 't' } as unknown as Asks[1]
    const guard = { id: 'g', name: 'Asks', on: 'both', action: 'refuse', webhook: { url: 'https://hook.example', secret, whenAway: 'deny' } } as const
    return await webhooks.ask(guard, call, 'result', '{"a":1}')
  }
  assert.equal(await ask('ann'), '{"a":1}')
  assert.deepEqual([held, memoryBudget.held], [[14], 0])
  t.after(memoryBudget.reserve('ann', memoryBudget.max * 3 / 4))
  await assert.rejects(ask('ann'), /"Asks" could not ask its webhook: You have reached your share/)
  assert.equal(await ask('ben'), '{"a":1}')
})
