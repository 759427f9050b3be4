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

/** How long the start waits for the database before it logs that, in ms. */
const reportAfter = 1_000

/** Why the start waits for an embedded database, as a clause. */
const preparationReason = 'its tables are being checked and updated'

interface DatabaseOptions {
  /** `postgres://…`, or `pglite://<folder>`. */
  dbUrl: string
  /** Max time to wait for the database, in ms. */
  startupTimeout: number
  /** Receives a message when the start has to wait for the database. */
  info: (message: string) => void
  /** Receives warnings for the operator. */
  warn: (message: string) => void
  /** Whether the database must exist, with tables of this version: nothing is then created or changed. */
  mustExist?: boolean
}

/** Opens a database, and updates its tables. @throws Error without user and password when that fails */
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

/** The error for a database that is reachable, but not in the required state. The message says why. */
class UnusableDatabaseError extends Error {}

/**
 * Checks that the tables exist and are up to date.
 * @returns whether a newer version has changed the tables
 * @throws UnusableDatabaseError when they are missing, or of an older version
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

/** Returns the message for a location without a database of Tool-Hub. */
export const missingDatabaseMessage = (location: string): string =>
  `There is no Tool-Hub database at ${location}, and none was created. Check DB_URL; the first start of the gateway ` +
  '(tool-hub serve) creates it.'

/**
 * Opens the driver of a database, without creating or checking tables. A server is connected to by the first query.
 * @param mustExist whether an embedded database must exist; by default, its folder is created if it does not exist
 * @throws Error with one sentence when the URL or the folder cannot be used
 */
export async function openDriver (dbUrl: string, mustExist = false): Promise<DatabaseDriver> {
  const folder = folderOf(dbUrl)
  if (folder === undefined) return new PostgresJsDriver(dbUrl)
  if (mustExist && !existsSync(join(folder, 'PG_VERSION'))) throw new Error(missingDatabaseMessage(folder))
  return await PgliteDriver.open(folder)
}

/** Checks a DB_URL without opening the database. @throws Error with one sentence when it cannot be used */
export async function assertDatabaseUrl (dbUrl: string): Promise<void> {
  const folder = folderOf(dbUrl)
  if (folder === undefined) parseDatabaseUrl(dbUrl)
  else await assertUsableFolder(folder)
}

/** Returns the folder of an embedded database; undefined for a server. @throws Error when the URL is of neither kind */
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
 * Prepares a database, with retries while it is unavailable.
 * @param prepare `DatabaseDriver.migrate`, or another check of the tables with the same result
 * @returns the result of `prepare`
 * @throws Error with one sentence
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
    // The last attempt gets at least a second, since its failure is the one that is reported.
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
 * @param error the failure of the last attempt; undefined if another replica was migrating all the time
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

/** Describes a failed migration by the database's message, which contains no secrets since it is about tables. */
function describeMigrationFailure (error: unknown): string {
  const code = databaseErrorCode(error)
  const message = messageOfCause(error)
  if (code === '42704' && /parameter/.test(message)) {
    return `DB_URL contains a parameter that PostgreSQL does not know: ${message}. Remove it from DB_URL.`
  }
  if (code === '42P07') return 'it contains other tables with the same names. Use a separate database for Tool-Hub.'
  return `${message}${code === undefined ? '' : ` (${code})`}.`
}

/** Returns the database's own message. Drizzle wraps the driver's error, as the `cause` of its own. */
const messageOfCause = (error: unknown): string =>
  messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error)
