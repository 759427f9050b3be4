import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate } from 'drizzle-orm/postgres-js/migrator'
import pLimit from 'p-limit'
import postgres from 'postgres'
import { parseDatabaseUrl, type DatabaseAddress } from './address.ts'
import { notificationChannel, connectTimeoutSeconds, type Db, type DatabaseDriver } from './driver.ts'
import { TransactionConnection, type TransactionClient } from './transaction-connection.ts'
import { runMigrations } from './migrations.ts'
import { timeouts } from './timeouts.ts'

type Options = postgres.Options<Record<string, postgres.PostgresType>>

const ignore = (): void => {}
/** The JSON types for postgres.js, which leaves their values as text, since Drizzle parses and serializes them. */
const json = { to: 3802, from: [114, 3802], serialize: (text: string) => text, parse: (text: string) => text }
/** The key of the advisory lock that all replicas take while they migrate. */
const migrationsLock = 0x746f6f6c

const options: Options = {
  connect_timeout: connectTimeoutSeconds,
  // Delay before reconnecting, in seconds. It stays short, so that a restarted database is used again soon.
  backoff: (tries: number) => Math.min(2, 0.1 * 2 ** tries),
  onnotice: ignore,
  fetch_types: false,
  types: { json },
  keep_alive: 15
}
const queryOptions = (): Options => ({
  ...options,
  idle_timeout: 60,
  connection: {
    application_name: 'tool-hub',
    statement_timeout: timeouts.statement,
    idle_in_transaction_session_timeout: timeouts.statement,
    // Set regardless of the database's default: the second of two transactions on a row must see the changes of the
    // first.
    default_transaction_isolation: 'read committed'
  }
})
/** Max numbers of connections for single statements and for transactions. */
const poolSize = { statements: 4, transactions: 4 }

/** Drizzle on two connection pools: one for single statements, one for transactions. */
class ConnectionPools {
  readonly db: Db
  readonly #address: DatabaseAddress
  readonly #sql: postgres.Sql
  readonly #limit = pLimit(poolSize.transactions)
  /** All connections for transactions; `#idle`: those in no transaction now. */
  readonly #transactions = new Set<TransactionConnection>()
  readonly #idle: TransactionConnection[] = []

