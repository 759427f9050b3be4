import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { rememberTextOrder } from '../../../db/text-order.ts'
import { isDeeperThan } from '../../../protocol/json.ts'
import { parseJsonText } from '../../../protocol/parse-json-text.ts'
import { scanJson, JsonTooDeep } from '../../../protocol/json-scanner.ts'
import { Chunks } from '../../../protocol/pieces.ts'
import { withoutBom } from '../../../protocol/text.ts'
import { errors } from '../errors/index.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * The number of object levels whose member order is recorded. Server names are at the third level at most: in
 * `mcp.servers` of VS Code's settings.
 */
const orderedDepth = 3

const { chunks: maxChunks, chunk: minChunk } = baseLimits.arriving

const units: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }
const sizes = new Map<string, number>()

/** Converts a size from the settings (`1mb`, `1.5 MB`, `2048`) to bytes. An invalid size is 0. */
export function parseSize (size: string): number {
  let bytes = sizes.get(size)
  if (bytes === undefined) {
    const [, number = '0', unit = 'b'] = /^([0-9]+(?:\.[0-9]+)?) *([kmg]?b)?$/i.exec(size) ?? []
    bytes = Math.floor(Number(number) * (units[unit.toLowerCase()] ?? 1))
    sizes.set(size, bytes)
  }
  return bytes
}

/** Whether a content type states a charset other than UTF-8, the only one allowed for JSON (RFC 8259, section 8.1). */
function hasOtherCharset (contentType = ''): boolean {
  if (!contentType.includes(';')) return false
  const charset = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]*))/i.exec(contentType)
  return charset !== null && !/^utf-?8$/i.test((charset[1] ?? charset[2] ?? '').trim())
}

/**
 * Reads the whole body as text, without a byte-order mark.
 * @param limit the max size, in bytes
 * @param done called once; its error is TooLarge, TinyChunks, InvalidUtf8, UnsupportedMediaType (a content encoding, or
 * a charset other than UTF-8), an error of the connection, or what `onLargeBody` throws
 * @param onLargeBody called once when the body exceeds `baseLimits.smallBody`; if it throws an error, the body is
 * rejected with it
 */
export function collectBodyText (
  payload: IncomingMessage,
  limit: number,
  done: (error: Error | null, text?: string) => void,
  onLargeBody?: () => void
): void {
  const { 'content-encoding': encoding, 'content-type': contentType, 'content-length': length } = payload.headers
  if (encoding !== undefined || hasOtherCharset(contentType)) { done(new errors.UnsupportedMediaType()); return }
  if (length !== undefined && Number(length) > limit) { done(new errors.TooLarge(limit)); return }
  const chunks = new Chunks()
  let [size, count, isOver] = [0, 0, false]
  const finish = (error: Error | null, text?: string): void => {
    if (!isOver) done(error, text)
    isOver = true
  }
  const refuse = (error: Error): void => {
    // The rest is read and dropped, so that the client can receive the answer.
    payload.removeAllListeners('data')
    payload.resume()
    chunks.take()
    finish(error)
  }
  payload.on('data', (chunk: Buffer) => {
    const before = size
    size += chunk.length
    if (size > limit) { refuse(new errors.TooLarge(limit)); return }
    if (++count > maxChunks && size < count * minChunk) { refuse(new errors.TinyChunks(maxChunks, minChunk)); return }
    if (onLargeBody && before <= baseLimits.smallBody && size > baseLimits.smallBody) {
      try {
        onLargeBody()
      } catch (error) {
        refuse(error instanceof Error ? error : new Error(String(error)))
        return
      }
    }
    chunks.push(chunk)
  })
  payload.on('end', () => {
    const bytes = chunks.takeWhole()
    if (isUtf8(bytes)) finish(null, withoutBom(bytes.toString()))
    else finish(new errors.InvalidUtf8())
  })
  payload.on('error', finish)
}

/**
 * Reads the whole body as text, without a byte-order mark.
 * @param limit the max size, in bytes
 * @param onLargeBody as for `collectBodyText`
 * @throws the errors of `collectBodyText`
 */
export async function readBodyText (
  payload: IncomingMessage, limit: number, onLargeBody?: () => void
): Promise<string> {
  return await new Promise((resolve, reject) => {
    collectBodyText(payload, limit, (error, text = '') => { if (error) reject(error); else resolve(text) }, onLargeBody)
  })
}

/**
 * Reads the whole body as a JSON value; undefined for an empty body. For its objects down to level `orderedDepth`,
 * `orderedEntries` returns the members in the order of the text.
 * @param limit the max size, as text that `parseSize` accepts
 * @param admit called before a body longer than `baseLimits.steppedBody` is parsed, with its length in characters;
 * throws to reject the body
 * @param onLargeBody as for `collectBodyText`
 * @throws InvalidJson, also for nesting deeper than `baseLimits.requestDepth`; InvalidInput if a body longer than
 * `baseLimits.steppedBody` has more than `baseLimits.requestValues` values, or an object with more than
 * `baseLimits.requestMembers` members; the errors of `readBodyText`
 */
export async function readJsonBody (
  payload: IncomingMessage,
  limit: string,
  admit: (size: number) => void = () => {},
  onLargeBody?: () => void
): Promise<unknown> {
  const text = await readBodyText(payload, parseSize(limit), onLargeBody)
  if (text === '') return undefined
  if (text.length <= baseLimits.steppedBody) return rememberTextOrder(text, parseJson(text), orderedDepth)
  admit(text.length)
  return rememberTextOrder(text, parseLargeJson(text, baseLimits.requestMembers), orderedDepth)
}

/** Parses a JSON text. @throws InvalidJson, also for nesting deeper than `baseLimits.requestDepth` */
export function parseJson (text: string): unknown {
  if (isDeeperThan(text, baseLimits.requestDepth)) throw tooDeep()
  try {
    return parseJsonText(text)
  } catch {
    throw new errors.InvalidJson('')
  }
}

/**
 * Parses a large JSON text, after checking its depth and size without creating its values.
 * @param maxMembers max number of members of one object
 * @throws InvalidJson; InvalidInput for more than `baseLimits.requestValues` values, or more than `maxMembers` members
 */
export function parseLargeJson (text: string, maxMembers = Infinity): unknown {
  const scan = scanBody(text)
  if (scan.values > baseLimits.requestValues) {
    throw new errors.InvalidInput(`The body has more than ${baseLimits.requestValues} values`)
  }
  if (scan.largestObject > maxMembers) {
    throw new errors.InvalidInput(`An object in the body has more than ${maxMembers} members`)
  }
  return parseJsonText(text)
}

/** Counts the values of a JSON text, and the members of its largest object. @throws InvalidJson */
function scanBody (text: string): ReturnType<typeof scanJson> {
  try {
    return scanJson(text, { maxDepth: baseLimits.requestDepth })
  } catch (error) {
    if (error instanceof JsonTooDeep) throw tooDeep()
    if (error instanceof SyntaxError) throw new errors.InvalidJson('')
    throw error
  }
}

const tooDeep = (): Error => new errors.InvalidJson(`: it is nested deeper than ${baseLimits.requestDepth} levels`)
