import postgres from 'postgres'

/** What Drizzle needs of a client in a transaction. */
export type TransactionClient = Pick<postgres.Sql, 'options' | 'unsafe'>

const closed = (): Error => Object.assign(new Error('the connection closed'), { code: 'CONNECTION_CLOSED' })

/**
 * One connection for one transaction at a time. `sql.begin` of postgres.js sends its ROLLBACK also on a connection that has just
 * closed, which ends the process; nothing is sent here once it is.
 */
export class TransactionConnection {
  readonly #sql: postgres.Sql
  #alive = false
  #dropped = false

  /** @param options of a connection; nothing is connected until there is a transaction */
  constructor (url: string, options: postgres.Options<Record<string, postgres.PostgresType>>) {
    // Not by its age: a connection that ends between two statements would take the rest of the transaction along.
    this.#sql = postgres(url, { ...options, max: 1, max_lifetime: null, onclose: () => { this.#alive = false } })
  }

  get options (): postgres.Sql['options'] { return this.#sql.options }

  /** Whether it is of no more use. */
  get dropped (): boolean { return this.#dropped }

  /** @throws what the work throws, after ROLLBACK, or the driver's error */
  async begin<Result> (work: (client: TransactionClient) => Promise<Result>): Promise<Result> {
    this.#alive = true
    await this.#send('begin')
    try {
      const result = await work({
        options: this.#sql.options,
        unsafe: (...args: Parameters<postgres.Sql['unsafe']>) => this.#send(...args)
      } as TransactionClient)
      await this.#send('commit')
      return result
    } catch (error) {
      if (this.#alive) await this.#send('rollback').catch(() => { this.drop() })
      throw error
    }
  }

  /** Now, whatever is under way. */
  drop (): void {
    this.#alive = false
    this.#dropped = true
    void this.#sql.end({ timeout: 0 }).catch(() => {})
  }

  async end (): Promise<void> {
    await this.#sql.end({ timeout: 2 }).catch(() => {})
  }

  #send (...args: Parameters<postgres.Sql['unsafe']>): ReturnType<postgres.Sql['unsafe']> {
    if (!this.#alive) throw closed()
    return this.#sql.unsafe(...args)
  }
}
