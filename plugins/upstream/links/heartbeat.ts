/** What is looked after, from time to time, while a server is connected. */
export interface HeartbeatOptions {
  /** Every so many ms `check` runs; undefined: never. */
  keepAlive: number | undefined
  check: () => void
  /** When `idleSince` (ms since the epoch; undefined: in use) is so many ms ago, `stop` runs; undefined: never. */
  idle: number | undefined
  idleSince: () => number | undefined
  stop: () => void
}

/** The two timers of a connected server. Neither keeps the process alive. */
export class Heartbeat {
  #timers: NodeJS.Timeout[] = []

  start ({ keepAlive, check, idle, idleSince, stop }: HeartbeatOptions): void {
    this.stop()
    if (keepAlive !== undefined) this.#timers.push(setInterval(check, keepAlive).unref())
    if (idle !== undefined) {
      this.#timers.push(setInterval(() => {
        const since = idleSince()
        if (since !== undefined && Date.now() - since >= idle) stop()
      }, Math.min(idle, 30_000)).unref())
    }
  }

  stop (): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#timers = []
  }
}
