import { isLoopback } from '../config/index.ts'
import { baseLimits } from '../limits/index.ts'

/**
 * Characters that are invisible or change how others are displayed: controls, bidi overrides, zero-width characters,
 * unassigned and private code points, lone surrogates, and the Braille blank.
 */
const invisible = /[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu
/** Variation selectors of emoji, which are harmless and common. */
const variationSelectors = /[\ufe0e\ufe0f]/g
/** More than four combining marks in a row, which would cover adjacent lines. Modern scripts need at most four. */
const excessMarks = /(\p{M}{4})\p{M}+/gu
/**
 * Quotation marks other than `'`. Names are displayed in double quotes, so a name that contains such a mark would seem
 * to end at it.
 */
const quotes = /["\u00ab\u00bb\u201c-\u201f\u2033\u2036\u2039\u203a\u275d\u275e\u300c-\u300f\u301d-\u301f\uff02]/g
const visibleCharacter = /[\p{L}\p{N}\p{P}\p{S}]/u

/**
 * Converts an untrusted text to one safe line: invisible characters become U+FFFD; a text that is too long is truncated
 * and ends in "…". The result is not escaped for HTML: the templates do that.
 * @param max the max length, in code points
 */
export function visibleText (text: string, max: number = baseLimits.pageTexts.name): string {
  // `slice` bounds the work: eight UTF-16 units per visible code point are enough for ordinary texts.
  const clean = text
    .slice(0, max * 8)
    .normalize('NFC')
    .replace(variationSelectors, '')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(invisible, '\ufffd')
    .replace(excessMarks, '$1')
  const points = [...clean]
  return points.length > max || text.length > max * 8 ? `${points.slice(0, max - 1).join('')}…` : clean
}

/** Converts an untrusted name to a safe text for display between double quotes. */
export function visibleName (name: string): string {
  const text = visibleText(name).replace(quotes, "'")
  return visibleCharacter.test(text.replaceAll('\ufffd', '')) ? text : '(no name)'
}

/** Where a redirect URI leads, for display. */
export interface Destination {
  /** A host with its port, or the scheme of an app on the device, such as `cursor:`. */
  host: string
  /** What the user should know about the destination. */
  note?: string
}

/** Schemes that redirect URIs must not have. The registration of clients refuses them as well. */
const forbiddenSchemes =
  new Set(['javascript:', 'data:', 'vbscript:', 'blob:', 'file:', 'filesystem:', 'about:', 'view-source:'])

/** Whether a page may link to a redirect URI: it is valid, and its scheme is not forbidden. */
export const isSafeLink = (uri: string): boolean => URL.canParse(uri) && !forbiddenSchemes.has(new URL(uri).protocol)

const isHttp = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'http:'

/** Converts a host for display. The start of a long host is cut off, since its end tells who owns it. */
function hostOf (host: string): string {
  const max = baseLimits.pageTexts.host
  return host.length > max ? `…${visibleText(host.slice(1 - max), max)}` : visibleText(host, max)
}

/** Describes where a redirect URI leads. The host is in ASCII (Punycode), in the form that the browser uses. */
export function destinationOf (redirectUri: string): Destination {
  if (!URL.canParse(redirectUri)) return { host: visibleText(redirectUri) }
  const url = new URL(redirectUri)
  if (!isHttp(url)) {
    return {
      host: visibleText(url.protocol),
      note: 'an app on this device; any app there could claim this name'
    }
  }
  const host = hostOf(url.host)
  if (isLoopback(url.hostname)) {
    return {
      host,
      note: 'a program on this computer; any program there could claim this name'
    }
  }
  return url.protocol === 'http:' ? { host, note: 'over a connection that is not encrypted' } : { host }
}

/** Returns the host of a client's website, for display; undefined if the URI is not http or https. */
export function websiteHost (uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined
  const url = new URL(uri)
  return isHttp(url) ? hostOf(url.host) : undefined
}

/** Returns the host of a client id that is the URL of a Client ID Metadata Document; undefined for any other id. */
export const clientIdHost = (id: string): string | undefined => id.startsWith('https://') ? websiteHost(id) : undefined

/**
 * Returns the source expression for `form-action` (CSP) that allows a redirect to a URI; undefined if there is none.
 * Chromium applies the directive to redirects after a POST, too. For loopback hosts, any port is allowed (RFC 8252,
 * section 7.3).
 */
export function formActionSource (redirectUri: string): string | undefined {
  if (!URL.canParse(redirectUri)) return undefined
  const url = new URL(redirectUri)
  if (forbiddenSchemes.has(url.protocol)) return undefined
  // CSP has no notation for IPv6 addresses.
  if (!isHttp(url) || url.hostname.startsWith('[')) return url.protocol
  // `URL` accepts hosts with ";", "," and "*", which have another meaning in a policy.
  if (!/^[a-z0-9._-]+$/.test(url.hostname)) return undefined
  return isLoopback(url.hostname) ? `${url.protocol}//${url.hostname}:*` : url.origin
}
