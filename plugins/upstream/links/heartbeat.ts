/** The settings of the two timers of a connected server. */
interface HeartbeatOptions {
  /** The interval of `check`, in ms; undefined: never. */
  keepAlive: number | undefined
  check: () => void
  /** `stop` runs once the server has been idle for this long, in ms; undefined: never. */
  idle: number | undefined
  /** The time since which the server has been idle, in ms since the epoch; undefined if it is in use. */
  idleSince: () => number | undefined
  stop: () => void
}

/** The timers that check a connected server, and stop it when it is idle. They do not keep the process alive. */
export class Heartbeat {
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

/** The delay before the next attempt, in ms: a random part, at least half, of a time that doubles from 1 s to 60 s. */
export function backoffDelay (failures: number, random: () => number = Math.random): number {
  const full = Math.min(1_000 * 2 ** Math.max(failures - 1, 0), 60_000)
  return full / 2 + random() * full / 2
}

/** After a connection that lasted longer than this, in ms, the delays start at 1 s again. */
export const delayResetTime = 60_000
