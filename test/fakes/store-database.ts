import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { openStorage } from '../../db/open.ts'
import type { Change, Storage, Store } from '../../db/store.ts'
import type { PgliteDriver } from '../../db/postgres/connection/pglite.ts'
import { change, type Open, type Opened } from '../contracts/store.ts'
import { database, pglite, type Cluster, type Database } from '../helpers/database.ts'
import type { Cleanup } from '../helpers/hub.ts'
import { temporaryFolder } from './store-file.ts'
import { openWithDriver } from './store-ports.ts'
import { vault } from './replica.ts'

export interface OpenedDatabase extends Opened {
  url: string
  warnings: string[]
  /** Another storage on the same data, closed after the test. */
  another: () => Promise<Storage>
  /** Removes all users past the store, which keeps an admin. */
  forgetUsers: () => Promise<unknown>
}

const optionsOf = async (
  dbUrl: string, settingsPath: string, warn: (sentence: string) => void
): Promise<Parameters<typeof openStorage>[0]> =>
  ({ settingsPath, dbUrl, startupTimeout: 60_000, vault: await vault(), warn, info: () => {} })

/** Storage on a database that is there, for the caller to close. */
export const openAt = async (
  dbUrl: string, settingsPath = '/nonexistent/mcp_settings.json', warn: (sentence: string) => void = () => {}
): Promise<Storage> => await openStorage(await optionsOf(dbUrl, settingsPath, warn))

const withoutUsers = 'WITH gone AS (DELETE FROM users) UPDATE revision SET version = version + 1, head = gen_random_uuid()'

/** Storage on a database, seeded from a settings file that may be absent. */
async function open (
  t: Cleanup, url: string, settings: object | undefined, query?: Database['query']
): Promise<OpenedDatabase> {
  const settingsPath = join(await temporaryFolder(t), 'mcp_settings.json')
  if (settings !== undefined) await writeFile(settingsPath, JSON.stringify(settings))
  const warnings: string[] = []
  const opened: Storage[] = []
  t.after(async () => { for (const { store } of opened) await store.close() })
  let embedded: PgliteDriver | undefined
  const another = async (): Promise<Storage> => {
    const made = await openWithDriver(await optionsOf(url, settingsPath, (sentence) => { warnings.push(sentence) }))
    embedded = made.embedded
    opened.push(made.storage)
    return made.storage
  }
  let { store } = await another()
  let stranger: Promise<Storage> | undefined
  return {
    url,
    warnings,
    another,
    store,
    forgetUsers: async () => await (query?.(withoutUsers) ?? embedded?.db.execute(sql.raw(withoutUsers))),
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
  return { ...await open(t, url, settings, query), query }
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

/** Removes all that a store holds. */
async function empty (store: Store, forgetUsers: () => Promise<unknown>): Promise<void> {
  if ((await store.load()).users.size > 0) {
    await forgetUsers()
    await store.load()
  }
  const sections = { mcpServers: 'servers', groups: 'groups', bearerKeys: 'keys', prompts: 'prompts', resources: 'resources' } as const
  await change(store, (snapshot) => [
    { entity: 'systemConfig', value: {} },
    ...Object.entries(sections).flatMap(([entity, section]) =>
      [...snapshot[section].keys()].map((key) => ({ entity, key, value: undefined }) as Change))
  ])
}

/**
 * One test after another on one database, since making and opening one takes longer than most tests. A test that seeds it, or closes the
 * store, has one of its own.
 * @param open makes a database, and opens a store on it
 * @param end after the last test
 */
export function inTurn (open: (t: Cleanup, settings?: object) => Promise<OpenedDatabase>, end: Cleanup): Open {
  interface Held { opened: OpenedDatabase, store: Store, remove: () => Promise<void> }
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
        await empty(held.store, held.opened.forgetUsers)
        left = held
      } catch { await held.remove() }
    })
    return { ...held.opened, store: held.store, reopen: async () => (held.store = await held.opened.reopen()) }
  }
}
