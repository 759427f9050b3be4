// The settings on PostgreSQL: the contract that the file keeps, and what stands in the tables.
// What happens when the database goes away or is shared is in replicas.test.ts.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t, test } from 'tap'
import bcrypt from 'bcryptjs'
import postgres from 'postgres'
import { openStorage } from '../../db/open.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { PostgresStore } from '../../db/postgres/settings/store.ts'
import { InvalidChangeError, StorageError, type Change, type Store } from '../../db/store.ts'
import { sha256 } from '../../plugins/base/secrets/hash.ts'
import { at, initialize, KEY, names, send, settings, type Json } from '../helpers/client.ts'
import { bounded, change, storeContract } from '../contracts/store.ts'
import { modelRun } from '../contracts/store-model.ts'
import { cli } from '../helpers/cli.ts'
import { database, type Database } from '../helpers/database.ts'
import { assertNoCanary, canary } from '../fakes/canaries.ts'
import { loggedIn, login, manage, managed, parked, serverNames, shared, spawnReplica, startReplica, vault } from '../fakes/replica.ts'
import { inTurn, openAt, openPglite, openPostgres } from '../fakes/store-database.ts'
import { openFile, temporaryFolder } from '../fakes/store-file.ts'
import { isFull } from '../helpers/full.ts'
import { bearerKey, freePort, path, until } from '../helpers/hub.ts'
import { runToEnd } from '../helpers/programs.ts'

// ---- the store ------------------------------------------------------------------------------------

storeContract('PostgreSQL', inTurn(openPostgres, t))

void test('the same commands have the same answers on file, PostgreSQL and PGlite', async (t) => {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)
  t.comment(`seed ${seed} (TEST_SEED=${seed} runs the same)`)
  // A short run is a part of the whole: two sequences of 75 commands, and one where opening a database takes seconds.
  const [some, few] = isFull ? [3_000, 3_000] : [150, 75]
  const file = await modelRun(some, seed, async () => await bounded(openFile))
  const postgres = await modelRun(some, seed, async () => await bounded(openPostgres))
  const pglite = await modelRun(few, seed, async () => await bounded(openPglite))
  assert.ok(file.flat().includes('done') && file.flat().some((answer) => answer !== 'done'))
  assert.deepEqual(postgres, file)
  assert.deepEqual(pglite, file.slice(0, few / 75))
})

void test("migrations are noted under a name of our own: what is noted under Drizzle's is another program's", async (t) => {
  const { url, query } = await database(t, undefined, { tables: false })
  await query('CREATE SCHEMA drizzle')
  await query('CREATE TABLE drizzle.__drizzle_migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)')
  await query("INSERT INTO drizzle.__drizzle_migrations (hash, created_at) VALUES ('another program''s', 4102444800000)")
  for (const [at, name] of ['first', 'second'].entries()) {
    const { store } = await openAt(url)
    const snapshot = await store.load()
    assert.equal(snapshot.servers.size, at)
    await store.commit([{ entity: 'mcpServers', key: name, value: parked() }], snapshot.version)
    await store.close()
  }
  assert.deepEqual(await query('SELECT hash FROM drizzle.__drizzle_migrations'), [{ hash: "another program's" }])
})

