// The settings on an embedded PostgreSQL: the contract of all stores, and gateways as processes. Each opening takes seconds, so that the
// contract's tests take turns on one database; in `npm run soak` each has its own. database.test.ts has the same commands on it as on the
// other stores.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, t, test } from 'tap'
import { createOfflineApiClient } from '../../cli/offline.ts'
import { gatewayPathsOf } from '../../cli/gateway-paths.ts'
import { PgliteDriver } from '../../db/postgres/connection/pglite.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { readEnv } from '../../schemas/read-env.ts'
import { portsContract } from '../contracts/ports.ts'
import { storeContract } from '../contracts/store.ts'
import { startUpstream } from '../fakes/fault-http.ts'
import { loggedIn, managed, parked, serverNames, spawnReplica, startReplica } from '../fakes/replica.ts'
import { inTurn, openAt, openPglite } from '../fakes/store-database.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { openPorts } from '../fakes/store-ports.ts'
import { connected, Session, settings, text, within } from '../helpers/client.ts'
import { emptyFolder, pglite } from '../helpers/database.ts'
import { isFull } from '../helpers/full.ts'

// The first one takes seconds, and no test shall pay for it.
before(emptyFolder)

storeContract('PGlite', isFull ? openPglite : inTurn(openPglite, t), { alone: true })
portsContract('PGlite', async (t) => await openPorts(t, (await pglite(t)).url), { database: true })

void test('PGlite: a start that takes long names the embedded database, and no server', async (t) => {
  const { url, folder } = await pglite(t)
  const { migrate } = PgliteDriver.prototype
  t.after(() => { PgliteDriver.prototype.migrate = migrate })
  PgliteDriver.prototype.migrate = async () => await new Promise(() => {})
  const said: string[] = []
  const opening = openDatabase({ dbUrl: url, startupTimeout: 1_500, info: (sentence) => { said.push(sentence) }, warn: () => {} })
  await assert.rejects(opening, (error: Error) => error.message ===
    `The embedded database in ${folder} was not ready within 1.5 s (its tables are being checked and updated). DB_STARTUP_TIMEOUT says how long to wait.`)
  assert.deepEqual(said, [`waiting for the embedded database in ${folder} (its tables are being checked and updated)`])
})

void test('PGlite: its cache is small', async (t) => {
  const driver = await PgliteDriver.open((await pglite(t)).folder)
  const { rows } = await driver.db.execute('SHOW shared_buffers') as unknown as { rows: unknown }
  await driver.end()
  assert.deepEqual(rows, [{ shared_buffers: '16MB' }])
})

void test('PGlite: a folder that holds something else is refused, and left as it is', async (t) => {
  const folder = await temporaryFolder(t)
  const server = join(folder, 'server')
  await mkdir(server)
  for (const [path, names] of [[folder, ['server']], [server, ['PG_VERSION', 'postmaster.opts']]] as const) {
    if (path === server) for (const name of names) await writeFile(join(path, name), '18')
    await chmod(path, 0o755)
    await assert.rejects(
      openAt(`pglite://${path}`),
      (error: Error) => error.message.includes(path) && error.message.includes('contains something other')
    )
    assert.equal((await stat(path)).mode & 0o777, 0o755)
    assert.deepEqual(await readdir(path), names)
    await assert.rejects(stat(`${path}.lock`))
  }
  await assert.rejects(openAt(`pglite://${join(server, 'PG_VERSION')}`), /cannot be opened .*ENOTDIR/)
})

void test('PGlite: through a symbolic link the real folder is opened, locked, and closed to others', async (t) => {
  const { folder } = await pglite(t)
  await chmod(folder, 0o755)
  const link = join(await temporaryFolder(t), 'link')
  await symlink(folder, link)
  const { store } = await openAt(`pglite://${link}`)
  assert.equal((await store.load()).servers.size, 0)
  await stat(`${folder}.lock`)
  await assert.rejects(openAt(`pglite://${folder}`), new RegExp(`in use by another process .pid ${process.pid}`))
  await store.close()
  assert.equal((await stat(folder)).mode & 0o777, 0o700)
})

void test(
  'a gateway on an embedded database: all of it is there after a restart, and a second gateway is refused',
  async (t) => {
    const { url, folder } = await pglite(t)
    const upstream = await startUpstream(t)
    const hub = await startReplica(t, url, { settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }) })
    await connected(hub, 1)
    assert.equal(text(await (await Session.open(`${hub.url}/mcp`)).call('fake-echo', { message: 'embedded' })), 'embedded')
    const headers = await loggedIn(hub)
    await managed(hub, 'POST', '/servers', { name: 'kept', config: { ...parked(), headers: { 'X-Secret': 'canary-of-a-header' } } })
    const key = await managed(hub, 'POST', '/auth/keys', { name: 'kept', accessType: 'all', owner: 'admin' })
    const second = await spawnReplica(t, url, { wait: false })
    if (second.child.exitCode === null) await within('the exit', once(second.child, 'exit'))
    assert.equal(second.child.exitCode, 1, second.output())
    assert.ok(second.output().includes(folder), `the folder is not named: ${second.output()}`)
    assert.doesNotMatch(second.output(), /^\s+at .+:\d+:\d+\)?$/m)
    await managed(hub, 'POST', '/servers', { name: 'later', config: parked() })
    await hub.stop()

    const again = await spawnReplica(t, url)
    assert.deepEqual(await serverNames(again, headers), ['fake', 'kept', 'later'])
    await Session.open(`${again.url}/mcp`, { key: String(key.token) })
    again.child.kill('SIGKILL')
    await again.stop()
    // What a killed process leaves behind keeps nobody out.
    const last = await spawnReplica(t, url)
    assert.deepEqual(await serverNames(last, headers), ['fake', 'kept', 'later'])
    assert.equal(await last.stop(), 0)
  }
)

void test('a gateway on a settings file loads no database', async (t) => {
  const folder = await temporaryFolder(t)
  const hub = await spawnReplica(t, '', { env: { NODE_V8_COVERAGE: folder } })
  assert.equal(await hub.stop(), 0)
  const loaded = await Promise.all((await readdir(folder)).map(async (name) => await readFile(join(folder, name), 'utf8')))
  const urls = loaded.flatMap((report) => (JSON.parse(report) as { result: Array<{ url: string }> }).result.map(({ url }) => url))
  assert.ok(urls.some((url) => /\/dist\/server\.js$/.test(url)), 'no report of what was loaded')
  assert.deepEqual(urls.filter((url) => /node_modules\/(@electric-sql|postgres|drizzle-orm)\//.test(url)), [])
})

// The command line, with the gateway down.
test('an embedded database that holds nothing yet takes nothing of the settings file', async (t) => {
  const folder = await temporaryFolder(t)
  const [settings, data] = [join(folder, 'mcp_settings.json'), join(folder, 'pg')]
  await writeFile(settings, JSON.stringify({ mcpServers: { a: { command: 'x' } } }))
  await cp(await emptyFolder(), data, { recursive: true })
  const env = readEnv({ SETTINGS_PATH: settings, DB_URL: `pglite://${data}` })
  const open = async (): Promise<void> => { await (await createOfflineApiClient(env, gatewayPathsOf(env))).close() }
  await assert.rejects(open(), /The database at .* is empty: nothing has been stored in it/)
  await assert.rejects(open(), /The database at .* is empty: nothing has been stored in it/, 'the first one has closed it')
  assert.equal(existsSync(join(folder, '.tool-hub')), false)
})
