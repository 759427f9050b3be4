/** Finds the ranges to remove from an object or a list while its parts are read one by one. */
export class RemovedRun {
  /** The start index of the current run of removed parts; undefined outside a run. */
  #start: number | undefined
  #end = 0
  /** The index after the last part that is kept. */
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

  /** @param isCut whether unread parts may follow: then the last run is kept */
  end (isCut: boolean, edit: (start: number, end: number, text: string) => void): void {
    if (this.#start !== undefined && !isCut) edit(this.#kept ?? this.#start, this.#end, '')
  }
}
