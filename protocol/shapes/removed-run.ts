/** Removes members of an object, or elements of a list, together with their commas, while all are read in order. */
export class MemberRemover {
  /** The start index of the current run of removed parts; undefined outside a run. */
  #start: number | undefined
  #end = 0
  /** The index after the last part that is kept. */
  #kept: number | undefined

  /** Takes the next member or element. @param edit replaces a range of the text */
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

  /** Ends the list or object. @param isCut whether further parts may follow: then the last run is not removed */
  end (isCut: boolean, edit: (start: number, end: number, text: string) => void): void {
    if (this.#start !== undefined && !isCut) edit(this.#kept ?? this.#start, this.#end, '')
  }
}
