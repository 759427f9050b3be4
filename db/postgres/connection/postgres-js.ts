import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate } from 'drizzle-orm/postgres-js/migrator'
import postgres from 'postgres'
import { addressOf, type Address } from './address.ts'
import { channel, connectTimeout, statementTimeout, type Db, type Driver } from './driver.ts'
import { TransactionConnection, type TransactionClient } from './transaction-connection.ts'
import { migrateBy } from './migrations.ts'

type Options = postgres.Options<Record<string, postgres.PostgresType>>

const silent = (): void => {}
/** JSON stays text here: Drizzle parses it, and twice would be once too often. */
const json = { to: 3802, from: [114, 3802], serialize: (text: string) => text, parse: (text: string) => text }
/** One number that all replicas lock while they migrate. */
const migrationsLock = 0x746f6f6c

const options: Options = {
  connect_timeout: connectTimeout,
  // Seconds before a broken connection is made anew: it must be there soon after a restart.
  backoff: (tries: number) => Math.min(2, 0.1 * 2 ** tries),
  onnotice: silent,
  fetch_types: false,
  types: { json },
  keep_alive: 15
}
const working: Options = {
  ...options,
  idle_timeout: 60,
  // Whoever comes second at a row is to see what the first one made of it, whatever the database's own choice is.
  connection: {
    application_name: 'tool-hub',
    statement_timeout: statementTimeout,
    idle_in_transaction_session_timeout: statementTimeout,
    default_transaction_isolation: 'read committed'
  }
}
/** Connections for single statements, and for transactions: there is one at a time, and one that waits for its turn. */
const most = { single: 4, lanes: 4 }

/** Drizzle on a pool for single statements, and on lanes for transactions. */
class Connections {
  readonly db: Db
  readonly #address: Address
  readonly #sql: postgres.Sql
  readonly #lanes = new Set<TransactionConnection>()
  readonly #free: TransactionConnection[] = []
  readonly #waiting: Array<(lane: TransactionConnection) => void> = []

  constructor (address: Address) {
    this.#address = address
    this.#sql = postgres(address.url, { ...working, ...address.tls, max: most.single })
    const begin = async <Result>(work: (client: TransactionClient) => Promise<Result>): Promise<Result> => await this.#begin(work)
    this.db = drizzle(Object.assign(this.#sql, { begin }) as unknown as postgres.Sql)
  }

  drop (): void {
    for (const lane of this.#lanes) lane.drop()
    void this.#sql.end({ timeout: 0 }).catch(silent)
  }

  async end (): Promise<void> {
    await Promise.all([this.#sql.end({ timeout: 2 }).catch(silent), ...[...this.#lanes].map(async (lane) => { await lane.end() })])
  }

  async #begin<Result> (work: (client: TransactionClient) => Promise<Result>): Promise<Result> {
    const lane =
      this.#free.pop() ??
      (this.#lanes.size < most.lanes
        ? this.#another()
        : await new Promise<TransactionConnection>((resolve) => {
          this.#waiting.push(resolve)
        }))
    try {
      return await lane.begin(work)
    } finally {
      if (lane.dropped) this.#lanes.delete(lane)
      const next = this.#waiting.shift()
      if (next) next(lane.dropped ? this.#another() : lane)
      else if (!lane.dropped) this.#free.push(lane)
    }
  }

  #another (): TransactionConnection {
    const lane = new TransactionConnection(this.#address.url, { ...working, ...this.#address.tls })
    // As Drizzle does with the client that it is given.
    Object.assign(lane.options.parsers, this.#sql.options.parsers)
    Object.assign(lane.options.serializers, this.#sql.options.serializers)
    this.#lanes.add(lane)
    return lane
  }
}

/** A PostgreSQL server, by postgres.js. */
export class PostgresJs implements Driver {
  readonly #address: Address
  #connections: Connections
  #listener: postgres.Sql | undefined
  #ended = false

  /** Nothing is connected until something is asked. @throws Error with a sentence when the URL cannot be read */
  constructor (url: string) {
    this.#address = addressOf(url)
    this.#connections = new Connections(this.#address)
  }

  get where (): string { return this.#address.where }

  get db (): Db { return this.#connections.db }

  async migrate (folder: string, held: () => void): Promise<boolean> {
    const lane = new TransactionConnection(this.#address.url, {
      ...options,
      ...this.#address.tls,
      connection: { application_name: 'tool-hub migrations' }
    })
    try {
      return await lane.begin(async (client) => {
        // Drizzle's own transaction is this one: the lock ends with it.
        const sql = Object.assign(client, {
          begin: async (work: (client: TransactionClient) => Promise<void>) => {
            await work(client)
          }
        }) as unknown as postgres.Sql
        const [lock] = await sql.unsafe<Array<{ mine: boolean }>>('select pg_try_advisory_xact_lock($1) as mine', [migrationsLock])
        if (lock?.mine !== true) {
          held()
          await sql.unsafe('select pg_advisory_xact_lock($1)', [migrationsLock])
        }
        const [database] = await sql.unsafe<Array<{ server_encoding: string }>>('show server_encoding')
        // SQL_ASCII takes all bytes as they are.
        if (database !== undefined && !['UTF8', 'SQL_ASCII'].includes(database.server_encoding)) {
          throw new Error(
            `its encoding is ${database.server_encoding}, which has not the letters of all names. Make one with ENCODING 'UTF8'`
          )
        }
        const db = drizzle(sql)
        return await migrateBy(db, folder, async (config) => { await migrate(db, config) })
      })
    } finally {
      await lane.end()
    }
  }

  async listen (hear: (payload: string) => void, lost: () => void): Promise<() => void> {
    let over = false
    const end = (): void => {
      if (over) return
      over = true
      void sql.end({ timeout: 0 }).catch(silent)
    }
    // Not sql.listen: that gives up for good when it cannot listen again at the first try.
    const sql = postgres(this.#address.url, {
      ...options,
      ...this.#address.tls,
      max: 1,
      max_lifetime: null,
      connection: { application_name: 'tool-hub listener' },
      onnotify: (_channel: string, payload: string) => { hear(payload) },
      onclose: () => { if (!over) { end(); lost() } }
    } as Options)
    this.#listener = sql
    // A connection that was made may fall silent, and nothing else would end the wait.
    const late = setTimeout(end, 2_000 * connectTimeout).unref()
    try {
      await sql.unsafe(`listen ${channel}`)
    } catch (error) {
      end()
      throw error
    } finally {
      clearTimeout(late)
    }
    return end
  }

  reset (): void {
    if (this.#ended) return
    this.#connections.drop()
    this.#connections = new Connections(this.#address)
  }

  async end (): Promise<void> {
    this.#ended = true
    await Promise.all([this.#connections.end(), this.#listener?.end({ timeout: 2 }).catch(silent)])
  }
}
