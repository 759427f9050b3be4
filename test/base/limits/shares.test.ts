import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Forwarder } from '../../../plugins/gateway/forward.ts'
import { createHookLists } from '../../../plugins/gateway/hooks.ts'
import { chargedOwnerOf } from '../../../plugins/settings/access/owner.ts'
import type { Principal } from '../../../plugins/settings/access/view.ts'
import { ModernClientPool } from '../../../plugins/downstream/modern/leases.ts'
import { memoryBudget } from '../../../plugins/base/limits/memory.ts'
import { Semaphore } from '../../../plugins/base/limits/semaphore.ts'
import { ShareError, Shares } from '../../../plugins/base/limits/shares.ts'
import { RestSessions } from '../../../plugins/downstream/tools/sessions.ts'
import { Raw, startUpstream, tool } from '../../fakes/fault-http.ts'
import { json, restApi } from '../../fakes/rest-api.ts'
import { connected, Session, settings, type Json } from '../../helpers/client.ts'
import { startHub, until } from '../../helpers/hub.ts'
import { served } from '../../helpers/served.ts'
import { setLimits } from '../../helpers/patient.ts'
import { gatewayLimits } from '../../../plugins/gateway/limits.ts'
import { downstreamLimits } from '../../../plugins/downstream/limits.ts'
import { upstreamLimits } from '../../../plugins/upstream/limits.ts'

const share = { name: 'ShareError', isOwnerLimit: true }
const full = { name: 'ShareError', isOwnerLimit: false }

test('an owner may take what is free, but the last quarter is for those that hold less than a tenth', async () => {
  const shares = new Shares(100, 'things')
  const releases = Array.from({ length: 75 }, () => shares.take('greedy'))
  assert.throws(() => shares.take('greedy'), share)
  for (let n = 0; n < 10; n++) shares.take('late')
  assert.throws(() => shares.take('late'), share)
  for (let n = 0; n < 15; n++) shares.take(`other ${n}`)
  assert.throws(() => shares.take('last'), full)
  assert.deepEqual([shares.taken, shares.heldBy('greedy'), shares.heldBy('late')], [100, 75, 10])
  for (const release of releases) { release(); release() }
  assert.deepEqual([shares.taken, shares.heldBy('greedy')], [25, 0], 'releasing twice releases once')
  shares.take('greedy')
})

test('whatever one owner takes and gives back, another one can have a tenth of all, in any pieces', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 40 })
  fc.assert(fc.property(sizes, sizes, fc.infiniteStream(fc.boolean()), (greedy, pieces, gives) => {
    const shares = new Shares(1_000, 'bytes')
    const releases: Array<() => void> = []
    const grab = (): void => {
      for (const size of greedy) {
        try { releases.push(shares.take('greedy', size)) } catch { /* he has had his share */ }
        if (gives.next().value === true) releases.shift()?.()
      }
    }
    let left = 100
    for (const size of pieces) {
      grab()
      if (size > left) continue
      shares.take('late', size)
      left -= size
    }
  }))
})

test('places of different size', async () => {
  const shares = new Shares(1_000, 'bytes')
  shares.take('a', 750)
  assert.throws(() => shares.take('a', 1), share)
  assert.throws(() => shares.take('b', 251), full)
  assert.throws(() => shares.take('b', 101), share)
  const release = shares.take('b', 100)
  release()
  assert.equal(shares.heldBy('b'), 0)
})

test('of less than ten places, an owner that holds none may have one of the last quarter', async () => {
  const shares = new Shares(4, 'things')
  for (let n = 0; n < 3; n++) shares.take('a')
  assert.throws(() => shares.take('a'), share)
  assert.throws(() => shares.take('b', 2), full)
  const release = shares.take('b')
  assert.throws(() => shares.take('c'), full)
  release()
  assert.equal(shares.taken, 3)
})

test('owners: users with all their keys, system keys, addresses', async () => {
  const principal = (kind: Principal['kind'], key: string, username?: string): Principal =>
    ({ kind, key, user: username ?? key, isAdmin: false, ...(username === undefined ? {} : { username }) })
  assert.equal(chargedOwnerOf(principal('user-key', 'key 1', 'ann'), '192.0.2.1'), chargedOwnerOf(principal('user', 'login', 'ann'), '192.0.2.2'))
  assert.notEqual(chargedOwnerOf(principal('system-key', 'key 1'), '192.0.2.1'), chargedOwnerOf(principal('system-key', 'key 2'), '192.0.2.1'))
  const anonymous = principal('anonymous', 'anonymous')
  assert.notEqual(chargedOwnerOf(anonymous, '192.0.2.1'), chargedOwnerOf(anonymous, '192.0.2.2'))
  assert.equal(chargedOwnerOf(anonymous, '2001:db8::1'), chargedOwnerOf(anonymous, '2001:db8::2:3'), 'a client has 64 bits of IPv6 addresses')
  assert.equal(chargedOwnerOf(anonymous, '::ffff:192.0.2.1'), chargedOwnerOf(anonymous, '192.0.2.1'))
})

