// The ports beside the settings: grants, tokens, clients, consents, states of logins, vectors and activities, on a settings file and on
// PostgreSQL; on PGlite in test/integration/pglite.test.ts.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { sql, type SQLWrapper } from 'drizzle-orm'
import postgres from 'postgres'
import { FileClients } from '../../db/json/clients.ts'
import { JsonFileStore } from '../../db/json/file.ts'
import { FileRecords } from '../../db/json/records.ts'
import { MemoryRecords } from '../../db/memory/records.ts'
import { MemoryVectors } from '../../db/memory/vectors.ts'
import type { OAuthClient, OAuthClients } from '../../db/ports/clients.ts'
import type { DatabaseDriver } from '../../db/postgres/connection/driver.ts'
import { createQueryRunner } from '../../db/postgres/connection/query-runner.ts'
import { timeouts } from '../../db/postgres/connection/timeouts.ts'
import { PostgresClients } from '../../db/postgres/ports/clients.ts'
import { PostgresRecords, recordByKeyStatement } from '../../db/postgres/ports/records.ts'
import { recordCollections, type RecordCollection, type Records } from '../../db/records.ts'
import { OneTimeValues } from '../../db/ports/grants.ts'
import { Consents } from '../../db/ports/consents.ts'
import { BrowserStates, UsedRequestStates } from '../../db/ports/login-states.ts'
import { OAuthTokens } from '../../db/ports/tokens.ts'
import { StorageError, type Storage } from '../../db/store.ts'
import {
  activity, authorization, client, consent, counted, fresh, fullClient, hashOf, issued, portsContract, race, soon,
  type OpenedPorts
} from '../contracts/ports.ts'
import { cluster, database, passwordCanary, type Cluster, type Database } from '../helpers/database.ts'
import { assertNoCanary, canary } from '../fakes/canaries.ts'
import { vault } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { driverOf, openPorts as open } from '../fakes/store-ports.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'

/** Records whose collection of one name has other limits. */
const withCollection = (records: Records, other: RecordCollection): Records => {
  const given = (collection: RecordCollection): RecordCollection => collection.name === other.name ? other : collection
  return {
    outlivesProcess: records.outlivesProcess,
    put: async (collection, entries) => { await records.put(given(collection), entries) },
    find: async (collection, key) => await records.find(given(collection), key),
    swap: async (collection, ...rest) => await records.swap(given(collection), ...rest),
    list: async (collection, ...rest) => await records.list(given(collection), ...rest),
    remove: async (collection, which) => await records.remove(given(collection), which)
  }
}

// ---- the contract ---------------------------------------------------------------------------------

async function openPostgres (t: Cleanup, on?: Cluster): Promise<OpenedPorts & Database> {
  const made = await database(t, on)
  return { ...made, ...await open(t, made.url) }
}

portsContract('file', async (t) => await open(t), { database: false })
portsContract('PostgreSQL', async (t) => await openPostgres(t), { database: true })

// ---- several replicas -----------------------------------------------------------------------------

void test('two replicas: whoever revokes users and clients while tokens are swapped hinders nobody', async (t) => {
  const { storage, another } = await openPostgres(t)
  const other = await another()
  const refresh = Array.from({ length: 40 }, () => issued('refresh'))
  for (const [n, token] of refresh.entries()) {
    await storage.tokens.put(authorization({ username: `u${n % 2}`, clientId: `c${n % 3}` }), [token])
  }
  const swaps = race(40, async (n) => await (n % 2 === 0 ? storage : other).tokens.rotate(refresh[n]?.hash ?? '', [issued('refresh')]))
  const ends = race(12, async (n) => {
    await (n % 2 === 0 ? other : storage).tokens.revoke(n % 3 === 0 ? { clientId: `c${n % 3}` } : { username: `u${n % 2}` })
  })
  assert.ok((await swaps).every((answer) => answer === 'swapped' || answer === 'unknown'))
  await ends
})