void test('tables that are there want no right to make some, and those of a newer version are warned of', async (t) => {
  const { url, name, query } = await database(t)
  await (await openAt(url)).store.close()
  const user = `${name}_user`
  await query(`CREATE ROLE ${user} LOGIN PASSWORD 'limited'`)
  try {
    const { host } = new URL(url)
    await assert.rejects(
      openAt(`postgres://${user}:limited@${host}/${name}`),
      /may not create a schema and tables in it, or may not use the existing ones, 42501/
    )
    await query(
      `GRANT USAGE ON SCHEMA drizzle TO ${user}; GRANT SELECT ON drizzle.tool_hub_migrations TO ${user}; GRANT SELECT, INSERT, ` +
      `UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${user}`
    )
    const warnings: string[] = []
    const warn = (sentence: string): void => { warnings.push(sentence) }
    // The first of two hosts is not there.
    const { store } = await openAt(`postgres://${user}:limited@127.0.0.1:${await freePort()},${host}/${name}`, undefined, warn)
    const { version } = await store.load()
    await store.commit([{ entity: 'mcpServers', key: 'a', value: parked() }], version)
    await store.close()
    assert.deepEqual(warnings, [])
    await query("INSERT INTO drizzle.tool_hub_migrations (hash, created_at) VALUES ('newer', 4102444800000)")
    await (await openAt(url, undefined, warn)).store.close()
    assert.match(warnings.join(), /^A newer version of Tool-Hub has updated the tables/)
  } finally {
    await query(`DROP OWNED BY ${user}; DROP ROLE ${user}`)
  }
})

void test('a database that has entries and does not know where they stand is left alone', async (t) => {
  const folder = await temporaryFolder(t)
  const { url, query } = await database(t)
  await writeFile(join(folder, 'mcp_settings.json'), JSON.stringify({ mcpServers: { one: parked() } }))
  const { store } = await openAt(url, join(folder, 'mcp_settings.json'))
  await store.load()
  await store.close()
  await query('DELETE FROM revision')
  await writeFile(join(folder, 'mcp_settings.json'), JSON.stringify({ users: [{ username: 'ann', password: 'x', isAdmin: true }] }))
  const { store: again } = await openAt(url, join(folder, 'mcp_settings.json'))
  t.after(async () => { await again.close() })
  await assert.rejects(again.load(), /has lost its settings: the table "revision" is empty/)
  assert.deepEqual([
    (await query('SELECT * FROM servers')).length,
    (await query('SELECT * FROM users')).length,
    (await query('SELECT * FROM revision')).length
  ], [1, 0, 0])
})

void test('a DB_URL as hosters give it out is taken, and what cannot be had is told in a sentence', async (t) => {
  const { url, query, name } = await database(t)
  const vaultOfAll = await vault()
  const open = async (dbUrl: string, said: string[] = [], startupTimeout = 60_000): Promise<Store> => (await openStorage({
    settingsPath: '/nonexistent/mcp_settings.json',
    dbUrl,
    startupTimeout,
    vault: vaultOfAll,
    warn: () => {},
    info: (sentence) => { said.push(sentence) }
  })).store
  const holder = postgres(url, { max: 1 })
  t.after(async () => { await holder.end({ timeout: 1 }) })
  await holder`select pg_advisory_lock(${0x746f6f6c})`
  const said: string[] = []
  await assert.rejects(
    open(url, said, 10_000),
    /^Error: Another replica has been migrating the tables in the database at \S+ for 10 s\. .*DB_STARTUP_TIMEOUT/
  )
  assert.match(said.join(), /^waiting for PostgreSQL at \S+ \(another replica is migrating the tables\)$/)
  await holder`select pg_advisory_unlock(${0x746f6f6c})`
  const store = await open(
    `${url}?sslmode=disable&channel_binding=prefer&application_name=mine&pgbouncer=true&connection_limit=1&pool_timeout=5&` +
    'schema=public&gssencmode=disable'
  )
  await store.load()
  await store.close()
  for (const wrong of ['foo=1', 'schema=other']) {
    await assert.rejects(
      open(`${url}?${wrong}`),
      /^Error: The tables cannot be created .*DB_URL contains a parameter that PostgreSQL does not know: .*"(foo|schema)"/
    )
  }
  await query(`CREATE DATABASE ${name}_latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
  await assert.rejects(open(url.replace(name, `${name}_latin`)), /its encoding, LATIN1.*ENCODING 'UTF8'/)
  await query(`DROP DATABASE ${name}_latin WITH (FORCE)`)
})

const aServer = (key: string): Change => ({ entity: 'mcpServers', key, value: { command: 'node' } })
const aUser = (key: string): Change => ({ entity: 'users', key, value: { username: key } })

void test(
  'two stores that write at once are both served whatever isolation the database has by default, and where a transaction has to give way',
  async (t) => {
    const { store, query, url, another } = await openPostgres(t)
    await query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_isolation TO 'serializable'`)
    await store.load()
    const { store: other } = await another()
    await Promise.all(
      [store, other].map(async (each, at) => {
        for (let n = 0; n < 20; n++) await change(each, () => [aServer(`s${at}-${n}`)])
      })
    )
    // Every other try fails, as it does for who loses to a deadlock.
    await query(`CREATE SEQUENCE tries;
    CREATE FUNCTION give_way() RETURNS trigger AS $$ BEGIN
      IF nextval('tries') % 2 = 1 THEN RAISE EXCEPTION USING errcode = '40P01'; END IF;
      RETURN new;
    END $$ LANGUAGE plpgsql;
    CREATE TRIGGER give_way BEFORE UPDATE ON revision FOR EACH ROW EXECUTE FUNCTION give_way()`)
    for (let n = 0; n < 3; n++) await change(store, () => [aServer(`late-${n}`)])
    assert.equal((await other.load()).servers.size, 43)
  }
)

