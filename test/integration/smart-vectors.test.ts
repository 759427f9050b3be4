// Embeddings of tools in databases: on PostgreSQL with two replicas and a restart, in a database of their own (`smartRouting.dbUrl`), and
// compared by pgvector: on a server that has it, and in PGlite where the package that brings it is installed.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { sql } from 'drizzle-orm'
import { createQueryRunner } from '../../db/postgres/connection/query-runner.ts'
import type { Db, DatabaseDriver } from '../../db/postgres/connection/driver.ts'
import { PostgresVectors } from '../../db/postgres/ports/vectors.ts'
import { EmbeddingsApi } from '../fakes/embeddings-api.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { at, connected, names, Session, settings, type Json } from '../helpers/client.ts'
import { database, pglite } from '../helpers/database.ts'
import { startHub, until, type Cleanup, type Hub } from '../helpers/hub.ts'

async function world (t: Cleanup, more: Json = {}): Promise<{ api: EmbeddingsApi, given: Json }> {
  const api = await new EmbeddingsApi().listen(t)
  const tools = Array.from({ length: 80 }, (_, n) => tool(`thing_${n}`, { description: `Does thing ${n}` }))
  const upstream = await startUpstream(t, { tools: [...tools, tool('forecast', { description: 'Tells the weather' })] })
  const up = { type: 'streamable-http', url: upstream.url, visibility: 'public' }
  const smartRouting = { llmProviderBaseUrl: api.url, embeddingDimensions: 256, embeddingDimensionsApiPassthrough: true, ...more }
  return { api, given: settings({ up }, { systemConfig: { smartRouting } }) }
}

async function searched (hub: Hub): Promise<void> {
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/$smart`)
  let answer: unknown
  await until(async () => {
    answer = (await session.call('search_tools', { query: 'umbrella' })).structuredContent
    return at(answer, 'metadata', 'mode') === 'fused'
  }, () => JSON.stringify(answer))
  assert.equal(names(at(answer, 'tools'))[0], 'up-forecast')
}
const ofTools = (api: EmbeddingsApi): number => api.texts.filter((text) => text.includes('(up)')).length

void test('PostgreSQL: two replicas embed each tool once, and a restart none', async (t) => {
  const { url, query } = await database(t)
  const { api, given } = await world(t)
  const env = { DB_URL: url, ENCRYPTION_KEY: 'k'.repeat(64), LOG_LEVEL: 'warn' }
  const first = await startHub(t, { settings: given, env })
  const second = await startHub(t, { settings: given, env })
  await Promise.all([searched(first), searched(second)])
  await until(async () => (await query<{ n: number }>('select count(*)::int as n from vectors'))[0]?.n === 81)
  assert.equal(ofTools(api), 81)
  await Promise.all([first.stop(), second.stop()])
  await searched(await startHub(t, { settings: given, env }))
  assert.equal(ofTools(api), 81)
})

void test('smartRouting.dbUrl: vectors in a database of their own, beside a settings file', async (t) => {
  const postgres = await database(t, undefined, { tables: false })
  const embedded = await pglite(t)
  for (const dbUrl of [postgres.url, embedded.url]) {
    const { api, given } = await world(t, { dbUrl })
    const hub = await startHub(t, { settings: given, env: { LOG_LEVEL: 'warn' } })
    await searched(hub)
    await until(() => ofTools(api) === 81)
    await hub.stop()
    const again = await startHub(t, { settings: given, env: { LOG_LEVEL: 'warn' } })
    await searched(again)
    assert.equal(ofTools(api), 81, dbUrl.split(':')[0])
    await again.stop()
    assert.ok(!again.output().includes(new URL(postgres.url).password || '?'))
  }
  assert.deepEqual(await postgres.query('select tablename from pg_tables where schemaname = \'public\''), [{ tablename: 'vectors' }])
})

void test('smartRouting.dbUrl that cannot be reached: by words', async (t) => {
  const { given } = await world(t, { dbUrl: 'postgres://u:canary-password@127.0.0.1:9/x' })
  const hub = await startHub(t, { settings: given })
  await connected(hub, 1)
  const session = await Session.open(`${hub.url}/mcp/$smart`)
  const answer = (await session.call('search_tools', { query: 'weather' })).structuredContent
  assert.deepEqual([names(at(answer, 'tools')), at(answer, 'metadata', 'mode')], [['up-forecast'], 'words'])
  await until(() => hub.output().includes('cannot be used'))
  assert.ok(!hub.output().includes('canary-password'))
})

/** Vectors in a database with pgvector are compared by it. @param ask a query on the same database */
async function compared (db: Db, ask: (sql: string) => Promise<unknown[]>): Promise<void> {
  await db.execute(sql`create table if not exists vectors (
    collection text not null, key text not null, hash text not null, embedding real[] not null,
    used_at timestamp with time zone not null default now(), primary key (collection, key)
  )`)
  const vectors = new PostgresVectors(createQueryRunner({ db } as DatabaseDriver, () => undefined))
  await vectors.put('c', [
    { id: 'east', hash: 'h', embedding: [2, 0] },
    { id: 'northeast', hash: 'h', embedding: [1, 1] },
    { id: 'long', hash: 'h', embedding: [1, 1, 1] }
  ])
  const found = await vectors.findNearest('c', [0, 3], ['east', 'northeast', 'long', 'none'], 5)
  assert.deepEqual(found.map(({ id, score }) => [id, Math.round(score * 1_000)]), [['northeast', 707], ['east', 0]])
  assert.equal((await ask('select 1 from pg_extension where extname = \'vector\'')).length, 1)
}

void test('pgvector on a PostgreSQL server that has it', async (t) => {
  const { url, query } = await database(t)
  if ((await query('select 1 from pg_available_extensions where name = \'vector\'')).length === 0) {
    const why = 'NOT TESTED: this PostgreSQL has no pgvector (Debian 13: apt-get install postgresql-17-pgvector, or set TEST_DB_URL)'
    await t.test(why, { skip: true }, async () => {})
    return
  }
  const [{ default: postgres }, { drizzle }] = await Promise.all([import('postgres'), import('drizzle-orm/postgres-js')])
  const client = postgres(url, { max: 1, onnotice: () => {} })
  t.after(async () => { await client.end({ timeout: 1 }) })
  await compared(drizzle(client), query)
})

interface Extension { readonly vector: never }
// Not a dependency: a package of some megabytes, for this test alone.
const packageName = '@electric-sql/pglite-pgvector'
const extension = await import(packageName).then((found: Extension) => found.vector, () => undefined)

void test('pgvector in PGlite', { skip: extension === undefined && `NOT TESTED: ${packageName} is not installed` }, async () => {
  const [{ PGlite }, { drizzle }] = await Promise.all([import('@electric-sql/pglite'), import('drizzle-orm/pglite')])
  const engine = await PGlite.create({ extensions: { vector: extension as never } })
  await compared(drizzle(engine), async (statement) => (await engine.query(statement)).rows)
  await engine.close()
})
