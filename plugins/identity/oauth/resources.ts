/** Paths below the issuer that are protected resources: the MCP routes, the SSE routes, and the management API. */
const paths = /^(?:\/(?:[^/]+\/)?(?:mcp|sse)(?:\/[^?#]*)?|\/api)?$/

/** Characters and dot segments that `URL` would write otherwise, so that a user allowed another resource than the token gets. */
const ambiguous = /[\\\s]|\/(?:\.|%2e){1,2}(?=\/|$)/i

/** An address without a slash at the end. */
const trimmed = (uri: string): string => uri.replace(/\/+$/, '')

/** The path of a resource of this gateway below the issuer, `''` for all of it; undefined: it is not ours (RFC 8707). */
export function resourcePath (issuer: string, uri: string): string | undefined {
  if (ambiguous.test(uri) || !URL.canParse(uri)) return undefined
  const address = trimmed(new URL(uri).href)
  if (address !== issuer && !address.startsWith(`${issuer}/`)) return undefined
  const path = address.slice(issuer.length)
  return paths.test(path) ? path : undefined
}

/**
 * The same as it is named in metadata: with a slash at its end where its client uses one, which compares the two (RFC 9728, section 3.3).
 */
export function resourceName (issuer: string, uri: string): string | undefined {
  const path = resourcePath(issuer, uri)
  return path !== undefined && path !== '' && uri.endsWith('/') ? `${path}/` : path
}
