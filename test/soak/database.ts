// The long run of what test/integration/database.test.ts does briefly: 3,000 random commands on file, PostgreSQL and PGlite, 100 rounds of
// kill -9 on PostgreSQL. `npm run soak`.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { bounded } from '../contracts/store.ts'
import { killRounds } from '../contracts/store-kill.ts'
import { modelRun } from '../contracts/store-model.ts'
import { cluster } from '../helpers/database.ts'
import { openPglite, openPostgres } from '../fakes/store-database.ts'
import { openFile } from '../fakes/store-file.ts'

const rounds = 100
const commands = 3_000
const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

test('long runs on PostgreSQL and PGlite', async (t) => {
  t.comment(`${commands} random commands on file, PostgreSQL and PGlite, seed ${seed} (TEST_SEED=${seed} runs the same)`)
  const file = await modelRun(commands, seed, async () => await bounded(openFile))
  assert.deepEqual(await modelRun(commands, seed, async () => await bounded(openPostgres)), file)
  assert.deepEqual(await modelRun(commands, seed, async () => await bounded(openPglite)), file)

  // A cluster of its own, which waits for the disk.
  const { store, url } = await openPostgres(t, undefined, await cluster(t))
  await store.load()
  const acknowledged = await killRounds(
    t,
    url,
    rounds,
    async () => new Set((await store.load()).servers.keys()),
    'test/fakes/database-writer.ts'
  )
  t.comment(`${rounds} kills: ${acknowledged} changes acknowledged on PostgreSQL, none lost`)
})
