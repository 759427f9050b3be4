import { setTimeout as sleep } from 'node:timers/promises'
import type { SettingsDocument } from '../apply.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'
import { jsonSize } from '../json-size.ts'
import type { Change } from '../store.ts'
import type { DocumentPiece } from '../document-text.ts'

/** Time after which a step ends, in ms. */
const stepDuration = 1
/**
 * Number of bytes that are copied in one step. Copying into new memory is slow, since the system provides it page by
 * page on the first write.
 */
const copyChunkSize = 64 * 1024

/**
 * Yields to the event loop during a long change. It does not use setImmediate, which, scheduled from an I/O callback,
 * runs before sockets are polled again.
 */
export const yieldToEventLoop = async (): Promise<void> => { await sleep(0) }

/** Yields to the event loop after each step. */
class Steps {
  #begun = performance.now()

  get isOver (): boolean { return performance.now() - this.#begun >= stepDuration }

  async next (): Promise<void> {
    // The event loop polls sockets between two immediates. A timer would double the total time.
    await new Promise((resolve) => { setImmediate(resolve) })
    this.#begun = performance.now()
  }
}

/**
 * Encodes the pieces of a document into one UTF-8 buffer, without blocking the event loop for longer than the largest
 * piece takes.
 * @param kept the bytes of large entries, as slices of the last buffer: an unchanged entry is not serialized again
 */
export async function encodeInSteps (pieces: Iterable<DocumentPiece>, kept: WeakMap<object, Buffer>): Promise<Buffer> {
  const steps = new Steps()
  const chunks: Buffer[] = []
  const ranges: Array<readonly [entry: object, start: number, end: number]> = []
  let length = 0
  let text = ''
  const push = (chunk: Buffer): void => {
    chunks.push(chunk)
    length += chunk.length
  }
  const encode = (): void => {
    push(Buffer.from(text))
    text = ''
  }
  const take = async (each: Iterable<DocumentPiece>): Promise<void> => {
    for (const piece of each) {
      if (typeof piece === 'string') {
        text += piece
        if (text.length >= copyChunkSize) encode()
      } else {
        encode()
        const start = length
        const known = kept.get(piece.entry)
        if (known) push(known)
        else await take(piece.pieces)
        encode()
        ranges.push([piece.entry, start, length])
      }
      if (steps.isOver) await steps.next()
    }
  }
  await take(pieces)
  encode()
  const bytes = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += copyChunkSize) {
      at += chunk.copy(bytes, at, from, from + copyChunkSize)
      if (steps.isOver) await steps.next()
    }
  }
  for (const [entry, start, end] of ranges) kept.set(entry, bytes.subarray(start, end))
  return bytes
}

/** The size above which an entry is large, in characters of its JSON text. */
const largeEntrySize = 64 * 1024
/** Whether a change leaves an entry so large that it should not be processed in one step. */
export const leavesLargeEntry = ({ mcpServers }: SettingsDocument, change: Change): boolean => {
  if (change.entity !== 'mcpServers' || !isPlainObject(mcpServers)) return false
  const entry = mcpServers[change.rename ?? change.key]
  return isPlainObject(entry) && jsonSize(entry) > largeEntrySize
}
