import { ShareError, Shares, type Release } from './shares.ts'
import { baseLimits } from './limits.ts'

/**
 * The memory of texts in flight: answers of upstreams that are being read, bodies of requests, and replies that their
 * clients have not read yet. All share one budget, since each of them alone could be sent without end.
 */
export class MemoryBudget {
  #max: number = baseLimits.memory
  #shares = new Shares(baseLimits.memory, 'bytes in flight')
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

  /**
   * @param relieve called when the budget is used up: it closes the connection of the slowest reader, or returns false
   */
  relieveBy (relieve: () => boolean): void { this.#relieve = relieve }

  /**
   * Adds to what is held, or takes from it, whether or not it fits.
   * @param bytes as they cost
   * @param owner whose share it counts in; undefined: nobody's
   */
  add (bytes: number, owner?: string): void {
    if (owner === undefined) this.#held += bytes
    else this.#shares.remove(owner, -bytes)
  }

  /** Whether so much more fits, once slow readers have been closed to make room. @param bytes as they cost */
  fits (bytes: number): boolean {
    while (this.held + bytes > this.#max) if (!this.#relieve()) return false
    return true
  }

  /** Takes memory in the name of an owner. @param bytes as they cost @throws ShareError */
  take (owner: string, bytes: number): Release {
    const shares = this.#take(owner, bytes)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      shares.remove(owner, bytes)
    }
  }

  /** An account for a text that grows while it is read. @param owner who causes it */
  open (owner: string): MemoryAccount {
    return new MemoryAccount(this.#shares, owner, (bytes) => {
      try {
        this.#take(owner, bytes)
        return undefined
      } catch (error) {
        if (!(error instanceof ShareError)) throw error
        return error
      }
    })
  }

  /** @throws ShareError */
  #take (owner: string, bytes: number): Shares {
    // Slow readers are closed first, to make room. Replies that are not read have no owner, and leave less for those
    // that have one.
    if (this.fits(bytes)) this.#shares.add(owner, bytes, this.#held)
    else this.#shares.add(owner, Infinity)
    return this.#shares
  }
}

/** The memory of one text that is being read, in the name of an owner. */
class MemoryAccount {
  readonly #shares: Shares
  readonly #owner: string
  readonly #take: (bytes: number) => ShareError | undefined
  #bytes = 0
  #refusal: ShareError | undefined

  /** @param take takes memory in the owner's name, or says why there is none @param shares that it is given back to */
  constructor (shares: Shares, owner: string, take: (bytes: number) => ShareError | undefined) {
    this.#shares = shares
    this.#owner = owner
    this.#take = take
  }

  /**
   * Sets its size.
   * @param size in bytes, as received
   * @returns false when there is no memory left for it: the text must be given up
   */
  resize (size: number): boolean {
    const bytes = size > baseLimits.smallText ? size * baseLimits.answerCost : 0
    if (bytes > this.#bytes) {
      this.#refusal = this.#take(bytes - this.#bytes)
      if (this.#refusal) return false
    }
    if (bytes < this.#bytes) this.#shares.remove(this.#owner, this.#bytes - bytes)
    this.#bytes = bytes
    return true
  }

  /** Whether there was no memory left because the owner has used up its share. */
  get isOwners (): boolean { return this.#refusal?.isOwners === true }

  /** Gives everything back, after those who got the text have passed it on. */
  close (): void {
    if (this.#bytes === 0) return
    const bytes = this.#bytes
    this.#bytes = 0
    setImmediate(() => { this.#shares.remove(this.#owner, bytes) })
  }
}

/** The budget of this process. */
export const memory = new MemoryBudget()
