import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../errors.ts'
import { packagePath } from '../../package.ts'
import type { DatabaseDriver } from './connection/driver.ts'
import { assertUsableFolder, PgliteDriver } from './connection/pglite.ts'
import { PostgresJsDriver } from './connection/postgres-js.ts'
import { migrationStateOf } from './connection/migrations.ts'
import { parseDatabaseUrl } from './connection/address.ts'
import { databaseErrorCode, describeFailure, isPermanentFailure, isDatabaseUnavailable } from './connection/failures.ts'

const migrationsFolder = packagePath('db/migrations')

/** How long the start waits for the database before it logs that it waits, in ms. */
const reportAfter = 1_000

/** Why the start waits for an embedded database, as a clause. */
const preparationReason = 'its tables are being checked and updated'

interface DatabaseOptions {
  /** `postgres://…`, or `pglite://<folder>`. */
  dbUrl: string
  /** Max time to wait for the database, in ms. */
  startupTimeout: number
  /** Receives a message when the start must wait for the database. */
  info: (message: string) => void
  /** Receives warnings for the operator. */
  warn: (message: string) => void
  /**
   * Whether the database must already have tables, of this version or a newer one. If so, none are created or changed.
   */
  mustExist?: boolean
}

/**
 * Opens a database, and creates or updates its tables; with `mustExist`, it only checks the tables.
 * @throws Error whose message contains neither user nor password
 */
export async function openDatabase (
  { dbUrl, startupTimeout, info, warn, mustExist = false }: DatabaseOptions
): Promise<DatabaseDriver> {
  const driver = await openDriver(dbUrl, mustExist)
  const prepare = async (onWait: () => void): Promise<boolean> =>
    mustExist ? await assertTables(driver) : await driver.migrate(migrationsFolder, onWait)
  try {
    if (await prepareWithRetries(driver, prepare, startupTimeout, info)) {
      warn(
        `A newer version of Tool-Hub has updated the tables in the database at ${driver.location}. Any change by ` +
        'this version can lose data of the newer version: use the newer version again, or an older backup.'
      )
    }
    return driver
  } catch (error) {
    await driver.end()
    throw error
  }
}

/** The error for a database that can be reached, but whose tables are missing or outdated. */
class UnusableDatabaseError extends Error {}

/**
 * Checks that the tables exist, and are of this version or a newer one.
 * @returns whether a newer version of Tool-Hub has changed the tables
 * @throws UnusableDatabaseError when the tables are missing, or of an older version
 */
async function assertTables (driver: DatabaseDriver): Promise<boolean> {
  const found = await migrationStateOf(driver.db, migrationsFolder)
  if (found === 'none') throw new UnusableDatabaseError(missingDatabaseMessage(driver.location))
  if (found === 'older') {
    throw new UnusableDatabaseError(
      `The tables in the database at ${driver.location} are from an older version, and were not changed. ` +
      'Start the gateway once to update them, or use the older version.'
    )
  }
  return found === 'newer'
}

/** Returns the error message for a location at which there is no database of Tool-Hub. */
const missingDatabaseMessage = (location: string): string =>
  `There is no Tool-Hub database at ${location}, and none was created. Check DB_URL, and that its user may read the ` +
  'tables; the first start of the gateway (tool-hub serve) creates them.'

/**
 * Opens the driver of a database, without creating or checking tables. A PostgreSQL server is contacted by the first
 * query.
 * @param mustExist whether an embedded database must exist; by default, its folder is created if it does not exist
 * @throws Error when the URL or the folder cannot be used
 */
export async function openDriver (dbUrl: string, mustExist = false): Promise<DatabaseDriver> {
  const folder = folderOf(dbUrl)
  if (folder === undefined) return new PostgresJsDriver(dbUrl)
  if (mustExist && !existsSync(join(folder, 'PG_VERSION'))) throw new Error(missingDatabaseMessage(folder))
  return await PgliteDriver.open(folder)
}

/** Checks a DB_URL without opening the database. @throws Error when the URL or its folder cannot be used */
export async function assertDatabaseUrl (dbUrl: string): Promise<void> {
  const folder = folderOf(dbUrl)
  if (folder === undefined) parseDatabaseUrl(dbUrl)
  else await assertUsableFolder(folder)
}

