import { chmod, readdir, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import type { PgliteDatabase } from 'drizzle-orm/pglite'
import { errorCode } from '../../errors.ts'
import { FolderError, makeFolder } from '../../folder.ts'
import { FileLock, LockHeldError } from '../../file-lock.ts'
import { notificationChannel, type Db, type DatabaseDriver } from './driver.ts'
import { runMigrations } from './migrations.ts'

/** The parser for JSON columns. It returns the text unchanged, since Drizzle parses it. */
const keepJsonText = (text: string): string => text

/** The cache of the database in the memory of this process: the system caches its files as well. Default: 128 MB. */
const sharedBuffers = ['-c', 'shared_buffers=16MB']

/**
 * Checks that a folder is missing, empty, or contains a PGlite database. Nothing is changed.
 * @throws Error if it contains anything else, or cannot be read
 */
export async function assertUsableFolder (path: string): Promise<void> {
  const names = await readdir(path).catch((error: unknown): string[] => {
    if (errorCode(error) === 'ENOENT') return []
    throw new Error(
      `The database folder ${path} cannot be opened (${describeError(error)}). Set DB_URL to a folder of its own.`
    )
  })
  // A PostgreSQL server keeps its start options in postmaster.opts; PGlite has no such file.
  if (names.length > 0 && (!names.includes('PG_VERSION') || names.includes('postmaster.opts'))) {
    throw new Error(
      `The database folder ${path} contains something other than a PGlite database, and was not changed. ` +
      'Set DB_URL to a folder that is empty or does not exist yet: pglite://<folder>'
    )
  }
}

/**
 * Returns the message of an error. PGlite's file system throws objects that are not an `Error`, and have only an
 * `errno`.
 */
function describeError (error: unknown): string {
  if (error instanceof Error) return error.message
  return typeof error === 'object' && error !== null && 'errno' in error
    ? `error ${String(error.errno)} of its file system`
    : String(error)
}

/** Imports PGlite, an optional dependency. @throws Error when it is not installed */
async function importPglite () {
  try {
    const [{ PGlite }, { drizzle }] = await Promise.all([import('@electric-sql/pglite'), import('drizzle-orm/pglite')])
    return { PGlite, drizzle }
  } catch (error) {
    if (errorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error(
      'DB_URL names an embedded database, but PGlite is not installed. ' +
      'Install it with npm install @electric-sql/pglite, or use a PostgreSQL server: DB_URL=postgres://…'
    )
  }
}

/** A PostgreSQL database embedded in this process (PGlite), with its data in a folder. */
export class PgliteDriver implements DatabaseDriver {
  readonly location: string
  readonly isEmbedded = true
  readonly #drizzle: PgliteDatabase
  readonly #engine: PGlite
  readonly #lock: FileLock

  /**
   * Opens a database, and locks its folder.
   * @param folder the folder of the data; created if it does not exist
   * @throws Error when PGlite is not installed, another process uses the folder, or the folder cannot be used
   */
  static async open (folder: string): Promise<PgliteDriver> {
    const path = await realpath(resolve(folder)).catch(() => resolve(folder))
    await assertUsableFolder(path)
    const { PGlite, drizzle } = await importPglite()
    makeFolder(dirname(path), 'DB_URL')
    const lock = new FileLock(path)
    await lock.acquire().catch((error: unknown) => {
      throw error instanceof LockHeldError
        ? new Error(
          `The database folder ${path} is ${error.message}. Stop that process first, or set another DB_URL for this ` +
          'one.',
          { cause: error }
        )
        : new FolderError(dirname(path), 'DB_URL', error)
    })
    try {
      makeFolder(path, 'DB_URL')
      // An existing folder needs this, too: PGlite creates files in it that all users may read and write.
      await chmod(path, 0o700)
      const engine = await PGlite.create({
        dataDir: path,
        parsers: { 114: keepJsonText, 3802: keepJsonText },
        startParams: [...PGlite.defaultStartParams, ...sharedBuffers],
        initDbStartParams: sharedBuffers
      })
      return new PgliteDriver(path, engine, drizzle(engine), lock)
    } catch (error) {
      lock.release()
      if (error instanceof FolderError) throw error
      throw new Error(
        `The database folder ${path} cannot be opened (${describeError(error)}). Check that it is a PGlite database ` +
        'and is complete.'
      )
    }
  }

  private constructor (location: string, engine: PGlite, db: PgliteDatabase, lock: FileLock) {
    this.location = location
    this.#engine = engine
    this.#drizzle = db
    this.#lock = lock
  }

  get db (): Db { return this.#drizzle }

  async migrate (folder: string): Promise<boolean> {
    const { migrate } = await import('drizzle-orm/pglite/migrator')
    return await runMigrations(this.#drizzle, folder, async (config) => { await migrate(this.#drizzle, config) })
  }

  async listen (onNotification: (payload: string) => void): Promise<() => void> {
    const stop = await this.#engine.listen(notificationChannel, onNotification)
    return () => { void stop().catch(() => {}) }
  }

  /** Does nothing, since an embedded database has no connections. */
  reconnect (): void {}

  async end (): Promise<void> {
    await this.#engine.close().catch(() => {})
    this.#lock.release()
  }
}