void test('a settings file with masks in the place of secrets is no beginning for a database', async (t) => {
  const { store, query, warnings } = await openPostgres(t, {
    mcpServers: { remote: { url: 'https://x.example/mcp', headers: { Authorization: '••••abcd' } } }
  })
  await assert.rejects(
    store.load(),
    /^Error: The settings file contains masks in place of secrets\. .*headers\.Authorization of mcpServers\/remote\.$/
  )
  assert.deepEqual(await query('SELECT * FROM revision'), [])
  assert.deepEqual(warnings, [], 'nothing is said to be taken over')
})

void test(
  'what somebody writes into the tables by hand is not deleted; what the database refuses is in the log, once',
  async (t) => {
    const { store, query, warnings, reopen } = await openPostgres(t)
    const before = await change(store, () => [aUser('one'), aUser('two')])
    await query(
      "INSERT INTO users (position, key, data, spelling) SELECT max(position) + 1, 'hand', '{\"username\": \"hand\"}', '{' FROM users"
    )
    await assert.rejects(store.commit([aUser('three')], before.version), InvalidChangeError)
    // As docs/scaling.md says.
    await query('UPDATE revision SET version = version + 1, head = gen_random_uuid()')
    await until(async () => (await store.load()).users.size === 3, 'an edit by hand was not seen')
    const now = await store.load()
    await store.commit([aUser('three')], now.version)
    const again = await reopen()
    const { users, version } = await again.load()
    assert.deepEqual([...users.keys()], ['one', 'two', 'hand', 'three'])
    await query('ALTER TABLE users RENAME TO people')
    for (const name of ['four', 'five']) await assert.rejects(again.commit([aUser(name)], version), StorageError)
    assert.deepEqual(warnings, [
      'A change could not be stored. The database cannot be used (it reported an error, 42P01). Nothing was changed.'
    ])
    await query('ALTER TABLE people RENAME TO users')
    await again.commit([aUser('four')], version)
  }
)

// ---- what is in the tables ------------------------------------------------------------------------

/** Every row of every table, as text. */
async function allRows (query: Database['query']): Promise<string[]> {
  const tables = await query<{ schema: string; name: string }>(`SELECT table_schema AS schema, table_name AS name
    FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`)
  assert.ok(tables.length >= 5, 'where are the tables?')
  return (await Promise.all(tables.map(async ({ schema, name }) =>
    (await query<{ row: string }>(`SELECT t::text AS row FROM "${schema}"."${name}" t`)).map(({ row }) => `${name}: ${row}`)))).flat()
}

