import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** A missing end is no error: not every server finishes its compressed stream properly, and the content shows whether it is complete. */
const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }

/**
 * The decoder of a `content-encoding`; undefined when the content is not encoded.
 * @throws SyntaxError for an unknown encoding, and for several on top of each other, which an attacker could use to cost CPU
 */
export function decoderOf (encoding: string | undefined): Transform | undefined {
  switch (encoding?.trim().toLowerCase()) {
    case undefined: case '': case 'identity': return undefined
    case 'gzip': case 'x-gzip': return createGunzip(lenient)
    case 'deflate': return createInflate(lenient)
    case 'br': return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH })
    default: throw new SyntaxError('its content-encoding is not one of gzip, deflate and br')
  }
}
