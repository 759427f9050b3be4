import type { OriginalBytes } from './worker.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import type { Provider } from '../../../protocol/provider.ts'
import { OwnedMap } from '../../base/limits/index.ts'
import type { View } from '../../settings/index.ts'

/** An original with the key of the principal that may read it. `keptAt`: when it was stored, in ms since 1970. */
interface KeptOriginal extends OriginalBytes { principal: string, keptAt: number }

interface OriginalsLimits {
  /** Max size of all originals together, in bytes. */
  originalsSize: number
  /** Time for which an original is kept, in ms. */
  originalsLifetime: number
  /** Max size of a part that is read at once, in bytes. */
  partSize: number
}

/** The part of an original from byte `offset` to byte `end`, as UTF-8. `size`: size of the whole original, in bytes. */
interface OriginalPart { text: string, mimeType: string, offset: number, end: number, size: number }

/**
 * Keeps the original texts of compressed results in memory for some time. Only the principal that received a result can
 * read the originals. If the max size is exceeded, the principal that holds the most loses its oldest originals.
 */
export class Originals {
  /** The originals by URI, oldest first. */
  readonly #originals = new Map<string, KeptOriginal>()
  /** The size of each original, in bytes, by principal and URI. */
  readonly #sizes: OwnedMap<number>
  readonly #limits: OriginalsLimits
  readonly #now: () => number

  constructor (limits: OriginalsLimits, now: () => number = Date.now) {
    this.#limits = limits
    this.#now = now
    this.#sizes = new OwnedMap(limits.originalsSize, {
      sizeOf: (_uri, size) => size,
      onEvict: (uri) => { this.#originals.delete(uri) }
    })
  }

  /** Stores an original. @returns false if it alone exceeds the max size of all originals, and is not stored */
  keep (uri: string, principal: string, original: OriginalBytes): boolean {
    const size = original.bytes.length
    if (size > this.#limits.originalsSize) return false
    this.removeExpired()
    this.#originals.set(uri, { ...original, principal, keptAt: this.#now() })
    this.#sizes.set(principal, uri, size)
    return true
  }

  removeExpired (): void {
    const before = this.#now() - this.#limits.originalsLifetime
    for (const [uri, { principal, keptAt }] of this.#originals) {
      if (keptAt > before) return
      this.#originals.delete(uri)
      this.#sizes.delete(principal, uri)
    }
  }

  /**
   * Reads a part of an original. Parts begin and end at character boundaries, so that consecutive parts make up the
   * whole.
   * @param offset where the part begins, in bytes
   * @param length max length of the part, in bytes; `partSize` limits it further
   * @returns undefined if the principal has no original with this URI
   */
  read (uri: string, principal: string, offset = 0, length = Infinity): OriginalPart | undefined {
    this.removeExpired()
    const original = this.#originals.get(uri)
    if (original?.principal !== principal) return undefined
    const { bytes, mimeType } = original
    const start = characterAt(bytes, Math.min(offset, bytes.length))
    const maxEnd = Math.min(start + Math.min(length, this.#limits.partSize), bytes.length)
    // A part contains at least one character, unless it begins at the end.
    const end = characterAt(bytes, maxEnd) > start ? characterAt(bytes, maxEnd) : characterAfter(bytes, start)
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(start, end))
    return { text, mimeType, offset: start, end, size: bytes.length }
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Returns the start of the character that contains the byte at an index. */
function characterAt (bytes: Uint8Array, index: number): number {
  while (index > 0 && isContinuation(bytes[index])) index--
  return index
}

/** Returns the end of the character that begins at an index. */
function characterAfter (bytes: Uint8Array, index: number): number {
  if (index < bytes.length) index++
  while (isContinuation(bytes[index])) index++
  return index
}

/**
 * The prefix of the URIs of originals: `tool-hub://originals/<id>/<number>`. To read a part, clients append
 * `?offset=0&length=20000` (in bytes).
 */
export const originalsUriPrefix = 'tool-hub://originals/'

/**
 * Creates the provider through which clients read originals. In the contents, `_meta` states the offset and the end of
 * the part, the size of the original and, unless the part is the last one, the offset of the next part.
 */
export const createOriginalsProvider = (originals: Originals): Provider & { readonly uriPrefix: string } => ({
  // No server can have this name.
  name: 'tool-hub:originals',
  uriPrefix: originalsUriPrefix,
  catalogue: () => undefined,
  call: async (exchange) => {
    const uri = String(exchange.params.uri)
    const { key } = (exchange as Exchange<View>).view.principal
    const [whole = '', query = ''] = uri.split('?', 2)
    const parameters = new URLSearchParams(query)
    const part = originals.read(whole, key, amountOf(parameters, 'offset', 0), amountOf(parameters, 'length', Infinity))
    if (part === undefined) {
      const sentence = `Resource not found: ${uri} (originals of compressed results are kept for an hour)`
      throw new RpcError(rpcCode.resourceNotFound, sentence, 'unknown-resource')
    }
    return { kind: 'response', id: null, resultText: JSON.stringify({ contents: [contentsOf(uri, part)] }) }
  }
})

function contentsOf (uri: string, { text, mimeType, offset, end, size }: OriginalPart): object {
  const next = end < size ? { 'tool-hub/next': end } : {}
  return {
    uri, mimeType, text, _meta: { 'tool-hub/offset': offset, 'tool-hub/end': end, 'tool-hub/size': size, ...next }
  }
}

/** Reads a number of bytes from the query of a URI. @param otherwise the default value @throws RpcError -32602 */
function amountOf (parameters: URLSearchParams, name: string, otherwise: number): number {
  const value = parameters.get(name)
  if (value === null) return otherwise
  if (!/^\d{1,15}$/.test(value)) {
    throw new RpcError(rpcCode.invalidParams, `Invalid params: "${name}" in the URI must be a number of bytes`)
  }
  return Number(value)
}