/** A config with a secret in every place that takes one. */
const secretive = (): Json => ({
  type: 'streamable-http',
  url: `https://user:${canary('userinfo')}@127.0.0.1:9/${canary('path')}/mcp?api_key=${canary('query')}`,
  headers: { Authorization: `Bearer ${canary('header')}`, 'X-Plain-Name': canary('other-header') },
  oauth: { clientId: 'client', clientSecret: canary('oauth') },
  proxy: { url: `http://proxy:${canary('proxy')}@127.0.0.1:9` },
  odd: [{ pem: canary('odd') }],
  enabled: false
})
const secretiveChild = (): Json => ({
  command: 'node',
  args: [
    'server.js', '--api-key', canary('arg'), `--token=${canary('arg')}`, `https://u:${canary('arg')}@host/`,
    canary('arg'), '-c', `export X=${canary('arg')}; run`, '--config', JSON.stringify([{ key: canary('arg') }])
  ],
  env: { PLAIN_NAME: canary('env'), API_KEY: canary('env') },
  enabled: false
})

const strange = { deep: [{ er: null }, 'ü', 1.5, { '': '' }], comment: 'mine' }

/** A settings file with all that one may hold. */
const full = (): Json => ({
  $schema: 'https://example.com/schema.json',
  'x-top': strange,
  users: [
    { username: 'ann', password: bcrypt.hashSync('Open-Sesame-1', 4), isAdmin: true, nick: 'boss' },
    { username: 'bob', password: bcrypt.hashSync('Open-Sesame-2', 4), apiToken: canary('user') }
  ],
  mcpServers: {
    remote: secretive(),
    child: secretiveChild(),
    open: { ...parked(), visibility: 'public', owner: 'bob' },
    marked: parked('no visibility'),
    odd: { command: 'x', args: 'y' },
    'x-note': { ...parked(), 'x-note': strange }
  },
  groups: [
    {
      id: '33333333-3333-4333-8333-333333333333',
      name: 'team',
      description: 'ours',
      servers: ['remote', { name: 'child', tools: ['a'], alias: 'c' }],
      owner: 'ann',
      color: 'red',
      hooks: { secret: canary('group') }
    }
  ],
  bearerKeys: [
    bearerKey(),
    bearerKey({
      id: '44444444-4444-4444-8444-444444444444',
      name: 'plain',
      token: `thk_0000-${canary('token')}`,
      note: 'for tests',
      webhook: `https://x:${canary('key')}@127.0.0.1/`
    })
  ],
  systemConfig: {
    routing: { enableGlobalRoute: true },
    install: { baseUrl: 'https://hub.example.com' },
    mcpRouter: { apiKey: canary('router'), title: 'hub' },
    smartRouting: { enabled: false, llmProviderApiKey: canary('llm'), dbUrl: `postgres://u:${canary('db-url')}@127.0.0.1/x` },
    'x-section': strange,
    'x-odd': { plain: canary('section') }
  },
  oauthClients: [{ clientId: 'c1', clientSecret: canary('client'), name: 'a client', redirectUris: ['http://localhost/cb'] }],
  oauthTokens: [{ accessToken: canary('access'), refreshToken: canary('refresh'), clientId: 'c1', username: 'ann' }],
  prompts: [{ name: 'p', template: '{{x}}' }]
})

/** Runs a command for the database, within this process. @param npm by `npm run db:…`, as an operator does it: the program of the build */
async function db (
  command: 'import' | 'export', args: string[], env: Record<string, string>, { npm = false } = {}
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  if (!npm) {
    const { code, out, err } = await cli({ HOME: tmpdir(), ...env })('db', command, ...args)
    return { code, stdout: out, stderr: err }
  }
  assert.ok(existsSync(path('dist/cli/main.js')), 'these commands run what npm ci builds: npm run build')
  const { code, out, err } = await runToEnd('npm', ['run', '--silent', `db:${command}`, '--', ...args], { env: { HOME: tmpdir(), ...env } })
  return { code, stdout: out, stderr: err }
}

/** The clients as they come out again: of a secret the hash is enough, and all that is left. */
const clientsOf = (content: Json): Json[] => (content.oauthClients as Json[]).map(({ clientSecret, ...client }) => ({
  ...client,
  secretHash: sha256(String(clientSecret)),
  grants: ['authorization_code', 'refresh_token'],
  scopes: ['mcp', 'profile'],
  origin: 'admin'
}))

