// Collects bytes and text that arrive in pieces. Limits count only the bytes or characters in the pieces, so many small
// pieces must not take much more memory than that. In addition to its content, a buffer takes about 200 bytes, or keeps
// in memory the larger buffer of which it is a slice; a string takes about 30 bytes.

/** Size of the blocks into which small buffers are copied, in bytes. Most buffers of at least this size are kept. */
const blockSize = 16 * 1024

/** Bytes in order of arrival, in few buffers. */
export class Chunks {
  #chunks: Buffer[] = []
  /** The block of which the last chunk is a slice, and the number of bytes used in it. */
  #block: Buffer | undefined
  #used = 0
  #length = 0

  /** The number of bytes held. */
  get length (): number { return this.#length }

  push (chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#length += chunk.length
    // The first chunk is usually the only one, and not copied.
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

  /** Returns all bytes as chunks, and empties the collection. */
  take (): Buffer[] {
    const chunks = this.#chunks
    this.#chunks = []
    this.#block = undefined
    this.#length = 0
    return chunks
  }

  /** Returns all bytes as one buffer, and empties the collection. */
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

/** Min length of pieces that are kept as they are, in characters. Shorter pieces are joined, `maxCrumbs` at a time. */
const minPiece = 1024
const maxCrumbs = 256

/**
 * A text that arrives in pieces, held in few strings. The strings are joined with `join`, since `+` would create ropes,
 * which V8 copies again later.
 */
export class TextPieces {
  #pieces: string[] = []
  #crumbs: string[] = []
  #length = 0

  /** The number of characters held. */
  get length (): number { return this.#length }

  push (piece: string): void {
    this.#length += piece.length
    if (piece.length >= minPiece) {
      this.#join()
      this.#pieces.push(piece)
    } else if (this.#crumbs.push(piece) >= maxCrumbs) this.#join()
  }

  /** Returns the whole text followed by `end`, and empties the collection. */
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

/**
 * Splits text that arrives in pieces into lines. Each piece is scanned once, however small. A last line without a line
 * feed is not reported.
 */
export class LineReader {
  readonly #limit: number
  readonly #onLine: (line: string) => void
  /** The pieces of the incomplete line. */
  readonly #begun = new TextPieces()

  /** @param limit max characters to keep of a line; the rest is dropped */
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
