// Backup and restore, on a settings file and on PostgreSQL, which they need (test/helpers/database.ts). Commands run within this process;
// those beside a running gateway are processes of their own.
import assert from 'node:assert/strict'
import { appendFileSync, existsSync } from 'node:fs'
import { chmod, chown, lstat, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type Test } from 'tap'
import { unpackBackup } from '../../cli/backup/archive.ts'
import { Passwords } from '../../plugins/base/secrets/hash.ts'
import { accountMarkOf, rightsMarkOf } from '../../plugins/identity/users/account.ts'
import type { User } from '../../schemas/settings.ts'
import { askHub, filesBelow, sendBundle } from '../helpers/bundles.ts'
import { at, connected, Session, settings, text, type Json } from '../helpers/client.ts'
import { cli, envOf, maintain } from '../helpers/cli.ts'
import { database, type Database } from '../helpers/database.ts'
import { cliProgram, startHub, until, type Hub } from '../helpers/hub.ts'
import { runToEnd } from '../helpers/programs.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { zip } from '../fakes/zip.ts'

/** As `maintain`, in a process of its own, of the build: beside a running gateway, and once for each way of storing. */
const runBeside: typeof maintain = async (command, folder, args, env = {}) => {
  const [program = '', ...first] = cliProgram
  const { code, said } = await runToEnd(program, [...first, command, ...args], { env: envOf(folder, env) })
  return { code: Number(code), told: said }
}

const doneBy = (by: typeof maintain) => async (...command: Parameters<typeof maintain>): Promise<string> => {
  const { code, told } = await by(...command)
  assert.equal(code, 0, told)
  return told
}
const done = doneBy(maintain)
const doneBeside = doneBy(runBeside)

const hubIn = async (t: Test, folder: string, more: { settings?: object, env?: Record<string, string> } = {}): Promise<Hub> =>
  await startHub(t, { folder, ...more })

/** A server of a few lines. */
const greeter = `
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  const results = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'greeter', version: '1' } },
    'tools/list': { tools: [{ name: 'greet', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'hello, ' + process.env.WORD }] }
  }
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }))
})`
// eslint-disable-next-line no-template-curly-in-string
const server = { type: 'node', entry_point: 'main.cjs', mcp_config: { command: 'node', args: ['${__dirname}/main.cjs'], env: { WORD: 'canary-word' } } }
const bundle = zip([
  { name: 'manifest.json', data: JSON.stringify({ manifest_version: '0.3', name: 'greeter', version: '1.0.0', description: 'Greets', author: { name: 'Ada' }, server }) },
  { name: 'main.cjs', data: greeter }
])

/** Uploads the bundle and stores its server. */
async function addGreeter (hub: Hub): Promise<void> {
  const { status, body } = await sendBundle(hub, bundle)
  assert.equal(status, 200)
  await askHub(hub, 'POST', '/api/servers', { name: 'greeter', config: at(body, 'data', 'config') })
}

async function greets (hub: Hub): Promise<void> {
  await connected(hub, 1)
  assert.equal(text(await (await Session.open(`${hub.url}/mcp/greeter`)).call('greet')), 'hello, canary-word')
}