void test(
  'two replicas: of 20 who create a client one does, no change is lost, and what one removes the other does not find',
  async (t) => {
    const { storage, another, query } = await openPostgres(t)
    const both = [storage, await another()]
    const at = (n: number): Storage => both[n % 2] ?? storage
    const clientId = randomUUID()
    const created = await race(20, async (n) => await at(n).clients.create(client({ clientId })))
    assert.deepEqual(counted(created.map(String)), { false: 19, true: 1 })
    const withContact = (n: number) => (former: OAuthClient): OAuthClient => ({ ...former, contacts: [...former.contacts ?? [], `${n}`] })
    await race(20, async (n) => await at(n).clients.replace(clientId, withContact(n)))
    assert.equal(new Set((await at(1).clients.find(clientId))?.contacts).size, 20)

    const lastUsed = async (): Promise<number | undefined> => (await storage.clients.find(clientId))?.lastUsedAt
    const start = Date.now()
    await at(0).clients.touch(clientId, start)
    await at(1).clients.touch(clientId, start + 5)
    assert.equal(await lastUsed(), start, 'one of them writes it')
    await query('UPDATE oauth_clients SET last_used = NULL')
    for (const n of [0, 1]) await at(n).clients.touch(clientId, start + 10)
    assert.equal(await lastUsed(), undefined, 'the database is not asked again within an hour')

    const [own, token, given] = [authorization({ clientId }), issued('access'), consent({ clientId })]
    const [hash, session] = [fresh(), { kind: 'session', username: given.username, value: 'v', createdAt: 1_000 } as const]
    await at(0).tokens.put(own, [token])
    await at(0).consents.put(given)
    await at(0).loginStates.put(hash, session, soon())
    await at(0).usedStates.recordUse(hash, 'first', soon())
    assert.equal((await at(1).usedStates.recordUse(hash, 'second', soon())).answers, 'first')
    assert.deepEqual(
      [await at(1).consents.list(given.username), await at(1).loginStates.find(hash), (await at(1).tokens.find(token.hash))?.family],
      [[given], session, own.family]
    )
    await at(1).clients.remove(clientId)
    await at(1).loginStates.removeAll(given.username)
    assert.deepEqual(
      [await at(0).clients.find(clientId), await at(0).consents.list(given.username), await at(0).loginStates.find(hash)],
      [undefined, [], undefined]
    )
    assert.equal(await at(0).tokens.find(token.hash), undefined)
    assert.ok((await at(0).tokens.listRevokedWithin(10_000)).includes(own.family))
  }
)

void test('two replicas: clients that register while others are removed, and tokens revoked, hinder nobody', async (t) => {
  const { storage, another, url } = await openPostgres(t)
  const asks = createQueryRunner(await driverOf(t, url), () => undefined)
  // With so small a bound, each creation removes another client.
  const both = [new PostgresClients(asks, 3), new PostgresClients(createQueryRunner(await driverOf(t, url), () => undefined), 3)]
  const other = await another()
  const all = Array.from({ length: 60 }, (_, n) => fullClient({ lastUsedAt: Date.now() - 60_000 + n }))
  await race(60, async (n) => {
    const own = all[n]
    assert.ok(own)
    await both[n % 2]?.create(own)
    await (n % 3 === 0 ? storage : other).tokens.put(authorization({ clientId: own.clientId, username: `u${n % 4}` }), [issued('access')])
    if (n % 5 === 0) await both[(n + 1) % 2]?.remove(all[n - 2]?.clientId ?? '')
    if (n % 7 === 0) await storage.tokens.revoke({ username: `u${n % 4}` })
    await both[n % 2]?.replace(own.clientId, (former) => ({ ...former, name: 'changed' }))
  })
  await both[0]?.create(fullClient())
  assert.equal((await storage.clients.list()).length, 3)
})

// ---- what is kept ---------------------------------------------------------------------------------

