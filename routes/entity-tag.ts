import { createHash } from 'node:crypto'
import type { FastifyRequest, onSendHookHandler } from 'fastify'

/**
 * Sends an entity tag with what GET reads, and 304 without a body to who has it already. A stream has none, unless the
 * route sends one.
 * @param cacheControl sent with both
 */
export const tagEntity = (cacheControl: string): onSendHookHandler<unknown> => (request, reply, payload, done) => {
  const isRead =
    (request.method === 'GET' || request.method === 'HEAD') && request.routeOptions.config.effect === 'read'
  if (!isRead || reply.statusCode !== 200 || !(typeof payload === 'string' || Buffer.isBuffer(payload))) {
    done(null, payload)
    return
  }
  const etag = String(reply.getHeader('etag') ?? `"${createHash('sha256').update(payload).digest('base64url')}"`)
  reply.headers({ etag, 'cache-control': cacheControl })
  if (!isKnown(request, etag)) {
    done(null, payload)
    return
  }
  // No type and no length: they would be those of the omitted body.
  reply.code(304).removeHeader('content-type')
  done(null, null)
}

/** Whether If-None-Match has this entity tag (RFC 9110 §13.1.2, by weak comparison). */
export function isKnown (request: FastifyRequest, etag: string): boolean {
  const { 'if-none-match': header } = request.headers
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)
}
