import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { LoopBudget } from '../../../protocol/yield.ts'
import { turns } from './turns.ts'
import { Unread, type UnreadOptions } from './unread.ts'

export { lengthOf } from '../../../protocol/yield.ts'

/** Bytes that are handed to the socket at once. */
const pieceSize = 64 * 1024
/** Buffers that were used, for the next piece of any answer: memory that the system has not provided yet costs more than the copy. */
const used: Buffer[] = []
const mostUsed = 16
/** Size of bytes that are written without copying them, in bytes. */
const worthSharing = 16 * 1024

/** One part of an answer: text, or bytes of UTF-8. */
export type BodyPart = string | Buffer

/**
 * Writes a large body piece by piece, each when the one before has gone to the system. The text itself is all that it holds in memory: what
 * the client has not read is not encoded yet. It counts as unread all the same. A client that reads at once does not hold the event loop.
 * @param length of all parts, in bytes of UTF-8
 */
export function writeLarge (raw: ServerResponse, parts: readonly BodyPart[], length: number): void {
  const pieces = piecesOf(parts)
  let rest = length
  const unread = new Unread(raw, undefined, () => rest)
  const budget = new LoopBudget()
  const writeNext = async (): Promise<void> => {
    await budget.pause()
    if (raw.destroyed) return
    const written: Piece[] = []
    let size = 0
    // Small pieces are written together with a large one (`cork`): each write is a system call.
    while (size < pieceSize || rest < worthSharing) {
      const { done, value } = pieces.next()
      if (done === true) break
      written.push(value)
      size += value.bytes.length
      rest -= value.bytes.length
    }
    const last = written.pop()
    if (!last) {
      raw.end()
      return
    }
    raw.cork()
    for (const { bytes } of written) raw.write(bytes)
    raw.write(last.bytes, (error) => {
      for (const { buffer } of [...written, last]) giveBack(buffer)
      if (!error) void writeNext()
    })
    raw.uncork()
  }
  void writeNext()
  unread.add()
}

/**
 * A large body as a stream, for Fastify to send: piece by piece, each when the client has read what was before it, and in a turn of the
 * owner's, if it has one. It counts as unread from the beginning.
 * @param length of all parts, in bytes of UTF-8
 */
export function chunkedReply (raw: ServerResponse, parts: readonly BodyPart[], length: number, options?: UnreadOptions): Readable {
  const pieces = piecesOf(parts)
  let rest = length
  /** The buffers of pieces that were handed over, and may be on their way still. */
  const handed: Array<Buffer | undefined> = []
  const unread = new Unread(raw, undefined, () => rest, options)
  unread.add()
  const budget = new LoopBudget()
  const body = new Readable({
    highWaterMark: 1,
    read () {
      if (options?.owner === undefined) void budget.pause().then(writeNext)
      else void turns.step(options.owner, writeNext)
    }
  })
  const writeNext = (): void => {
    if (body.destroyed) return
    // Nothing waits, neither here nor at the socket: the system has all that was handed over.
    if (body.readableLength === 0 && raw.writableLength === 0) handed.splice(0).forEach(giveBack)
    const { done, value } = pieces.next()
    if (done === true) {
      body.push(null)
      return
    }
    rest -= value.bytes.length
    handed.push(value.buffer)
    body.push(value.bytes)
  }
  return body
}

/** A buffer that nothing reads any more. */
function giveBack (buffer: Buffer | undefined): void {
  if (buffer && used.length < mostUsed) used.push(buffer)
}

interface Piece {
  bytes: Buffer
  /** The buffer that they are in, which can be used again once they are written. */
  buffer?: Buffer
}

/** Bytes that are large already are handed over as they are; all else is put together in buffers of one size. */
function * piecesOf (parts: readonly BodyPart[]): Generator<Piece, undefined> {
  let buffer: Buffer | undefined
  let size = 0
  const full = (): Piece[] => {
    if (!buffer) return []
    const piece = { bytes: buffer.subarray(0, size), buffer }
    buffer = undefined
    size = 0
    return [piece]
  }
  for (const part of parts) {
    if (typeof part !== 'string' && part.length >= worthSharing) {
      yield * full()
      yield { bytes: part }
      continue
    }
    // ASCII is encoded by copying it. Of other text, a character (UTF-16 unit) may take three bytes.
    const isAscii = typeof part !== 'string' || Buffer.byteLength(part) === part.length
    const cost = isAscii ? 1 : 3
    for (let at = 0; at < part.length;) {
      if (size + cost * 2 > pieceSize) yield * full()
      buffer ??= used.pop() ?? Buffer.allocUnsafeSlow(pieceSize)
      let end = Math.min(part.length, at + Math.floor((pieceSize - size) / cost))
      if (typeof part === 'string') {
        if (end < part.length && isHighSurrogate(part.charCodeAt(end - 1))) end--
        size += buffer.write(part.slice(at, end), size, isAscii ? 'latin1' : 'utf8')
      } else size += part.copy(buffer, size, at, end)
      at = end
    }
  }
  yield * full()
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
