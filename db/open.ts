import { MemoryCounters } from './counters.ts'
import { JsonFileStore } from './json/file.ts'
import { FileTokens, withoutTokens } from './json/tokens.ts'
import { MemoryGrants } from './memory/grants.ts'
import { MemoryVectors } from './memory/vectors.ts'
import { seed } from './seed.ts'
import type { Storage, Vault } from './store.ts'

export interface StorageOptions {
  /** The settings file. A database that nothing was ever stored in begins with what it holds. */
  settingsPath: string
  /** A database instead of it: `postgres://…`, or `pglite://<folder>`. */
  dbUrl?: string
  /** How long to wait for the database at the start, in ms. */
  startupTimeout: number
  /** Keeps secrets out of the database's tables. The settings file has them in plain: people edit it. */
  vault: Vault
  /** Told in a sentence of what happens between calls: an edit on disk that cannot be used, a database that went away. */
  warn: (sentence: string) => void
  /** Told in a sentence of what is being waited for at the start. */
  info: (sentence: string) => void
}

/**
 * The storage that the environment asks for; its store is not loaded yet. The only place that knows there is more than one kind.
 * @throws Error with one clear sentence when it cannot be had
 */
export async function openStorage ({ settingsPath, dbUrl, startupTimeout, vault, warn, info }: StorageOptions): Promise<Storage> {
  if (dbUrl === undefined) {
    const store = new JsonFileStore(settingsPath, warn)
    return {
      store,
      counters: new MemoryCounters(),
      grants: new MemoryGrants(),
      tokens: new FileTokens(store),
      vectors: new MemoryVectors()
    }
  }
  // Loaded only now: who keeps settings in a file needs no driver in memory.
  const [{ openDatabase }, { PostgresStore }, { PostgresCounters }, { openPorts }] = await Promise.all([
    import('./postgres/open.ts'),
    import('./postgres/settings/store.ts'),
    import('./postgres/ports/counters.ts'),
    import('./postgres/ports/index.ts')
  ])
  const driver = await openDatabase({ dbUrl, startupTimeout, info, warn })
  const store = new PostgresStore({ driver, vault, warn, seed: async () => withoutTokens(await seed(settingsPath, warn)) })
  const health = (): string | undefined => store.health()
  return { store, counters: new PostgresCounters(driver, () => health() !== undefined), ...openPorts(driver, vault, health) }
}