test('a settings file, with a bundle', async (t) => {
  const folder = await temporaryFolder(t)
  const hub = await hubIn(t, folder, { settings: settings({}) })
  await addGreeter(hub)
  await greets(hub)
  const file = join(await temporaryFolder(t), 'backup.zip')

  await t.test('is backed up while the gateway runs', async () => {
    assert.match(await doneBeside('backup', folder, [file]), /contains secrets in plain text/)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    assert.deepEqual(await filesBelow(dirname(file)), ['backup.zip'])
    assert.match((await maintain('backup', folder, [file])).told, /already exists/)
    await done('backup', folder, [file, '--force'])
    assert.match((await maintain('backup', folder, [hub.settingsPath, '--force'])).told, /a file of the gateway itself/)
  })

  await t.test('is not restored under a running gateway', async () => {
    const { code, told } = await runBeside('restore', folder, [file, '--replace'])
    assert.equal(code, 1)
    assert.match(told, /Stop the gateway first/)
    await greets(hub)
  })
  await hub.stop()

  await t.test('is restored elsewhere', async (t) => {
    const elsewhere = await temporaryFolder(t)
    // An empty DB_URL alone does not keep it out of the database that DB_URL_FILE names.
    const url = join(elsewhere, 'url')
    await writeFile(url, `pglite://${join(elsewhere, 'live')}`)
    const refused = await maintain('restore', elsewhere, [file], { DB_URL: '', DB_URL_FILE: url })
    assert.equal(refused.code, 2, refused.told)
    assert.match(refused.told, /DB_URL is empty, and DB_URL_FILE names a database\. Set DB_URL_FILE= as well/)
    assert.deepEqual(await filesBelow(elsewhere), ['url'])
    const told = await doneBeside('restore', elsewhere, [file], { DB_URL: '', DB_URL_FILE: '' })
    assert.match(told, /^Restores the backup of .* to \S+mcp_settings\.json\.$/m)
    assert.match(told, /with 1 bundles/)
    await greets(await hubIn(t, elsewhere))
    assert.ok(!(await readFile(join(elsewhere, 'mcp_settings.json'), 'utf8')).includes(folder), 'the config names the new folder')
  })

  await t.test('is restored in its place, all of it', async (t) => {
    assert.match((await maintain('restore', folder, [file])).told, /--replace/)
    await rm(join(folder, '.tool-hub/bundles'), { recursive: true })
    await writeFile(join(folder, 'mcp_settings.json'), '{"mcpServers":{}}')
    await done('restore', folder, [file, '--replace'])
    await greets(await hubIn(t, folder))
    assert.deepEqual((await filesBelow(join(folder, '.tool-hub'))).filter((name) => name.startsWith('.')), [])
  })

  await t.test('is refused when it is damaged, before anything is touched', async (t) => {
    const elsewhere = await temporaryFolder(t)
    const whole = await readFile(file)
    const damaged = join(elsewhere, 'damaged.zip')
    const attempts = [whole.subarray(0, whole.length / 2), whole.subarray(0, -1), Buffer.from('no backup'), bundle]
    for (let each = 0; each < 6; each++) {
      const flipped = Buffer.from(whole)
      const place = Math.floor(whole.length * (each + 0.5) / 6)
      // More than what nobody reads, such as a time.
      for (let at = place; at < place + 16; at++) flipped[at] = (flipped[at] ?? 0) ^ 0x55
      attempts.push(flipped)
    }
    for (const bytes of attempts) {
      await writeFile(damaged, bytes)
      await assert.rejects(unpackBackup(damaged, join(elsewhere, 'work')), /cannot be used/)
      await rm(join(elsewhere, 'work'), { recursive: true, force: true })
    }
    const { code, told } = await maintain('restore', elsewhere, [damaged])
    assert.equal(code, 1, told)
    assert.match(told, /cannot be used/)
    assert.deepEqual(await filesBelow(elsewhere), ['damaged.zip'])
  })
})

test('what a bundle\'s server writes hinders no backup', async (t) => {
  const [folder, elsewhere] = [await temporaryFolder(t), await temporaryFolder(t)]
  const current = join(folder, '.tool-hub/bundles/greeter/version')
  const place = join(dirname(current), 'current/main.cjs')
  await writeFile(join(folder, 'mcp_settings.json'), JSON.stringify(settings({ greeter: { command: 'node', args: [place] } })), { mode: 0o600 })
  await mkdir(current, { recursive: true })
  await symlink('version', join(dirname(current), 'current'))
  for (const name of ['main.cjs', 'Aa', 'aa', 'a\\b', 'a\nb', '..\\x', 'server.log']) await writeFile(join(current, name), 'x'.repeat(100_000))
  await writeFile(Buffer.concat([Buffer.from(`${current}/`), Buffer.from([0xe9])]), 'x')
  for (const [name, target] of [['no bundle!', '.'], ['outside', folder]] as const) {
    await mkdir(join(folder, '.tool-hub/bundles', name))
    await symlink(target, join(folder, '.tool-hub/bundles', name, 'current'))
  }
  const file = join(elsewhere, 'backup.zip')
  let isWriting = true
  const write = (): void => {
    appendFileSync(join(current, 'server.log'), 'a line')
    if (isWriting) setImmediate(write)
  }
  write()
  const told = await done('backup', folder, [file]).finally(() => { isWriting = false })
  assert.match(told, /The bundle greeter has 5 files that are not in the backup/)
  const bundles = join(elsewhere, 'R$&D/bundles')
  await done('restore', elsewhere, [file], { DATA_DIR: dirname(bundles) })
  const restored: unknown = JSON.parse(await readFile(join(elsewhere, 'mcp_settings.json'), 'utf8'))
  assert.deepEqual(at(restored, 'mcpServers', 'greeter', 'args'), [join(bundles, 'greeter/current/main.cjs')])
  assert.deepEqual((await filesBelow(bundles)).filter((name) => !name.includes('/')), ['greeter'])
  const names = (await filesBelow(join(bundles, 'greeter/current'))).map((name) => name.toLowerCase())
  assert.deepEqual(names, ['aa', 'main.cjs', 'server.log'])
  // Files that root restores belong to the gateway's user, the owner of DATA_DIR.
  if (process.geteuid?.() !== 0) return
  const dataDir = join(folder, '.tool-hub')
  await chown(dataDir, 1001, 1001)
  await done('restore', folder, [file, '--replace'])
  for (const name of ['', 'greeter', 'greeter/current', 'greeter/current/main.cjs']) assert.equal((await lstat(join(dataDir, 'bundles', name))).uid, 1001)
})

