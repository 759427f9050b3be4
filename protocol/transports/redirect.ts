import { UpstreamError } from '../errors.ts'

/** Redirects followed for one request. */
const most = 3

/**
 * Where an answer sends a request on to; undefined: nowhere. Only the same origin is followed, so that credentials stay where they
 * belong, and only where the request stays what it is.
 * @param hops how many redirects this request has followed
 * @throws UpstreamError refused, in words that tell the operator what to configure
 */
export function follow (from: URL, method: string, status: number, location: string | undefined, hops: number): URL | undefined {
  if (status < 301 || status > 308 || (status > 303 && status < 307)) return undefined
  if (location === undefined || !URL.canParse(location, from.href)) {
    throw new UpstreamError('refused', `the upstream redirects (HTTP ${status}) without an address that can be read`)
  }
  const to = new URL(location, from)
  if (to.origin !== from.origin) {
    throw new UpstreamError(
      'refused',
      `the upstream redirects to another origin (${to.origin === 'null' ? to.protocol : to.origin}), which is not followed: configure that address if it is the right one`
    )
  }
  if (status <= 303 && method !== 'GET' && method !== 'HEAD') {
    throw new UpstreamError(
      'refused',
      `the upstream redirects a ${method} to ${to.origin}${to.pathname.slice(0, 200)} in a way that would lose its body (HTTP ${status}): configure that address`
    )
  }
  if (hops >= most) throw new UpstreamError('refused', `the upstream redirects more than ${most} times`)
  return to
}
