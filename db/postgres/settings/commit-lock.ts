import type { Db, Transaction } from '../connection/driver.ts'
import { revision } from '../tables.ts'

/**
 * A transaction past which nobody can commit. Who lost a race takes one, reads what is new, and keeps it for the next try: without
 * it a slow replica would lose to a busy one again and again.
 */
export class CommitLock {
  readonly tx: Transaction
  readonly #decide: (commit: boolean) => void
  readonly #done: Promise<void>

  /** Waits for its place in the line. @throws the driver's error */
  static async take (db: Db): Promise<CommitLock> {
    return await new Promise((resolve, reject) => {
      let decide = (_commit: boolean): void => {}
      const decision = new Promise<boolean>((resolve) => { decide = resolve })
      const done: Promise<void> = db.transaction(async (tx) => {
        await tx.select().from(revision).for('update')
        resolve(new CommitLock(tx, decide, async () => { await done }))
        if (!await decision) throw new Error('The turn was not used.')
      })
      done.catch(reject)
    })
  }

  private constructor (tx: Transaction, decide: (commit: boolean) => void, done: () => Promise<void>) {
    this.tx = tx
    this.#decide = decide
    this.#done = done()
    this.#done.catch(() => {})
  }

  /** Ends it with a commit of what was done in it. @throws the driver's error */
  async run (work: (tx: Transaction) => Promise<unknown>): Promise<void> {
    const working = work(this.tx).then(async () => {
      this.#decide(true)
      await this.#done
    })
    working.catch(() => { this.release() })
    // Also when the connection breaks, which a statement need not notice.
    await Promise.race([working, this.#done])
  }

  /** Ends it with nothing done. */
  release (): void {
    this.#decide(false)
  }
}
