import { UpstreamError } from '../../../protocol/errors.ts'
import type { RequestBody } from './plan.ts'

/** Whether a text is a valid header name (RFC 9110, section 5.6.2). */
export const isHeaderName = (name: string): boolean => /^[\w!#$%&'*+.^`|~-]+$/.test(name)

/**
 * Converts a header value for `undici`, which sends each character as one byte (Latin-1). A value with characters
 * beyond Latin-1 is sent as UTF-8.
 * @returns undefined for a value with an ASCII control character other than a tab, which headers must not contain
 */
export function toHeaderValue (value: string): string | undefined {
  if (/[^\P{Cc}\t\u0080-\u009f]/u.test(value)) return undefined
  return /[\u0100-\uffff]/.test(value) ? Buffer.from(value).toString('latin1') : value
}

/**
 * Converts a configured header to the form in which it is sent.
 * @returns the name in lower case, and the value
 * @throws UpstreamError if the name or the value is invalid
 */
export function toHeader (name: string, value: string): [string, string] {
  const hint = 'check "headers" and "openapi.security"'
  if (!isHeaderName(name)) {
    throw new UpstreamError('refused', `${JSON.stringify(name)} is not a valid header name: ${hint}`)
  }
  const sent = toHeaderValue(value)
  if (sent === undefined) {
    throw new UpstreamError(
      'refused', `the header "${name}" contains a control character, which is not allowed in a header: ${hint}`
    )
  }
  return [name.toLowerCase(), sent]
}

const formEncode = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

/** Returns the `Authorization` header for the id and secret of an OAuth client (RFC 6749, section 2.3.1). */
export const clientBasicAuthorization = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${formEncode(id)}:${formEncode(secret)}`).toString('base64')}`

/** Whether a media type is JSON: its subtype is `json` or ends with `+json`. It may have parameters. */
export const isJsonMediaType = (type: string): boolean => /^[^;]*[/+]json\s*(;|$)/i.test(type)

/** Returns the format in which a request body with this media type is encoded. */
export const bodyFormatOf = (mediaType: string): RequestBody['format'] => {
  const essence = mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (isJsonMediaType(essence) || essence === '*/*') return 'json'
  if (essence === 'application/x-www-form-urlencoded') return 'urlencoded'
  if (essence.startsWith('multipart/')) return 'multipart'
  return /^text\/|[/+](xml|yaml|x-yaml|graphql|javascript|x-ndjson)$/.test(essence) ? 'text' : 'binary'
}
