/** Numbers in a row, four bytes each: places in a text, of which a text of megabytes may have millions. */
export class Offsets {
  #values = new Uint32Array(256)
  length = 0

  push (value: number): void {
    if (this.length === this.#values.length) {
      const larger = new Uint32Array(2 * this.length)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[this.length++] = value
  }

  /** 0 beyond the end. */
  at (index: number): number { return this.#values[index] ?? 0 }
}
