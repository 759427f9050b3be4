import { MemoryCounters } from './memory/counters.ts'
import { FileClients } from './json/clients.ts'
import { JsonFileStore } from './json/file.ts'
import { FileRecords } from './json/records.ts'
import type { SectionAccess } from './json/section.ts'
import { MemoryVectors } from './memory/vectors.ts'
import type { OpenedVectorStore } from './ports/vectors.ts'
import { FileUsageCounts } from './json/usage.ts'
import { createRecordPorts } from './record-ports.ts'
import { readSeed, type Seed } from './seed.ts'
import type { StorageAdapter, Storage, Store, Vault } from './store.ts'

interface StorageOptions {
  /** The path of the settings file. With a database, the file only provides the content of a database that is empty. */
  settingsPath: string
  /** The database to use instead of the file: `postgres://…`, or `pglite://<folder>`. */
  dbUrl?: string
  /**
   * The folder for usage and quota counters, used if there is no database. Without it, the counters are lost when the
   * process ends.
   */
  usageFolder?: string
  /** Max time to wait for the database at the start, in ms. */
  startupTimeout: number
  /** Encrypts secrets in the database, or records in the settings file, whose other sections are in plain text. */
  vault: Vault
  /**
   * Receives warnings as long as the storage is open, for example that an edit of the file is invalid, or that the
   * database is unavailable.
   */
  warn: (message: string) => void
  /** Receives a message when the start must wait for the database. */
  info: (message: string) => void
  /**
   * Whether the database must already exist, with content and tables of this version or a newer one: it is not created,
   * migrated or seeded, and a missing database is an error.
   */
  mustExist?: boolean
}

/**
 * Opens the storage: the database or, without `dbUrl`, the settings file. The caller then loads the settings with
 * `store.load`.
 * @throws Error when the database cannot be opened
 */
export async function openStorage (options: StorageOptions): Promise<Storage> {
  const { settingsPath, usageFolder, dbUrl, startupTimeout, vault, warn, info, mustExist = false } = options
  if (dbUrl === undefined) {
    return createFileStorage(new JsonFileStore(settingsPath, warn), vault, undefined, usageFolder)
  }
  // Imported on demand, so that the drivers are not loaded for settings in a file.
  const [{ openDatabase }, { PostgresStore }, { PostgresCounters }, { createPorts }] = await Promise.all([
    import('./postgres/open.ts'),
    import('./postgres/settings/store.ts'),
    import('./postgres/ports/counters.ts'),
    import('./postgres/ports/index.ts')
  ])
  const driver = await openDatabase({ dbUrl, startupTimeout, info, warn, mustExist })
  const seed = async (): Promise<Seed> => {
    if (mustExist) {
      throw new Error(
        `The database at ${driver.location} is empty: nothing has been stored in it. The first start of the gateway ` +
        '(tool-hub serve) initializes it.'
      )
    }
    return await readSeed(settingsPath)
  }
  const store = new PostgresStore({ driver, vault, warn, seed })
  const health = (): string | undefined => store.health()
  const ports = createPorts(driver, vault, health, async () => await store.reseal())
  return withRecordPorts({ store, counters: new PostgresCounters(driver, () => health() !== undefined), ...ports })
}

/**
 * Creates the storage of a gateway without a database: a settings file, and data in memory.
 * @param now the clock, in ms since 1970
 * @param usageFolder the folder for usage and quota counters; undefined keeps them in memory only
 */
export function createFileStorage (
  file: Store & SectionAccess, vault: Vault, now = () => Date.now(), usageFolder?: string
): Storage {
  const records = new FileRecords(file, vault, now)
  const counters = new MemoryCounters()
  const storage = withRecordPorts({
    store: file,
    records,
    clients: new FileClients({ file, records }),
    counters,
    resealing: records,
    vectors: new MemoryVectors(undefined, now)
  })
  return usageFolder === undefined
    ? storage
    : { ...storage, usage: new FileUsageCounts(usageFolder, counters, now) }
}

/** Adds the ports that store their data as records to the ports of a storage adapter. */
const withRecordPorts = ({ records, ...others }: StorageAdapter): Storage =>
  ({ ...others, ...createRecordPorts(records) })

/**
 * Opens the database of `smartRouting.dbUrl`, which is used for embeddings only, and creates the table of embeddings if
 * it does not exist.
 * @throws Error when the database cannot be opened; the message contains neither user nor password
 */
export async function openVectorStore (dbUrl: string): Promise<OpenedVectorStore> {
  const { openVectorDatabase } = await import('./postgres/open-vectors.ts')
  return await openVectorDatabase(dbUrl)
}
