// The ports beside the settings: grants, tokens, vectors and activities, on a settings file, on PostgreSQL and on PGlite.
import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'tap'
import postgres from 'postgres'
import { JsonFileStore } from '../../db/json/file.ts'
import { FileTokens } from '../../db/json/tokens.ts'
import { MemoryGrants } from '../../db/memory/grants.ts'
import { MemoryVectors } from '../../db/memory/vectors.ts'
import { openStorage } from '../../db/open.ts'
import type { Tokens } from '../../db/ports.ts'
import { createQueryRunner } from '../../db/postgres/connection/query-runner.ts'
import { PostgresGrants } from '../../db/postgres/ports/grants.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { PostgresTokens } from '../../db/postgres/ports/tokens.ts'
import { exportDocument } from '../../db/postgres/settings/transfer.ts'
import { StorageError, type Storage } from '../../db/store.ts'
import { activity, authorization, counted, fresh, hashOf, issued, portsContract, race, soon, type OpenedPorts } from '../contracts/ports.ts'
import { change } from '../contracts/store.ts'
import { cluster, database, emptyFolder, passwordCanary, pglite, type Cluster, type Database } from '../helpers/database.ts'
import { assertNoCanary, canary } from '../fakes/canaries.ts'
import { vault } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { until, type Cleanup } from '../helpers/hub.ts'

const timeout = 60_000

// ---- the contract ---------------------------------------------------------------------------------

/** Storage on a settings file in a folder of its own, or on a database. */
async function open (t: Cleanup, dbUrl?: string, settings?: object): Promise<OpenedPorts & { path: string }> {
  const path = join(await temporaryFolder(t), 'mcp_settings.json')
  if (settings !== undefined) await writeFile(path, JSON.stringify(settings, null, 2))
  const opened: Storage[] = []
  t.after(async () => { for (const { store } of opened) await store.close() })
  const another = async (): Promise<Storage> => {
    const storage = await openStorage({
      settingsPath: path,
      dbUrl,
      startupTimeout: 10_000,
      vault: await vault(),
      warn: () => {},
      info: () => {}
    })
    opened.push(storage)
    await storage.store.load()
    return storage
  }
  return { path, storage: await another(), another }
}

async function openPostgres (t: Cleanup, on?: Cluster): Promise<OpenedPorts & Database> {
  const made = await database(t, on)
  return { ...made, ...await open(t, made.url) }
}

before(emptyFolder)

portsContract('file', async (t) => await open(t), { database: false })
portsContract('PostgreSQL', async (t) => await openPostgres(t), { database: true })
portsContract('PGlite', async (t) => await open(t, (await pglite(t)).url), { database: true })

// ---- several replicas -----------------------------------------------------------------------------

void test(
  'two replicas: 20 takes and 20 swaps at once have one first, and what one revokes the other does not find',
  { timeout },
  async (t) => {
    const { storage, another } = await openPostgres(t)
    const both = [storage, await another()]
    const at = (n: number): Storage => both[n % 2] ?? storage
    for (let round = 0; round < 5; round++) {
      const hash = fresh()
      await storage.grants.put(hash, 'family', { round }, soon())
      const taken = await race(20, async (n) => await at(n).grants.take(hash))
      assert.deepEqual(
        taken.filter((each) => each?.first === true),
        [{ first: true, family: 'family', value: { round } }]
      )
      assert.equal(taken.filter((each) => each?.first === false).length, 19)

      const [refresh, next] = [issued('refresh'), Array.from({ length: 20 }, () => issued('refresh'))]
      await storage.tokens.put(authorization(), [refresh])
      assert.deepEqual(counted(await race(20, async (n) => await at(n).tokens.swap(refresh.hash, next.slice(n, n + 1)))), {
        reused: 19,
        swapped: 1
      })
      for (const [n, { hash }] of next.entries()) assert.equal(await at(n).tokens.find(hash), undefined)
    }
    const [own, token] = [authorization({ username: 'bob' }), issued('access')]
    await at(0).tokens.put(own, [token])
    assert.deepEqual(await at(1).tokens.find(token.hash), { ...own, ...token })
    await at(1).tokens.revoke({ username: 'bob' })
    assert.equal(await at(0).tokens.find(token.hash), undefined)
  }
)

