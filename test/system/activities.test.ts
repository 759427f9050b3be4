// The database is killed while calls go on: none fails, and what was not recorded is counted. Needs PostgreSQL.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { managed, spawnReplica } from '../fakes/replica.ts'
import { connected, KEY, Session, settings, text } from '../helpers/client.ts'
import { cluster, database } from '../helpers/database.ts'
import { until, type Hub } from '../helpers/hub.ts'

/** With each call's input and output, 340 calls fill what may wait for the database. */
const message = 'x'.repeat(50_000)
const calls = 400
const portion = 100
const inFlight = 4

/** Makes calls, none of which fails. */
async function load (session: Session, count: number): Promise<void> {
  let left = count
  await Promise.all(Array.from({ length: inFlight }, async () => {
    while (left-- > 0) assert.equal(text(await session.call('echo', { message })), message)
  }))
}

async function counts (hub: Hub): Promise<{ written: number, shed: number, waiting: number }> {
  const metrics = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text()
  const read = (name: string): number => Number(new RegExp(`^toolhub_activities_${name} (\\d+)$`, 'm').exec(metrics)?.[1])
  return { written: read('written_total'), shed: read('shed_total'), waiting: read('waiting') }
}

test('the database is killed under load', async (t) => {
  const server = await cluster(t)
  const { url } = await database(t, server)
  const upstream = await startUpstream(t)
  const hub = await spawnReplica(t, url, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/fake`)
  // As many as may wait: more than a working database takes is shed as well.
  await load(session, portion)
  await until(async () => (await counts(hub)).waiting === 0)
  assert.equal((await counts(hub)).written, portion)

  await server.stop('immediate')
  await load(session, calls)
  const cut = await counts(hub)
  assert.ok(cut.shed > 0 && cut.waiting > 0 && cut.waiting < calls, JSON.stringify(cut))
  assert.equal(cut.written + cut.shed + cut.waiting, portion + calls)

  await server.start()
  await load(session, portion)
  await until(async () => (await counts(hub)).waiting === 0)
  const total = await counts(hub)
  assert.equal(total.written + total.shed, 2 * portion + calls)
  const { totalCalls } = await managed(hub, 'GET', '/activities/stats')
  assert.equal(totalCalls, total.written, 'a batch that was written again is there once')
  assert.match(hub.output(), /calls cannot be recorded now/)
  assert.match(hub.output(), /calls are recorded again/)
  assert.equal(await hub.stop(), 0)
})