const plainToken = (content: Json): string => String(at(content, 'bearerKeys', 1, 'token'))

void test('an empty database is seeded from the settings file, once', async (t) => {
  const { url } = await database(t)
  const folder = await temporaryFolder(t)
  const content = full()
  const file = JSON.stringify(content, null, 2)
  await writeFile(join(folder, 'mcp_settings.json'), file)
  const hub = await startReplica(t, url, { folder })
  const headers = await loggedIn(hub, 'ann', 'Open-Sesame-1')
  const shown = await managed(hub, 'GET', '/servers', undefined, headers) as unknown as Json[]
  assert.deepEqual(names(shown), Object.keys(content.mcpServers as object))
  for (const { name, config } of shown) assert.equal(at(config, 'visibility'), 'private', `${String(name)}: seeded servers are private`)
  assert.ok(String(shown.find(({ name }) => name === 'odd')?.error ?? '') !== '', 'an odd entry is kept, with its problem')
  assert.deepEqual(names(await managed(hub, 'GET', '/groups', undefined, headers)), ['team'])
  assert.deepEqual(names(await managed(hub, 'GET', '/auth/keys', undefined, headers)), ['test', 'plain'])
  for (const key of [KEY, plainToken(content)]) assert.equal((await send(`${hub.url}/mcp`, { key, body: initialize() })).status, 200)
  assert.equal((await login(hub, 'bob', 'Open-Sesame-2')).status, 200)
  assert.equal((await login(hub)).status, 401, 'there are users: no first admin is made')
  assert.match(hub.output(), /The database was empty, and was initialized from the settings file .*: \d+ servers, 1 group, 2 users, \d keys/)

  await managed(hub, 'DELETE', '/servers/marked', undefined, headers)
  await managed(hub, 'POST', '/servers', { name: 'by-api', config: parked() }, headers)
  const before = await serverNames(hub, headers)
  assert.equal(await hub.stop(), 0)
  assert.equal(await readFile(join(folder, 'mcp_settings.json'), 'utf8'), file, 'the file is nobody\'s to write')
  await writeFile(join(folder, 'mcp_settings.json'), JSON.stringify({ ...content, mcpServers: { other: parked() }, bearerKeys: [] }))
  const again = await startReplica(t, url, { folder })
  assert.deepEqual(await serverNames(again, headers), before)
  // Not even when all that was seeded is gone.
  for (const name of before) await managed(again, 'DELETE', `/servers/${name}`, undefined, headers)
  assert.equal(await again.stop(), 0)
  const third = await startReplica(t, url, { folder })
  assert.deepEqual(await serverNames(third, headers), [])
  assert.equal(await third.stop(), 0)
})

void test('of two replicas that find an empty database, only the one that filled it says so', async (t) => {
  const { url } = await database(t)
  const said: string[] = []
  const storeOf = async (name: string, before?: () => Promise<unknown>): Promise<PostgresStore> => {
    const driver = await openDatabase({ dbUrl: url, startupTimeout: 60_000, info: () => {}, warn: () => {} })
    const store = new PostgresStore({
      driver,
      vault: await vault(),
      warn: (sentence) => { said.push(`${name} ${sentence}`) },
      seed: async () => {
        await before?.()
        return { document: { mcpServers: { [name]: parked() } }, messages: ['filled it'] }
      }
    })
    t.after(async () => { await store.close() })
    return store
  }
  const first = await storeOf('first')
  const second = await storeOf('second', async () => await first.load())
  const { servers } = await second.load()
  assert.deepEqual([[...servers.keys()], said], [['first'], ['first filled it']])
})

