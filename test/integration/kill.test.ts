// kill -9 of a process that writes without a pause: what it acknowledged is stored, on file, PostgreSQL and PGlite.
// How often: 2 or 3 times here, 100 times in `npm run soak`.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Change } from '../../db/store.ts'
import { change } from '../contracts/store.ts'
import { killRounds } from '../contracts/store-kill.ts'
import { openAt, openPostgres } from '../fakes/store-database.ts'
import { openFile } from '../fakes/store-file.ts'
import { pglite } from '../helpers/database.ts'
import { isFull } from '../helpers/full.ts'

const server = (key: string): Change => ({ entity: 'mcpServers', key, value: { command: 'node', description: '' } })
/** Each one starts a process. */
const rounds = (short: number): number => isFull ? 100 : short

void test('file: kill -9 under continuous writes loses nothing that was acknowledged', async (t) => {
  const { path, store, document } = await openFile(t, { mcpServers: {} })
  const end = new AbortController()
  let reads = 0
  const reader = (async () => {
    for (; !end.signal.aborted; reads++) {
      await document()
      await new Promise((resolve) => { setImmediate(resolve) })
    }
  })()
  const stored = async (): Promise<Set<string>> => new Set(Object.keys((await document()).mcpServers as object))
  const acknowledged = await killRounds(t, path, rounds(3), stored).finally(() => { end.abort() })
  await reader
  t.comment(`${acknowledged} acknowledged, ${reads} reads in between`)
  const before = (await store.load()).servers.size
  await Promise.all(Array.from({ length: 20 }, async (_, n) => await change(store, () => [server(`after-${n}`)])))
  assert.equal((await stored()).size, before + 20)
})

void test('PostgreSQL: kill -9 under continuous writes loses nothing that was acknowledged', async (t) => {
  const { store, url } = await openPostgres(t)
  await store.load()
  const acknowledged = await killRounds(t, url, rounds(2),
    async () => new Set((await store.load()).servers.keys()),
    'test/fakes/database-writer.ts'
  )
  t.comment(`${acknowledged} acknowledged`)
  const { servers } = await store.load()
  for (const [name, { config }] of servers) assert.equal(config.env?.SECRET, name, 'a secret of another server, or half a change')
})

void test('PGlite: kill -9 under continuous writes loses nothing that was acknowledged', async (t) => {
  const { url } = await pglite(t)
  const stored = async (): Promise<Set<string>> => {
    const { store } = await openAt(url)
    try { return new Set((await store.load()).servers.keys()) } finally { await store.close() }
  }
  await stored()
  t.comment(`${await killRounds(t, url, rounds(2), stored, 'test/fakes/database-writer.ts')} acknowledged`)
})
