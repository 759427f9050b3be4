import { ShareError, Shares, type Release } from './shares.ts'
import { baseLimits } from './limits.ts'

/**
 * Limits the total memory of texts in flight: upstream answers that are being read, request bodies, and replies that
 * clients have not read yet.
 */
export class MemoryBudget {
  #max: number = baseLimits.memory
  #shares = new Shares(baseLimits.memory, 'bytes in flight')
  #held = 0
  #relieve: () => boolean = () => false

  /** The memory in use, in bytes. */
  get held (): number { return this.#held + this.#shares.taken }
  get max (): number { return this.#max }

  /** Sets the size of the budget, in bytes. Must not be called while memory is reserved. */
  configure (max: number): void {
    if (max === this.#max) return
    this.#max = max
    this.#shares = new Shares(max, 'bytes in flight')
  }

  /** @param relieve frees memory by closing the slowest reader's connection; returns false if it can free none */
  setReliever (relieve: () => boolean): void { this.#relieve = relieve }

  /**
   * Adds to the memory in use, even beyond the budget; a negative number releases memory.
   * @param bytes the size in bytes times the memory that each byte takes, such as `baseLimits.unreadCost`
   * @param owner the owner against whose share the memory counts; undefined: no share
   */
  add (bytes: number, owner?: string): void {
    if (owner === undefined) this.#held += bytes
    else this.#shares.remove(owner, -bytes)
  }

  /**
   * Closes the connections of slow readers until enough memory is free.
   * @param bytes the memory needed, as in `add`
   * @returns false if there is still too little memory
   */
  makeRoom (bytes: number): boolean {
    while (this.held + bytes > this.#max) if (!this.#relieve()) return false
    return true
  }

  /** Reserves memory for an owner. @param bytes the memory needed, as in `add` @throws ShareError */
  reserve (owner: string, bytes: number): Release {
    this.take(owner, bytes)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.add(-bytes, owner)
    }
  }

  /** Opens an account for a text that grows while it is read. @param owner the owner against whose share it counts */
  openAccount (owner: string): MemoryAccount { return new MemoryAccount(this, owner) }

  /** Adds to the memory in use by an owner, if there is room. @param bytes as in `add` @throws ShareError */
  take (owner: string, bytes: number): void {
    // Slow readers are closed first. Memory that counts against no share reduces what is left for the owners. Without
    // room, adding Infinity throws.
    if (this.makeRoom(bytes)) this.#shares.add(owner, bytes, this.#held)
    else this.#shares.add(owner, Infinity)
  }
}

/** Reserves memory for one text that is being read, from an owner's share. */
class MemoryAccount {
  readonly #budget: MemoryBudget
  readonly #owner: string
  #bytes = 0
  #refusal: ShareError | undefined

  constructor (budget: MemoryBudget, owner: string) {
    this.#budget = budget
    this.#owner = owner
  }

  /**
   * Sets the size of the text, in bytes as received. A size of at most `baseLimits.smallText` does not count.
   * @returns false if the text must be dropped for lack of memory
   */
  resize (size: number): boolean {
    const bytes = size > baseLimits.smallText ? size * baseLimits.answerCost : 0
    try {
      if (bytes > this.#bytes) this.#budget.take(this.#owner, bytes - this.#bytes)
      else this.#budget.add(bytes - this.#bytes, this.#owner)
    } catch (error) {
      if (!(error instanceof ShareError)) throw error
      this.#refusal = error
      return false
    }
    this.#bytes = bytes
    return true
  }

  /** Whether memory was refused because the owner has used up its share. */
  get isOwnerLimit (): boolean { return this.#refusal?.isOwnerLimit === true }

  /** Releases the memory in the next turn of the event loop, when the receivers of the text have passed it on. */
  close (): void {
    if (this.#bytes === 0) return
    const bytes = this.#bytes
    this.#bytes = 0
    setImmediate(() => { this.#budget.add(-bytes, this.#owner) })
  }
}

/** The memory budget of this process. */
export const memoryBudget = new MemoryBudget()
