import type { Driver } from './driver.ts'

/** How often to look, in ms: NOTIFY tells sooner, unless it is lost. */
const every = 3_000
/** The same while the database is away. */
const everyAway = 1_000

export interface LookoutOptions {
  driver: Driver
  /** Looks for what others have committed. @returns whether there was something, and whether the database can be used */
  look: () => Promise<{ news: boolean, away: boolean }>
  /** Somebody has notified of a commit. */
  hear: (head: string) => void
}

/** Listens for the commits of other replicas, and looks for them from time to time as well. */
export class Lookout {
  readonly #driver: Driver
  readonly #look: LookoutOptions['look']
  readonly #hear: LookoutOptions['hear']
  #timer: NodeJS.Timeout | undefined
  #unlisten: (() => void) | undefined
  #closed = false

  constructor ({ driver, look, hear }: LookoutOptions) {
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
    if (!this.#closed) this.#timer = setTimeout(() => { void this.#turn() }, ms).unref()
  }

  close (): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#unlisten?.()
  }

  async #turn (): Promise<void> {
    await this.#listen()
    const { news, away } = await this.#look()
    // What only a look found should have been heard of: whatever listened there does not any more.
    if (news) this.#unlisten?.()
    this.soon(away ? everyAway : every)
  }

  /** Begins to listen, if nothing listens. That it cannot is no trouble of its own: looking goes on. */
  async #listen (): Promise<void> {
    if (this.#closed || this.#unlisten !== undefined) return
    const end = await this.#driver.listen((head) => { this.#hear(head) }, () => { this.#unlisten = undefined }).catch(() => undefined)
    this.#unlisten = end && (() => {
      this.#unlisten = undefined
      end()
    })
    if (this.#closed) this.#unlisten?.()
  }
}
