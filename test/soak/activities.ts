// 10 million recorded calls in a real PostgreSQL: pages, filters and the next pages are read in less than 50 ms.
// `npm run soak -- activities`; ACTIVITY_ROWS=1000000 takes fewer. It needs some 12 GB of disk, and prints what each question took.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { ActivityFilter } from '../../db/ports/activities.ts'
import { openPorts } from '../fakes/store-ports.ts'
import { cluster, database } from '../helpers/database.ts'

const rows = Number(process.env.ACTIVITY_ROWS ?? 10_000_000)
const step = 500_000
/** In ms. */
const most = 50
const first = 1_790_000_000_000
/** Spread over 30 days. */
const spacing = Math.max(1, Math.floor(30 * 86_400_000 / rows))

test(`${rows} recorded calls`, async (t) => {
  const server = await cluster(t, {
    fsync: 'off', synchronous_commit: 'off', wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '4GB', shared_buffers: '512MB'
  })
  const { url, query } = await database(t, server)
  const { storage: { activities } } = await openPorts(t, url)
  assert.ok(activities)
  for (let from = 0; from < rows; from += step) {
    await query(`
      INSERT INTO activities (id, timestamp, server, tool, duration, status, "group", username, key_id, key_name, source_ip, sealed)
      SELECT (lpad(to_hex(n), 12, '0') || substr(md5(n::text), 1, 20))::uuid, ${first} + n::bigint * ${spacing}, 's' || n % 50, 't' || n % 50 * 10 + n / 200 % 5,
        n % 1000 / 10.0, CASE WHEN n % 50 = 0 THEN 'error' ELSE 'success' END, CASE WHEN n % 10 = 0 THEN 'g' || n % 30 END, 'u' || n % 200,
        CASE WHEN n % 2 = 0 THEN 'k' || n % 200 END, CASE WHEN n % 2 = 0 THEN 'name ' || n % 200 END, '192.0.2.7',
        repeat('x', 160)
      FROM generate_series(${from}, ${Math.min(from + step, rows) - 1}) AS n`)
  }
  await query(`
    INSERT INTO activity_hours (hour, hash, server, tool, status, "group", username, key_id, key_name, calls, duration)
    SELECT timestamp / 3600000, encode(sha256(convert_to(json_build_array(server, tool, status, "group", username, key_id, key_name)::text, 'UTF8')), 'hex'),
      server, tool, status, "group", username, key_id, key_name, count(*), sum(duration)
    FROM activities GROUP BY 1, server, tool, status, "group", username, key_id, key_name`)
  await query('VACUUM ANALYZE activities')
  await query('VACUUM ANALYZE activity_hours')
  const [sizes] = await query<{ table: string, hours: string }>(
    "SELECT pg_size_pretty(pg_total_relation_size('activities')) AS table, count(*) AS hours FROM activity_hours"
  )
  t.comment(`${sizes?.table}, ${sizes?.hours} sums`)

  const time = async <Result>(what: string, ask: () => Promise<Result>): Promise<number> => {
    const times: number[] = []
    for (let round = 0; round < 5; round++) {
      const since = performance.now()
      await ask()
      times.push(performance.now() - since)
    }
    const [, , median = Infinity] = times.sort((a, b) => a - b)
    t.comment(`${what}: ${median.toFixed(1)} ms (${times.map((each) => each.toFixed(1)).join(', ')})`)
    return median
  }
  const slow: string[] = []
  const filters: ActivityFilter[] = [
    {}, { server: 's7' }, { tool: 't73' }, { status: 'error' }, { status: 'success' }, { group: 'g20' }, { username: 'u33' }, { keyId: 'k20' },
    { keyName: 'name 20' }, { server: 'none' }, { username: 'u33', status: 'error' },
    { username: 'u50', status: 'error' }, { server: 's7', status: 'error' }, { server: 's0', status: 'error' },
    { tool: 't73', status: 'error' }, { keyName: 'name 20', status: 'error' }, { server: 's7', tool: 't73' },
    { from: first + 5 * 86_400_000, to: first + 6 * 86_400_000 }, { username: 'u33', from: first + 5 * 86_400_000 }
  ]
  for (const filter of filters) {
    for (const page of [1, 2, 50]) {
      const what = `page ${page} of ${JSON.stringify(filter)}`
      if (await time(what, async () => await activities.list(filter, page, 100)) > most) slow.push(what)
    }
  }
  const [newest] = (await activities.list({}, 1, 1)).activities
  if (await time('one call', async () => await activities.find(newest?.id ?? '')) > most) slow.push('one call')
  // No bound is stated for these: they are printed.
  for (const filter of [{}, { username: 'u33' }, { from: first + 1, to: first + 20 * 86_400_000 }]) {
    await time(`sums of ${JSON.stringify(filter)}`, async () => await activities.stats(filter))
    await time(`values of ${JSON.stringify(filter)}`, async () => await activities.listFilterValues(filter))
  }
  await time('a step of removal', async () => await activities.removeSomeBefore(first + rows * spacing / 2))
  assert.deepEqual(slow, [], `slower than ${most} ms`)
})
