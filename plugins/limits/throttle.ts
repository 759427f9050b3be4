import { errors } from '../errors/list.ts'

/** Counts failures by key, and refuses more when there were too many in a while. Bounded: the oldest key goes first. */
export class Throttle {
  readonly #most: number
  readonly #window: number
  readonly #keys: number
  readonly #failures = new Map<string, number[]>()

  /** @param window in ms @param keys how many are remembered */
  constructor (most: number, window: number, keys = 10_000) {
    this.#most = most
    this.#window = window
    this.#keys = keys
  }

  /** @throws TooManyFailures with the seconds to wait */
  check (key: string, now = Date.now()): void {
    const recent = (this.#failures.get(key) ?? []).filter((at) => now - at < this.#window)
    const oldest = recent[0]
    if (recent.length >= this.#most && oldest !== undefined) throw new errors.TooManyFailures(Math.ceil((oldest + this.#window - now) / 1_000))
  }

  failed (key: string, now = Date.now()): void {
    const recent = (this.#failures.get(key) ?? []).filter((at) => now - at < this.#window)
    this.#failures.delete(key)
    this.#failures.set(key, [...recent, now].slice(-this.#most))
    const oldest = this.#failures.size > this.#keys ? this.#failures.keys().next().value : undefined
    if (oldest !== undefined) this.#failures.delete(oldest)
  }

  succeeded (key: string): void { this.#failures.delete(key) }
}
