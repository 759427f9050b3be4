import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { applyChanges, type SettingsDocument } from '../../db/apply.ts'
import { JsonFileStore } from '../../db/json/file.ts'
import type { Store } from '../../db/store.ts'
import type { Opened } from '../contracts/store.ts'
import type { Cleanup } from '../helpers/hub.ts'

export interface OpenedFile extends Opened {
  folder: string
  path: string
  warnings: string[]
  /** The file, parsed. */
  document: () => Promise<SettingsDocument>
}

/** A folder that goes after the test. */
export async function temporaryFolder (t: Cleanup): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-store-'))
  // A gateway whose port is closed may still be writing its last file.
  t.after(async () => { await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }) })
  return folder
}

/** A store on a settings file in a folder of its own. @param settings an object as JSON, anything else as it is; nothing: no file */
export async function openFile (t: Cleanup, settings?: object | string | Buffer): Promise<OpenedFile> {
  const folder = await temporaryFolder(t)
  const path = join(folder, 'mcp_settings.json')
  if (settings !== undefined) {
    await writeFile(path, typeof settings === 'string' || Buffer.isBuffer(settings) ? settings : JSON.stringify(settings, null, 2))
  }
  const warnings: string[] = []
  const open = async (): Promise<Store> => new JsonFileStore(path, (sentence) => { warnings.push(sentence) })
  let store = await open()
  t.after(async () => { await store.close() })
  const document = async (): Promise<SettingsDocument> => JSON.parse(await readFile(path, 'utf8').catch(() => '{}')) as SettingsDocument
  return {
    folder,
    path,
    warnings,
    document,
    store,
    reopen: async () => {
      await store.close()
      return (store = await open())
    },
    elsewhere: async (changes) => { await writeFile(path, JSON.stringify(applyChanges(await document(), changes))) }
  }
}
