// The settings on an embedded PostgreSQL, in the gateway's own process: the contract of all stores, and one process only.
import assert from 'node:assert/strict'
import { chmod, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'tap'
import { PGlite } from '@electric-sql/pglite'
import { openStorage } from '../../db/open.ts'
import type { Storage } from '../../db/store.ts'
import { storeContract } from '../contracts/store.ts'
import { emptyFolder, pglite } from '../helpers/database.ts'
import { vault } from '../fakes/replica.ts'
import { openPglite } from '../fakes/store-database.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

const timeout = 90_000

// The first one takes seconds, and no test shall pay for it.
before(emptyFolder)

storeContract('PGlite', openPglite, { alone: true, model: false })

const openAt = async (dbUrl: string): Promise<Storage> =>
  await openStorage({
    settingsPath: '/nonexistent/mcp_settings.json',
    dbUrl,
    startupTimeout: 10_000,
    vault: await vault(),
    warn: () => {},
    info: () => {}
  })

void test('PGlite: migrations that were noted under Drizzle\'s own name are taken over', { timeout }, async (t) => {
  const { url, folder } = await pglite(t)
  await chmod(folder, 0o755)
  const engine = await PGlite.create(folder)
  await engine.exec('ALTER TABLE drizzle.tool_hub_migrations RENAME TO __drizzle_migrations')
  await engine.close()
  const { store } = await openAt(url)
  assert.equal((await store.load()).servers.size, 0)
  await store.close()
  assert.equal((await stat(folder)).mode & 0o777, 0o700, 'a folder that was open to everybody')
})

void test('PGlite: a folder that holds something else is refused, and left as it is', { timeout }, async (t) => {
  const folder = await temporaryFolder(t)
  const server = join(folder, 'server')
  await mkdir(server)
  for (const [path, names] of [[folder, ['server']], [server, ['PG_VERSION', 'postmaster.opts']]] as const) {
    if (path === server) for (const name of names) await writeFile(join(path, name), '18')
    await chmod(path, 0o755)
    await assert.rejects(
      openAt(`pglite://${path}`),
      (error: Error) => error.message.includes(path) && error.message.includes('holds something else')
    )
    assert.equal((await stat(path)).mode & 0o777, 0o755)
    assert.deepEqual(await readdir(path), names)
    await assert.rejects(stat(`${path}.lock`))
  }
  await assert.rejects(openAt(`pglite://${join(server, 'PG_VERSION')}`), /cannot be opened .*ENOTDIR/)
})

void test('PGlite: through a symbolic link the real folder is opened, and locked', { timeout }, async (t) => {
  const { folder } = await pglite(t)
  const link = join(await temporaryFolder(t), 'link')
  await symlink(folder, link)
  const { store } = await openAt(`pglite://${link}`)
  await store.load()
  await stat(`${folder}.lock`)
  await assert.rejects(openAt(`pglite://${folder}`), new RegExp(`in use by another process .pid ${process.pid}`))
  await store.close()
})