void test('two replicas: whoever revokes users and clients while tokens are swapped hinders nobody', { timeout }, async (t) => {
  const { storage, another } = await openPostgres(t)
  const other = await another()
  const refresh = Array.from({ length: 40 }, () => issued('refresh'))
  for (const [n, token] of refresh.entries()) {
    await storage.tokens.put(authorization({ username: `u${n % 2}`, clientId: `c${n % 3}` }), [token])
  }
  const swaps = race(40, async (n) => await (n % 2 === 0 ? storage : other).tokens.swap(refresh[n]?.hash ?? '', [issued('refresh')]))
  const ends = race(12, async (n) => {
    await (n % 2 === 0 ? other : storage).tokens.revoke(n % 3 === 0 ? { clientId: `c${n % 3}` } : { username: `u${n % 2}` })
  })
  assert.ok((await swaps).every((answer) => answer === 'swapped' || answer === 'unknown'))
  await ends
})

// ---- what is kept ---------------------------------------------------------------------------------

void test('no secret stands in a table: values of grants are sealed, and gone once they are taken', { timeout }, async (t) => {
  const { storage: { grants, tokens }, query } = await openPostgres(t)
  const [code, state, token] = [canary('code'), canary('state'), canary('token')]
  for (const each of [code, state]) await grants.put(hashOf(each), 'family', { verifier: canary('verifier'), last: canary('last') }, soon())
  await tokens.put(authorization(), [issued('access', { hash: hashOf(token) })])
  const rows = async (table: string): Promise<string[]> =>
    (await query<{ row: string }>(`SELECT t::text AS row FROM ${table} t`)).map(({ row }) => row)
  assertNoCanary([...await rows('grants'), ...await rows('tokens'), ...await rows('token_families')], 'a table')
  assert.deepEqual(
    await query("SELECT DISTINCT data->>'secret' AS shown FROM grants"),
    [{ shown: '••••' }],
    'a mask shows how a value ends'
  )
  assert.equal((await grants.take(hashOf(code)))?.first, true)
  assert.equal((await query('SELECT 1 FROM grants WHERE taken AND data IS NULL AND sealed IS NULL')).length, 1)
  // What is sealed for one hash opens for no other.
  await query(`UPDATE grants SET hash = '${hashOf('another')}' WHERE NOT taken`)
  await assert.rejects(grants.take(hashOf('another')), StorageError)
})

void test('what is over is swept away by a write in passing, and too much of it, too', { timeout }, async (t) => {
  const { storage, another, query, url } = await openPostgres(t)
  const count = async (table: string): Promise<number> => (await query(`SELECT 1 FROM ${table}`)).length
  const past = Date.now() - 1_000
  for (let n = 0; n < 3; n++) {
    await storage.grants.put(fresh(), 'over', {}, past)
    await storage.tokens.put(authorization(), [issued('refresh', { expiresAt: past })])
  }
  const next = await another()
  await next.grants.put(fresh(), 'kept', {}, soon())
  await next.tokens.put(authorization(), [issued('access')])
  await until(
    async () => (await count('grants')) === 1 && (await count('tokens')) === 1 && (await count('token_families')) === 1,
    5_000,
    'not swept'
  )

  const driver = await openDatabase({ dbUrl: url, startupTimeout: 10_000, info: () => {}, warn: () => {} })
  t.after(async () => { await driver.end() })
  const asks = createQueryRunner(driver, () => undefined)
  const [taken, last] = [fresh(), fresh()]
  await storage.grants.put(taken, 'taken', {}, soon())
  await storage.grants.take(taken)
  for (let n = 0; n < 4; n++) await storage.grants.put(n === 3 ? last : fresh(), 'more', {}, soon() + n)
  await new PostgresGrants(asks, await vault(), 3).put(fresh(), 'newest', {}, soon() + 9)
  await until(async () => await count('grants') === 3, 5_000, 'too many grants')
  assert.deepEqual(
    [await storage.grants.take(taken), (await storage.grants.take(last))?.first],
    [undefined, true],
    'what was taken goes first, then what expires first'
  )

  await boundOf(
    async () => new PostgresTokens(asks, 8),
    async () => {
      await until(async () => (await count('tokens')) <= 8, 5_000, 'too many tokens')
    }
  )
})