void test('no secret stands in a table: values of grants are sealed, and gone once they are taken', async (t) => {
  const { storage: { grants, tokens }, query } = await openPostgres(t)
  const [code, state, token] = [canary('code'), canary('state'), canary('token')]
  for (const each of [code, state]) await grants.put(hashOf(each), 'family', { verifier: canary('verifier'), last: canary('last') }, soon())
  await tokens.put(authorization(), [issued('access', { hash: hashOf(token) })])
  const rows = async (): Promise<string[]> => (await query<{ row: string }>('SELECT t::text AS row FROM records t')).map(({ row }) => row)
  assertNoCanary(await rows(), 'a table')
  assert.deepEqual(
    await query("SELECT DISTINCT data->>'secret' AS shown FROM records WHERE collection = 'grants'"),
    [{ shown: '••••' }],
    'a mask shows how a value ends'
  )
  assert.equal((await grants.take(hashOf(code)))?.first, true)
  const size = async (owner: string): Promise<number> =>
    Number((await query<{ size: number }>(`SELECT length(sealed) AS size FROM records WHERE owner = '${owner}'`))[0]?.size)
  assert.ok(await size('taken') < await size('waiting'), 'its value is gone')
  // What is sealed for one hash opens for no other.
  await query(`UPDATE records SET id = 'grants/${hashOf('another')}' WHERE owner = 'waiting'`)
  await assert.rejects(grants.take(hashOf('another')), StorageError)
})

void test('a token among 100,000 is found by an index, in a few pages', async (t) => {
  const { storage: { tokens }, query, url } = await openPostgres(t)
  const driver = await driverOf(t, url)
  const [own, token] = [authorization(), issued('access')]
  await tokens.put(own, [token])
  const pages = async (of: SQLWrapper): Promise<{ plan: string, read: number }> => {
    const rows = await driver.db.execute(sql`explain (analyze, buffers, costs off, timing off) ${of}`)
    const plan = [...rows as unknown as Iterable<Record<string, string>>].map((row) => row['QUERY PLAN']).join('\n')
    const [, hit = '0', read = '0'] = /Buffers: shared (?:hit=(\d+))? ?(?:read=(\d+))?/.exec(plan) ?? []
    return { plan, read: Number(hit) + Number(read) }
  }
  await query(`
    INSERT INTO records (id, collection, version, value, owner, labels, at, changed, expires)
      SELECT 'oauthTokens/' || encode(sha256(n::text::bytea), 'hex'), 'oauthTokens', n::text, '{}', 'f' || n,
        ARRAY['oauthTokens/client%3Ac' || n % 100, 'oauthTokens/user%3Au' || n % 1000], now(), now(), now() + interval '1 hour'
      FROM generate_series(1, 100000) n;
    ANALYZE records`)
  const one = await pages(recordByKeyStatement(driver.db, recordCollections.tokens, token.hash))
  assert.doesNotMatch(one.plan, /Seq Scan/)
  assert.ok(one.read > 0 && one.read <= 12, one.plan)
})

