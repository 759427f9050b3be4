import { createHash } from 'node:crypto'
import type { FastifyRequest, onSendHookHandler } from 'fastify'

/**
 * Adds an ETag to successful GET responses, and answers 304 if the client has that version. Streams get no ETag unless
 * the route sets one.
 * @param cacheControl the Cache-Control header of these responses
 */
export const addEntityTag = (cacheControl: string): onSendHookHandler<unknown> => (request, reply, payload, done) => {
  const isRead =
    (request.method === 'GET' || request.method === 'HEAD') && request.routeOptions.config.effect === 'read'
  if (!isRead || reply.statusCode !== 200 || !(typeof payload === 'string' || Buffer.isBuffer(payload))) {
    done(null, payload)
    return
  }
  const etag = String(reply.getHeader('etag') ?? `"${createHash('sha256').update(payload).digest('base64url')}"`)
  reply.headers({ etag, 'cache-control': cacheControl })
  if (!matchesEntityTag(request, etag)) {
    done(null, payload)
    return
  }
  // No Content-Type and no Content-Length, which would describe the omitted body.
  reply.code(304).removeHeader('content-type')
  done(null, null)
}

/** Whether If-None-Match contains this entity tag (RFC 9110 §13.1.2, weak comparison). */
export function matchesEntityTag (request: FastifyRequest, etag: string): boolean {
  const { 'if-none-match': header } = request.headers
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)
}