void test('npm run db:import and db:export: all of a settings file goes in and comes out', async (t) => {
  const { url, query } = await database(t)
  const folder = await temporaryFolder(t)
  const content = full()
  const [from, to] = [join(folder, 'from.json'), join(folder, 'to.json')]
  await writeFile(from, JSON.stringify(content))
  const env = { DB_URL: url, ...shared, SETTINGS_PATH: from }
  const imported = await db('import', [], env, { npm: true })
  assert.equal(imported.code, 0, imported.stderr)
  assertNoCanary(await allRows(query), 'a table after db:import')
  const twice = await db('import', [], env)
  assert.equal(twice.code, 1, 'a database that holds settings is not written over')
  assert.match(twice.stderr, /--replace/)
  const exported = await db('export', [to], env, { npm: true })
  assert.equal(exported.code, 0, exported.stderr)
  assert.equal((await stat(to)).mode & 0o777, 0o600)
  const written = JSON.parse(await readFile(to, 'utf8')) as Json
  const servers = (document: Json): Json =>
    Object.fromEntries(Object.entries(document.mcpServers as Record<string, Json>).map(([name, { visibility, ...rest }]) => [name, rest]))
  assert.deepEqual(Object.keys(written).sort(), Object.keys(content).sort())
  assert.deepEqual(servers(written), servers(content))
  assert.deepEqual(
    { ...written, mcpServers: 0, bearerKeys: 0 },
    { ...content, mcpServers: 0, bearerKeys: 0, oauthClients: clientsOf(content) }
  )
  // Of a token the hash is enough, and all that is left.
  assert.deepEqual(
    (written.bearerKeys as Json[]).map(({ token, tokenHash, tokenMask, ...key }) => key),
    (content.bearerKeys as Json[]).map(({ token, ...key }) => key)
  )
  // A database that has entries and does not know where they stand is not taken for an empty one.
  await query('DELETE FROM revision')
  const lost = await db('export', ['-'], env)
  assert.deepEqual([lost.code, lost.stdout], [1, ''])
  assert.match(lost.stderr, /has lost its settings/)
  assert.equal((await db('import', ['--replace'], env)).code, 0)
  assert.equal((await db('export', ['-'], env, { npm: true })).stdout, await readFile(to, 'utf8'))
  for (const { stdout, stderr } of [imported, twice, exported, lost]) assertNoCanary([stdout, stderr], 'the output')
  // A gateway takes the file that came out.
  const hub = await startReplica(t, '', { settings: written })
  assert.equal((await send(`${hub.url}/mcp`, { key: plainToken(content), body: initialize() })).status, 200)
  assert.equal(await hub.stop(), 0)
})