test('an old backup revives no tokens of former passwords', async (t) => {
  const folder = await temporaryFolder(t)
  const passwords = new Passwords()
  const user = { username: 'ada', password: await passwords.hash('Former-123'), createdAt: '2026-01-01T00:00:00.000Z' } satisfies User
  const other = { username: 'bob', password: await passwords.hash('Same-1234'), createdAt: '2026-01-01T00:00:00.000Z', isAdmin: true } satisfies User
  const token = (hash: string, of: User): Json => {
    const [key, expiresAt] = [hash.repeat(64), Date.now() + 3_600_000]
    const value = { hash: key, kind: 'refresh', family: hash, clientId: 'c', username: of.username, mark: accountMarkOf(of), scope: 'mcp', expiresAt }
    return { key, version: 'v', owner: hash, labels: [], at: 1, changedAt: 1, expiresAt, value }
  }
  const file = join(folder, 'mcp_settings.json')
  const write = async (document: object): Promise<void> => { await writeFile(file, JSON.stringify(document), { mode: 0o600 }) }
  const read = async (): Promise<{ users: User[], oauthTokens?: Json[], upstreamTokens?: Json[] }> => JSON.parse(await readFile(file, 'utf8'))
  const upstreamTokens = [{ key: 'guarded client', version: 'v', labels: [], at: 1, changedAt: 1, data: { secret: '{} ' }, sealed: null }]
  await write({ mcpServers: {}, users: [user, other], oauthTokens: [token('a', user), token('b', other), token('c', other)], upstreamTokens })
  const archive = join(folder, 'old.zip')
  await done('backup', folder, [archive])

  await t.test('where the present is known: the password was changed, and a token revoked', async () => {
    // The token of the former password was not removed, only of no use.
    await write({
      mcpServers: {},
      users: [{ ...user, password: await passwords.hash('Newer-123') }, { ...other, isAdmin: false, demotedAt: '2026-02-01T00:00:00.000Z' }],
      oauthTokens: [token('a', user), token('b', other)],
      upstreamTokens
    })
    await done('restore', folder, [archive, '--replace'])
    const { users: [ada, bob], oauthTokens, upstreamTokens: logins } = await read()
    assert.deepEqual(logins, upstreamTokens, 'logins at servers')
    assert.ok(ada && bob)
    assert.equal(ada.password, user.password)
    assert.notEqual(accountMarkOf(ada), accountMarkOf(user), 'tokens and logins of that time do not fit the account')
    assert.equal(accountMarkOf(bob), accountMarkOf(other), 'who kept the password stays logged in')
    assert.deepEqual([bob.isAdmin, rightsMarkOf(bob) === rightsMarkOf(other)], [true, false], 'what an admin allowed before a demotion')
    assert.deepEqual(oauthTokens?.map(({ owner }) => owner), ['a', 'b'], 'what was revoked stays revoked')
  })

  await t.test('where the present is not known', async () => {
    await rm(file)
    await done('restore', folder, [archive])
    const { users, oauthTokens } = await read()
    assert.ok(users.every((each, at) => accountMarkOf(each) !== accountMarkOf([user, other][at] ?? each)))
    assert.equal(oauthTokens?.length ?? 0, 0)
  })

  await t.test('unless the operator vouches for it', async () => {
    await rm(file)
    await done('restore', folder, [archive, '--keep-tokens'])
    const { users, oauthTokens } = await read()
    assert.deepEqual(users.map(accountMarkOf), [user, other].map(accountMarkOf))
    assert.equal(oauthTokens?.length, 3)
  })
})

