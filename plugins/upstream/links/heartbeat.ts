/** The settings of the two timers of a connected server. */
interface HeartbeatOptions {
  /** The interval at which `check` is called, in ms; undefined: never. */
  keepAlive: number | undefined
  check: () => void
  /** The idle time after which `stop` is called, in ms; undefined: never. */
  idle: number | undefined
  /** Returns the time since which the server has been idle, in ms since the epoch; undefined if it is in use. */
  idleSince: () => number | undefined
  stop: () => void
}

/** The timers that check a connected server, and stop it when it is idle. They do not keep this process alive. */
export class ConnectionTimers {
  #timers: NodeJS.Timeout[] = []

  start ({ keepAlive, check, idle, idleSince, stop }: HeartbeatOptions): void {
    this.stop()
    if (keepAlive !== undefined) this.#timers.push(setInterval(check, keepAlive).unref())
    if (idle === undefined) return
    this.#timers.push(setInterval(() => {
      const since = idleSince()
      if (since !== undefined && Date.now() - since >= idle) stop()
    }, Math.min(idle, 30_000)).unref())
  }

  stop (): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#timers = []
  }
}

/**
 * Returns the delay before the next attempt to connect, in ms. The max delay is 1 s after the first failure, and
 * doubles with each further failure, up to 60 s. The result is random, between half of the max delay and all of it.
 * @param random returns a number from 0 to 1
 */
export function backoffDelay (failures: number, random: () => number = Math.random): number {
  const full = Math.min(1_000 * 2 ** Math.max(failures - 1, 0), 60_000)
  return full / 2 + random() * full / 2
}

/** If a connection lasted longer than this, in ms, the delays before new attempts start at 1 s again. */
export const delayResetTime = 60_000
