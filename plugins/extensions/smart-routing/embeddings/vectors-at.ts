import type { OpenedVectors, Vectors } from '../../../../db/ports/vectors.ts'
import { BackOff } from './back-off.ts'

/** The vectors in a separate database (`smartRouting.dbUrl`), which is opened at its first use. */
export class VectorsAt {
  readonly #open: (dbUrl: string) => Promise<OpenedVectors>
  #backOff = new BackOff()
  #opened: { readonly dbUrl: string, readonly opening: Promise<OpenedVectors> } | undefined

  constructor (open: (dbUrl: string) => Promise<OpenedVectors>) {
    this.#open = open
  }

  /** @throws Error if it cannot be opened; the message is one sentence without credentials */
  async at (dbUrl: string): Promise<Vectors> {
    if (this.#opened?.dbUrl !== dbUrl) {
      await this.close()
      this.#backOff = new BackOff()
    }
    if (!this.#opened) {
      if (this.#backOff.left > 0) {
        throw new Error('The database of the embeddings could not be opened; this is tried again')
      }
      const opening = this.#open(dbUrl)
      this.#opened = { dbUrl, opening }
      opening.catch(() => {
        this.#backOff.failed()
        if (this.#opened?.opening === opening) this.#opened = undefined
      })
    }
    return (await this.#opened.opening).vectors
  }

  async close (): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    await opened?.opening.then(async ({ close }) => { await close() }, () => {})
  }
}
