import { UpstreamError } from '../errors.ts'

/** Max redirects followed for one request. */
const maxHops = 3

/**
 * Returns the URL that an answer redirects to; undefined if it is not a redirect. Redirects are followed only within
 * one origin, to keep credentials there, and only if they preserve method and body.
 * @param hops redirects already followed for this request
 * @throws UpstreamError `refused`, with a message that says what to configure
 */
export function resolveRedirect (
  from: URL, method: string, status: number, location: string | undefined, hops: number
): URL | undefined {
  if (status < 301 || status > 308 || (status > 303 && status < 307)) return undefined
  if (location === undefined || !URL.canParse(location, from.href)) {
    throw new UpstreamError(
      'refused', `the upstream redirects (HTTP ${status}) without a valid address`, { isPublic: true }
    )
  }
  const to = new URL(location, from)
  if (to.origin !== from.origin) {
    const target = to.origin === 'null' ? to.protocol : to.origin
    throw new UpstreamError(
      'refused',
      `the upstream redirects to another origin (${target}), which is not followed: set that address if it is ` +
      'correct'
    )
  }
  if (status <= 303 && method !== 'GET' && method !== 'HEAD') {
    const target = `${to.origin}${to.pathname.slice(0, 200)}`
    throw new UpstreamError(
      'refused',
      `the upstream redirects a ${method} to ${target} in a way that would lose its body (HTTP ${status}): set ` +
      'that address'
    )
  }
  if (hops >= maxHops) {
    throw new UpstreamError('refused', `the upstream redirects more than ${maxHops} times`, { isPublic: true })
  }
  return to
}
