/** Finds the ranges to remove from an object or a list, as its parts are read one by one. */
export class RemovedRun {
  /** The index at which the current run of removed parts begins; undefined outside a run. */
  #start: number | undefined
  #end = 0
  /** The index behind the last part that stays. */
  #kept: number | undefined

  next (
    start: number, end: number, isRemoved: boolean, edit: (start: number, end: number, text: string) => void
  ): void {
    if (isRemoved) {
      this.#start ??= start
      this.#end = end
      return
    }
    if (this.#start !== undefined) edit(this.#start, start, '')
    this.#start = undefined
    this.#kept = end
  }

  /** @param isCut parts may follow that were not read: the last run stays */
  end (isCut: boolean, edit: (start: number, end: number, text: string) => void): void {
    if (this.#start !== undefined && !isCut) edit(this.#kept ?? this.#start, this.#end, '')
  }
}
