import { MemoryCounters } from './memory/counters.ts'
import { FileClients } from './json/clients.ts'
import { JsonFileStore } from './json/file.ts'
import { FileRecords, withoutRecords } from './json/records.ts'
import type { SectionAccess } from './json/section.ts'
import { MemoryVectors } from './memory/vectors.ts'
import type { OpenedVectorStore } from './ports/vectors.ts'
import { Approvals } from './ports/approvals.ts'
import { EventWebhooks } from './ports/event-webhooks.ts'
import { OneTimeValues } from './ports/grants.ts'
import { Consents } from './ports/consents.ts'
import { ConsoleSessions } from './ports/console-sessions.ts'
import { LoginStates, UsedRequestStates } from './ports/login-states.ts'
import { RecordPinStore } from './ports/pins.ts'
import { Tasks } from './ports/tasks.ts'
import { OAuthTokens } from './ports/tokens.ts'
import { UsageCounts } from './ports/usage.ts'
import { FileUsageCounts } from './json/usage.ts'
import { UpstreamTokens } from './ports/upstream-tokens.ts'
import { UserValueRecords } from './ports/user-values.ts'
import { readSeed, type Seed } from './seed.ts'
import type { StorageAdapter, Storage, Store, Vault } from './store.ts'

interface StorageOptions {
  /** The path of the settings file. With a database, it only provides the content of an empty one. */
  settingsPath: string
  /** The database to use instead of the file: `postgres://…`, or `pglite://<folder>`. */
  dbUrl?: string
  /** The file for usage counters if there is no database; by default, the counters are lost when the process ends. */
  usagePath?: string
  /** Max time to wait for the database at the start, in ms. */
  startupTimeout: number
  /** Encrypts secrets in the database, and records in the settings file. Settings in the file are in plain text. */
  vault: Vault
  /**
   * Receives warnings at any time, such as that an edit of the file is invalid, or that the database is unavailable.
   */
  warn: (message: string) => void
  /** Receives a message when the start must wait for the database. */
  info: (message: string) => void
  /** Whether the database must exist and have content: it is then not created, migrated or seeded. */
  mustExist?: boolean
}

/**
 * Opens the storage: the database, or without `dbUrl` the settings file. The caller loads the settings with
 * `store.load`.
 * @throws Error with one sentence when it cannot be opened
 */
export async function openStorage (options: StorageOptions): Promise<Storage> {
  const { settingsPath, usagePath, dbUrl, startupTimeout, vault, warn, info, mustExist = false } = options
  if (dbUrl === undefined) return createFileStorage(new JsonFileStore(settingsPath, warn), vault, undefined, usagePath)
  // Imported on demand, so that the drivers are not loaded for settings in a file.
  const [
    { openDatabase, missingDatabaseMessage }, { PostgresStore }, { PostgresCounters }, { createPorts }
  ] = await Promise.all([
    import('./postgres/open.ts'),
    import('./postgres/settings/store.ts'),
    import('./postgres/ports/counters.ts'),
    import('./postgres/ports/index.ts')
  ])
  const driver = await openDatabase({ dbUrl, startupTimeout, info, warn, mustExist })
  const seed = async (): Promise<Seed> => {
    if (mustExist) throw new Error(missingDatabaseMessage(driver.location))
    const { document, messages } = await readSeed(settingsPath)
    return { document: withoutRecords(document), messages }
  }
  const store = new PostgresStore({ driver, vault, warn, seed })
  const health = (): string | undefined => store.health()
  const ports = createPorts(driver, vault, health, async () => await store.reseal())
  return withRecordPorts({ store, counters: new PostgresCounters(driver, () => health() !== undefined), ...ports })
}

/**
 * Creates the storage on a settings file.
 * @param now the clock, in ms since 1970
 * @param usagePath as in `StorageOptions`
 */
export function createFileStorage (
  file: Store & SectionAccess, vault: Vault, now = () => Date.now(), usagePath?: string
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
  return usagePath === undefined
    ? storage
    : { ...storage, usage: new FileUsageCounts(usagePath, records, counters, now) }
}

/** Adds the ports that store their data as records to the ports of an adapter. */
function withRecordPorts ({ records, ...others }: StorageAdapter): Storage {
  return {
    ...others,
    grants: new OneTimeValues(records),
    tokens: new OAuthTokens(records),
    consents: new Consents(records),
    loginStates: new LoginStates(records),
    consoleSessions: new ConsoleSessions(records),
    usedStates: new UsedRequestStates(records),
    upstreamTokens: new UpstreamTokens(records),
    userValues: new UserValueRecords(records),
    approvals: new Approvals(records),
    eventWebhooks: new EventWebhooks(records),
    tasks: new Tasks(records),
    ...records.outlivesProcess ? { pins: new RecordPinStore(records) } : {},
    usage: new UsageCounts(records)
  }
}

/**
 * Opens the database of `smartRouting.dbUrl` for embeddings only, and creates their table if it does not exist.
 * @throws Error with one sentence, without user and password, when it cannot be opened
 */
export async function openVectorStore (dbUrl: string): Promise<OpenedVectorStore> {
  const { openVectorDatabase } = await import('./postgres/open-vectors.ts')
  return await openVectorDatabase(dbUrl)
}