void test('what is over is swept away by a write in passing, and too much of it, too', async (t) => {
  const { storage, another, query, url } = await openPostgres(t)
  const count = async (collection: string): Promise<number> =>
    (await query(`SELECT 1 FROM records WHERE collection = '${collection}'`)).length
  const past = Date.now() - 1_000
  for (let n = 0; n < 3; n++) {
    await storage.grants.put(fresh(), 'over', {}, past)
    await storage.tokens.put(authorization(), [issued('refresh', { expiresAt: past })])
  }
  const next = await another()
  await next.grants.put(fresh(), 'kept', {}, soon())
  await next.tokens.put(authorization(), [issued('access')])
  await until(
    async () => (await count('grants')) === 1 && (await count('oauthTokens')) === 1,
    'not swept'
  )

  const driver = await driverOf(t, url)
  const asks = createQueryRunner(driver, () => undefined)
  const [taken, last] = [fresh(), fresh()]
  await storage.grants.put(taken, 'taken', {}, soon())
  await storage.grants.take(taken)
  for (let n = 0; n < 4; n++) await storage.grants.put(n === 3 ? last : fresh(), 'more', {}, soon() + n)
  const ownVault = await vault()
  const records = (): PostgresRecords => new PostgresRecords(asks, ownVault)
  await new OneTimeValues(withCollection(records(), { ...recordCollections.grants, maxEntries: 3 })).put(fresh(), 'newest', {}, soon() + 9)
  await until(async () => await count('grants') === 3, 'too many grants')
  assert.deepEqual(
    [await storage.grants.take(taken), (await storage.grants.take(last))?.first],
    [undefined, true],
    'the oldest go first'
  )

  await boundOf(
    async () => new OAuthTokens(withCollection(records(), { ...recordCollections.tokens, maxEntries: 8 })),
    async () => { await until(async () => (await count('oauthTokens')) <= 8, 'too many tokens') }
  )

  const idle = fullClient({ createdAt: 1, lastUsedAt: undefined })
  await storage.clients.create(idle)
  await storage.consents.put(consent({ clientId: idle.clientId }))
  await next.clients.touch('another', Date.now())
  await until(
    async () => (await query('SELECT 1 FROM oauth_clients')).length === 0 && (await count('oauthConsents')) === 0,
    'an idle client is not removed'
  )
  await floodOfClients(new PostgresClients(asks, 8))
  await boundOfClients(new PostgresClients(asks, 3), storage)
  await boundOfUsers(
    () => new Consents(withCollection(records(), { ...recordCollections.consents, maxPerOwner: 2, maxEntries: 3 })),
    oneConsent,
    async () => { await until(async () => (await count('oauthConsents')) <= 3, 'too many consents') }
  )
  for (let n = 0; n < 2; n++) await storage.loginStates.put(fresh(), { kind: 'session', username: 'over', value: '', createdAt: Date.now() }, past)
  await boundOfUsers(
    () => new BrowserStates(withCollection(records(), { ...recordCollections.loginStates, maxPerOwner: 2, maxEntries: 3 })),
    oneSession,
    async () => { await until(async () => (await count('loginStates')) <= 3, 'too many login sessions') }
  )
  await storage.usedStates.recordUse(fresh(), 'expired', past)
  await boundOfUsedStates(
    () => new UsedRequestStates(withCollection(records(), { ...recordCollections.usedStates, maxEntries: 3 })),
    async () => { await until(async () => (await count('usedStates')) <= 3, 'too many used states') }
  )
})

/** Of the clients that registered themselves, one that was never used goes, with its tokens and consents; no other does. */
async function boundOfClients (clients: OAuthClients, { consents, tokens }: Pick<Storage, 'consents' | 'tokens'>): Promise<void> {
  const now = Date.now()
  const admins = Array.from({ length: 5 }, () => client({ createdAt: now - 100_000 }))
  for (const each of admins) await clients.create(each)
  const all = [9_000, 8_000, 7_000].map((age) => fullClient({ createdAt: now - age, lastUsedAt: undefined }))
  const given = all.map(({ clientId }) => ({ token: issued('refresh'), own: authorization({ clientId }), consent: consent({ clientId }) }))
  for (const each of all) await clients.create(each)
  for (const { token, own, consent } of given) {
    await tokens.put(own, [token])
    await consents.put(consent)
  }
  await clients.touch(all[0]?.clientId ?? '', now)
  const newest = fullClient({ createdAt: now, lastUsedAt: undefined })
  await clients.create(newest)
  const found = await Promise.all([...admins, ...all, newest].map(async ({ clientId }) => await clients.find(clientId) !== undefined))
  assert.deepEqual(found, [...admins.map(() => true), true, false, true, true])
  const left = given.map(async ({ token, consent: { username, clientId } }) => [
    await tokens.find(token.hash) !== undefined,
    await consents.find(username, clientId) !== undefined
  ])
  assert.deepEqual(await Promise.all(left), [[true, true], [false, false], [true, true]])
}

