// Quotas let calls through as often as they say, over restarts too; what is used is counted by day.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { FileUsageCounts } from '../../../db/json/usage.ts'
import { MemoryCounters } from '../../../db/memory/counters.ts'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'
import { refusedCalls } from '../../contracts/refused-calls.ts'
import { startBareModern } from '../../fakes/bare-modern.ts'
import type { Upstream } from '../../fakes/fault-http.ts'
import { loggedIn, manage, managed } from '../../fakes/replica.ts'
import { restApi } from '../../fakes/rest-api.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'
import { startLegacyTasks, startModernTasks } from '../../fakes/task-servers.ts'
import { connected, OTHER, otherKey, send, Session, silence, text, type Json } from '../../helpers/client.ts'
import { bearerKey, startHub, until, type Cleanup, type Hub } from '../../helpers/hub.ts'
import { modernRequest } from '../../helpers/modern-request.ts'
import { setLimits } from '../../helpers/patient.ts'
import { caller, quota, rest, upstreamFor } from '../../helpers/quotas.ts'
import { served } from '../../helpers/served.ts'
import { withTasks } from '../../helpers/task-clients.ts'

const ada = { id: '33333333-3333-4333-8333-333333333333', name: 'laptop', token: `thk_${'c'.repeat(64)}`, kind: 'user', owner: 'ada', enabled: true }
const users = [{ username: 'ada', password: '$2b$04$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', isAdmin: false }]

interface World { hub: Hub, upstream: Upstream }

async function world (t: Cleanup, quotas: Json[], more: Json = {}): Promise<World> {
  const upstream = await upstreamFor(t)
  const bearerKeys = [bearerKey(), otherKey(), ada]
  const hub = await served(t, { up: { url: upstream.url, visibility: 'public' } }, { quotas, users, bearerKeys, ...more })
  return { hub, upstream }
}

test('a quota that is used up: a tool error, a JSON-RPC error, 429 with Retry-After; refused calls do not count', async (t) => {
  const { hub, upstream } = await world(t, [quota({ calls: 3 })])
  const session = await Session.open(`${hub.url}/mcp`)
  const call = async (): Promise<Json> => (await session.request('tools/call', { name: 'up-say' })).result ?? {}
  for (let n = 0; n < 3; n++) assert.equal((await call()).isError, false)
  const refused = await call()
  assert.equal(refused.isError, true)
  assert.match(text(refused), /^The quota "Daily" is used up \(3 calls a day\)\. It is available again in \d+ s, at 20\d\d-.*Z\n?$/)
  const { error } = await session.request('prompts/get', { name: 'up-greet' })
  assert.match(error?.message ?? '', /"Daily" is used up/)
  const reply = await rest(hub)
  assert.equal(reply.status, 429)
  const wait = Number(reply.headers.get('retry-after'))
  assert.ok(wait > 86_000 && wait <= 86_400, String(wait))
  assert.equal(upstream.received.filter(({ message }) => message.method === 'tools/call').length, 3)
  // More room counts from what was let through, not from what was asked.
  const { id, ...sent } = quota({ calls: 5 })
  await managed(hub, 'PUT', `/quotas/${String(id)}`, sent)
  assert.deepEqual([await call(), await call(), await call()].map(({ isError }) => isError), [false, false, true])
})

test('a call that one quota refuses counts for no other', async (t) => {
  const { hub } = await world(t, [quota({ calls: 2 }), quota({ id: 'q2', name: 'One', target: { server: 'up', tool: 'say' }, calls: 1 })])
  const call = await caller(hub)
  assert.deepEqual([await call(), await call(), await call(), await call('other'), await call('other')], [true, false, false, true, false])
})

