// The module that `Compressor` runs in a worker thread.
import { compressResult, type ResultCompressionOptions } from './result.ts'
import { loadTokenCounter } from './tokens.ts'

/** A tool result to compress, as JSON text. */
export interface CompressionTask { result: string, options: ResultCompressionOptions }
/** The original text of a compressed block, as UTF-8. */
export interface OriginalBytes { bytes: Uint8Array<ArrayBuffer>, mimeType: string }
/** The compressed result as JSON text, and the originals to keep; undefined if nothing became shorter. */
export type CompressionAnswer = { result: string, originals: OriginalBytes[] } | undefined

const counter = loadTokenCounter()
const encoder = new TextEncoder()

export async function run ({ result, options }: CompressionTask): Promise<CompressionAnswer> {
  const compressed = compressResult(result, options, await counter)
  if (compressed === undefined) return undefined
  const originals = compressed.originals.map(({ text, mimeType }) => ({ bytes: encoder.encode(text), mimeType }))
  return { result: compressed.result, originals }
}
