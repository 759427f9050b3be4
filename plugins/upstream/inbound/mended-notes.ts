import { mendedAt } from '../../../protocol/mending.ts'
import { truncate } from '../../../protocol/text.ts'

/** Max sentences. Methods are names that the server chooses. */
const most = 20
const longestName = 100

/** What of a server's messages, beside its lists, was mended: one sentence for each kind of message, told once. */
export class MendedNotes {
  readonly #byMessage = new Map<string, string>()
  readonly #warn: (sentence: string) => void

  /** @param warn called with each sentence */
  constructor (warn: (sentence: string) => void) { this.#warn = warn }

  get sentences (): string[] { return [...this.#byMessage.values()] }

  readonly add = (what: string, places: readonly string[]): void => {
    if (this.#byMessage.has(what) || this.#byMessage.size >= most) return
    const sentence = `${truncate(what, longestName)}: ${mendedAt(places)}`
    this.#byMessage.set(what, sentence)
    this.#warn(sentence)
  }
}