test('targets: a user, each user, a team, a key, each key, a server, a tool', async (t) => {
  const targets: Array<[Json, expected: boolean[]]> = [
    [{ user: 'ada' }, [true, false, true, true]],
    [{ user: '*' }, [true, false, true, false]],
    [{ team: 'red' }, [true, false, true, true]],
    [{ team: 'blue' }, [true, false, true, true]],
    [{ team: 'green' }, [true, true, true, true]],
    [{ key: ada.id }, [true, false, true, true]],
    [{ key: '*' }, [true, false, true, false]],
    [{ server: 'up' }, [true, false, false, false]],
    [{ server: 'elsewhere' }, [true, true, true, true]],
    [{ server: 'up', tool: 'say', user: '*' }, [true, false, true, false]],
    [{ server: 'up', tool: 'other' }, [true, true, true, true]],
    [{}, [true, false, false, false]]
  ]
  // Members are named by an admin, or by the groups of their last login.
  const teams = [{ name: 'red', members: ['ada'] }, { name: 'blue', claims: ['eng'] }, { name: 'green', claims: ['ops'] }]
  const { hub } = await world(t, [], { teams, users: users.map((user) => ({ ...user, loginGroups: ['eng'] })) })
  const [hers, theirs] = [await caller(hub, ada.token), await caller(hub, OTHER)]
  for (const [target, expected] of targets) {
    const { id } = await managed(hub, 'POST', '/quotas', { name: 'Tested', target, per: 'minute', calls: 1 })
    assert.deepEqual([await hers(), await hers(), await theirs(), await theirs()], expected, JSON.stringify(target))
    await managed(hub, 'DELETE', `/quotas/${String(id)}`)
  }
})

test('a team\'s quota counts its keys and those whom their logins make members; a key of a team counts as a user', async (t) => {
  const eve = { ...ada, id: '44444444-4444-4444-8444-444444444444', token: `thk_${'e'.repeat(64)}`, owner: 'eve' }
  const ofTeam = { ...ada, id: '55555555-5555-4555-8555-555555555555', token: `thk_${'d'.repeat(64)}`, owner: '@red' }
  const { hub } = await world(t, [], {
    users: [...users, { ...users[0], username: 'eve', loginGroups: ['/red'] }],
    teams: [{ name: 'red', members: ['ada'], claims: ['/red'] }],
    bearerKeys: [bearerKey(), ada, eve, ofTeam]
  })
  const calls = [await caller(hub, ada.token), await caller(hub, eve.token), await caller(hub, ofTeam.token)]
  for (const [target, limit, expected] of [
    [{ team: 'red' }, 1, [true, false, false]], [{ team: '*' }, 2, [true, true, false]],
    [{ user: '*' }, 1, [true, true, true, false, false, false]], [{ user: '@red' }, 1, [true, true, true, true, true, false]]
  ] as const) {
    const { id } = await managed(hub, 'POST', '/quotas', { name: 'Tested', target, per: 'minute', calls: limit })
    const passed: boolean[] = []
    for (let n = 0; n < expected.length; n++) passed.push(await calls[n % 3]?.() === true)
    assert.deepEqual(passed, expected, JSON.stringify(target))
    await managed(hub, 'DELETE', `/quotas/${String(id)}`)
  }
  const usage = await managed(hub, 'GET', '/usage?by=user') as unknown as Json[]
  assert.deepEqual(usage.map(({ user }) => user).sort(), ['@red', 'ada', 'eve'])
})

test('callers without a user count together where each user counts', async (t) => {
  const { hub } = await world(t, [quota({ target: { user: '*', server: 'up' }, calls: 2 })], { systemConfig: { routing: { enableBearerAuth: false } } })
  const call = async (key?: string): Promise<number> =>
    (await fetch(`${hub.url}/api/tools/up/say`, { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } })).status
  assert.deepEqual([await call(), await call(), await call(), await call(ada.token)], [200, 200, 429, 200])
})

