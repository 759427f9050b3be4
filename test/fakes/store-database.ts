import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openStorage } from '../../db/open.ts'
import type { Change, Storage, Store } from '../../db/store.ts'
import { change, type Open, type Opened } from '../contracts/store.ts'
import { database, pglite, type Cluster, type Database } from '../helpers/database.ts'
import type { Cleanup } from '../helpers/hub.ts'
import { temporaryFolder } from './store-file.ts'
import { vault } from './replica.ts'

export interface OpenedDatabase extends Opened {
  url: string
  warnings: string[]
  /** Another storage on the same data, closed after the test. */
  another: () => Promise<Storage>
}

/** Storage on a database that is there, for the caller to close. */
export const openAt = async (
  dbUrl: string, settingsPath = '/nonexistent/mcp_settings.json', warn: (sentence: string) => void = () => {}
): Promise<Storage> => await openStorage({ settingsPath, dbUrl, startupTimeout: 60_000, vault: await vault(), warn, info: () => {} })

/** Storage on a database, seeded from a settings file that may be absent. */
async function open (t: Cleanup, url: string, settings: object | undefined): Promise<OpenedDatabase> {
  const settingsPath = join(await temporaryFolder(t), 'mcp_settings.json')
  if (settings !== undefined) await writeFile(settingsPath, JSON.stringify(settings))
  const warnings: string[] = []
  const opened: Storage[] = []
  t.after(async () => { for (const { store } of opened) await store.close() })
  const another = async (): Promise<Storage> => {
    const storage = await openAt(url, settingsPath, (sentence) => { warnings.push(sentence) })
    opened.push(storage)
    return storage
  }
  let { store } = await another()
  let stranger: Promise<Storage> | undefined
  return {
    url,
    warnings,
    another,
    store,
    reopen: async () => {
      await store.close()
      return (store = (await another()).store)
    },
    elsewhere: async (changes) => { await change((await (stranger ??= another())).store, () => changes) }
  }
}

/** A store on a PostgreSQL database of its own. @param on the cluster to make it in; none: the one that all tests share */
export async function openPostgres (t: Cleanup, settings?: object, on?: Cluster): Promise<OpenedDatabase & Pick<Database, 'query'>> {
  const { url, query } = await database(t, on)
  return { ...await open(t, url, settings), query }
}

/** A store on an embedded database. Nobody else can open its folder: `elsewhere` is the store itself. */
export async function openPglite (t: Cleanup, settings?: object): Promise<OpenedDatabase & { folder: string }> {
  const { url, folder } = await pglite(t)
  const opened = await open(t, url, settings)
  let { store } = opened
  return {
    ...opened,
    folder,
    reopen: async (): Promise<Store> => (store = await opened.reopen()),
    elsewhere: async (changes: readonly Change[]) => { await change(store, () => changes) }
  }
}

/** Removes all that a store holds. @throws Invalid where it must keep an admin */
async function empty (store: Store): Promise<void> {
  const sections = { mcpServers: 'servers', groups: 'groups', bearerKeys: 'keys', users: 'users', prompts: 'prompts', resources: 'resources' } as const
  await change(store, (snapshot) => [
    { entity: 'systemConfig', value: {} },
    ...Object.entries(sections).flatMap(([entity, section]) =>
      [...snapshot[section].keys()].map((key) => ({ entity, key, value: undefined }) as Change))
  ])
}

/**
 * One test after another on one database, since making and opening one takes longer than most tests. A test that seeds it, or leaves what
 * cannot be removed, has one of its own.
 * @param open makes a database, and opens a store on it
 * @param end after the last test
 */
export function inTurn (open: (t: Cleanup, settings?: object) => Promise<Opened>, end: Cleanup): Open {
  interface Held { opened: Opened, store: Store, remove: () => Promise<void> }
  let left: Held | undefined
  end.after(async () => { await left?.remove() })
  const make = async (): Promise<Held> => {
    const steps: Array<() => unknown> = []
    const opened = await open({ after: (step) => { steps.push(step) } })
    return { opened, store: opened.store, remove: async () => { for (const step of steps.reverse()) await step() } }
  }
  return async (t, settings) => {
    if (settings !== undefined) return await open(t, settings)
    const held = left ?? await make()
    left = undefined
    t.after(async () => {
      try {
        await empty(held.store)
        left = held
      } catch { await held.remove() }
    })
    return { ...held.opened, store: held.store, reopen: async () => (held.store = await held.opened.reopen()) }
  }
}
