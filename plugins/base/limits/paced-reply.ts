import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { LoopBudget } from '../../../protocol/yield.ts'
import { UnreadReply, type UnreadReplyOptions } from './unread.ts'

/** Max characters encoded at once, and max total size of small buffers that are joined into one piece, in bytes. */
const pieceSize = 64 * 1024
/** Min size of buffers that are passed on without a copy, in bytes. */
const minUncopied = 16 * 1024

/** One part of a response: text, or UTF-8 bytes. */
type BodyPart = string | Buffer

/**
 * Returns a large body as a stream of pieces. Each piece is encoded when the client has read the previous one. Between
 * pieces, the stream yields to the event loop if it has run too long. The whole body counts as unread from the start.
 * @param length the total length of the parts, in bytes of UTF-8
 */
export function pacedReply (
  raw: ServerResponse, parts: readonly BodyPart[], length: number, options?: UnreadReplyOptions
): Readable {
  const pieces = piecesOf(parts)
  let rest = length
  new UnreadReply(raw, undefined, () => rest, options).recordWrite()
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

/** Joins small pieces; large ones are passed on without a copy. */
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