test('one caller who holds calls without end does not shut out the next one', async () => {
  const answers: Array<() => void> = []
  const call = async (): Promise<object> => await new Promise((resolve) => { answers.push(() => { resolve({ resultText: '{}' }) }) })
  const providers = { use: () => ({ call }) } as never
  const forwarder = new Forwarder(providers, createHookLists(), (exchange) => exchange, async () => {}, () => true, () => {})
  const send = async (owner: string): Promise<string> =>
    await forwarder.send({ client: { id: owner, owner }, params: {} } as never, 'server', 'item')
  const held = Array.from({ length: gatewayLimits.calls * 3 / 4 }, async () => await send('greedy'))
  await assert.rejects(send('greedy'), ShareError)
  const late = Array.from({ length: gatewayLimits.calls / 10 }, async () => await send('late'))
  await assert.rejects(send('late'), share)
  assert.equal(answers.length, held.length + late.length)
  for (const answer of answers) answer()
  assert.equal((await Promise.all([...held, ...late])).length, held.length + late.length)
  const again = send('greedy')
  answers.at(-1)?.()
  assert.equal(await again, '{}')
})

test('a caller who names sessions without end gives up its own, and nobody else\'s', async (t) => {
  const released: string[] = []
  const sessions = new RestSessions({ idle: 60_000, maxSessions: 40 }, ({ owner }) => { released.push(owner ?? '') })
  t.after(() => { sessions.close() })
  const principal = (username: string): Principal => ({ key: `user ${username}`, kind: 'user', user: username, username, isAdmin: false })
  const call = async (username: string, id: string): Promise<string | undefined> =>
    await sessions.withSession(principal(username), '::1', id, async (client) => client?.id)
  const first = await call('ann', 'a')
  for (let n = 0; n < 100; n++) await call('eve', String(n))
  assert.equal(await call('ann', 'a'), first)
  assert.deepEqual(new Set(released), new Set(['user eve']))
  await call('bob', 'b')
  assert.deepEqual(new Set(released), new Set(['user eve']), 'the last quarter is left')
  const never = new Promise<never>(() => {})
  for (let n = 0; n < 4; n++) void sessions.withSession(principal('dan'), '::1', String(n), async () => await never)
  await assert.rejects(sessions.withSession(principal('dan'), '::1', 'one-more', async () => {}), ShareError)
})

test('a caller who declares other capabilities with each modern request leaves others the clients between their requests', async (t) => {
  const ended: string[] = []
  const leases = new ModernClientPool({ onBegin: () => {}, onEnd: ({ owner }) => { ended.push(owner) } })
  t.after(() => { leases.close() })
  const request = (username: string, capabilities: string): string => {
    const principal: Principal = { key: `user ${username}`, kind: 'user', user: username, username, isAdmin: false }
    const client = leases.acquire({ principal, key: 'view' } as never, '::1', {}, capabilities, undefined)
    leases.giveBack(client)
    return client.id
  }
  const anns = request('ann', '{}')
  for (let n = 0; n < 2 * downstreamLimits.leases.idle; n++) request('eve', String(n))
  assert.equal(request('ann', '{}'), anns)
  assert.equal(request('bob', '{}'), request('bob', '{}'), 'one who comes late, too')
  assert.deepEqual([leases.idle, new Set(ended)], [downstreamLimits.leases.idle * 3 / 4 + 1, new Set(['user eve'])])
})

