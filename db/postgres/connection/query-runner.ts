import { StorageError } from '../../store.ts'
import type { Db, Driver, Transaction } from './driver.ts'
import { codeOf, sentence } from './failures.ts'
import { patience, within } from './within.ts'

/** QueryRunner the database something. @throws StorageError, and Errors of ours as such */
export type Query<On = Db> = <Result>(work: (on: On) => Promise<Result>) => Promise<Result>

/** How ports ask. Each way has its own line, and together they leave connections to the store, which is not to wait for them. */
export interface QueryRunner {
  /** A statement that finds its few rows by an index. */
  quick: Query
  /** Statements that may take seconds. */
  slow: Query
  transact: Query<Transaction>
}

/** @param health why the database cannot be used, as far as that is known: nobody waits to find it out again */
export function queryRunnerOf (driver: Driver, health: () => string | undefined): QueryRunner {
  const ask = (line: Line): Query => async (work) => await line.run(async () => {
    const why = health()
    if (why !== undefined) throw new StorageError(why, false)
    try {
      return await within(driver, patience.write, work)
    } catch (error) {
      if (error instanceof StorageError) throw error
      const code = codeOf(error)
      throw new StorageError(code === '53100' ? 'The database has no space left.' : sentence(error), code === '53100', code === '58030')
    }
  })
  const transact = ask(new Line(2))
  return {
    quick: ask(new Line(2)),
    slow: ask(new Line(1)),
    transact: async (work) => await transact(async (db) => await db.transaction(work))
  }
}

/** So many wait in a line. */
const longest = 1_000

/** So many at once; the rest wait. */
class Line {
  #free: number
  readonly #waiting: Array<() => void> = []

  constructor (atOnce: number) {
    this.#free = atOnce
  }

  async run<Result> (work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--
    else if (this.#waiting.length >= longest) throw new StorageError('The database has too much to do. Try again in a moment.', false)
    else await new Promise<void>((resolve) => { this.#waiting.push(resolve) })
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}

/** How often what is over is swept away, in ms. */
const period = 60_000

/** Work that a write does in passing, at most once a minute: nobody waits for it, and what failed is done the next time. */
export class Sweep {
  readonly #work: () => Promise<unknown>
  #last = -Infinity

  constructor (work: () => Promise<unknown>) {
    this.#work = work
  }

  pass (): void {
    if (performance.now() - this.#last < period) return
    this.#last = performance.now()
    void this.#work().catch(() => {})
  }
}