  constructor (address: DatabaseAddress) {
    this.#address = address
    this.#sql = postgres(address.url, { ...queryOptions(), ...address.tls, max: poolSize.statements })
    const begin = async <Result>(work: (client: TransactionClient) => Promise<Result>): Promise<Result> =>
      await this.#begin(work)
    this.db = drizzle(Object.assign(this.#sql, { begin }) as unknown as postgres.Sql)
  }

  /** Closes all connections immediately. */
  drop (): void {
    for (const connection of this.#transactions) connection.drop()
    void this.#sql.end({ timeout: 0 }).catch(ignore)
  }

  async end (): Promise<void> {
    await Promise.all([
      this.#sql.end({ timeout: 2 }).catch(ignore),
      ...[...this.#transactions].map(async (connection) => { await connection.end() })
    ])
  }

  async #begin<Result> (work: (client: TransactionClient) => Promise<Result>): Promise<Result> {
    return await this.#limit(async () => {
      const connection = this.#idle.pop() ?? this.#connect()
      try {
        return await connection.begin(work)
      } finally {
        if (connection.isDropped) this.#transactions.delete(connection)
        else this.#idle.push(connection)
      }
    })
  }

  #connect (): TransactionConnection {
    const connection = new TransactionConnection(this.#address.url, { ...queryOptions(), ...this.#address.tls })
    // Drizzle has changed the parsers and serializers of `#sql`; this connection needs the same ones.
    Object.assign(connection.options.parsers, this.#sql.options.parsers)
    Object.assign(connection.options.serializers, this.#sql.options.serializers)
    this.#transactions.add(connection)
    return connection
  }
}

/** A database on a PostgreSQL server, accessed with postgres.js. */
export class PostgresJsDriver implements DatabaseDriver {
  readonly isEmbedded = false
  readonly #address: DatabaseAddress
  #connections: ConnectionPools
  #listener: postgres.Sql | undefined
  #hasEnded = false

  /** The connection is opened by the first query. @throws Error when the URL cannot be parsed */
  constructor (url: string) {
    this.#address = parseDatabaseUrl(url)
    this.#connections = new ConnectionPools(this.#address)
  }

  get location (): string { return this.#address.location }

  get db (): Db { return this.#connections.db }

  async migrate (folder: string, onWait: () => void): Promise<boolean> {
    const connection = new TransactionConnection(this.#address.url, {
      ...options,
      ...this.#address.tls,
      connection: { application_name: 'tool-hub migrations' }
    })
    try {
      return await connection.begin(async (client) => {
        // Drizzle's `begin` uses this transaction, too, so that the advisory lock ends with the migrations.
        const sql = Object.assign(client, {
          begin: async (work: (client: TransactionClient) => Promise<void>) => {
            await work(client)
          }
        }) as unknown as postgres.Sql
        await lockMigrations(sql, onWait)
        await assertEncoding(sql)
        const db = drizzle(sql)
        return await runMigrations(db, folder, async (config) => { await migrate(db, config) })
      })
    } finally {
      await connection.end()
    }
  }

  async listen (onNotification: (payload: string) => void, onLost: () => void): Promise<() => void> {
    let hasStopped = false
    const stop = (): void => {
      if (hasStopped) return
      hasStopped = true
      void sql.end({ timeout: 0 }).catch(ignore)
    }
    // Not sql.listen, which gives up for good if its first attempt to reconnect fails.
    const sql = postgres(this.#address.url, {
      ...options,
      ...this.#address.tls,
      max: 1,
      max_lifetime: null,
      connection: { application_name: 'tool-hub listener' },
      onnotify: (_channel: string, payload: string) => { onNotification(payload) },
      onclose: () => { if (!hasStopped) { stop(); onLost() } }
    } as Options)
    this.#listener = sql
    // postgres.js has no timeout for a server that accepts the connection and then does not respond.
    const timer = setTimeout(stop, 2_000 * connectTimeoutSeconds).unref()
    try {
      await sql.unsafe(`listen ${notificationChannel}`)
    } catch (error) {
      stop()
      throw error
    } finally {
      clearTimeout(timer)
    }
    return stop
  }

  reconnect (): void {
    if (this.#hasEnded) return
    this.#connections.drop()
    this.#connections = new ConnectionPools(this.#address)
  }

  async end (): Promise<void> {
    this.#hasEnded = true
    await Promise.all([this.#connections.end(), this.#listener?.end({ timeout: 2 }).catch(ignore)])
  }
}

/** Takes the advisory lock until the end of the transaction. @param onWait called if another replica has the lock */
async function lockMigrations (sql: postgres.Sql, onWait: () => void): Promise<void> {
  const [lock] = await sql.unsafe<Array<{ acquired: boolean }>>(
    'select pg_try_advisory_xact_lock($1) as acquired', [migrationsLock]
  )
  if (lock?.acquired === true) return
  onWait()
  await sql.unsafe('select pg_advisory_xact_lock($1)', [migrationsLock])
}

/**
 * Checks that the encoding of the database can store all of Unicode.
 * @throws Error whose message is a clause, if not
 */
async function assertEncoding (sql: postgres.Sql): Promise<void> {
  const [database] = await sql.unsafe<Array<{ server_encoding: string }>>('show server_encoding')
  // SQL_ASCII stores any bytes unchanged, and thus UTF-8.
  if (database === undefined || ['UTF8', 'SQL_ASCII'].includes(database.server_encoding)) return
  throw new Error(
    `its encoding, ${database.server_encoding}, cannot store all names. Create a database with ENCODING 'UTF8'`
  )
}
