import { chmod, mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import type { PgliteDatabase } from 'drizzle-orm/pglite'
import { FileLock, Held } from '../json/lock.ts'
import { channel, type Db, type Driver } from './driver.ts'
import { migrateBy } from './migrations.ts'

/** Text as it is, for JSON: Drizzle parses it, and twice would be once too often. */
const raw = (text: string): string => text

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
    const path = resolve(folder)
    const [{ PGlite }, { drizzle }] = await Promise.all([import('@electric-sql/pglite'), import('drizzle-orm/pglite')]).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') throw new Error('DB_URL asks for an embedded database, and PGlite is not installed. Install it with npm install @electric-sql/pglite, or use a PostgreSQL server: DB_URL=postgres://…')
      throw error
    })
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const lock = new FileLock(path)
    await lock.hold().catch((error: unknown) => {
      throw error instanceof Held ? new Error(`The database folder ${path} is ${error.message}. Stop that one first, or give this one another DB_URL.`) : error
    })
    try {
      await mkdir(path, { recursive: true, mode: 0o700 })
      // Also one that was there: PGlite makes files in it that everybody may read and write.
      await chmod(path, 0o700)
      const engine = await PGlite.create({ dataDir: path, parsers: { 114: raw, 3802: raw } })
      return new Embedded(path, engine, drizzle(engine), lock)
    } catch (error) {
      lock.release()
      throw new Error(`The database folder ${path} cannot be opened (${error instanceof Error ? error.message : String(error)}). Is it one of PGlite, and whole?`)
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