const empty = async (t: Test): Promise<Database> => await database(t, undefined, { tables: false })

test('a settings file that is restored to a database: who kept the password stays logged in', async (t) => {
  const folder = await temporaryFolder(t)
  const [file, archive, env] = [join(folder, 'mcp_settings.json'), join(folder, 'old.zip'), { DB_URL: (await empty(t)).url }]
  const users = ['ada', 'bob'].map((username): User =>
    ({ username, password: `$2b$04$${'a'.repeat(53)}`, createdAt: '2026-01-01T00:00:00.000Z', isAdmin: true }))
  const write = async (some: unknown[]): Promise<void> => { await writeFile(file, JSON.stringify({ mcpServers: {}, users: some })) }
  const run = async (...command: string[]): Promise<string> => {
    const { code, out, err } = await cli(envOf(folder, env))(...command)
    assert.equal(code, 0, out + err)
    return out
  }
  const staysLoggedIn = async (): Promise<boolean[]> => {
    const { users: stored } = JSON.parse(await run('db', 'export', '-')) as { users: User[] }
    return users.map((each, at) => accountMarkOf(each) === accountMarkOf(stored[at] ?? each))
  }
  await write(users)
  await done('backup', folder, [archive])
  await run('restore', archive, '--keep-tokens')
  assert.deepEqual(await staysLoggedIn(), [true, true], 'the operator vouches for it')
  await write([{ ...users[0], password: `$2b$04$${'b'.repeat(53)}` }, users[1]])
  await run('db', 'import', '--replace')
  await run('restore', archive, '--replace')
  assert.deepEqual(await staysLoggedIn(), [false, true])
})