void test('no secret stands in a table, or is printed; db:export has them back', async (t) => {
  const { url, query } = await database(t)
  const content = full()
  const hub = await spawnReplica(t, url, { settings: content, env: { LOG_LEVEL: 'trace' } })
  const headers = await loggedIn(hub, 'ann', 'Open-Sesame-1')
  const password = `${canary('password')}-Aa1!`
  await managed(hub, 'POST', '/users', { username: 'carl', password }, headers)
  const token = String(at((await login(hub, 'carl', password)).body, 'token'))
  const change = { currentPassword: password, newPassword: `${password}!` }
  assert.equal((await manage(hub, 'POST', '/auth/change-password', change, { 'x-auth-token': token })).status, 200)
  assert.equal((await login(hub, 'carl', `${canary('wrong')}-Aa1!`)).status, 401)
  const config = { remote: secretive(), child: secretiveChild() }
  await managed(hub, 'POST', '/servers', { name: 'api-remote', config: secretive() }, headers)
  await managed(hub, 'PUT', '/servers/api-remote', { config: config.remote, newName: 'renamed' }, headers)
  await managed(hub, 'POST', '/servers', { name: 'api-child', config: config.child }, headers)
  assert.equal((await manage(hub, 'POST', '/servers', { name: 'renamed', config: secretive() }, headers)).status, 400)
  const router = canary('new-router')
  const system = { mcpRouter: { apiKey: router }, smartRouting: { llmProviderApiKey: canary('new-llm') } }
  assert.equal((await manage(hub, 'PUT', '/system-config', system, headers)).status, 200)
  const key = String((await managed(hub, 'POST', '/auth/keys', { name: 'made' }, headers)).token)
  assert.equal((await send(`${hub.url}/mcp`, { key, body: initialize() })).status, 200)
  assert.equal((await send(`${hub.url}/mcp`, { key: canary('unknown-key'), body: initialize() })).status, 401)
  assert.equal((await fetch(`${hub.url}/api/servers?token=${encodeURIComponent(headers['x-auth-token'] ?? '')}`)).status, 200)

  const rows = await allRows(query)
  assert.ok(rows.some((row) => row.includes('api-child')))
  assertNoCanary(rows, 'a table')
  assertNoCanary((await query<{ query: string }>('SELECT query FROM pg_stat_activity')).map(({ query }) => query), 'a statement')
  assert.equal(await hub.stop(), 0)
  const everything = [...rows, hub.output()]
  for (const secret of [key, headers['x-auth-token'] ?? '', token, shared.ENCRYPTION_KEY]) {
    assert.ok(!everything.some((text) => text.includes(secret)), `${secret.slice(0, 12)}… is told`)
  }
  assertNoCanary([hub.output()], 'the output')

  const exported = await db('export', ['-'], { DB_URL: url, ...shared })
  assert.equal(exported.code, 0, exported.stderr)
  assert.equal(at(JSON.parse(exported.stdout), 'systemConfig', 'mcpRouter', 'apiKey'), router)
  assert.ok(!exported.stdout.includes(key) && !exported.stdout.includes(password), 'what is hashed is not to be had back')
  // With another key nothing is opened, and the reason is told.
  const other = await db('export', ['-'], { DB_URL: url, ...shared, ENCRYPTION_KEY: 'f'.repeat(64) })
  assert.equal(other.code, 1)
  assert.match(other.stderr, /ENCRYPTION_KEY/)
  assertNoCanary([other.stdout, other.stderr], 'the output')
})

