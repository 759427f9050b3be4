import type { OpenedVectorStore, VectorStore } from '../../../../db/ports/vectors.ts'
import { BackOff } from './back-off.ts'

/** Opens the vector store in a separate database (`smartRouting.dbUrl`), one database at a time. */
export class SeparateVectorDatabase {
  readonly #openDatabase: (dbUrl: string) => Promise<OpenedVectorStore>
  #backOff = new BackOff()
  #currentDatabase: { readonly dbUrl: string, readonly opening: Promise<OpenedVectorStore> } | undefined

  constructor (open: (dbUrl: string) => Promise<OpenedVectorStore>) {
    this.#openDatabase = open
  }

  /**
   * Returns the vector store in a database. Opens the database unless it is open; closes a database with another URL.
   * After a failure, throws without a new attempt until the back-off ends.
   * @throws Error whose message is one sentence without credentials
   */
  async open (dbUrl: string): Promise<VectorStore> {
    if (this.#currentDatabase?.dbUrl !== dbUrl) {
      await this.close()
      this.#backOff = new BackOff()
    }
    if (!this.#currentDatabase) {
      if (this.#backOff.waitTime > 0) {
        throw new Error('The database of the embeddings could not be opened; the gateway tries again')
      }
      const opening = this.#openDatabase(dbUrl)
      this.#currentDatabase = { dbUrl, opening }
      opening.catch(() => {
        this.#backOff.recordFailure()
        if (this.#currentDatabase?.opening === opening) this.#currentDatabase = undefined
      })
    }
    return (await this.#currentDatabase.opening).vectors
  }

  async close (): Promise<void> {
    const opened = this.#currentDatabase
    this.#currentDatabase = undefined
    await opened?.opening.then(async ({ close }) => { await close() }, () => {})
  }
}