/** Returns the folder of an embedded database; undefined for the URL of a server. @throws Error for any other URL */
function folderOf (dbUrl: string): string | undefined {
  const [, folder] = /^pglite:\/\/(.*)$/s.exec(dbUrl) ?? []
  if (folder === '') throw new Error('DB_URL does not name a folder for the embedded database: pglite://<folder>')
  if (folder !== undefined) return resolve(folder)
  if (/^postgres(ql)?:\/\//.test(dbUrl)) return undefined
  throw new Error(
    'DB_URL has an unknown scheme: use postgres://… for a server, or pglite://<folder> for an embedded database.'
  )
}

/**
 * Prepares the tables of a database, with retries while the database is unavailable.
 * @param prepare creates, updates or checks the tables; returns whether a newer version of Tool-Hub has changed them
 * @returns the result of `prepare`
 * @throws Error when the database cannot be used, or is not available in time
 */
async function prepareWithRetries (
  driver: DatabaseDriver,
  prepare: (onWait: () => void) => Promise<boolean>,
  startupTimeout: number,
  info: (message: string) => void
): Promise<boolean> {
  const end = Date.now() + startupTimeout
  let isReported = false
  const report = (reason: string): void => {
    if (!isReported) {
      info(
        `waiting for ${driver.isEmbedded ? 'the embedded database in' : 'PostgreSQL at'} ${driver.location} (${reason})`
      )
    }
    isReported = true
  }
  for (let tries = 0; ; tries++) {
    let waitsForReplica = false
    const timeout = new AbortController()
    // Each attempt gets at least a second, since the failure of the last one is reported.
    const left = Math.max(end - Date.now(), 1_000)
    const reporting = setTimeout(() => {
      report(waitsForReplica
        ? 'another replica is migrating the tables'
        : driver.isEmbedded ? preparationReason : 'no answer yet')
    }, reportAfter)
    const outcome = await Promise.race([
      prepare(() => { waitsForReplica = true }).then((isNewer) => ({ isNewer }), (error: unknown) => ({ error })),
      sleep(left, { error: Object.assign(new Error(), { code: 'ETIMEDOUT' }) }, { signal: timeout.signal })
    ])
    clearTimeout(reporting)
    timeout.abort()
    if ('isNewer' in outcome) return outcome.isNewer
    const { error } = outcome
    if (error instanceof UnusableDatabaseError) throw error
    if (isPermanentFailure(error)) {
      throw new Error(`PostgreSQL at ${driver.location} cannot be used: ${describeFailure(error)}. Check DB_URL.`)
    }
    if (!isDatabaseUnavailable(error)) {
      throw new Error(
        `The tables cannot be created in the database at ${driver.location}: ${describeMigrationFailure(error)}`
      )
    }
    const pause = Math.min(2_000, 200 * 2 ** tries, end - Date.now())
    if (pause <= 0) throw timeoutError(driver, startupTimeout, waitsForReplica ? undefined : error)
    report(describeFailure(error))
    await sleep(pause)
  }
}

/**
 * Creates the error for a database that was not ready in time.
 * @param error the failure of the last attempt; undefined if another replica was still migrating the tables
 */
function timeoutError ({ location, isEmbedded }: DatabaseDriver, startupTimeout: number, error: unknown): Error {
  const seconds = Math.round(startupTimeout / 100) / 10
  if (isEmbedded) {
    return new Error(
      `The embedded database in ${location} was not ready within ${seconds} s ` +
      `(${databaseErrorCode(error) === 'ETIMEDOUT' ? preparationReason : describeFailure(error)}). ` +
      'DB_STARTUP_TIMEOUT says how long to wait.'
    )
  }
  return new Error(
    error === undefined
      ? `Another replica has been migrating the tables in the database at ${location} for ${seconds} s. ` +
        'Check what delays it; DB_STARTUP_TIMEOUT says how long to wait.'
      : `PostgreSQL at ${location} could not be reached within ${seconds} s (${describeFailure(error)}). ` +
        'Start it, or check DB_URL; DB_STARTUP_TIMEOUT says how long to wait.'
  )
}

/** Describes a failed migration with the database's message, which is about tables and thus contains no secrets. */
function describeMigrationFailure (error: unknown): string {
  const code = databaseErrorCode(error)
  const message = messageOfCause(error)
  if (code === '42704' && /parameter/.test(message)) {
    return `DB_URL contains a parameter that PostgreSQL does not know: ${message}. Remove it from DB_URL.`
  }
  if (code === '42P07') return 'it contains other tables with the same names. Use a separate database for Tool-Hub.'
  return `${message}${code === undefined ? '' : ` (${code})`}.`
}

/** Returns the message of the database. Drizzle wraps the driver's error in an error of its own, as the `cause`. */
const messageOfCause = (error: unknown): string =>
  messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error)