void test(
  'a replica with another key: what it cannot open is told of whenever it comes, is given to nobody half, and counts once it is given anew',
  async (t) => {
    const { url } = await database(t)
    const prompts = [{ name: 'p', template: '{{x}}' }]
    const content = settings({ remote: secretive(), plain: parked() }, {
      prompts,
      systemConfig: { mcpRouter: { apiKey: canary('router') }, smartRouting: { enabled: false, llmProviderApiKey: canary('llm') } }
    })
    const one = await startReplica(t, url, { settings: content })
    const two = await startReplica(t, url, { env: { ENCRYPTION_KEY: 'f'.repeat(64) } })
    const headers = await loggedIn(one)
    const exportOf = async (hub: typeof one): Promise<{ status: number; body: unknown }> =>
      await manage(hub, 'GET', '/mcp-settings/export?includeSecrets=true', undefined, headers)
    const refused = async (hub: typeof one, ...locked: string[]): Promise<void> => {
      const { status, body } = await exportOf(hub)
      assert.deepEqual(
        [status, at(body, 'code'), at(body, 'message')],
        [409, 'TH_SECRETS_LOCKED', `These secrets cannot be decrypted, so they cannot be exported: ${locked.join(', ')}`]
      )
    }
    assert.equal((await exportOf(one)).status, 200)
    assert.match(two.output(), /server \\"remote\\" is not connected: .*ENCRYPTION_KEY/)
    await refused(two, '"remote"', '"systemConfig"')
    assert.equal(
      (await manage(two, 'GET', '/mcp-settings/export', undefined, headers)).status,
      200,
      'masks do no harm where masks are asked for'
    )

    const put = async (body: Json): Promise<[number, string]> => {
      const { status, body: answer } = await manage(two, 'PUT', '/system-config', body, headers)
      return [status, String(at(answer, 'message'))]
    }
    for (const [body, masks] of [
      [{ nameSeparator: '+' }, 'mcpRouter.apiKey, smartRouting.llmProviderApiKey'],
      [{ mcpRouter: { apiKey: canary('new') } }, 'smartRouting.llmProviderApiKey'],
      [{ mcpRouter: null }, 'smartRouting.llmProviderApiKey']
    ] as const) {
      const [status, message] = await put(body)
      assert.equal(status, 400)
      assert.match(message, new RegExp(`^"systemConfig" cannot be changed while its secrets cannot be decrypted, .* all of them: ${masks}\\. `))
    }
    const fresh = canary('new-llm')
    assert.doesNotMatch(one.output(), /are ignored/)
    assert.equal((await put({ mcpRouter: null, smartRouting: { llmProviderApiKey: fresh } }))[0], 200)
    assert.equal((await put({ nameSeparator: '+' }))[0], 200)
    await until(
      () => /the secrets in \\"systemConfig\\" are ignored: .*ENCRYPTION_KEY/.test(one.output()),
      'a replica that could open everything at the start says nothing of what it cannot open now'
    )
    await refused(one, '"systemConfig"')

    const shown = at(await managed(two, 'GET', '/servers/remote', undefined, headers), 'config')
    const sentBack = await manage(two, 'PUT', '/servers/remote', { config: shown }, headers)
    assert.equal(sentBack.status, 400)
    assert.match(String(at(sentBack.body, 'message')), /a mask, .*cannot be decrypted\. .*ENCRYPTION_KEY/)
    const config = secretive()
    await managed(two, 'PUT', '/servers/remote', { config }, headers)
    const { status, body } = await exportOf(two)
    assert.equal(status, 200)
    assert.deepEqual(
      [at(body, 'data', 'mcpServers', 'remote', 'headers'), at(body, 'data', 'systemConfig')],
      [config.headers, { smartRouting: { enabled: false, llmProviderApiKey: fresh }, nameSeparator: '+' }]
    )
    const warnings = one.output().match(/are ignored/g)?.length
    assert.equal(warnings, 1, 'told once, not with each change')
    for (const hub of [one, two]) {
      assertNoCanary([hub.output()], 'the output')
      assert.equal(await hub.stop(), 0)
    }

    await t.test('what is lost with a key can be got over without the API, too', async (t) => {
      const file = join(await temporaryFolder(t), 'masked.json')
      const env = { DB_URL: url, ...shared }
      const whole = await db('export', [file], env)
      assert.equal(whole.code, 1)
      assert.match(
        whole.stderr,
        /^systemConfig cannot be opened: .*\n {2}mcpServers\/remote cannot be opened|^mcpServers\/remote cannot be opened: .*\n {2}systemConfig cannot be opened/
      )
      assert.ok(!existsSync(file))
      const masked = await db('export', [file, '--masked'], env)
      assert.equal(masked.code, 0, masked.stderr)
      assert.match(masked.stderr, /mcpServers\/remote cannot be opened/)
      assert.match(masked.stderr, /The file contains masks \(••••\) in place of the secrets that cannot be decrypted, and the others in plain text/)
      const written = JSON.parse(await readFile(file, 'utf8')) as Json
      assert.deepEqual(written.prompts, prompts)
      assert.equal(
        at(written, 'mcpServers', 'remote', 'headers', 'X-Plain-Name'),
        `••••${String(at(config, 'headers', 'X-Plain-Name')).slice(-4)}`
      )
      const taken = await db('import', [file, '--replace'], env)
      assert.equal(taken.code, 1)
      assert.match(
        taken.stderr,
        /masks in place of secrets.*headers\.Authorization of mcpServers\/remote.*smartRouting\.llmProviderApiKey of systemConfig/
      )
      await writeFile(file, JSON.stringify({ ...written, mcpServers: { remote: config }, systemConfig: { nameSeparator: '+' } }))
      assert.equal((await db('import', [file, '--replace'], env)).code, 0)
      const mended = await db('export', ['-'], env)
      assert.deepEqual(
        [at(JSON.parse(mended.stdout), 'mcpServers', 'remote', 'headers'), at(JSON.parse(mended.stdout), 'prompts')],
        [config.headers, prompts]
      )
    })
  }
)
