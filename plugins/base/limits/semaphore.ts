interface SemaphoreOptions {
  /** Max concurrent holders. */
  readonly places: number
  /** Max concurrent holders of one owner; default: all places. It does not limit privileged holders. */
  readonly perOwner?: number
  /** The number of places for privileged holders only; default: 0. */
  readonly reserved?: number
}

interface Waiter { readonly isPrivileged: boolean, readonly admit: () => void }

/**
 * Admits a limited number of holders at a time. Waiting owners take turns; each owner's waiters are admitted in order.
 */
export class Semaphore {
  readonly #places: number
  readonly #perOwner: number
  readonly #reserved: number
  readonly #held = new Map<string, number>()
  /** Waiters by owner, in the order of the owners' turns. */
  readonly #waiting = new Map<string, Waiter[]>()
  #taken = 0
  /** The number of places held without privilege. */
  #unprivileged = 0

  constructor ({ places, perOwner = places, reserved = 0 }: SemaphoreOptions) {
    this.#places = places
    this.#perOwner = perOwner
    this.#reserved = reserved
  }

  /**
   * Waits for a place.
   * @param isPrivileged whether the holder may use reserved places, and is not limited by `perOwner`
   * @returns a function that releases the place; it may be called more than once
   */
  async take (owner = '', isPrivileged = true): Promise<() => void> {
    const queue = this.#waiting.get(owner) ?? []
    if (queue.length === 0 && this.#hasPlace(owner, isPrivileged)) this.#count(owner, isPrivileged, 1)
    else {
      this.#waiting.set(owner, queue)
      await new Promise<void>((resolve) => { queue.push({ isPrivileged, admit: resolve }) })
    }
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.#count(owner, isPrivileged, -1)
      this.#admitNext()
    }
  }

  #hasPlace (owner: string, isPrivileged: boolean): boolean {
    if (this.#taken >= this.#places) return false
    return isPrivileged ||
      (this.#unprivileged < this.#places - this.#reserved && (this.#held.get(owner) ?? 0) < this.#perOwner)
  }

  #count (owner: string, isPrivileged: boolean, change: 1 | -1): void {
    this.#taken += change
    if (!isPrivileged) this.#unprivileged += change
    const held = (this.#held.get(owner) ?? 0) + change
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
  }

  #admitNext (): void {
    for (const [owner, queue] of this.#waiting) {
      const [first] = queue
      if (!first || !this.#hasPlace(owner, first.isPrivileged)) continue
      queue.shift()
      // The owner's next turn comes after those of the others.
      this.#waiting.delete(owner)
      if (queue.length > 0) this.#waiting.set(owner, queue)
      this.#count(owner, first.isPrivileged, 1)
      first.admit()
      return
    }
  }
}
