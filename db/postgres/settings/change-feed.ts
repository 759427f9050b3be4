import pLimit from 'p-limit'
import type { DatabaseDriver } from '../connection/driver.ts'

/** Interval between polls, in ms. NOTIFY is faster, but a notification can be lost. */
const pollInterval = 3_000
/** Interval between polls while the database is unavailable, or no connection listens for notifications, in ms. */
const fallbackInterval = 1_000
/** Time from the loss of the listening connection until the next poll, which opens a new one, in ms. */
const reconnectDelay = 100

interface ChangeFeedOptions {
  driver: DatabaseDriver
  /** Reads the commits of other replicas; `hasChanged`: whether there were any. Never throws. */
  poll: () => Promise<{ hasChanged: boolean, isUnavailable: boolean }>
  /** Called for each notification, with the id of the commit that it announces. */
  onNotification: (head: string) => void
}

/** Notices commits of other replicas: listens for their notifications, and polls in case a notification is lost. */
export class ChangeFeed {
  readonly #driver: DatabaseDriver
  readonly #pollStore: ChangeFeedOptions['poll']
  readonly #onNotification: ChangeFeedOptions['onNotification']
  /** Runs one poll at a time, since two concurrent polls would open two listening connections. */
  readonly #limit = pLimit(1)
  #timer: NodeJS.Timeout | undefined
  #unlisten: (() => void) | undefined
  #isClosed = false

  constructor ({ driver, poll, onNotification }: ChangeFeedOptions) {
    this.#driver = driver
    this.#pollStore = poll
    this.#onNotification = onNotification
  }

  async open (): Promise<void> {
    await this.#listen()
    this.schedulePoll(pollInterval)
  }

  /** Schedules the next poll, in place of one already scheduled. @param delay in ms */
  schedulePoll (delay: number): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(() => { void this.#limit(async () => { await this.#poll() }) }, delay).unref()
  }

  close (): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#unlisten?.()
  }

  async #poll (): Promise<void> {
    const wasListening = this.#unlisten !== undefined
    await this.#listen()
    const { hasChanged, isUnavailable } = await this.#pollStore()
    // A change without a notification means that the listening connection has died silently.
    if (hasChanged && wasListening) this.#unlisten?.()
    this.schedulePoll(isUnavailable || this.#unlisten === undefined ? fallbackInterval : pollInterval)
  }

  /** Opens the listening connection, unless it is open. A failure is ignored, since polling continues. */
  async #listen (): Promise<void> {
    if (this.#isClosed || this.#unlisten !== undefined) return
    const stop = await this.#driver.listen((head) => { this.#onNotification(head) }, () => { this.#reconnect() })
      .catch(() => undefined)
    this.#unlisten = stop && (() => {
      this.#unlisten = undefined
      stop()
    })
    if (this.#isClosed) this.#unlisten?.()
  }

  #reconnect (): void {
    this.#unlisten = undefined
    this.schedulePoll(reconnectDelay)
  }
}