test('a call that asks its client counts once, but its first request is not free for ever', async (t) => {
  const inputRequests = { a: { method: 'elicitation/create', params: { mode: 'form', message: 'Pay?', requestedSchema: { type: 'object', properties: {} } } } }
  let reached = 0
  const server = await startBareModern(t, [{ name: 'pay', inputSchema: { type: 'object' } }], ({ method, params }) => {
    if (method !== 'tools/call') return undefined
    reached++
    if (params.requestState === 'own') return { result: { resultType: 'complete', content: [] } }
    return { result: { resultType: 'input_required', inputRequests, requestState: 'own' } }
  })
  const hub = await served(t, { bank: { url: server.url } }, { quotas: [quota({ calls: 2 })] })
  const call = async (more: Json = {}): Promise<Json> => {
    const request = modernRequest('tools/call', { params: { name: 'pay', arguments: {}, ...more }, capabilities: { elicitation: {} } })
    const message = await (await fetch(`${hub.url}/mcp/bank`, { method: 'POST', ...request })).json() as Json
    return message.result as Json
  }
  const first = await call()
  assert.equal(first.resultType, 'input_required')
  const last = await call({ requestState: first.requestState, inputResponses: { a: { action: 'accept', content: {} } } })
  assert.deepEqual([last.resultType, last.isError], ['complete', undefined])
  for (let n = 0; n < 100; n++) await call()
  assert.match(text(await call()), /is used up/)
  // 16 rounds for each call, the call that ended, and the one that was left.
  assert.equal(reached, 2 * 16 + 2)
})

refusedCalls('a settings file', async (t, given) => await startHub(t, { settings: given }))

test('the webhook of notifications is told once that a quota is used up, with the time when it is free', async (t) => {
  const { url, seen: got, answer } = await restApi(t)
  answer((_request, reply) => { reply.writeHead(got.length === 1 ? 500 : 204).end() })
  const secret = `whsec_${Buffer.from('a secret of this webhook').toString('base64')}`
  setLimits(t, extensionsLimits.notifications, { pauses: [10] })
  const notifications = { url: `${url}/hook`, secret, events: ['quota'] }
  const { hub } = await world(t, [quota({ calls: 1 }), quota({ id: 'q2', name: 'Other', target: { server: 'up', tool: 'other' }, calls: 1 })], { systemConfig: { notifications } })
  const call = await caller(hub)
  assert.deepEqual([await call(), await call(), await call()], [true, false, false])
  await until(() => got.length === 2, 'the webhook was not told')
  const [first, again] = got
  assert.deepEqual(first?.body, again?.body)
  assert.equal(first?.headers['webhook-id'], again?.headers['webhook-id'], 'it is one message')
  const { type, timestamp, data } = JSON.parse(String(first?.body)) as { type: string, timestamp: string, data: Json }
  assert.equal(type, 'quota')
  assert.deepEqual(data.quota, { id: 'q1', name: 'Daily' })
  const wait = Date.parse(String(data.freeAt)) - Date.parse(timestamp)
  assert.ok(wait > 86_000_000 && wait <= 86_400_000, String(wait))
  const { 'webhook-id': messageId, 'webhook-timestamp': at, 'webhook-signature': signature } = again?.headers ?? {}
  const mac = createHmac('sha256', Buffer.from(secret.slice(6), 'base64')).update(`${String(messageId)}.${String(at)}.${String(again?.body)}`).digest('base64')
  assert.equal(signature, `v1,${mac}`)
  await silence(100)
  assert.equal(got.length, 2, 'once for each time')
})

test('tokens of results count when the result is there, so the last call may go over', async (t) => {
  const { hub } = await world(t, [quota({ resultTokens: 25 })])
  const call = await caller(hub)
  assert.deepEqual([await call(), await call(), await call()], [true, true, false])
  const [row] = await managed(hub, 'GET', '/usage?by=server') as unknown as Json[]
  assert.ok(Number(row?.resultTokens) >= 30 && Number(row?.resultTokens) < 60, JSON.stringify(row))
})

