import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openStorage } from '../../db/open.ts'
import type { Storage, Vault } from '../../db/store.ts'
import type { OpenedPorts } from '../contracts/ports.ts'
import type { Cleanup } from '../helpers/hub.ts'
import { vault } from './replica.ts'
import { temporaryFolder } from './store-file.ts'

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
  const another = async (): Promise<Storage> => {
    const storage = await openStorage({
      settingsPath: path,
      dbUrl,
      startupTimeout: 10_000,
      vault: await makeVault(),
      warn: () => {},
      info: () => {}
    })
    opened.push(storage)
    await storage.store.load()
    return storage
  }
  return { path, storage: await another(), another }
}
