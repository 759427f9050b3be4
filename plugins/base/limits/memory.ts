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

  /** @param max in bytes */
  configure (max: number): void {
    if (max === this.#max) return
    this.#max = max
    this.#shares = new Shares(max, 'bytes in flight')
  }

  /** @param relieve closes the connection of the slowest reader; returns false if that frees no memory */
  setReliever (relieve: () => boolean): void { this.#relieve = relieve }

  /**
   * Adds to the memory in use, even beyond the budget; a negative number releases memory.
   * @param bytes the size in bytes times the memory that a byte takes, such as `baseLimits.unreadCost`
   * @param owner whose share it counts against; undefined: no share
   */
  add (bytes: number, owner?: string): void {
    if (owner === undefined) this.#held += bytes
    else this.#shares.remove(owner, -bytes)
  }

  /**
   * Closes the connections of slow readers until enough memory is free.
   * @param bytes as in `add`
   * @returns false if there is too little memory
   */
  makeRoom (bytes: number): boolean {
    while (this.held + bytes > this.#max) if (!this.#relieve()) return false
    return true
  }

  /** Reserves memory for an owner. @param bytes as in `add` @throws ShareError */
  reserve (owner: string, bytes: number): Release {
    const shares = this.#take(owner, bytes)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      shares.remove(owner, bytes)
    }
  }

  /** Opens an account for a text whose size grows while it is read. @param owner whose share it counts against */
  openAccount (owner: string): MemoryAccount {
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
    // Slow readers are closed first. Unread replies without an owner reduce what is left for owners.
    if (this.makeRoom(bytes)) this.#shares.add(owner, bytes, this.#held)
    else this.#shares.add(owner, Infinity)
    return this.#shares
  }
}

/** Reserves memory for one text that is being read, from an owner's share. */
class MemoryAccount {
  readonly #shares: Shares
  readonly #owner: string
  readonly #take: (bytes: number) => ShareError | undefined
  #bytes = 0
  #refusal: ShareError | undefined

  /** @param take reserves memory for the owner; returns an error if it cannot @param shares releases it */
  constructor (shares: Shares, owner: string, take: (bytes: number) => ShareError | undefined) {
    this.#shares = shares
    this.#owner = owner
    this.#take = take
  }

  /** Sets the size of the text, in bytes as received. @returns false if the text must be dropped for lack of memory */
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

  /** Whether memory was refused because the owner has used up its share. */
  get isOwnerLimit (): boolean { return this.#refusal?.isOwnerLimit === true }

  /** Releases all memory, after the receivers of the text have passed it on. */
  close (): void {
    if (this.#bytes === 0) return
    const bytes = this.#bytes
    this.#bytes = 0
    setImmediate(() => { this.#shares.remove(this.#owner, bytes) })
  }
}

export const memory = new MemoryBudget()
