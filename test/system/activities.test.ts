// The database is killed while calls go on: none fails, none waits for it, and what was not recorded is counted. Needs PostgreSQL.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { spawnReplica } from '../fakes/replica.ts'
import { connected, KEY, Session, settings, text } from '../helpers/client.ts'
import { cluster, database } from '../helpers/database.ts'
import { until, type Hub } from '../helpers/hub.ts'

/** With each call's input and output, 340 calls fill what may wait for the database. */
const message = 'x'.repeat(50_000)
const calls = 600
const inFlight = 4

/** Makes calls; the duration of each, sorted, in ms. */
async function load (session: Session, count: number): Promise<number[]> {
  const times: number[] = []
  let left = count
  await Promise.all(Array.from({ length: inFlight }, async () => {
    while (left-- > 0) {
      const since = performance.now()
      assert.equal(text(await session.call('echo', { message })), message)
      times.push(performance.now() - since)
    }
  }))
  return times.sort((a, b) => a - b)
}
const p99 = (times: readonly number[]): number => times[Math.floor(times.length * 0.99)] ?? Infinity

async function counts (hub: Hub): Promise<{ written: number, shed: number, waiting: number }> {
  const metrics = await (await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text()
  const read = (name: string): number => Number(new RegExp(`^toolhub_activities_${name} (\\d+)$`, 'm').exec(metrics)?.[1])
  return { written: read('written_total'), shed: read('shed_total'), waiting: read('waiting') }
}

test('the database is killed under load', { timeout: 300_000 }, async (t) => {
  const server = await cluster(t)
  const { url } = await database(t, server)
  const upstream = await startUpstream(t)
  const hub = await spawnReplica(t, url, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/fake`)
  // In portions, as fast as they are written: more than a working database takes is shed as well.
  const before: number[] = []
  for (let portion = 0; portion < 12; portion++) {
    const times = await load(session, calls / 6)
    if (portion >= 6) before.push(...times)
    await until(async () => (await counts(hub)).waiting === 0)
  }
  before.sort((a, b) => a - b)
  assert.equal((await counts(hub)).written, 2 * calls)

  await server.stop('immediate')
  const during = await load(session, calls)
  const cut = await counts(hub)
  assert.ok(cut.shed > 0 && cut.waiting > 0 && cut.waiting < calls, JSON.stringify(cut))
  assert.equal(cut.written + cut.shed + cut.waiting, 3 * calls)

  await server.start()
  const after = load(session, calls)
  await until(async () => (await counts(hub)).waiting === 0)
  const [p99After, { written, shed }] = [p99(await after), await counts(hub)]
  await until(async () => (await counts(hub)).waiting === 0)
  t.comment(
    `p99 ${p99(before).toFixed(1)} ms before; ${p99(during).toFixed(1)} ms (slowest ${during.at(-1)?.toFixed(1)}) without the database; ` +
    `${p99After.toFixed(1)} ms after; ${written} written, ${shed} shed`
  )
  // The bound is 1.25 of the p99 before. What else the machine does shows in each of the three phases: a call without the database may take
  // as long as those before, or as those after it. Half of the calls are less at its mercy than the slowest hundredth.
  const after99 = p99(await after)
  assert.ok(p99(during) <= Math.max(1.25 * p99(before), 1.25 * after99, 50), `${p99(during)}, before ${p99(before)}, after ${after99}`)
  const median = (times: readonly number[]): number => times[times.length >> 1] ?? Infinity
  const [half, halfBefore, halfAfter] = [median(during), median(before), median(await after)]
  assert.ok(half <= 1.25 * Math.max(halfBefore, halfAfter) + 2, `${half}, before ${halfBefore}, after ${halfAfter}`)
  assert.ok((during.at(-1) ?? Infinity) < 2_000, String(during.at(-1)))

  const total = await counts(hub)
  assert.equal(total.written + total.shed, 4 * calls)
  const { body } = await (async () => {
    const answer = await fetch(`${hub.url}/api/activities/stats`, { headers: { authorization: `Bearer ${KEY}` } })
    return { body: await answer.json() as { data: { totalCalls: number } } }
  })()
  assert.equal(body.data.totalCalls, total.written, 'a batch that was written again is there once')
  assert.match(hub.output(), /calls cannot be recorded now/)
  assert.match(hub.output(), /calls are recorded again/)
  assert.equal(await hub.stop(), 0)
})
