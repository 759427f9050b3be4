// How long calls take while the database that records them is away. Needs PostgreSQL.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { spawnReplica } from '../fakes/replica.ts'
import { connected, Session, settings } from '../helpers/client.ts'
import { cluster, database } from '../helpers/database.ts'

/** Makes calls, four at a time; the duration of each, sorted, in ms. */
async function load (session: Session, count: number): Promise<number[]> {
  const times: number[] = []
  let left = count
  await Promise.all(Array.from({ length: 4 }, async () => {
    while (left-- > 0) {
      const since = performance.now()
      await session.call('echo', { message: 'x'.repeat(50_000) })
      times.push(performance.now() - since)
    }
  }))
  return times.sort((a, b) => a - b)
}
const at = (times: readonly number[], share: number): number => times[Math.floor(times.length * share)] ?? Infinity

test('calls take as long without the database as with it', async (t) => {
  const server = await cluster(t)
  const { url } = await database(t, server)
  const upstream = await startUpstream(t)
  const hub = await spawnReplica(t, url, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/fake`)
  await load(session, 600)
  const before = await load(session, 600)
  await server.stop('immediate')
  const during = await load(session, 600)
  await server.start()
  const after = await load(session, 600)
  for (const [share, more] of [[0.5, 2], [0.99, 20]] as const) {
    const [one, two, three] = [before, during, after].map((times) => at(times, share))
    t.comment(`${share}: ${[one, two, three].map((time) => time?.toFixed(1)).join(', ')} ms before, during and after`)
    assert.ok((two ?? Infinity) <= 1.25 * Math.max(one ?? 0, three ?? 0) + more)
  }
  assert.ok(at(during, 1 - 1e-9) < 2_000, 'none waits for the database')
})