test('results of tasks count for tokens of their tool, in both eras; what goes over is refused, and the task stays', async (t) => {
  for (const start of [startLegacyTasks, startModernTasks]) {
    const { url } = await start(t)
    const { id, ...tokens } = quota({ target: { server: 'up', tool: 'long' }, resultTokens: 400 })
    const hub = await served(t, { up: { url } }, { quotas: [{ id, ...tokens }] })
    const ask = async (method: string, params: Json): Promise<{ result?: Json, error?: Json }> => {
      const request = modernRequest(method, { params, capabilities: withTasks })
      return (await send(`${hub.url}/mcp/up`, { ...request, key: null })).messages.at(-1) as { result?: Json, error?: Json }
    }
    const begin = async (): Promise<unknown> =>
      (await ask('tools/call', { name: 'long', arguments: { text: 'five words are said here '.repeat(100) } })).result?.taskId
    const ended = async (taskId: unknown): Promise<string> => {
      let answer: { result?: Json, error?: Json } = {}
      await until(async () => {
        answer = await ask('tasks/get', { taskId })
        return answer.result?.status !== 'working'
      }, () => JSON.stringify(answer))
      return String(answer.error?.message ?? answer.result?.status)
    }
    const [one, other] = [await begin(), await begin()]
    assert.equal(await ended(one), 'completed')
    assert.match(await ended(other), /"Daily" is used up/)
    const [row] = await managed(hub, 'GET', '/usage?by=tool') as unknown as Json[]
    assert.deepEqual([row?.tool, row?.calls, row?.errors], ['long', 2, 0])
    assert.ok(Number(row?.resultTokens) > 500, JSON.stringify(row))
    // It is no new call: with more room, it is got.
    await managed(hub, 'PUT', `/quotas/${String(id)}`, { ...tokens, resultTokens: 100_000, calls: 0 })
    assert.equal(await ended(other), 'completed')

    await managed(hub, 'PUT', `/quotas/${String(id)}`, { ...tokens, resultTokens: 100_000 })
    const session = await Session.open(`${hub.url}/mcp/up`)
    const { result } = await session.request('tools/call', { name: 'long', arguments: { text: 'x' }, task: {} })
    const { taskId } = result?.task as Json
    const before = Number(((await managed(hub, 'GET', '/usage?by=tool')) as unknown as Json[])[0]?.resultTokens)
    assert.match(text((await session.request('tasks/result', { taskId })).result), /long x/)
    await managed(hub, 'PUT', `/quotas/${String(id)}`, { ...tokens, resultTokens: 1 })
    assert.match((await session.request('tasks/result', { taskId })).error?.message ?? '', /is used up/)
    const after = Number(((await managed(hub, 'GET', '/usage?by=tool')) as unknown as Json[])[0]?.resultTokens)
    assert.ok(after > before, `${before} ${after}`)
  }
})

test('without a database, quotas and usage survive a restart', async (t) => {
  const { hub } = await world(t, [quota({ calls: 2 })])
  const call = await caller(hub)
  assert.deepEqual([await call(), await call('fails')], [true, true])
  await hub.stop()
  const next = await startHub(t, { folder: hub.folder })
  await connected(next, 1)
  assert.equal((await rest(next)).status, 429)
  const [row] = await managed(next, 'GET', '/usage?by=server') as unknown as Json[]
  assert.deepEqual([row?.server, row?.calls, row?.errors], ['up', 2, 1])
})

test('without a database, a save writes the days that have changed, in parts; a restart reads all retained days', async (t) => {
  const folder = await temporaryFolder(t)
  const now = (): number => Date.parse('2026-11-30T12:00:00Z')
  const file = (day: string): string => join(folder, `${day}.json`)
  const count = { day: '2026-11-30', user: 'ada', key: '', server: 's', tool: 't', calls: 1, errors: 0, resultTokens: 5 }
  const counts = new FileUsageCounts(folder, new MemoryCounters(), now)
  await counts.add([count, { ...count, day: '2026-11-29' }, { ...count, day: '2025-10-01' }])
  await counts.save()
  assert.deepEqual((await readdir(folder)).sort(), ['2026-11-29.json', '2026-11-30.json', 'quotas.json'])
  await writeFile(file('2026-11-29'), '[]')
  await counts.add(Array.from({ length: 10_000 }, (_, n) => ({ ...count, tool: `t${n}` })))
  const sizes: number[] = []
  const { stringify } = JSON
  t.after(() => { JSON.stringify = stringify })
  JSON.stringify = (value: unknown) => { if (Array.isArray(value)) sizes.push(value.length); return stringify(value) }
  await counts.save()
  JSON.stringify = stringify
  assert.ok(sizes.length > 0 && Math.max(...sizes) <= 1_000, `${sizes}`)
  assert.equal(await readFile(file('2026-11-29'), 'utf8'), '[]', 'a day without calls was written again')
  await writeFile(file('2026-11-28'), 'broken')
  const next = new FileUsageCounts(folder, new MemoryCounters(), now)
  await assert.rejects(next.load(), AggregateError)
  assert.deepEqual((await next.list(['2026-11-30'])).slice(0, 2), [count, { ...count, tool: 't0' }])
  assert.equal((await next.list(['2026-11-28', '2026-11-29', '2026-11-30'])).length, 10_001)
})

