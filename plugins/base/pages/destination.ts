import { isLoopback } from '../config/index.ts'
import { limits } from '../limits/index.ts'
import { visibleText } from './shown.ts'

/** The place that a redirect URI leads to, for people. */
export interface Destination {
  /** A host with its port; the scheme of an app on the device, such as `cursor:`. */
  host: string
  note?: string
}

/** Schemes that no redirect URI may have. They are refused where redirect URIs are registered, and get no help here either. */
const harmful = new Set(['javascript:', 'data:', 'vbscript:', 'blob:', 'file:', 'filesystem:', 'about:', 'view-source:'])

/** Whether a link may lead to an address that was checked as a redirect URI. */
export const mayLink = (uri: string): boolean => URL.canParse(uri) && !harmful.has(new URL(uri).protocol)

const isWeb = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'http:'

/** A host is read from its end, so it keeps the end where it is too long. */
function hostOf (host: string): string {
  const max = limits.pageTexts.host
  return host.length > max ? `…${visibleText(host.slice(1 - max), max)}` : visibleText(host, max)
}

/** Where a redirect URI leads to, as the host that the browser will really ask (in ASCII). */
export function destinationOf (redirectUri: string): Destination {
  if (!URL.canParse(redirectUri)) return { host: visibleText(redirectUri) }
  const url = new URL(redirectUri)
  if (!isWeb(url)) return { host: visibleText(url.protocol), note: 'an app on this device; any app there could claim this name' }
  const host = hostOf(url.host)
  if (isLoopback(url.hostname)) return { host, note: 'a program on this computer; any program there could claim this name' }
  return url.protocol === 'http:' ? { host, note: 'over a connection that is not encrypted' } : { host }
}

/** The host of the website that a client names; undefined where that is no address on the web. */
export function websiteOf (uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined
  const url = new URL(uri)
  return isWeb(url) ? hostOf(url.host) : undefined
}

/** The host of a client ID that is the address of a Client ID Metadata Document; undefined for any other ID. */
export const publisherOf = (id: string): string | undefined => id.startsWith('https://') ? websiteOf(id) : undefined

/**
 * The source expression of CSP's `form-action` that a redirect to this URI needs: Chromium applies the directive to redirects after a POST
 * as well. Loopback hosts get any port (RFC 8252, section 7.3). Undefined where there is none to give.
 */
export function redirectSource (redirectUri: string): string | undefined {
  if (!URL.canParse(redirectUri)) return undefined
  const url = new URL(redirectUri)
  if (harmful.has(url.protocol)) return undefined
  // CSP has no notation for IPv6 addresses.
  if (!isWeb(url) || url.hostname.startsWith('[')) return url.protocol
  // `URL` accepts hosts with ";", "," and "*", which mean something else in a policy.
  if (!/^[a-z0-9._-]+$/.test(url.hostname)) return undefined
  return isLoopback(url.hostname) ? `${url.protocol}//${url.hostname}:*` : url.origin
}
