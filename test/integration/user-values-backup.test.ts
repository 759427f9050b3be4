// Values that users give for servers, in backups.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { manage, managed } from '../fakes/replica.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { admin, as, give, isConnected, settingsOf, startValueServers, tell } from '../fakes/value-servers.ts'
import type { Json } from '../helpers/client.ts'
import { cli, envOf, maintain } from '../helpers/cli.ts'
import { database } from '../helpers/database.ts'
import { startHub, until } from '../helpers/hub.ts'

async function run (...command: Parameters<typeof maintain>): Promise<string> {
  const { code, told } = await maintain(...command)
  assert.equal(code, 0, told)
  return told
}

const [key, otherKey] = ['1'.repeat(64), '2'.repeat(64)]

/** A gateway whose values were taken back after a backup was made of it. */
async function startBackedUp (t: Test, env: Record<string, string>): Promise<{ folder: string, file: string, header: Json }> {
  const { configs: { header } } = await startValueServers(t)
  const hub = await startHub(t, { settings: settingsOf({ header }) as Record<string, Json>, env: { ENCRYPTION_KEY: key, ...env } })
  // A database begins with private servers.
  await managed(hub, 'PUT', '/servers/header', { config: { ...header, visibility: 'public' } }, admin)
  for (const user of ['ann', 'bob'] as const) await give(hub, user, { TOKEN: `canary-of-${user}` })
  await isConnected(hub)
  const file = join(hub.folder, 'backup.zip')
  await run('backup', hub.folder, [file], { ENCRYPTION_KEY: key, ...env })
  assert.equal((await manage(hub, 'DELETE', '/servers/header/my-variables', undefined, await as(hub, 'bob'))).status, 200)
  await hub.stop()
  return { folder: hub.folder, file, header: header as Json }
}

for (const store of ['a settings file', 'a database'] as const) {
  test(`${store} is restored with the values of users, which need its key`, async (t) => {
    const environment = async (tables: boolean): Promise<Record<string, string>> =>
      store === 'a database' ? { DB_URL: (await database(t, undefined, { tables })).url } : {}
    const env = { ENCRYPTION_KEY: key, ...await environment(true) }
    const { folder, file } = await startBackedUp(t, env)
    await run('restore', folder, [file, '--replace'], env)
    const restored = await startHub(t, { folder, env })
    await isConnected(restored)
    assert.equal(await tell(restored, 'bob'), 'Bearer canary-of-bob no note')
    await restored.stop()
    // Without the key they are locked, until the key is there again.
    const [elsewhere, there] = [await temporaryFolder(t), { ENCRYPTION_KEY: otherKey, ...await environment(false) }]
    await run('restore', elsewhere, [file, '--without-key'], there)
    const locked = await startHub(t, { folder: elsewhere, env: there })
    await until(async () => (await managed(locked, 'GET', '/servers/header', undefined, admin)).status === 'disconnected', locked.output)
    assert.match(await tell(locked, 'bob'), /set your values|requires values/)
    assert.deepEqual(await managed(locked, 'GET', '/servers/header/variables', undefined, admin), [])
    await locked.stop()
    const opened = await startHub(t, { folder: elsewhere, env: { ...there, ENCRYPTION_KEY: `${otherKey},${key}` } })
    await isConnected(opened)
    assert.equal(await tell(opened, 'bob'), 'Bearer canary-of-bob no note')
  })
}

test('the values of users go from a settings file into a database, by each way', async (t) => {
  const { folder, file, header } = await startBackedUp(t, {})
  const tool = async (url: string, ...command: string[]): Promise<void> => {
    const { code, out, err } = await cli(envOf(folder, { ENCRYPTION_KEY: key, DB_URL: url }))(...command)
    assert.equal(code, 0, out + err)
  }
  // A file that somebody has edited has entries twice, and times that no database has.
  const settingsFile = join(folder, 'mcp_settings.json')
  const document = JSON.parse(await readFile(settingsFile, 'utf8')) as { userValues: Json[] }
  const [ann] = document.userValues.filter(({ owner }) => owner === 'ann')
  document.userValues.push({ ...ann, version: 'again' }, { ...ann, key: 'late', at: 1e20 }, { ...ann, key: 'early', at: -8e15 })
  await writeFile(settingsFile, JSON.stringify(document))
  // The values of bob were taken back after the backup.
  const ways: Array<[users: string[], into: (url: string) => Promise<void>]> = [
    [['ann', 'bob'], async (url) => { await tool(url, 'restore', file) }],
    [['ann'], async (url) => { await tool(url, 'db', 'import') }],
    [['ann'], async () => {}]
  ]
  for (const [users, into] of ways) {
    const { url } = await database(t, undefined, { tables: false })
    await into(url)
    const hub = await startHub(t, { folder, env: { ENCRYPTION_KEY: key, DB_URL: url } })
    await managed(hub, 'PUT', '/servers/header', { config: { ...header, visibility: 'public' } }, admin)
    const stored = await managed(hub, 'GET', '/servers/header/variables', undefined, admin) as unknown as Json[]
    assert.deepEqual(stored.map(({ username }) => username).sort(), users)
    await isConnected(hub)
    if (users.includes('bob')) assert.equal(await tell(hub, 'bob'), 'Bearer canary-of-bob no note')
    await hub.stop()
  }
  const { url } = await database(t, undefined, { tables: false })
  const { code, err } = await cli(envOf(folder, { ENCRYPTION_KEY: otherKey, DB_URL: url }))('db', 'import')
  assert.equal(code, 0, err)
  assert.match(err, /Cannot be decrypted and left out: 1 of the users' values for servers/)
})