test('usage by user, key, server and tool; everybody sees his own', async (t) => {
  const { hub } = await world(t, [])
  const reversed = await manage(hub, 'GET', '/usage?by=user&from=2026-11-02&to=2026-11-01')
  assert.deepEqual([reversed.status, /\\"from\\" is after \\"to\\"/.test(reversed.text)], [400, true], reversed.text)
  assert.deepEqual(await managed(hub, 'GET', '/usage?by=user&from=2999-01-01'), [])
  const [mine, hers] = [await caller(hub), await caller(hub, ada.token)]
  for (const name of ['say', 'say', 'fails']) await mine(name)
  await hers('other')
  const day = new Date().toISOString().slice(0, 10)
  const rows = async (query: string, headers?: Record<string, string>): Promise<unknown[]> => {
    const found = await managed(hub, 'GET', `/usage?${query}`, undefined, headers) as unknown as Json[]
    for (const { resultTokens } of found) assert.ok(Number(resultTokens) > 0)
    return found.map(({ day, resultTokens: _tokens, ...row }) => row)
      .sort((a, b) => Number(b.calls) - Number(a.calls) || Number(b.errors) - Number(a.errors))
  }
  const both = [{ user: 'system', calls: 3, errors: 1 }, { user: 'ada', calls: 1, errors: 0 }]
  assert.deepEqual(await rows('by=user'), both)
  assert.deepEqual(await rows(`by=user&from=${day}&to=${day}`), both)
  assert.deepEqual(await rows('by=user&to=2020-01-02'), [])
  await managed(hub, 'PUT', '/users/ada', { newPassword: 'Ada-has-1-too' })
  const asAda = await loggedIn(hub, 'ada', 'Ada-has-1-too')
  assert.deepEqual(await rows('by=key', asAda), [{ key: ada.id, calls: 1, errors: 0 }])
  assert.deepEqual(await rows('by=tool', asAda), [{ tool: 'other', server: 'up', calls: 1, errors: 0 }])
  assert.deepEqual(await rows('by=server'), [{ server: 'up', calls: 4, errors: 1 }])
  assert.deepEqual(await rows('by=tool'), [
    { tool: 'say', server: 'up', calls: 2, errors: 0 }, { tool: 'fails', server: 'up', calls: 1, errors: 1 },
    { tool: 'other', server: 'up', calls: 1, errors: 0 }
  ])
  for (const wrong of ['by=day', 'by=user&from=yesterday', 'by=user&from=2026-02-30', 'by=user&from=2020-01-01&to=2026-01-01']) {
    assert.equal((await manage(hub, 'GET', `/usage?${wrong}`)).status, 400, wrong)
  }
})

test('a new user neither sees nor has used up what a former one of his name used, on the same day either', async (t) => {
  const { hub } = await world(t, [quota({ target: { user: '*' }, calls: 1 })])
  const password = 'Open-Sesame-1'
  for (const name of ['say', 'other']) {
    await managed(hub, 'POST', '/users', { username: 'bob', password })
    const bob = await loggedIn(hub, 'bob', password)
    const { token } = await managed(hub, 'POST', '/auth/keys', { name: 'k' }, bob) as Json
    assert.equal(await (await caller(hub, String(token)))(name), true)
    const own = await managed(hub, 'GET', '/usage?by=tool', undefined, bob) as unknown as Json[]
    assert.deepEqual(own.map((row) => [row.tool, row.calls]), [[name, 1]])
    await managed(hub, 'DELETE', '/users/bob')
  }
  const [row] = await managed(hub, 'GET', '/usage?by=user') as unknown as Json[]
  assert.deepEqual([row?.user, row?.calls], ['bob', 2], 'admins see a name with all that was used under it')
})
