import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** Cut-off ends are told by what is in them: not every server finishes its compression as the book says. */
const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }

/**
 * What undoes a `content-encoding`; undefined: there is nothing to undo.
 * @throws SyntaxError for one that we do not know, and for several on top of each other: who stacks them wants to cost us
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
