import { limits } from './index.ts'
import { Shares, type Release } from './shares.ts'

/**
 * The memory that texts in flight take: answers of upstreams that are being read, bodies of requests, and replies that their clients have
 * not read yet. They have one budget for all, since each of them alone could be sent without end (DECISIONS §15).
 */
export class MemoryBudget {
  #max: number = limits.memory
  #shares = new Shares(limits.memory, 'bytes in flight')
  #held = 0
  #relieve: () => boolean = () => false

  /** In bytes. */
  get held (): number { return this.#held + this.#shares.taken }
  get max (): number { return this.#max }

  /** @param max in bytes */
  configure (max: number): void {
    if (max === this.#max) return
    this.#max = max
    this.#shares = new Shares(max, 'bytes in flight')
  }

  /** @param relieve called when the budget is used up: it closes the connection of the slowest reader, or returns false */
  relieveBy (relieve: () => boolean): void { this.#relieve = relieve }

  /** Adds to what is held, or takes from it, whether or not it fits. @param bytes as they cost */
  add (bytes: number): void { this.#held += bytes }

  /** Whether so much more fits, once slow readers have been closed to make room. @param bytes as they cost */
  fits (bytes: number): boolean {
    while (this.held + bytes > this.#max) if (!this.#relieve()) return false
    return true
  }

  /** Takes memory in the name of an owner. @param bytes as they cost @throws ShareError */
  take (owner: string, bytes: number): Release {
    // What has no owner leaves less for those that have one.
    if (!this.fits(bytes)) return this.#shares.take(owner, Infinity)
    return this.#shares.take(owner, bytes)
  }

  /** An account for a text that grows while it is read. */
  open (): MemoryAccount { return new MemoryAccount(this) }
}

/** The memory of one text that is being read. */
export class MemoryAccount {
  readonly #budget: MemoryBudget
  #bytes = 0

  constructor (budget: MemoryBudget) {
    this.#budget = budget
  }

  /** Sets its size. @param size in bytes, as received @returns false when the budget is used up: the text must be given up */
  resize (size: number): boolean {
    const bytes = size > limits.smallText ? size * limits.answerCost : 0
    if (bytes === this.#bytes) return true
    if (bytes > this.#bytes && !this.#budget.fits(bytes - this.#bytes)) return false
    this.#budget.add(bytes - this.#bytes)
    this.#bytes = bytes
    return true
  }

  /** Gives everything back, after those who got the text have passed it on. */
  close (): void {
    if (this.#bytes === 0) return
    const bytes = this.#bytes
    this.#bytes = 0
    setImmediate(() => { this.#budget.add(-bytes) })
  }
}

/** The budget of this process. */
export const memory = new MemoryBudget()
