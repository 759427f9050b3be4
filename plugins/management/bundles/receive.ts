import { createWriteStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorCode } from '../../../db/errors.ts'
import { errors } from '../../base/errors/index.ts'
import { managementLimits } from '../limits.ts'

/** One part of a multipart body, as @fastify/multipart yields it. */
export type MultipartPart =
  | { readonly type: 'field', readonly fieldname: string }
  | { readonly type: 'file', readonly fieldname: string, readonly file: Readable }

/**
 * Streams the file of a multipart body to disk. The body must contain nothing else.
 * @param field the form field of the file
 * @param path the path to write to, which must not exist
 * @throws InvalidInput, BundleTooLarge, TooSlow; errors of the file system
 */
export async function receiveFile (
  parts: AsyncIterable<MultipartPart>, field: string, path: string, signal: AbortSignal
): Promise<void> {
  let isReceived = false
  try {
    for await (const part of parts) {
      if (part.type !== 'file' || part.fieldname !== field || isReceived) throw unexpectedBodyError(field)
      await writeUpload(part.file, path, signal)
      isReceived = true
    }
  } catch (error) {
    throw toError(error, field)
  }
  if (!isReceived) throw unexpectedBodyError(field)
}

/** Writes a file with the limits of uploads. @throws BundleTooLarge, TooSlow; errors of the file system */
async function writeUpload (file: Readable, path: string, signal: AbortSignal): Promise<void> {
  const timeouts = new AbortController()
  const expire = (): void => { timeouts.abort(new errors.TooSlow()) }
  const whole = setTimeout(expire, managementLimits.bundles.uploadTimeout)
  const idle = setTimeout(expire, managementLimits.bundles.idleTimeout)
  let size = 0
  const count = async function * (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      idle.refresh()
      size += chunk.length
      if (size > managementLimits.bundles.uploadSize) {
        throw new errors.BundleTooLarge(managementLimits.bundles.uploadSize)
      }
      yield chunk
    }
  }
  try {
    const output = createWriteStream(path, { flags: 'wx', mode: 0o600 })
    await pipeline(file, count, output, { signal: AbortSignal.any([signal, timeouts.signal]) })
  } catch (error) {
    throw timeouts.signal.aborted ? timeouts.signal.reason : error
  } finally {
    clearTimeout(whole)
    clearTimeout(idle)
  }
}

const unexpectedBodyError = (field: string): Error =>
  new errors.InvalidInput(`The body must contain one file, in the field "${field}", and nothing else`)

/** Converts an error of the multipart parser to an error of the API; returns other errors unchanged. */
function toError (error: unknown, field: string): unknown {
  const code = errorCode(error) ?? ''
  if (code === 'FST_REQ_FILE_TOO_LARGE') return new errors.BundleTooLarge(managementLimits.bundles.uploadSize)
  if (code.startsWith('FST_') || (error instanceof Error &&
      /multipart|part terminated|boundary/i.test(error.message))) return unexpectedBodyError(field)
  return error
}
