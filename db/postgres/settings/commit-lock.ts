import type { Db, Transaction } from '../connection/driver.ts'
import { settingsRevision } from '../tables.ts'

/**
 * A transaction that holds the lock on the row of the table `revision`, so that no other replica can commit settings. A
 * replica whose commit failed because another one was faster acquires the lock, reads the new state, and makes its next
 * commit in this transaction. Otherwise, a slow replica could fail again and again while another one commits often.
 */
export class CommitLock {
  readonly tx: Transaction
  readonly #end: (commit: boolean) => void
  readonly #ended: Promise<void>

  /** Begins the transaction, and waits for the lock. @throws the driver's error */
  static async acquire (db: Db): Promise<CommitLock> {
    return await new Promise((resolve, reject) => {
      let end = (_commit: boolean): void => {}
      const decision = new Promise<boolean>((resolve) => { end = resolve })
      const ended: Promise<void> = db.transaction(async (tx) => {
        await tx.select().from(settingsRevision).for('update')
        resolve(new CommitLock(tx, end, async () => { await ended }))
        if (!await decision) throw new Error('The commit lock was released without a commit.')
      })
      ended.catch(reject)
    })
  }

  private constructor (tx: Transaction, end: (commit: boolean) => void, ended: () => Promise<void>) {
    this.tx = tx
    this.#end = end
    this.#ended = ended()
    this.#ended.catch(() => {})
  }

  /** Runs work in the transaction, and commits the transaction, which releases the lock. @throws the driver's error */
  async run (work: (tx: Transaction) => Promise<unknown>): Promise<void> {
    const working = work(this.tx).then(async () => {
      this.#end(true)
      await this.#ended
    })
    working.catch(() => { this.release() })
    // `#ended` also rejects when the connection breaks, which a pending statement may not notice.
    await Promise.race([working, this.#ended])
  }

  /** Rolls back the transaction, which releases the lock. */
  release (): void {
    this.#end(false)
  }
}
