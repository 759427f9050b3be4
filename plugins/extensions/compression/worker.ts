// The worker thread that compresses results.
import { parentPort } from 'node:worker_threads'
import { compressResult, type ResultOptions } from './result.ts'
import { loadTokenCounter } from './tokens.ts'

export interface CompressionTask { result: string, options: ResultOptions }
/** An original's bytes in UTF-8. */
export interface OriginalBytes { bytes: Uint8Array<ArrayBuffer>, mimeType: string }
export type CompressionAnswer = { result: string, originals: OriginalBytes[] } | undefined

const counter = loadTokenCounter()
const encoder = new TextEncoder()

parentPort?.on('message', ({ result, options }: CompressionTask) => {
  void counter.then((count) => {
    const compressed = compressResult(result, options, count)
    const originals =
      compressed?.originals.map(({ text, mimeType }) => ({ bytes: encoder.encode(text), mimeType })) ?? []
    const answer: CompressionAnswer = compressed && { result: compressed.result, originals }
    parentPort?.postMessage(answer, originals.map(({ bytes }) => bytes.buffer))
  })
})