/** Many small families stay, the one that has most goes. */
async function boundOf (make: () => Promise<Tokens>, settled: () => Promise<void>): Promise<void> {
  const small = [issued('access'), issued('access'), issued('access')]
  const tokens = await make()
  for (const token of small) await tokens.put(authorization(), [token])
  const greedy = authorization()
  let [current, next] = [issued('refresh'), issued('refresh')]
  await tokens.put(greedy, [current])
  for (let n = 0; n < 12; n++) {
    await tokens.swap(current.hash, [next])
    ;[current, next] = [next, issued('refresh')]
  }
  const latest = await make()
  const extra = issued('access')
  await latest.put(authorization(), [extra])
  await settled()
  for (const { hash } of [...small, extra]) assert.ok(await latest.find(hash), 'a family that has little went')
  assert.deepEqual([await latest.find(current.hash), await latest.swap(current.hash, [])], [undefined, 'unknown'])
}

void test('in memory, the oldest go first; in the file, the families that have most', { timeout }, async (t) => {
  const grants = new MemoryGrants(3)
  const hashes = Array.from({ length: 5 }, fresh)
  for (const hash of hashes) await grants.put(hash, 'f', {}, soon())
  const taken = []
  for (const hash of hashes) taken.push((await grants.take(hash))?.first)
  assert.deepEqual(taken, [undefined, undefined, true, true, true])
  await grants.put(hashes[0] ?? '', 'f', {}, soon())
  await grants.take(hashes[0] ?? '')
  assert.deepEqual(
    [await grants.take(hashes[2] ?? ''), await grants.take(hashes[3] ?? '')],
    [undefined, { first: false, family: 'f' }],
    'of what was taken, the oldest is forgotten'
  )

  const vectors = new MemoryVectors(6)
  await vectors.put('a', [{ id: '1', hash: 'h', embedding: [1, 0] }, { id: '2', hash: 'h', embedding: [1, 0] }])
  await vectors.put('b', [{ id: '1', hash: 'h', embedding: [1, 0] }, { id: '2', hash: 'h', embedding: [1, 0] }])
  assert.deepEqual([...(await vectors.hashes('a', ['1', '2'])).keys(), ...(await vectors.hashes('b', ['1', '2'])).keys()], ['2', '1', '2'])

  const path = join(await temporaryFolder(t), 'mcp_settings.json')
  const store = new JsonFileStore(path)
  t.after(async () => { await store.close() })
  await store.load()
  await boundOf(async () => new FileTokens(store, 8), async () => {})
})

// ---- the settings file ----------------------------------------------------------------------------

const document = async (path: string): Promise<{ oauthTokens: Array<Record<string, unknown>>; [name: string]: unknown }> =>
  JSON.parse(await readFile(path, 'utf8'))

void test(
  'file: tokens stand under oauthTokens as hashes; foreign entries stay; readers keep their version, and are told nothing',
  { timeout },
  async (t) => {
    const foreign = [{ accessToken: 'plain', refreshToken: 'of another program', clientId: 'c1' }, 'odd', null]
    const {
      path,
      storage: { store, tokens },
      another
    } = await open(t, undefined, { mcpServers: { a: { command: 'node' } }, oauthTokens: foreign, 'x-more': 1 })
    const snapshot = await store.load()
    let told = 0
    store.onChange(() => {
      told++
    })
    const secret = canary('token')
    const [own, access, refresh] = [authorization(), issued('access', { hash: hashOf(secret) }), issued('refresh')]
    await tokens.put(own, [access, refresh])
    await tokens.swap(refresh.hash, [issued('refresh')])
    const { oauthTokens, ...rest } = await document(path)
    assert.deepEqual(rest, { mcpServers: { a: { command: 'node' } }, 'x-more': 1 })
    assert.deepEqual(oauthTokens.slice(0, 4), [...foreign, { ...own, ...access }])
    assert.deepEqual(oauthTokens[4], { ...own, ...refresh, used: true })
    assertNoCanary([await readFile(path, 'utf8')], 'the settings file')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.equal(await store.load(), snapshot)
    assert.equal(
      (await store.commit([{ entity: 'mcpServers', key: 'b', value: { command: 'node' } }], snapshot.version)).version,
      snapshot.version + 1
    )
    await tokens.revoke({ username: 'ann' })
    assert.deepEqual((await document(path)).oauthTokens.slice(0, 3), foreign)
    assert.equal(told, 0)
    await store.close()
    await assert.rejects(tokens.put(own, [access]), StorageError)
    assert.deepEqual((await document(path)).mcpServers, { a: { command: 'node' }, b: { command: 'node' } })
    await (await another()).tokens.put(own, [issued('access')])
    assert.deepEqual((await document(path)).oauthTokens.slice(0, 3), foreign)
  }
)

