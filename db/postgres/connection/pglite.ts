import { chmod, mkdir, readdir, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import type { PgliteDatabase } from 'drizzle-orm/pglite'
import { FileLock, Held } from '../../json/lock.ts'
import { channel, type Db, type Driver } from './driver.ts'
import { migrateBy } from './migrations.ts'

/** Text as it is, for JSON: Drizzle parses it, and twice would be once too often. */
const raw = (text: string): string => text

/** Before anything is made there, or its mode is changed. @throws Error with a sentence when the folder is somebody else's */
async function mustBeFree (path: string): Promise<void> {
  const names = await readdir(path).catch((error: unknown): string[] => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw new Error(`The database folder ${path} cannot be opened (${wordsOf(error)}). Give DB_URL a folder of its own.`)
  })
  // A server notes there how it was started; PGlite does not.
  if (names.length > 0 && (!names.includes('PG_VERSION') || names.includes('postmaster.opts'))) {
    throw new Error(
      `The database folder ${path} holds something else than a database of PGlite, and was left as it is. Give DB_URL a folder of its own, empty or not there yet: pglite://<folder>`
    )
  }
}

/** What PGlite throws for its file system is no Error, and has a number only. */
function wordsOf (error: unknown): string {
  if (error instanceof Error) return error.message
  return typeof error === 'object' && error !== null && 'errno' in error ? `error ${String(error.errno)} of its file system` : String(error)
}

/** A PostgreSQL in this process, on a folder of its own. */
export class Embedded implements Driver {
  readonly where: string
  readonly #drizzle: PgliteDatabase
  readonly #engine: PGlite
  readonly #lock: FileLock

  /**
   * @param folder where its data is; made if it is not there
   * @throws Error with a sentence when PGlite is not installed, another process has the folder, or it holds something else
   */
  static async open (folder: string): Promise<Embedded> {
    const path = await realpath(resolve(folder)).catch(() => resolve(folder))
    await mustBeFree(path)
    const [{ PGlite }, { drizzle }] = await Promise.all([import('@electric-sql/pglite'), import('drizzle-orm/pglite')]).catch(
      (error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') {
          throw new Error(
            'DB_URL asks for an embedded database, and PGlite is not installed. Install it with npm install @electric-sql/pglite, or use a PostgreSQL server: DB_URL=postgres://…'
          )
        }
        throw error
      }
    )
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const lock = new FileLock(path)
    await lock.hold().catch((error: unknown) => {
      throw error instanceof Held
        ? new Error(`The database folder ${path} is ${error.message}. Stop that one first, or give this one another DB_URL.`)
        : error
    })
    try {
      await mkdir(path, { recursive: true, mode: 0o700 })
      // Also one that was there: PGlite makes files in it that everybody may read and write.
      await chmod(path, 0o700)
      const engine = await PGlite.create({ dataDir: path, parsers: { 114: raw, 3802: raw } })
      return new Embedded(path, engine, drizzle(engine), lock)
    } catch (error) {
      lock.release()
      throw new Error(`The database folder ${path} cannot be opened (${wordsOf(error)}). Is it one of PGlite, and whole?`)
    }
  }

  private constructor (where: string, engine: PGlite, db: PgliteDatabase, lock: FileLock) {
    this.where = where
    this.#engine = engine
    this.#drizzle = db
    this.#lock = lock
  }

  get db (): Db { return this.#drizzle }

  async migrate (folder: string): Promise<boolean> {
    const { migrate } = await import('drizzle-orm/pglite/migrator')
    return await migrateBy(this.#drizzle, folder, async (config) => { await migrate(this.#drizzle, config) })
  }

  async listen (hear: (payload: string) => void): Promise<() => void> {
    const end = await this.#engine.listen(channel, hear)
    return () => { void end().catch(() => {}) }
  }

  /** It has no connections that could hang. */
  reset (): void {}

  async end (): Promise<void> {
    await this.#engine.close().catch(() => {})
    this.#lock.release()
  }
}
