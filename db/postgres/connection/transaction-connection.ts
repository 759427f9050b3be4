import postgres from 'postgres'

/** The part of a postgres.js client that Drizzle uses in a transaction. */
export type TransactionClient = Pick<postgres.Sql, 'options' | 'unsafe'>

const connectionClosed = (): Error => Object.assign(new Error('the connection closed'), { code: 'CONNECTION_CLOSED' })

/**
 * A connection for one transaction at a time. It replaces `sql.begin` of postgres.js, which sends ROLLBACK even if the
 * connection has just closed; the resulting uncaught error would end the process.
 */
export class TransactionConnection {
  readonly #sql: postgres.Sql
  #isOpen = false
  #isDropped = false

  /** The connection is opened by the first transaction. */
  constructor (url: string, options: postgres.Options<Record<string, postgres.PostgresType>>) {
    // There is no max lifetime, since closing the connection between two statements would abort the transaction.
    this.#sql = postgres(url, { ...options, max: 1, max_lifetime: null, onclose: () => { this.#isOpen = false } })
  }

  get options (): postgres.Sql['options'] { return this.#sql.options }

  /** Whether the connection was dropped, and cannot be used again. */
  get isDropped (): boolean { return this.#isDropped }

  /** Runs work in a transaction. @throws the error of the work, after a rollback, or the error of the driver */
  async begin<Result> (work: (client: TransactionClient) => Promise<Result>): Promise<Result> {
    this.#isOpen = true
    await this.#send('begin')
    try {
      const result = await work({
        options: this.#sql.options,
        unsafe: (...args: Parameters<postgres.Sql['unsafe']>) => this.#send(...args)
      } as TransactionClient)
      await this.#send('commit')
      return result
    } catch (error) {
      if (this.#isOpen) await this.#send('rollback').catch(() => { this.drop() })
      throw error
    }
  }

  /** Closes the connection immediately; a transaction in progress is rejected. */
  drop (): void {
    this.#isOpen = false
    this.#isDropped = true
    void this.#sql.end({ timeout: 0 }).catch(() => {})
  }

  /** Closes the connection, after up to 2 s for a statement in progress. An unfinished transaction is rolled back. */
  async end (): Promise<void> {
    await this.#sql.end({ timeout: 2 }).catch(() => {})
  }

  #send (...args: Parameters<postgres.Sql['unsafe']>): ReturnType<postgres.Sql['unsafe']> {
    if (!this.#isOpen) throw connectionClosed()
    return this.#sql.unsafe(...args)
  }
}