void test('file: tokens and settings that are written at once are all there', { timeout }, async (t) => {
  const { path, storage: { store, tokens } } = await open(t)
  const all = Array.from({ length: 30 }, () => issued('access'))
  await race(60, async (n) => {
    const token = all[n / 2]
    if (token !== undefined) await tokens.put(authorization(), [token])
    else await change(store, () => [{ entity: 'mcpServers', key: `s${n}`, value: { command: 'node' } }])
  })
  const { oauthTokens, mcpServers } = await document(path)
  assert.deepEqual(new Set(oauthTokens.map(({ hash }) => hash)), new Set(all.map(({ hash }) => hash)))
  assert.equal(Object.keys(mcpServers as object).length, 30)
})

void test('file: an edit can take tokens away, and brings none back', { timeout }, async (t) => {
  const { path, storage: { store, tokens } } = await open(t)
  const [first, second, access] = [issued('refresh'), issued('refresh'), issued('access')]
  await tokens.put(authorization(), [first])
  const before = await readFile(path, 'utf8')
  await tokens.swap(first.hash, [second, access])
  // An editor that was open meanwhile, with something else changed, too.
  await writeFile(path, JSON.stringify({ ...JSON.parse(before), mcpServers: { edited: { command: 'node' } } }))
  await until(async () => (await store.load()).servers.has('edited'))
  assert.deepEqual([await tokens.find(first.hash), await tokens.find(second.hash)], [undefined, undefined])
  assert.equal(await tokens.swap(first.hash, []), 'reused')
  const [kept, dropped] = [issued('access'), issued('access')]
  await tokens.put(authorization(), [kept])
  await tokens.put(authorization(), [dropped])
  const edited = await document(path)
  await writeFile(path, JSON.stringify({ ...edited, oauthTokens: edited.oauthTokens.filter(({ hash }) => hash !== dropped.hash) }))
  await until(async () => { await store.load(); return await tokens.find(dropped.hash) === undefined })
  assert.ok(await tokens.find(kept.hash))
})

void test('file: where tokens cannot be written, nothing is changed, and the reason is told', { timeout }, async (t) => {
  const { path, storage: { tokens } } = await open(t)
  const [own, access, refresh] = [authorization(), issued('access'), issued('refresh')]
  await tokens.put(own, [access, refresh])
  const good = await readFile(path, 'utf8')
  await writeFile(path, '{"cut off')
  const next = issued('refresh')
  await assert.rejects(
    tokens.swap(refresh.hash, [next]),
    (error: Error) => error instanceof StorageError && error.message.includes('edited')
  )
  assert.deepEqual(await tokens.find(access.hash), { ...own, ...access })
  await writeFile(path, good)
  assert.equal(await tokens.find(next.hash), undefined)
  assert.equal(await tokens.swap(refresh.hash, [next]), 'swapped')

  const odd = await open(t, undefined, { oauthTokens: { of: 'another kind' } })
  await assert.rejects(
    odd.storage.tokens.put(own, [access]),
    (error: Error) => error instanceof StorageError && error.message.includes('oauthTokens')
  )
  assert.equal(await odd.storage.tokens.find(access.hash), undefined)
  assert.deepEqual((await document(odd.path)).oauthTokens, { of: 'another kind' })
})

void test(
  'a database that begins with a settings file takes no tokens from it: they would come back by an export after they were revoked',
  { timeout },
  async (t) => {
    const foreign = { accessToken: 'of another program' }
    const [own, { url }] = [{ ...authorization(), ...issued('refresh') }, await database(t)]
    const { storage } = await open(t, url, { oauthTokens: [own, foreign] })
    assert.equal(await storage.tokens.find(own.hash), undefined)
    const driver = await openDatabase({ dbUrl: url, startupTimeout: 10_000, info: () => {}, warn: () => {} })
    t.after(async () => {
      await driver.end()
    })
    assert.deepEqual((await exportDocument(driver, await vault()))?.document.oauthTokens, [foreign])
  }
)

// ---- away -----------------------------------------------------------------------------------------

