import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { inTextOrder } from '../../../db/text-order.ts'
import { isDeeperThan } from '../../../protocol/json.ts'
import { scanJson, TooDeep } from '../../../protocol/json-scanner.ts'
import { Chunks } from '../../../protocol/pieces.ts'
import { withoutMark } from '../../../protocol/text.ts'
import { errors } from '../errors/index.ts'
import type { HoldMemory } from './memory.ts'
import { costOfValues } from './values.ts'
import { baseLimits } from '../limits/index.ts'

/** As deep in a body as servers stand under their names: in `mcp.servers`, as VS Code writes them. */
const orderedLevels = 3

const units: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }
const sizes = new Map<string, number>()

/** The bytes of a size from the settings: `1mb`, `1.5 MB`, `2048`. */
export function bytesOf (size: string): number {
  let bytes = sizes.get(size)
  if (bytes === undefined) {
    const [, number = '0', unit = 'b'] = /^([0-9]+(?:\.[0-9]+)?) *([kmg]?b)?$/i.exec(size) ?? []
    bytes = Math.floor(Number(number) * (units[unit.toLowerCase()] ?? 1))
    sizes.set(size, bytes)
  }
  return bytes
}

/**
 * Whether a content type states an encoding of text other than UTF-8, in which JSON is always written (RFC 8259, 8.1).
 */
function hasOtherCharset (contentType = ''): boolean {
  if (!contentType.includes(';')) return false
  const charset = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]*))/i.exec(contentType)
  return charset !== null && !/^utf-?8$/i.test((charset[1] ?? charset[2] ?? '').trim())
}

/**
 * Reads the whole body as text, unchanged but for a byte order mark.
 * @param limit in bytes
 * @param done called once. Its error: TooLarge, InvalidUtf8, UnsupportedMediaType for a body with a content encoding or
 * a charset other than UTF-8, that of the connection, or that of `grows`
 * @param grows called once when the body turns out not to be a small one; what it throws refuses the body
 */
export function collectText (
  payload: IncomingMessage,
  limit: number,
  done: (error: Error | null, text?: string) => void,
  grows?: () => void
): void {
  const { 'content-encoding': encoding, 'content-type': contentType, 'content-length': length } = payload.headers
  if (encoding !== undefined || hasOtherCharset(contentType)) { done(new errors.UnsupportedMediaType()); return }
  if (length !== undefined && Number(length) > limit) { done(new errors.TooLarge(limit)); return }
  const chunks = new Chunks()
  let size = 0
  let isOver = false
  const finish = (error: Error | null, text?: string): void => {
    if (!isOver) done(error, text)
    isOver = true
  }
  const refuse = (error: Error): void => {
    // The rest is read and thrown away, so that the client gets to see the answer.
    payload.removeAllListeners('data')
    payload.resume()
    chunks.take()
    finish(error)
  }
  payload.on('data', (chunk: Buffer) => {
    const before = size
    size += chunk.length
    if (size > limit) { refuse(new errors.TooLarge(limit)); return }
    if (grows && before <= baseLimits.smallBody && size > baseLimits.smallBody) {
      try {
        grows()
      } catch (error) {
        refuse(error instanceof Error ? error : new Error(String(error)))
        return
      }
    }
    chunks.push(chunk)
  })
  payload.on('end', () => {
    const bytes = chunks.takeWhole()
    if (isUtf8(bytes)) finish(null, withoutMark(bytes.toString()))
    else finish(new errors.InvalidUtf8())
  })
  payload.on('error', finish)
}

/**
 * The whole body as text, unchanged.
 * @param limit in bytes
 * @param grows as `collectText` takes it
 * @throws what `collectText` tells
 */
export async function readText (payload: IncomingMessage, limit: number, grows?: () => void): Promise<string> {
  return await new Promise((resolve, reject) => {
    collectText(payload, limit, (error, text = '') => { if (error) reject(error); else resolve(text) }, grows)
  })
}

/**
 * The whole body as a JSON value; undefined when it is empty. `orderedEntries` has the members of objects in the order
 * of the text, down to where servers stand.
 * @param limit a size as `bytesOf` takes it
 * @param hold takes memory for the values of a large one
 * @param admit gets the length of a large one before it is parsed, in characters, and throws what refuses it
 * @param grows as `collectText` takes it
 * @throws InvalidJson, also when it is nested deeper than `baseLimits.requestDepth`; InvalidInput where an object of a
 * large one has more than `baseLimits.requestMembers`; ShareError; what `readText` throws
 */
export async function readJson (
  payload: IncomingMessage,
  limit: string,
  hold: HoldMemory | undefined,
  admit: (size: number) => void = () => {},
  grows?: () => void
): Promise<unknown> {
  const text = await readText(payload, bytesOf(limit), grows)
  if (text === '') return undefined
  if (text.length <= baseLimits.steppedBody) return inTextOrder(text, parseJson(text), orderedLevels)
  admit(text.length)
  return inTextOrder(text, parseLarge(text, hold, baseLimits.requestMembers), orderedLevels)
}

/** A JSON value. @throws InvalidJson */
export function parseJson (text: string): unknown {
  if (isDeeperThan(text, baseLimits.requestDepth)) throw tooDeep()
  try {
    return JSON.parse(text)
  } catch {
    throw new errors.InvalidJson('')
  }
}

/**
 * The value of a large JSON text, whose values are counted before they are made.
 * @param hold takes the memory for them
 * @param maxMembers max members of one object
 * @throws InvalidJson, InvalidInput, ShareError
 */
export function parseLarge (text: string, hold?: HoldMemory, maxMembers = Infinity): unknown {
  const scan = scanned(text)
  if (scan.values > baseLimits.requestValues) {
    throw new errors.InvalidInput(`The body has more than ${baseLimits.requestValues} values`)
  }
  if (scan.mostMembers > maxMembers) {
    throw new errors.InvalidInput(`An object in the body has more than ${maxMembers} members`)
  }
  hold?.(costOfValues(scan))
  return JSON.parse(text)
}

/** @throws InvalidJson */
function scanned (text: string): ReturnType<typeof scanJson> {
  try {
    return scanJson(text, { maxDepth: baseLimits.requestDepth })
  } catch (error) {
    if (error instanceof TooDeep) throw tooDeep()
    if (error instanceof SyntaxError) throw new errors.InvalidJson('')
    throw error
  }
}

const tooDeep = (): Error => new errors.InvalidJson(`: it is nested deeper than ${baseLimits.requestDepth} levels`)
