/** Max texts per `window`, in ms: of one owner, and of all. */
interface QuotaBounds { readonly perOwner: number, readonly all: number, readonly window: number }

/** Counts the texts that are embedded: they cost money, and servers may list others all the time. */
export class Quota {
  readonly #bounds: QuotaBounds
  readonly #now: () => number
  readonly #taken = new Map<string, number>()
  #all = 0
  #began = -Infinity

  /** @param now a clock, in ms */
  constructor (bounds: QuotaBounds, now: () => number = () => performance.now()) {
    this.#bounds = bounds
    this.#now = now
  }

  /** @param owner who has a bound of its own; undefined: only the one of all @returns false: the bound is reached */
  take (owner: string | undefined): boolean {
    const { perOwner, all, window } = this.#bounds
    if (this.#now() - this.#began >= window) {
      this.#began = this.#now()
      this.#taken.clear()
      this.#all = 0
    }
    const taken = owner === undefined ? 0 : this.#taken.get(owner) ?? 0
    if (this.#all >= all || (owner !== undefined && taken >= perOwner)) return false
    this.#all++
    if (owner !== undefined) this.#taken.set(owner, taken + 1)
    return true
  }

  /** Gives a text back that was not embedded. */
  give (owner: string | undefined): void {
    this.#all = Math.max(0, this.#all - 1)
    if (owner !== undefined) this.#taken.set(owner, Math.max(0, (this.#taken.get(owner) ?? 0) - 1))
  }
}
