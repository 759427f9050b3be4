import type { OriginalBytes } from './worker.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import type { Provider } from '../../../protocol/provider.ts'
import type { View } from '../../settings/index.ts'

interface Kept extends OriginalBytes { principal: string, at: number }

interface OriginalsLimits {
  /** Max size of all, in bytes. */
  originals: number
  /** How long each is kept, in ms. */
  kept: number
  /** Max size of one part, in bytes. */
  part: number
}

/** A part of an original: the text from byte `offset` to byte `end` (UTF-8). `size`: of the whole original. */
interface OriginalPart { text: string, mimeType: string, offset: number, end: number, size: number }

/**
 * Keeps the original texts of compressed results in memory for some time, each for the principal that received the
 * result. Beyond the max size, the principal that holds most loses its oldest.
 */
export class Originals {
  readonly #kept = new Map<string, Kept>()
  readonly #held = new Map<string, number>()
  readonly #limits: OriginalsLimits
  readonly #now: () => number
  #size = 0

  constructor (limits: OriginalsLimits, now: () => number = Date.now) {
    this.#limits = limits
    this.#now = now
  }

  /** The size of all, in bytes. */
  get size (): number { return this.#size }

  /** Keeps an original. @returns false if it is larger than the max size of all */
  keep (uri: string, principal: string, original: OriginalBytes): boolean {
    const size = original.bytes.length
    if (size > this.#limits.originals) return false
    this.#kept.set(uri, { ...original, principal, at: this.#now() })
    this.#add(principal, size)
    this.expire()
    while (this.#size > this.#limits.originals) this.#forgetOldestOf(this.#largest())
    return true
  }

  /** Removes expired originals. */
  expire (): void {
    const before = this.#now() - this.#limits.kept
    for (const [uri, { at }] of this.#kept) {
      if (at > before) return
      this.#forget(uri)
    }
  }

  /**
   * Reads a part of an original. Parts begin and end between characters, so that consecutive parts make the whole.
   * @param offset in bytes
   * @param length in bytes; a part is never longer than `limits.part`
   * @returns undefined without an original of this URI for this principal
   */
  read (uri: string, principal: string, offset = 0, length = Infinity): OriginalPart | undefined {
    this.expire()
    const kept = this.#kept.get(uri)
    if (kept?.principal !== principal) return undefined
    const { bytes, mimeType } = kept
    const start = characterAt(bytes, Math.min(offset, bytes.length))
    const wanted = Math.min(start + Math.min(length, this.#limits.part), bytes.length)
    // A part has at least one character.
    const end = characterAt(bytes, wanted) > start ? characterAt(bytes, wanted) : characterAfter(bytes, start)
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(start, end))
    return { text, mimeType, offset: start, end, size: bytes.length }
  }

  #add (principal: string, size: number): void {
    this.#size += size
    const held = (this.#held.get(principal) ?? 0) + size
    if (held > 0) this.#held.set(principal, held)
    else this.#held.delete(principal)
  }

  #forget (uri: string): void {
    const kept = this.#kept.get(uri)
    if (!kept) return
    this.#kept.delete(uri)
    this.#add(kept.principal, -kept.bytes.length)
  }

  #largest (): string | undefined {
    let most: [string, number] | undefined
    for (const entry of this.#held) if (most === undefined || entry[1] > most[1]) most = entry
    return most?.[0]
  }

  #forgetOldestOf (principal: string | undefined): void {
    for (const [uri, kept] of this.#kept) {
      if (kept.principal === principal) return this.#forget(uri)
    }
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The start of the character that contains the byte at an index. */
function characterAt (bytes: Uint8Array, index: number): number {
  while (index > 0 && isContinuation(bytes[index])) index--
  return index
}

function characterAfter (bytes: Uint8Array, index: number): number {
  if (index < bytes.length) index++
  while (isContinuation(bytes[index])) index++
  return index
}

/** URIs of originals: `tool-hub://originals/<id>/<number>`; of a part with `?offset=0&length=20000`, in bytes. */
export const originalsPrefix = 'tool-hub://originals/'

/** A provider that reads originals. `_meta` of a part has its offset, its end and the offset of the next part. */
export const originalsProvider = (originals: Originals): Provider & { readonly uriPrefix: string } => ({
  // A name that no server can have.
  name: 'tool-hub:originals',
  uriPrefix: originalsPrefix,
  catalogue: () => undefined,
  call: async (exchange) => {
    const uri = String(exchange.params.uri)
    const { key } = (exchange as Exchange<View>).view.principal
    const [whole = '', query = ''] = uri.split('?', 2)
    const asked = new URLSearchParams(query)
    const part = originals.read(whole, key, amountOf(asked, 'offset', 0), amountOf(asked, 'length', Infinity))
    if (part === undefined) {
      const sentence = `Resource not found: ${uri} (originals of compressed results are kept for an hour)`
      throw new RpcError(code.resourceNotFound, sentence, 'unknown-resource')
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

/** @throws RpcError -32602 */
function amountOf (asked: URLSearchParams, name: string, otherwise: number): number {
  const value = asked.get(name)
  if (value === null) return otherwise
  if (!/^\d{1,15}$/.test(value)) {
    throw new RpcError(code.invalidParams, `Invalid params: "${name}" in the URI must be a number of bytes`)
  }
  return Number(value)
}