/** Of eight places, those who register and do nothing else keep two; clients in use stay, and make room for one another. */
async function floodOfClients (clients: OAuthClients): Promise<void> {
  const long = Date.now() - 5 * 24 * 60 * 60_000
  const made = async (count: number, more: (n: number) => Partial<OAuthClient>): Promise<string[]> => {
    const ids: string[] = []
    for (let n = 0; n < count; n++) {
      const own = fullClient({ createdAt: long, ...more(n) })
      await clients.create(own)
      ids.push(own.clientId)
    }
    return ids
  }
  const left = async (ids: readonly string[]): Promise<string> =>
    (await Promise.all(ids.map(async (id) => await clients.find(id) === undefined ? '-' : 'x'))).join('')
  const inUse = await made(6, (n) => ({ lastUsedAt: long + n }))
  const start = Date.now() - 60_000
  const unused = await made(20, (n) => ({ createdAt: start + n, lastUsedAt: undefined }))
  assert.deepEqual([await left(inUse), await left(unused)], ['xxxxxx', `${'-'.repeat(18)}xx`])
  const later = await made(2, (n) => ({ lastUsedAt: start + n }))
  assert.deepEqual([await left(inUse), await left(later), await left(unused)], ['--xxxx', 'xx', `${'-'.repeat(18)}xx`])
  for (const id of [...inUse, ...unused, ...later]) await clients.remove(id)
}

/** Beyond two entries of a user and three of all, the oldest goes. @param use puts and finds an entry of a user, made at this time */
async function boundOfUsers<Port> (
  make: () => Port,
  use: (username: string, at: number) => { put: (port: Port) => Promise<void>, find: (port: Port) => Promise<unknown> },
  settled: () => Promise<void>
): Promise<void> {
  // Later than whatever else is there.
  const start = Date.now() + 60_000
  const all = ['a', 'b', 'b', 'b', 'c', 'd'].map((username, n) => use(`bound-${username}`, start + n))
  const first = make()
  for (const each of all.slice(0, 5)) await each.put(first)
  const last = make()
  for (const each of all.slice(5)) await each.put(last)
  await settled()
  const found = await Promise.all(all.map(async ({ find }) => await find(last) !== undefined))
  assert.deepEqual(found, [false, false, false, true, true, true])
}
const oneConsent: Parameters<typeof boundOfUsers<Consents>>[1] = (username, grantedAt) => {
  const own = consent({ username, grantedAt })
  return { put: async (consents) => { await consents.put(own) }, find: async (consents) => await consents.find(username, own.clientId) }
}
const oneSession: Parameters<typeof boundOfUsers<BrowserStates>>[1] = (username, createdAt) => {
  const hash = fresh()
  return {
    put: async (states) => { await states.put(hash, { kind: 'session', username, value: '', createdAt }, soon()) },
    find: async (states) => await states.find(hash)
  }
}

/** Beyond three used states, the oldest are forgotten. */
async function boundOfUsedStates (make: () => UsedRequestStates, settled: () => Promise<void>): Promise<void> {
  const hashes = Array.from({ length: 5 }, fresh)
  const states = make()
  for (const hash of hashes) await states.recordUse(hash, 'first', soon())
  // It forgets at the beginning of its life, and then once in a while.
  const last = make()
  await last.recordUse(hashes.at(-1) ?? '', 'again', soon())
  await settled()
  const uses = await Promise.all(hashes.slice(2).map(async (hash) => await last.recordUse(hash, 'again', soon())))
  assert.deepEqual(uses.map(({ answers }) => answers), ['first', 'first', 'first'])
  assert.equal((await make().recordUse(hashes[0] ?? '', 'again', soon())).answers, 'again')
}

/** Many small families stay, the one that has most goes. */
async function boundOf (make: () => Promise<OAuthTokens>, settled: () => Promise<void>): Promise<void> {
  const small = [issued('access'), issued('access'), issued('access')]
  const tokens = await make()
  for (const token of small) await tokens.put(authorization(), [token])
  const greedy = authorization()
  let [current, next] = [issued('refresh'), issued('refresh')]
  await tokens.put(greedy, [current])
  for (let n = 0; n < 12; n++) {
    await tokens.rotate(current.hash, [next])
    ;[current, next] = [next, issued('refresh')]
  }
  const latest = await make()
  const extra = issued('access')
  await latest.put(authorization(), [extra])
  await settled()
  for (const { hash } of [...small, extra]) assert.ok(await latest.find(hash), 'a family that has little went')
  assert.deepEqual([await latest.find(current.hash), await latest.rotate(current.hash, [])], [undefined, 'unknown'])
}

