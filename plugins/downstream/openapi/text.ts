import { createHash } from 'node:crypto'
import { LoopBudget } from '../../../protocol/yield.ts'
import { downstreamLimits } from '../limits.ts'
import type { DocumentText } from './cache.ts'
import { DocumentTooLarge, type TextPiece } from './write.ts'

// Writes documents. Loaded with the first one.
export { documentHead } from './document.ts'
export { notations } from './notation.ts'
export { translateLarge, writeBody, writeHead, writeServers } from './write.ts'

/** The size of a chunk, in characters. */
const chunkSize = 64 * 1024

/** Joins the pieces of a text to few chunks; no chunks if the text exceeds the max size of a document. */
export async function joinPieces (pieces: Iterable<TextPiece>): Promise<DocumentText> {
  try {
    return await chunksOf(pieces)
  } catch (error) {
    if (!(error instanceof DocumentTooLarge)) throw error
    return { chunks: [], hash: '', isTooLarge: true }
  }
}

/** @throws TooLarge */
async function chunksOf (pieces: Iterable<TextPiece>): Promise<DocumentText> {
  const hash = createHash('sha256')
  const chunks: Array<Buffer | undefined> = []
  const budget = new LoopBudget()
  let waiting = ''
  let size = 0
  const flushChunk = (): void => {
    const chunk = Buffer.from(waiting)
    size += chunk.length
    if (size > downstreamLimits.documentSize) throw new DocumentTooLarge()
    hash.update(chunk)
    chunks.push(chunk)
    waiting = ''
  }
  for (const { text, rest } of pieces) {
    waiting += text
    if (rest !== undefined) {
      flushChunk()
      chunks.push(undefined)
      waiting = rest
    }
    if (waiting.length >= chunkSize) flushChunk()
    if (budget.isSpent) await budget.yieldToEventLoop()
  }
  flushChunk()
  return { chunks, hash: hash.digest('base64url') }
}
