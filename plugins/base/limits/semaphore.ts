interface SemaphoreOptions {
  /** Max holders at the same time. */
  readonly places: number
  /** Max holders of one owner at the same time; default: all places. Privileged owners have no such bound. */
  readonly perOwner?: number
  /** Places that only privileged owners get; default: none. */
  readonly reserved?: number
}

interface Waiter { readonly isPrivileged: boolean, readonly admit: () => void }

/** Admits a bounded number of holders at the same time. The others wait: owners take turns, and those of one owner stay in order. */
export class Semaphore {
  readonly #places: number
  readonly #perOwner: number
  readonly #reserved: number
  readonly #held = new Map<string, number>()
  /** Those that wait, by owner. The owner whose turn is next comes first. */
  readonly #waiting = new Map<string, Waiter[]>()
  #taken = 0
  /** Places that holders without privilege have. */
  #common = 0

  constructor ({ places, perOwner = places, reserved = 0 }: SemaphoreOptions) {
    this.#places = places
    this.#perOwner = perOwner
    this.#reserved = reserved
  }

  /**
   * Waits for a place.
   * @param owner the owner in whose name it is taken
   * @param isPrivileged the owner may use the reserved places, and is not bound by `perOwner`
   * @returns the function that releases it, which may be called more than once
   */
  async take (owner = '', isPrivileged = true): Promise<() => void> {
    if (!this.#waiting.has(owner) && this.#hasPlace(owner, isPrivileged)) this.#hold(owner, isPrivileged)
    else await new Promise<void>((resolve) => { this.#enqueue(owner, { isPrivileged, admit: resolve }) })
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.#leave(owner, isPrivileged)
    }
  }

  #hasPlace (owner: string, isPrivileged: boolean): boolean {
    if (this.#taken >= this.#places) return false
    return isPrivileged || (this.#common < this.#places - this.#reserved && (this.#held.get(owner) ?? 0) < this.#perOwner)
  }

  #hold (owner: string, isPrivileged: boolean): void {
    this.#taken++
    if (!isPrivileged) this.#common++
    this.#held.set(owner, (this.#held.get(owner) ?? 0) + 1)
  }

  #enqueue (owner: string, waiter: Waiter): void {
    const queue = this.#waiting.get(owner)
    if (queue) queue.push(waiter)
    else this.#waiting.set(owner, [waiter])
  }

  #leave (owner: string, isPrivileged: boolean): void {
    this.#taken--
    if (!isPrivileged) this.#common--
    const left = (this.#held.get(owner) ?? 0) - 1
    if (left > 0) this.#held.set(owner, left)
    else this.#held.delete(owner)
    for (const [each, queue] of this.#waiting) {
      const [first] = queue
      if (!first || !this.#hasPlace(each, first.isPrivileged)) continue
      queue.shift()
      // The owner's next turn is after everybody else's.
      this.#waiting.delete(each)
      if (queue.length > 0) this.#waiting.set(each, queue)
      this.#hold(each, first.isPrivileged)
      first.admit()
      return
    }
  }
}
