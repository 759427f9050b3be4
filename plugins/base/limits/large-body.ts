import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { LoopBudget } from '../../../protocol/yield.ts'
import { Unread, type UnreadOptions } from './unread.ts'

export { lengthOf } from '../../../protocol/yield.ts'

/** Characters that are encoded at once, and bytes that are handed to the socket at once. */
const pieceSize = 64 * 1024
/** Size from which bytes are handed over without copying them, in bytes. */
const minUncopied = 16 * 1024

/** One part of an answer: text, or bytes of UTF-8. */
type BodyPart = string | Buffer

/**
 * Writes a large body to a response whose head is written, as `chunkedReply` does, with fewer system calls: small
 * pieces are written together with a large one.
 * @param length of all parts, in bytes of UTF-8
 */
export function writeLarge (raw: ServerResponse, parts: readonly BodyPart[], length: number): void {
  const pieces = piecesOf(parts)
  let rest = length
  new Unread(raw, undefined, () => rest).add()
  const budget = new LoopBudget()
  const writeNext = async (): Promise<void> => {
    await budget.pause()
    if (raw.destroyed) return
    const together: Buffer[] = []
    let size = 0
    while (size < pieceSize || rest < minUncopied) {
      const { value } = pieces.next()
      if (value === undefined) break
      together.push(value)
      size += value.length
      rest -= value.length
    }
    const last = together.pop()
    if (last === undefined) {
      raw.end()
      return
    }
    raw.cork()
    for (const bytes of together) raw.write(bytes)
    raw.write(last, (error) => { if (!error) void writeNext() })
    raw.uncork()
  }
  void writeNext()
}

/**
 * A large body as a stream: piece by piece, each when the client has read the one before. Unread pieces are not encoded
 * yet, but count as unread from the beginning. A client that reads at once does not hold the event loop.
 * @param length of all parts, in bytes of UTF-8
 */
export function chunkedReply (
  raw: ServerResponse, parts: readonly BodyPart[], length: number, options?: UnreadOptions
): Readable {
  const pieces = piecesOf(parts)
  let rest = length
  new Unread(raw, undefined, () => rest, options).add()
  const budget = new LoopBudget()
  const body = new Readable({
    highWaterMark: 1,
    read () { void budget.pause().then(pushNext) }
  })
  const pushNext = (): void => {
    if (body.destroyed) return
    const { value } = pieces.next()
    rest -= value?.length ?? 0
    body.push(value ?? null)
  }
  return body
}

/** Puts small bytes together; large ones are handed over as they are. */
function * piecesOf (parts: readonly BodyPart[]): Generator<Buffer, undefined> {
  let small: Buffer[] = []
  let size = 0
  const joined = (): Buffer[] => {
    const piece = size === 0 ? [] : [Buffer.concat(small, size)]
    small = []
    size = 0
    return piece
  }
  for (const bytes of bytesOf(parts)) {
    if (size + bytes.length > pieceSize || bytes.length >= minUncopied) yield * joined()
    if (bytes.length >= minUncopied) yield bytes
    else {
      small.push(bytes)
      size += bytes.length
    }
  }
  yield * joined()
}

function * bytesOf (parts: readonly BodyPart[]): Generator<Buffer, undefined> {
  for (const part of parts) {
    if (typeof part !== 'string') {
      yield part
      continue
    }
    for (let at = 0; at < part.length;) {
      let end = Math.min(part.length, at + pieceSize)
      if (end < part.length && isHighSurrogate(part.charCodeAt(end - 1))) end--
      yield Buffer.from(part.slice(at, end))
      at = end
    }
  }
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
