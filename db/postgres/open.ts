import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Driver } from './connection/driver.ts'
import { Embedded } from './connection/pglite.ts'
import { PostgresJs } from './connection/postgres-js.ts'
import { codeOf, isAway, isRefused, phrase } from './connection/failures.ts'

/** The migrations stand in the package, beside the source; `npm start` runs what was compiled from it into `dist`. */
const migrations = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '../migrations' : '../../../db/migrations', import.meta.url))

/** How long an answer may take before it is called waiting, in ms. */
const silence = 1_000

export interface DatabaseOptions {
  /** `postgres://…`, or `pglite://<folder>`. */
  dbUrl: string
  /** How long to wait for the database, in ms. */
  startupTimeout: number
  /** Told in a sentence what is being waited for. */
  info: (sentence: string) => void
  /** Told in a sentence what an operator should know of the database. */
  warn: (sentence: string) => void
}

/**
 * A database with our tables in it.
 * @throws Error with one sentence, without user and password, when it cannot be had within that time
 */
export async function openDatabase ({ dbUrl, startupTimeout, info, warn }: DatabaseOptions): Promise<Driver> {
  const [, folder] = /^pglite:\/\/(.*)$/s.exec(dbUrl) ?? []
  if (folder === '') throw new Error('DB_URL names no folder for the embedded database: pglite://<folder>')
  if (folder === undefined && !/^postgres(ql)?:\/\//.test(dbUrl)) {
    throw new Error('DB_URL is none that is known: use postgres://… for a server, or pglite://<folder> for an embedded database.')
  }
  const driver = folder === undefined ? new PostgresJs(dbUrl) : await Embedded.open(folder)
  try {
    if (await migrate(driver, startupTimeout, info)) {
      warn(
        `A newer version of Tool-Hub has changed the tables in the database at ${driver.where}. With each change this one may lose what that one keeps in them: use the newer version again, or a backup of before it.`
      )
    }
    return driver
  } catch (error) {
    await driver.end()
    throw error
  }
}

async function migrate (driver: Driver, startupTimeout: number, info: (sentence: string) => void): Promise<boolean> {
  const end = Date.now() + startupTimeout
  let told = false
  const tell = (why: string): void => {
    if (!told) info(`waiting for PostgreSQL at ${driver.where} (${why})`)
    told = true
  }
  for (let tries = 0; ; tries++) {
    // Whether another replica makes the tables.
    let held = false
    const late = new AbortController()
    // The last try, at the end of the time, gets a moment too: what it finds is what is told.
    const left = Math.max(end - Date.now(), 1_000)
    const silent = setTimeout(() => { tell(held ? 'another replica makes the tables' : 'no answer yet') }, silence)
    const outcome = await Promise.race([
      driver.migrate(migrations, () => { held = true }).then((newer) => ({ newer }), (error: unknown) => ({ error })),
      sleep(left, { error: Object.assign(new Error(), { code: 'ETIMEDOUT' }) }, { signal: late.signal })
    ])
    clearTimeout(silent)
    late.abort()
    if ('newer' in outcome) return outcome.newer
    const { error } = outcome
    if (isRefused(error)) throw new Error(`PostgreSQL at ${driver.where} cannot be used: ${phrase(error)}. Check DB_URL.`)
    if (!isAway(error)) throw new Error(`The tables cannot be made in the database at ${driver.where}: ${wordsOf(error)}`)
    const pause = Math.min(2_000, 200 * 2 ** tries, end - Date.now())
    if (pause <= 0 && held) {
      throw new Error(
        `Another replica has been at the tables in the database at ${driver.where} for ${Math.round(startupTimeout / 100) / 10} s. See what keeps it; DB_STARTUP_TIMEOUT says how long to wait.`
      )
    }
    if (pause <= 0) {
      throw new Error(
        `PostgreSQL at ${driver.where} could not be reached within ${Math.round(startupTimeout / 100) / 10} s (${phrase(error)}). Start it, or check DB_URL; DB_STARTUP_TIMEOUT says how long to wait.`
      )
    }
    tell(phrase(error))
    await sleep(pause)
  }
}

/** Why a migration failed: what the database says of it, which is about tables and no secret. */
function wordsOf (error: unknown): string {
  const code = codeOf(error)
  if (code === '42704' && /parameter/.test(messageOf(error))) {
    return `DB_URL asks for a setting that PostgreSQL does not know: ${messageOf(error)}. Take it out of DB_URL.`
  }
  if (code === '42P07') return 'there are others of the same names. Give Tool-Hub a database of its own.'
  return `${messageOf(error)}${code === undefined ? '' : ` (${code})`}.`
}

function messageOf (error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}
