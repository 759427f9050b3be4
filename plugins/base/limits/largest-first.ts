/** Something with a size. `place` is written by the `LargestFirst` that holds it, and by nothing else. */
export interface Sized {
  size: number
  place: number
  /** Of two of one size, the one with the lower number comes first. */
  readonly since: number
}

/**
 * Items of which the largest is known at all times: a binary heap. To add, change or remove one takes steps in proportion to the logarithm
 * of their number.
 */
export class LargestFirst<Item extends Sized> {
  readonly #heap: Item[] = []

  /** The largest item. */
  get first (): Item | undefined { return this.#heap[0] }

  add (item: Item): void {
    item.place = this.#heap.push(item) - 1
    this.#rise(item)
  }

  /** Moves an item to its place, after its size has changed. */
  update (item: Item): void {
    this.#rise(item)
    this.#sink(item)
  }

  remove (item: Item): void {
    const last = this.#heap.pop()
    if (last === undefined || last === item) return
    this.#put(last, item.place)
    this.update(last)
  }

  #rise (item: Item): void {
    for (;;) {
      const parent = this.#heap[(item.place - 1) >> 1]
      if (parent === undefined || !isBefore(item, parent)) return
      this.#swap(parent, item)
    }
  }

  #sink (item: Item): void {
    for (;;) {
      const [left, right] = [this.#heap[2 * item.place + 1], this.#heap[2 * item.place + 2]]
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left
      if (child === undefined || !isBefore(child, item)) return
      this.#swap(item, child)
    }
  }

  #swap (upper: Item, lower: Item): void {
    const { place } = lower
    this.#put(lower, upper.place)
    this.#put(upper, place)
  }

  #put (item: Item, place: number): void {
    this.#heap[place] = item
    item.place = place
  }
}

const isBefore = (one: Sized, other: Sized): boolean => one.size > other.size || (one.size === other.size && one.since < other.since)
