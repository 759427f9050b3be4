// Quotas on several replicas, and while the database is away.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { refusedCalls } from '../contracts/refused-calls.ts'
import { manage, managed, startReplica } from '../fakes/replica.ts'
import { at, connected, settings } from '../helpers/client.ts'
import { cluster, database } from '../helpers/database.ts'
import { until, type Hub } from '../helpers/hub.ts'
import { caller, quota, rest, upstreamFor } from '../helpers/quotas.ts'

test('while the database is away, calls count, and its usage is written when it is back', async (t) => {
  const db = await cluster(t)
  const upstream = await upstreamFor(t)
  const { url } = await database(t, db)
  const hub = await startReplica(t, url, { settings: settings({ up: { url: upstream.url } }, { quotas: [quota({ calls: 5 })] }) })
  await connected(hub, 1)
  const call = await caller(hub)
  assert.deepEqual([await call(), await call()], [true, true])
  await until(async () => at(await managed(hub, 'GET', '/usage?by=server'), 0, 'calls') === 2)
  await db.stop('immediate')
  assert.equal((await manage(hub, 'GET', '/usage?by=server')).status, 503)
  // The replica counts alone, from nothing.
  const passed: boolean[] = []
  for (let n = 0; n < 6; n++) passed.push(await call())
  assert.deepEqual(passed, [true, true, true, true, true, false])
  await db.start()
  await until(async () => at(await managed(hub, 'GET', '/usage?by=server'), 0, 'calls') === 7, 'the usage of that time is lost')
})

test('1,000 parallel calls over two replicas are let through exactly as often as the quota says', async (t) => {
  const { url } = await database(t)
  const upstream = await upstreamFor(t)
  const first = await startReplica(t, url, { settings: settings({ up: { url: upstream.url } }, { quotas: [quota({ calls: 300 })] }) })
  const second = await startReplica(t, url)
  for (const hub of [first, second]) await connected(hub, 1)
  const hubs = [first, second]
  let left = 1_000
  const statuses = new Map<number, number>()
  await Promise.all(Array.from({ length: 100 }, async (_, worker) => {
    while (left-- > 0) {
      const { status } = await rest(hubs[worker % 2] as Hub)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }))
  assert.deepEqual(Object.fromEntries(statuses), { 200: 300, 429: 700 })
  assert.equal(upstream.received.filter(({ message }) => message.method === 'tools/call').length, 300)
  await until(async () => {
    const rows = await managed(second, 'GET', '/usage?by=server')
    return at(rows, 0, 'calls') === 300
  }, 'the usage of both replicas was never 300')
})

refusedCalls('a database', async (t, given) => await startReplica(t, (await database(t)).url, { settings: given }))
