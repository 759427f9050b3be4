import { createHash } from 'node:crypto'
import type { FastifyRequest, onSendHookHandler } from 'fastify'

/**
 * Creates an onSend hook that adds an ETag to successful GET and HEAD responses of routes with the effect `read`, and
 * responds with 304 if the client already has that version. The ETag is the one that the route sets, otherwise a hash
 * of the body; on routes with `hasRevision`, it is `"<revision>.<hash of the body>"`. Streams are sent unchanged.
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
 * @param value the stored members that the caller may see, without members that change by themselves, such as a status
 */
export const revisionOfRecord = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22)

/**
 * Returns the revision of a server's config. The overrides of its items are left out, since a PUT keeps them unless the
 * new config contains others.
 */
export const revisionOfServerConfig = (
  { tools: _tools, prompts: _prompts, resources: _resources, skills: _skills, ...config }:
  Readonly<Record<string, unknown>>
): string => revisionOfRecord(config)

/** Whether the If-Match header is absent, is `*`, or contains an ETag of this revision (RFC 9110, section 13.1.1). */
export function satisfiesIfMatch (request: FastifyRequest, revision: string): boolean {
  const { 'if-match': header = '*' } = request.headers
  return header.trim() === '*' ||
    header.split(',').some((each) => /^"([^".]*)[^"]*"$/.exec(each.trim())?.[1] === revision)
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route sets the revision of its record as the ETag; `createEntityTagHook` appends a hash of the body. */
    hasRevision?: true
  }
}

/** Whether the If-None-Match header is `*` or contains this ETag (RFC 9110, section 13.1.2: weak comparison). */
export function matchesEntityTag (request: FastifyRequest, etag: string): boolean {
  const { 'if-none-match': header } = request.headers
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)
}