test('PostgreSQL', async (t) => {
  const folder = await temporaryFolder(t)
  const [{ url, query }, second, third] = [await database(t), await empty(t), await empty(t)]
  const env = { DB_URL: url }
  const dataDir = join(folder, '.tool-hub')
  const hub = await hubIn(t, folder, { settings: settings({}), env })
  await addGreeter(hub)
  await greets(hub)
  const [plain, withKey] = [join(folder, 'plain.zip'), join(folder, 'with-key.zip')]

  await t.test('is backed up while the gateway runs, and says what needs the key', async () => {
    const told = await doneBeside('backup', folder, [plain], env)
    assert.match(told, /Without the key.*cannot be decrypted/)
    assert.match(await done('backup', folder, [withKey, '--with-key'], env), /contains the key file/)
  })

  await t.test('is not restored under a running gateway', async () => {
    const { code, told } = await runBeside('restore', folder, [plain, '--replace'], env)
    assert.equal(code, 1)
    assert.match(told, /gateways use the database/)
  })
  await hub.stop()

  await t.test('is restored in its place', async (t) => {
    await query('delete from servers')
    await query(`insert into records (id, collection, version, value, labels, at, changed, expires)
      values ('oauthTokens/later', 'oauthTokens', 'v', '{}', '{}', now(), now(), now() + interval '1 hour')`)
    assert.match((await maintain('restore', folder, [plain], env)).told, /--replace/)
    await query("insert into audit (id, timestamp, username, action, entity, name, data) values (gen_random_uuid(), 1, 'eve', 'create', 'user', 'x', '{}')")
    await query('insert into activity_hours (hour, hash, server, tool, status, calls, duration) values (1, 1, 1, 1, 1, 1, 1)')
    const logged = await query<{ id: string }>('select id from audit order by number')
    await doneBeside('restore', folder, [plain, '--replace'], env)
    assert.equal((await query("select * from records where collection = 'oauthTokens'")).length, 1, 'tokens that there are stay')
    const kept = await query<{ id: string, entity: string }>('select id, entity from audit order by number')
    assert.deepEqual(kept.slice(0, -1).map(({ id }) => id), logged.map(({ id }) => id), 'the audit log is as it was')
    assert.equal(kept.at(-1)?.entity, 'backup', '... and says that a backup was restored')
    const again = await hubIn(t, folder, { env })
    await greets(again)
    const { data } = await askHub(again, 'GET', '/api/audit?entity=backup') as { data: Array<{ after?: unknown }> }
    assert.equal(typeof at(data[0]?.after, 'createdAt'), 'string', JSON.stringify(data))
    await again.stop()
  })

  await t.test('is not restored where its secrets cannot be opened, unless that is accepted', async () => {
    await rm(join(dataDir, 'encryption.key'))
    const into = { DB_URL: second.url, DATA_DIR: dataDir }
    const { code, told } = await maintain('restore', folder, [plain], into)
    assert.equal(code, 1)
    assert.match(told, /cannot be decrypted here: \d+ of key [0-9a-f]{8}\. Set ENCRYPTION_KEY to their key, .*--without-key/)
    const wrong = await maintain('restore', folder, [plain], { ...into, ENCRYPTION_KEY: 'b'.repeat(64) })
    assert.equal(wrong.code, 1)
    assert.match(wrong.told, /ENCRYPTION_KEY does not match: set it to their key, or append that key after a comma/)
    assert.deepEqual(await second.query("select to_regclass('servers') as found"), [{ found: null }], 'not even the tables were made')
    assert.match(await done('restore', folder, [plain, '--without-key'], into), /cannot be decrypted until/)
    assert.equal((await second.query('select * from servers')).length, 1)
  })

  await t.test('is restored with its key into another database', async (t) => {
    const into = { DB_URL: third.url, DATA_DIR: dataDir }
    await done('restore', folder, [withKey], into)
    assert.equal((await stat(join(dataDir, 'encryption.key'))).mode & 0o777, 0o600)
    const restored = await hubIn(t, folder, { env: into })
    await greets(restored)
    assert.equal((await third.query('select * from activity_hours')).length, 0, 'no sums of calls that are not there')
    const before = await third.query<{ number: string }>('select number from audit order by number')
    await askHub(restored, 'POST', '/api/servers/greeter/toggle', { enabled: false })
    await until(async () => (await third.query('select number from audit')).length > before.length)
    const [newest] = await third.query<{ entity: string }>('select entity from audit order by number desc limit 1')
    assert.equal(newest?.entity, 'server', 'new entries follow the restored ones')
    await restored.stop()
  })

  await t.test('takes nothing of a backup that fails on the way', async () => {
    const before = await filesBelow(join(dataDir, 'bundles'))
    await third.query('alter table bearer_keys drop column alias')
    const { code } = await maintain('restore', folder, [withKey, '--replace'], { DB_URL: third.url, DATA_DIR: dataDir })
    assert.equal(code, 1)
    assert.equal((await third.query('select * from servers')).length, 1)
    assert.deepEqual(await filesBelow(join(dataDir, 'bundles')), before)
  })

  await t.test('takes the backup of a settings file', async (t) => {
    const from = await temporaryFolder(t)
    await writeFile(join(from, 'mcp_settings.json'), JSON.stringify(settings({ quiet: { command: 'true', enabled: false, env: { A: 'canary' } } })))
    await chmod(join(from, 'mcp_settings.json'), 0o600)
    const archive = join(from, 'file.zip')
    await done('backup', from, [archive])
    await done('restore', from, [archive, '--replace'], { DB_URL: second.url })
    const [row] = await second.query<{ name: string, data: Json }>('select * from servers')
    assert.equal(row?.name, 'quiet')
    assert.match(String(at(row?.data, 'env', 'A')), /••••/)
    assert.ok(existsSync(join(from, '.tool-hub/encryption.key')))
  })

  await t.test('tells wrong usage by its exit code', async () => {
    for (const args of [['a', 'b'], ['--nothing']]) assert.equal((await maintain('restore', folder, args)).code, 2)
    const { code, told } = await maintain('restore', folder, [join(folder, 'absent.zip')])
    assert.equal(code, 1)
    assert.match(told, /does not exist/)
  })

  await t.test('goes into no settings file', async (t) => {
    assert.match((await maintain('restore', await temporaryFolder(t), [withKey])).told, /backup of a database/)
  })
})