void test('in memory, the oldest go first; in the file, the families that have most', async (t) => {
  const grants = new OneTimeValues(withCollection(new MemoryRecords(), { ...recordCollections.grants, maxPerOwner: 3 }))
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
  assert.deepEqual([...(await vectors.findHashes('a', ['1', '2'])).keys(), ...(await vectors.findHashes('b', ['1', '2'])).keys()], ['2', '1', '2'])

  const path = join(await temporaryFolder(t), 'mcp_settings.json')
  const store = new JsonFileStore(path)
  t.after(async () => { await store.close() })
  await store.load()
  const records = new FileRecords(store, await vault())
  await boundOf(async () => new OAuthTokens(withCollection(records, { ...recordCollections.tokens, maxInFile: 8 })), async () => {})
  const [tokens, consents] = [new OAuthTokens(records), new Consents(records)]
  await floodOfClients(new FileClients({ file: store, records, maxRegistered: 8 }))
  await boundOfClients(new FileClients({ file: store, records, maxRegistered: 3 }), { tokens, consents })
  const few = { ...recordCollections.consents, maxPerOwner: 2, maxInFile: 3 }
  await boundOfUsers(() => new Consents(withCollection(records, few)), oneConsent, async () => {})
  const fewStates = { ...recordCollections.loginStates, maxPerOwner: 2, maxEntries: 3 }
  const sessions = new BrowserStates(withCollection(new MemoryRecords(), fewStates))
  await boundOfUsers(() => sessions, oneSession, async () => {})
  const used = new UsedRequestStates(withCollection(new MemoryRecords(), { ...recordCollections.usedStates, maxEntries: 3 }))
  await boundOfUsedStates(() => used, async () => {})
})

// ---- away -----------------------------------------------------------------------------------------

/** One call of each method that asks the database. */
const asks = (
  { grants, tokens, clients, consents, loginStates, usedStates, upstreamTokens, vectors, activities }: Storage
): Array<() => Promise<unknown>> => [
  async () => await upstreamTokens.find('s', 'shared'),
  async () => await upstreamTokens.swap('s', 'shared', 'any', 1),
  async () => await upstreamTokens.claim('s', 'shared', 'v', 1),
  async () => await upstreamTokens.remove('s', 'shared'),
  async () => { await upstreamTokens.removeAll({ server: 's' }) },
  async () => await upstreamTokens.listChangedWithin(1_000),
  async () => { await grants.put(fresh(), 'f', {}, soon()) },
  async () => await grants.take(fresh()),
  async () => { await tokens.put(authorization(), [issued('access')]) },
  async () => await tokens.find(fresh()),
  async () => await tokens.rotate(fresh(), []),
  async () => { await tokens.revoke({ username: 'nobody' }) },
  async () => await tokens.listRevokedWithin(1_000),
  async () => await clients.find('c'),
  async () => await clients.list(),
  async () => await clients.create(client()),
  async () => await clients.replace('none', (former) => former),
  async () => await clients.remove('none'),
  async () => { await consents.put(consent()) },
  async () => await consents.find('ann', 'c'),
  async () => await consents.list('ann'),
  async () => await consents.remove('ann', 'c'),
  async () => { await consents.removeAll({ clientId: 'c' }) },
  async () => { await loginStates.put(fresh(), { kind: 'session', username: 'ann', value: 'v', createdAt: 1 }, soon()) },
  async () => await usedStates.recordUse(fresh(), 'a', soon()),
  async () => await loginStates.find(fresh()),
  async () => await loginStates.findByUid(fresh()),
  async () => { await loginStates.remove(fresh()) },
  async () => { await loginStates.removeAll('ann') },
  async () => { await vectors.put('c', [{ id: 'i', hash: 'h', embedding: [1] }]) },
  async () => await vectors.findHashes('c', ['i']),
  async () => await vectors.findNearest('c', [1], ['i'], 1),
  async () => { await vectors.markUsed('c', ['i']) },
  async () => { await vectors.removeUnused(60_000, 1) },
  async () => { await activities?.append([activity()]) },
  async () => await activities?.list({}, 1, 10),
  async () => await activities?.find(activity().id),
  async () => await activities?.listFilterValues({}),
  async () => await activities?.stats({}),
  async () => await activities?.removeBefore(0)
]

