// The module that the worker pool runs for `Compressor`.
import { compressResult, type ResultCompressionOptions } from './result.ts'
import { loadTokenCounter } from './tokens.ts'

export interface CompressionTask { result: string, options: ResultCompressionOptions }
/** The bytes of an original, in UTF-8. */
export interface OriginalBytes { bytes: Uint8Array<ArrayBuffer>, mimeType: string }
export type CompressionAnswer = { result: string, originals: OriginalBytes[] } | undefined

const counter = loadTokenCounter()
const encoder = new TextEncoder()

export async function run ({ result, options }: CompressionTask): Promise<CompressionAnswer> {
  const compressed = compressResult(result, options, await counter)
  if (compressed === undefined) return undefined
  const originals = compressed.originals.map(({ text, mimeType }) => ({ bytes: encoder.encode(text), mimeType }))
  return { result: compressed.result, originals }
}