test('waiting owners take turns, those of one owner stay in order', async () => {
  const semaphore = new Semaphore({ places: 1 })
  const release = await semaphore.take('a')
  const order: string[] = []
  const run = async (owner: string, name: string): Promise<void> => {
    const leave = await semaphore.take(owner)
    order.push(name)
    leave()
  }
  const all = [run('a', 'a1'), run('a', 'a2'), run('a', 'a3'), run('b', 'b1'), run('c', 'c1'), run('b', 'b2')]
  release()
  release()
  await Promise.all(all)
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('owners without privilege have a bound of their own, and leave the reserved places', async () => {
  const semaphore = new Semaphore({ places: 4, perOwner: 2, reserved: 1 })
  const taken: string[] = []
  const take = (owner: string, isPrivileged: boolean): Promise<() => void> => {
    const taking = semaphore.take(owner, isPrivileged)
    void taking.then(() => { taken.push(owner) })
    return taking
  }
  const [first] = [take('ann', false), take('ann', false), take('ann', false), take('bob', false), take('bob', false)]
  await new Promise((resolve) => { setImmediate(resolve) })
  assert.deepEqual(taken, ['ann', 'ann', 'bob'])
  await take('admin', true)
  void take('admin', true)
  const leave = await first
  leave?.()
  await new Promise((resolve) => { setImmediate(resolve) })
  assert.deepEqual(taken, ['ann', 'ann', 'bob', 'admin', 'ann'], 'the one who has waited longest')
})

test('what the servers of one user list has a bound together', async (t) => {
  // A tenth of what there is for a user usually.
  setLimits(t, upstreamLimits, { cataloguesPerUser: Math.floor(upstreamLimits.cataloguesPerUser / 10) })
  const size = 90 * 1024
  const large = (count: number, title = ''): Json[] =>
    Array.from({ length: count }, (_, n) => tool(`t${n}`, { title, inputSchema: { type: 'object', title: 'x'.repeat(size) } }))
  const most = Math.floor(upstreamLimits.cataloguesPerUser / size)
  const upstreams = {
    a: await startUpstream(t, { tools: large(12) }),
    b: await startUpstream(t, { tools: large(12) }),
    admins: await startUpstream(t, { tools: large(12) })
  }
  const anns = { owner: 'ann', storedByUser: true, visibility: 'public' }
  const users = [{ username: 'admin', isAdmin: true }, { username: 'ann', isAdmin: false }].map((user) => ({ ...user, password: 'none' }))
  const start = async (servers: Json, folder?: string): ReturnType<typeof startHub> => await startHub(t, {
    folder,
    settings: settings(servers, { users }),
    env: { OUTBOUND_ALLOW: '127.0.0.0/8', LOG_LEVEL: 'warn' }
  })
  const count = async (url: string, ...servers: string[]): Promise<number[]> => {
    const sessions = await Promise.all(servers.map(async (server) => await Session.open(`${url}/mcp/${server}`)))
    return await Promise.all(sessions.map(async (session) => (await session.tools()).length))
  }
  const servers = { a: { url: upstreams.a.url, ...anns }, b: { url: upstreams.b.url, ...anns }, admins: { url: upstreams.admins.url } }
  const first = await start(servers)
  await connected(first, 3)

  await t.test('for all of them; those of admins have none', async () => {
    const [a = 0, b = 0, admins] = await count(first.url, 'a', 'b', 'admins')
    assert.equal(a + b, most)
    assert.equal(admins, 12)
  })

  await t.test('those restored from the last run as well', async () => {
    const [before] = await count(first.url, 'a')
    await first.stop()
    await upstreams.a.close()
    const again = await start(servers, first.folder)
    await connected(again, 2)
    const [after = 0] = await count(again.url, 'b')
    assert.equal(after, most - Number(before), 'what was restored of a server that is away is held')
    await again.stop()
  })
})

test('large answers count in the name of who called: 429 beyond his share, 503 beyond the bound for all', async (t) => {
  const MiB = 1024 * 1024
  const api = await restApi(t)
  api.answer(({ url }, response) => { json(response, 'x'.repeat(Number(url.slice(1)) * MiB)) })
  const get = (operationId: string): Json => ({ get: { operationId, responses: { 200: { description: 'text' } } } })
  const schema = { openapi: '3.0.3', info: { title: 't', version: '1' }, servers: [{ url: api.url }], paths: { '/4': get('t4'), '/7': get('t7') } }
  const upstream = await startUpstream(t, {
    tools: [tool('t4'), tool('t7')],
    on: ({ method, params }) => method === 'tools/call'
      ? new Raw(`{"content":[{"type":"text","text":"${'x'.repeat(Number(String(params.name).slice(1)) * MiB)}"}]}`)
      : undefined
  })
  const servers = { up: { url: upstream.url, visibility: 'public' }, rest: { type: 'openapi', openapi: { schema }, visibility: 'public' } }
  const hub = await served(t, servers)
  const call = async (server: string, name: string): Promise<number> => {
    const answer = await fetch(`${hub.url}/api/tools/${server}/${name}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    await answer.text()
    return answer.status
  }
  const bound = 256 * MiB
  for (const server of Object.keys(servers)) {
    // The answers cost four times their size: 16 and 28 MiB, a tenth of all being 25.6.
    for (const others of ['somebody else', '']) {
      // An answer is held until its reader has all of it.
      await until(() => memoryBudget.held < MiB)
      const release = memoryBudget.reserve(others, bound * 0.74)
      assert.equal(await call(server, 't4'), 200, `${server}: he holds little`)
      assert.equal(await call(server, 't7'), 429, `${server}: beyond his share`)
      release()
    }
    await until(() => memoryBudget.held < MiB)
    memoryBudget.add(bound * 0.97)
    assert.equal(await call(server, 't4'), 503, `${server}: beyond the bound`)
    memoryBudget.add(-bound * 0.97)
    assert.equal(await call(server, 't7'), 200, `${server}: there is room`)
  }
})
