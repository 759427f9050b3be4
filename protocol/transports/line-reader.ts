import { TextPieces } from '../pieces.ts'

/** Splits a text that comes in pieces into lines. Each piece is looked at once, however small the pieces are. */
export class LineReader {
  readonly #limit: number
  readonly #onLine: (line: string) => void
  /** The pieces of the line that has not ended yet, as far as it is kept. */
  readonly #begun = new TextPieces()

  /** @param limit max characters that are kept of a line; the rest of it is dropped */
  constructor (limit: number, onLine: (line: string) => void) {
    this.#limit = limit
    this.#onLine = onLine
  }

  push (text: string): void {
    let from = 0
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      this.#keep(text.slice(from, at))
      from = at + 1
      this.#onLine(this.#begun.take(''))
    }
    this.#keep(text.slice(from))
  }

  #keep (piece: string): void {
    const kept = piece.slice(0, this.#limit - this.#begun.length)
    if (kept !== '') this.#begun.push(kept)
  }
}
