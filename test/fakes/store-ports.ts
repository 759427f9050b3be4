import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { JsonFileStore } from '../../db/json/file.ts'
import { openStorage, createFileStorage } from '../../db/open.ts'
import type { Db, DatabaseDriver } from '../../db/postgres/connection/driver.ts'
import { PgliteDriver } from '../../db/postgres/connection/pglite.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import type { Storage, Vault } from '../../db/store.ts'
import type { OpenedPorts } from '../contracts/ports.ts'
import type { Cleanup } from '../helpers/hub.ts'
import { vault } from './replica.ts'
import { temporaryFolder } from './store-file.ts'

/** The columns with times of what expires. */
const times = {
  records: ['changed', 'expires'],
  vectors: ['used_at']
}
async function makeOlder (db: Db, ms: number): Promise<void> {
  for (const [table, columns] of Object.entries(times)) {
    const older = columns.map((column) => `${column} = ${column} - interval '${ms} milliseconds'`)
    await db.execute(sql.raw(`UPDATE ${table} SET ${older.join(', ')}`))
  }
}

/** Access to a database beside its storage. */
export async function driverOf (t: Cleanup, url: string): Promise<DatabaseDriver> {
  const driver = await openDatabase({ dbUrl: url, startupTimeout: 60_000, info: () => {}, warn: () => {} })
  t.after(async () => { await driver.end() })
  return driver
}

/** Opens storage, with the driver of an embedded database: its one connection is that of the newest storage. */
export async function openWithDriver (options: Parameters<typeof openStorage>[0]): Promise<{ storage: Storage, embedded?: PgliteDriver }> {
  let embedded: PgliteDriver | undefined
  const { migrate } = PgliteDriver.prototype
  PgliteDriver.prototype.migrate = async function (folder) { embedded = this; return await migrate.call(this, folder) }
  try {
    return { storage: await openStorage(options), embedded }
  } finally {
    PgliteDriver.prototype.migrate = migrate
  }
}

/** Storage on a settings file in a folder of its own, or on a database. */
export async function openPorts (
  t: Cleanup,
  dbUrl?: string,
  settings?: object,
  makeVault: () => Promise<Vault> = vault
): Promise<OpenedPorts & { path: string }> {
  const path = join(await temporaryFolder(t), 'mcp_settings.json')
  if (settings !== undefined) await writeFile(path, JSON.stringify(settings, null, 2))
  const opened: Storage[] = []
  t.after(async () => { for (const { store } of opened) await store.close() })
  let passed = 0
  let embedded: PgliteDriver | undefined
  const open = async (): Promise<Storage> => {
    const common = { warn: () => {}, vault: await makeVault() }
    if (dbUrl === undefined) return createFileStorage(new JsonFileStore(path, common.warn), common.vault, () => Date.now() + passed)
    const opened = await openWithDriver({ settingsPath: path, dbUrl, startupTimeout: 60_000, ...common, info: () => {} })
    embedded = opened.embedded
    return opened.storage
  }
  const another = async (): Promise<Storage> => {
    const storage = await open()
    opened.push(storage)
    await storage.store.load()
    return storage
  }
  const pass = async (ms: number): Promise<void> => {
    passed += ms
    if (embedded !== undefined) await makeOlder(embedded.db, ms)
    else if (dbUrl !== undefined) {
      const driver = await openDatabase({ dbUrl, startupTimeout: 60_000, info: () => {}, warn: () => {} })
      try { await makeOlder(driver.db, ms) } finally { await driver.end() }
    }
  }
  return { path, storage: await another(), another, pass, now: () => Date.now() + (dbUrl === undefined ? passed : 0) }
}
