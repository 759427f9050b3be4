/** Max sentences of one reading. */
const most = 20

/** The sentences of one reading about what of a server's lists is left out: the first ones, and how many more there are. */
export class LeftOut {
  readonly sentences: string[] = []
  readonly #warn: (sentence: string) => void
  #more = 0

  /** @param warn called with each of the sentences that are kept */
  constructor (warn: (sentence: string) => void) { this.#warn = warn }

  readonly add = (sentence: string): void => {
    if (this.sentences.length < most) this.#add(sentence)
    else this.#more++
  }

  end (): void {
    if (this.#more > 0) this.#add(`${this.#more} more of what it lists are left out`)
  }

  #add (sentence: string): void {
    this.sentences.push(sentence)
    this.#warn(sentence)
  }
}
