// Collects bytes and text that arrive in pieces. Memory is counted by their size, so that tiny pieces must not add
// overhead: a buffer costs some 200 bytes, or keeps the larger one that it is a part of; a string costs some 30 bytes.

/** Size from which a buffer is kept as it is, in bytes, and that of the blocks into which smaller ones are copied. */
const blockSize = 16 * 1024

/** Bytes in the order in which they came, in few buffers. */
export class Chunks {
  #chunks: Buffer[] = []
  /** The block that is the last of the chunks, and how much of it is used. */
  #block: Buffer | undefined
  #used = 0
  #length = 0

  /** The bytes that are held, in number. */
  get length (): number { return this.#length }

  push (chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#length += chunk.length
    // Most of what comes is one chunk, which is not copied.
    if (this.#chunks.length === 0 || (chunk.length >= blockSize && 2 * chunk.length >= chunk.buffer.byteLength)) {
      this.#chunks.push(chunk)
      this.#block = undefined
      return
    }
    for (let at = 0; at < chunk.length;) {
      const block = this.#block ??= this.#begin()
      const copied = chunk.copy(block, this.#used, at)
      at += copied
      this.#used += copied
      this.#chunks[this.#chunks.length - 1] = block.subarray(0, this.#used)
      if (this.#used === blockSize) this.#block = undefined
    }
  }

  /** All that is held, in chunks; nothing is held any more. */
  take (): Buffer[] {
    const chunks = this.#chunks
    this.#chunks = []
    this.#block = undefined
    this.#length = 0
    return chunks
  }

  /** The same as one buffer. */
  takeWhole (): Buffer {
    const chunks = this.take()
    return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
  }

  #begin (): Buffer {
    const block = Buffer.allocUnsafeSlow(blockSize)
    this.#used = 0
    this.#chunks.push(block)
    return block
  }
}

/** Texts shorter than this, in characters, are joined, at most `maxCrumbs` at a time. */
const crumb = 1024
const maxCrumbs = 256

/**
 * A text in the order in which its parts came, in few strings. It is joined at once: what is put together of two is
 * copied again.
 */
export class TextPieces {
  #pieces: string[] = []
  #crumbs: string[] = []
  #length = 0

  /** In characters. */
  get length (): number { return this.#length }

  push (piece: string): void {
    this.#length += piece.length
    if (piece.length >= crumb) {
      this.#join()
      this.#pieces.push(piece)
    } else if (this.#crumbs.push(piece) >= maxCrumbs) this.#join()
  }

  /** The whole text, with an end; nothing is held any more. */
  take (end: string): string {
    if (this.#length === 0) return end
    const text = [...this.#pieces, ...this.#crumbs, end].join('')
    this.#pieces = []
    this.#crumbs = []
    this.#length = 0
    return text
  }

  #join (): void {
    if (this.#crumbs.length === 0) return
    this.#pieces.push(this.#crumbs.join(''))
    this.#crumbs = []
  }
}

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
