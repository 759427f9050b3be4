// The time to load 10,000 servers and 10,000 bearer keys from PostgreSQL, and the CPU time to find one key among them.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { BearerKeys } from '../../plugins/identity/keys/keys.ts'
import { Settings } from '../../plugins/settings/settings.ts'
import { openPostgres } from '../fakes/store-database.ts'
import type { Json } from '../helpers/client.ts'
import { cpuTime, median } from '../helpers/measured.ts'

/** So many servers and keys, as a settings file says them. */
const many = (count: number, keys: number): Json => ({
  users: [{ username: 'admin', password: 'x', isAdmin: true }],
  mcpServers: Object.fromEntries(
    Array.from({ length: count }, (_, n) => [
      `server-${n}`,
      {
        type: 'streamable-http',
        url: `http://127.0.0.1:9/${n}`,
        headers: { Authorization: `Bearer secret-${n}` },
        enabled: false,
        owner: 'admin',
        visibility: 'public'
      }
    ])
  ),
  bearerKeys: Array.from({ length: keys }, (_, n) => ({
    id: `key-${n}`,
    name: `key ${n}`,
    token: `thk_${n.toString(16).padStart(64, '0')}`,
    kind: 'system',
    accessType: 'all',
    enabled: true
  }))
})

test('10,000 servers and 10,000 keys: loaded within 3 s, and a key is found as fast as a single one', async (t) => {
  const { store: seeded, another } = await openPostgres(t, many(10_000, 10_000))
  let since = performance.now()
  assert.equal((await seeded.load()).servers.size, 10_000)
  const seeding = performance.now() - since
  const times: number[] = []
  let store = seeded
  for (let n = 0; n < 3; n++) {
    store = (await another()).store
    since = performance.now()
    const snapshot = await store.load()
    times.push(performance.now() - since)
    assert.deepEqual(
      [snapshot.servers.size, snapshot.keys.size, snapshot.servers.get('server-9')?.config.headers],
      [10_000, 10_000, { Authorization: 'Bearer secret-9' }]
    )
  }
  t.comment(`seeded in ${seeding.toFixed(0)} ms, loaded in ${times.map((time) => time.toFixed(0)).join(', ')} ms`)
  assert.ok(Math.max(...times) < 3_000, `loaded in ${times.join()} ms`)

  const [one, all] = [await Settings.open((await openPostgres(t, many(0, 1))).store), await Settings.open(store)].map(
    (each) => new BearerKeys(each, true, () => {})
  )
  assert.ok(one && all)
  // A string of its own each time, as a header is: what differs is how many keys there are, and nothing else.
  const headers = (keys: number): Buffer[] =>
    Array.from({ length: 10_000 }, (_, n) => Buffer.from(`thk_${(n % keys).toString(16).padStart(64, '0')}`))
  const [same, different] = [headers(1), headers(10_000)]
  const cpu = async (keys: BearerKeys, headers: readonly Buffer[]): Promise<number> => await cpuTime(() => {
    for (let n = 0; n < 20_000; n++) assert.ok(keys.find(headers[n * 7_919 % 10_000]?.toString('latin1') ?? ''))
  })
  for (const [keys, given] of [[one, same], [all, different]] as const) await cpu(keys, given)
  // Pairs, one right after the other: what else the machine does meets both.
  const ratio = await median(t, 'a key among 10,000, compared with one among 1', async () => {
    const single = await cpu(one, same)
    return await cpu(all, different) / single
  })
  // Caches of the processor make some difference, a scan would make it thousands.
  assert.ok(ratio <= 4, `${ratio}`)
})
