import { createHash } from 'node:crypto'
import type { FastifyRequest, onSendHookHandler } from 'fastify'

/**
 * Adds an ETag to successful GET responses, and responds with 304 if the client has that version. Streams get no ETag
 * unless the route sets one. On routes with `hasRevision`, the ETag is `"<revision>.<hash of the response>"`.
 * @param cacheControl the Cache-Control header of these responses
 */
export const createEntityTagHook = (cacheControl: string): onSendHookHandler<unknown> =>
  (request, reply, payload, done) => {
    const isRead =
    (request.method === 'GET' || request.method === 'HEAD') && request.routeOptions.config.effect === 'read'
    if (!isRead || reply.statusCode !== 200 || !(typeof payload === 'string' || Buffer.isBuffer(payload))) {
      done(null, payload)
      return
    }
    const hash = createHash('sha256').update(payload).digest('base64url')
    const ofRoute = reply.getHeader('etag')
    const etag = request.routeOptions.config.hasRevision === true
      ? `"${String(ofRoute).slice(1, -1)}.${hash}"`
      : String(ofRoute ?? `"${hash}"`)
    reply.headers({ etag, 'cache-control': cacheControl })
    if (!matchesEntityTag(request, etag)) {
      done(null, payload)
      return
    }
    // No Content-Type and no Content-Length, which would describe the omitted body.
    reply.code(304).removeHeader('content-type')
    done(null, null)
  }

/**
 * Returns a digest that identifies a version of a record.
 * @param value the record as stored and visible to the caller, without members that change by themselves (status)
 */
export const revisionOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22)

/** Returns the `revisionOf` a server's config without its overrides, which a PUT keeps if the new config omits them. */
export const revisionOfServer = (
  { tools: _tools, prompts: _prompts, resources: _resources, skills: _skills, ...config }:
  Readonly<Record<string, unknown>>
): string => revisionOf(config)

/**
 * Whether If-Match is absent or matches this revision, which is the part of an ETag before the dot (RFC 9110 §13.1.1).
 */
export function satisfiesIfMatch (request: FastifyRequest, revision: string): boolean {
  const { 'if-match': header = '*' } = request.headers
  return header.trim() === '*' ||
    header.split(',').some((each) => /^"([^".]*)[^"]*"$/.exec(each.trim())?.[1] === revision)
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The route sets the revision of its record as the ETag; `createEntityTagHook` appends the hash of the response.
     */
    hasRevision?: true
  }
}

/** Whether If-None-Match contains this entity tag (RFC 9110 §13.1.2, weak comparison). */
export function matchesEntityTag (request: FastifyRequest, etag: string): boolean {
  const { 'if-none-match': header } = request.headers
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)
}