void test('while the database is away every method says so, and works again when it is back', async (t) => {
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
  await storage.clients.touch('c', Date.now())
  await until(() => storage.store.health() !== undefined, 'the store does not notice')
  for (const ask of asks(storage)) await assertAway(ask)
  await server.start()
  await until(() => storage.store.health() === undefined, 'the store does not come back')
  await until(async () => {
    for (const ask of asks(storage)) await ask()
    return true
  }, 'not back')
  assert.equal(await storage.tokens.rotate(refresh.hash, [next]), 'swapped')
  assert.deepEqual(await storage.tokens.find(next.hash), { ...own, ...next })
})

void test('what takes too long ends with a sentence', async (t) => {
  setLimits(t, timeouts, { statement: 500, write: 60_000 })
  const { storage, url } = await openPostgres(t)
  const locker = postgres(url, { max: 1, onnotice: () => {} })
  t.after(async () => { await locker.end({ timeout: 1 }) })
  let release = (): void => {}
  const locked = new Promise<void>((resolve) => {
    void locker.begin(async (sql) => {
      await sql.unsafe('LOCK TABLE records, vectors, activities')
      await new Promise<void>((_resolve, reject) => { release = () => { reject(new Error('done')) }; resolve() })
    }).catch(() => {})
  })
  await locked
  const asked = [
    storage.grants.take(fresh()), storage.tokens.find(fresh()), storage.vectors.markUsed('c', ['i']),
    storage.tokens.put(authorization(), [issued('access'), issued('refresh')])
  ]
  // Behind those, lines that have a bound.
  const [outcomes, kept] = [race(1_100, async () => await outcomeOf(storage.tokens.find(fresh()))), race(20, async () =>
    await outcomeOf(storage.vectors.markUsed('c', ['i'])))]
  await Promise.all(asked.map(async (each) => {
    await assert.rejects(each, (error: Error) => error instanceof StorageError && error.message.includes('too long'))
  }))
  assert.equal(storage.store.health(), undefined, 'the store waits for ports')
  release()
  await kept
  const { overloaded: refused, ...rest } = counted(await outcomes)
  assert.equal(refused, 100)
  assert.deepEqual(Object.keys(rest).filter((outcome) => outcome !== 'done' && outcome !== 'too long'), [])
  assert.equal(await storage.tokens.find(fresh()), undefined)
})
/** How a question to the database ended, in a word. */
const outcomeOf = async (asked: Promise<unknown>): Promise<string> => await asked.then(() => 'done', (error: unknown) => {
  if (!(error instanceof StorageError)) return String(error)
  return /overloaded|too long/.exec(error.message)?.[0] ?? error.message
})

void test('a database that is known to be away is not asked', async () => {
  const driver = new Proxy({}, { get: (_target, name) => assert.fail(`asked for ${String(name)}`) }) as DatabaseDriver
  const { runQuick: quick, runSlow: slow, runTransaction: transact, runBackground: record } = createQueryRunner(driver, () => 'It is away.')
  const refusal = (error: Error): boolean => error instanceof StorageError && error.message === 'It is away.'
  for (const ask of [quick, slow]) await assert.rejects(ask(async () => assert.fail('asked')), refusal)
  for (const ask of [transact, record]) await assert.rejects(ask(async () => assert.fail('asked')), refusal)
})

void test('an error in the code of a query stays what it is, and is no outage', async (t) => {
  const driver = await driverOf(t, (await database(t)).url)
  const queries = createQueryRunner(driver, () => undefined)
  const fail = async (): Promise<never> => await Promise.reject(new TypeError('ours'))
  await assert.rejects(queries.runQuick(fail), TypeError)
  await assert.rejects(queries.runTransaction(async (tx) => { await tx.execute(sql`select 1`); await fail() }), TypeError)
  await assert.rejects(queries.runQuick(async (db) => await db.execute(sql`select nothing`)), StorageError)
  await assert.rejects(queries.runTransaction(async (tx) => await tx.execute(sql`select nothing`)), StorageError)
})
