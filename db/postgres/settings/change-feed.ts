import type { Driver } from '../connection/driver.ts'

/** How often to look, in ms: NOTIFY tells sooner, unless it is lost. */
const every = 3_000
/** The same while the database is away, or nothing listens. */
const everyAlone = 1_000

export interface ChangeFeedOptions {
  driver: Driver
  /** Looks for what others have committed. @returns whether there was something, and whether the database can be used */
  look: () => Promise<{ news: boolean, away: boolean }>
  /** Somebody has notified of a commit. */
  hear: (head: string) => void
}

/** Listens for the commits of other replicas, and looks for them from time to time as well. */
export class ChangeFeed {
  readonly #driver: Driver
  readonly #look: ChangeFeedOptions['look']
  readonly #hear: ChangeFeedOptions['hear']
  #timer: NodeJS.Timeout | undefined
  /** LoopBudget come one after the other: two at once would listen twice. */
  #turns = Promise.resolve()
  #unlisten: (() => void) | undefined
  #closed = false

  constructor ({ driver, look, hear }: ChangeFeedOptions) {
    this.#driver = driver
    this.#look = look
    this.#hear = hear
  }

  async open (): Promise<void> {
    await this.#listen()
    this.soon(every)
  }

  /** Looks again after so many ms. */
  soon (ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#closed) {
      this.#timer = setTimeout(() => {
        this.#turns = this.#turns.then(async () => {
          await this.#commitLock()
        })
      }, ms).unref()
    }
  }

  close (): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#unlisten?.()
  }

  async #commitLock (): Promise<void> {
    const listened = this.#unlisten !== undefined
    await this.#listen()
    const { news, away } = await this.#look()
    // What only a look found should have been heard of: whatever listened there all the time does not any more.
    if (news && listened) this.#unlisten?.()
    this.soon(away || this.#unlisten === undefined ? everyAlone : every)
  }

  /** Begins to listen, if nothing listens. That it cannot is no trouble of its own: looking goes on. */
  async #listen (): Promise<void> {
    if (this.#closed || this.#unlisten !== undefined) return
    const end = await this.#driver.listen((head) => { this.#hear(head) }, () => { this.#lost() }).catch(() => undefined)
    this.#unlisten = end && (() => {
      this.#unlisten = undefined
      end()
    })
    if (this.#closed) this.#unlisten?.()
  }

  #lost (): void {
    this.#unlisten = undefined
    this.soon(100)
  }
}
