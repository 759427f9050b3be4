/**
 * Entries of several owners, with a max number for all: beyond it, the oldest entry of the owner that holds most is forgotten, so that who
 * adds entries without end loses his own. An entry is as old as its last `set`.
 */
export class OwnedMap<Value> {
  readonly #max: number
  readonly #byOwner = new Map<string, Map<string, Value>>()
  #size = 0

  constructor (max: number) { this.#max = max }

  get (owner: string, key: string): Value | undefined { return this.#byOwner.get(owner)?.get(key) }

  set (owner: string, key: string, value: Value): void {
    const own = this.#byOwner.get(owner) ?? new Map<string, Value>()
    if (own.delete(key)) this.#size--
    own.set(key, value)
    this.#size++
    this.#byOwner.set(owner, own)
    if (this.#size > this.#max) this.#forgetOldestOf(this.#largest(owner, own))
  }

  /** The owner that holds most. Who holds a tenth of all is taken for that: all are looked at only for owners that hold little. */
  #largest (owner: string, own: ReadonlyMap<string, Value>): string {
    if (own.size > this.#max / 10) return owner
    let [largest, most] = [owner, own.size]
    for (const [each, { size }] of this.#byOwner) if (size > most) [largest, most] = [each, size]
    return largest
  }

  #forgetOldestOf (owner: string): void {
    const own = this.#byOwner.get(owner)
    const [oldest] = own?.keys() ?? []
    if (own === undefined || oldest === undefined) return
    own.delete(oldest)
    this.#size--
    if (own.size === 0) this.#byOwner.delete(owner)
  }
}