/** One call of each method that asks the database. */
const asks = ({ grants, tokens, vectors, activities }: Storage): Array<() => Promise<unknown>> => [
  async () => {
    await grants.put(fresh(), 'f', {}, soon())
  },
  async () => await grants.take(fresh()),
  async () => {
    await tokens.put(authorization(), [issued('access')])
  },
  async () => await tokens.find(fresh()),
  async () => await tokens.swap(fresh(), []),
  async () => {
    await tokens.revoke({ username: 'nobody' })
  },
  async () => {
    await vectors.put('c', [{ id: 'i', hash: 'h', embedding: [1] }])
  },
  async () => await vectors.hashes('c', ['i']),
  async () => await vectors.nearest('c', [1], ['i'], 1),
  async () => {
    await vectors.keep('c', ['i'])
  },
  async () => {
    await activities?.append([activity()])
  },
  async () => await activities?.list({}, 1, 10),
  async () => await activities?.find(activity().id),
  async () => await activities?.values({}),
  async () => await activities?.stats({}),
  async () => await activities?.cleanup(0)
]

void test('away', { timeout: 150_000 }, async (t) => {
  t.jobs = 2
  void t.test(
    'while the database is away every method says so, and works again when it is back',
    { timeout: 120_000, buffered: true },
    async (t) => {
      const server = await cluster(t)
      const { storage } = await openPostgres(t, server)
      const [own, refresh, next] = [authorization(), issued('refresh'), issued('refresh')]
      await storage.tokens.put(own, [refresh])
      for (const ask of asks(storage)) await ask()
      await server.stop('immediate')
      const assertAway = async (ask: () => Promise<unknown>): Promise<void> => {
        await assert.rejects(ask(), (error: Error) => {
          assert.ok(error instanceof StorageError, String(error))
          assert.match(error.message, /^The database cannot be used \([^)]+\)\.$/)
          assert.ok(!error.message.includes(passwordCanary) && error.cause === undefined)
          return true
        })
      }
      await Promise.all(asks(storage).map(assertAway))
      await until(() => storage.store.health() !== undefined, 15_000, 'the store does not notice')
      const since = performance.now()
      for (const ask of asks(storage)) await assertAway(ask)
      assert.ok(performance.now() - since < 500, 'what is known to be away is asked')
      await server.start()
      await until(() => storage.store.health() === undefined, 15_000, 'the store does not come back')
      await until(
        async () => {
          for (const ask of asks(storage)) await ask()
          return true
        },
        15_000,
        'not back'
      )
      assert.equal(await storage.tokens.swap(refresh.hash, [next]), 'swapped')
      assert.deepEqual(await storage.tokens.find(next.hash), { ...own, ...next })
    }
  )

  void t.test('what takes too long ends with a sentence', { timeout, buffered: true }, async (t) => {
    const { storage, url } = await openPostgres(t)
    const locker = postgres(url, { max: 1, onnotice: () => {} })
    t.after(async () => { await locker.end({ timeout: 1 }) })
    let release = (): void => {}
    const locked = new Promise<void>((resolve) => {
      void locker.begin(async (sql) => {
        await sql.unsafe('LOCK TABLE grants, tokens, vectors, activities')
        await new Promise<void>((_resolve, reject) => { release = () => { reject(new Error('done')) }; resolve() })
      }).catch(() => {})
    })
    await locked
    const since = performance.now()
    const asked = [
      storage.grants.take(fresh()),
      storage.tokens.find(fresh()),
      storage.vectors.keep('c', []),
      storage.tokens.put(authorization(), [issued('access')])
    ]
    // Behind those, lines that have a bound.
    const found = race(
      1_100,
      async () =>
        await storage.tokens.find(fresh()).then(
          () => 'found',
          (error: unknown) => (error instanceof StorageError && error.message.includes('too much') ? 'too much' : String(error))
        )
    )
    const kept = race(20, async () => { await storage.vectors.keep('c', []).catch(() => {}) })
    await Promise.all(
      asked.map(async (each) => {
        await assert.rejects(each, (error: Error) => error instanceof StorageError && error.message.includes('too long'))
      })
    )
    const took = performance.now() - since
    assert.ok(took > 9_000 && took < 15_000, `after ${took} ms`)
    assert.equal(storage.store.health(), undefined, 'the store waits for ports')
    release()
    await kept
    assert.deepEqual(counted(await found), { found: 1_000, 'too much': 100 })
    assert.equal(await storage.tokens.find(fresh()), undefined)
  })
})
