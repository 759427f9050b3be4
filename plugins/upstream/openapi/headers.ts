import { UpstreamError } from '../../../protocol/errors.ts'

/** Whether a header can have this name (RFC 9110, 5.6.2). */
export const isHeaderName = (name: string): boolean => /^[\w!#$%&'*+.^`|~-]+$/.test(name)

/** A header's value as it can be sent: what is not Latin goes as UTF-8. undefined: it holds a control character, which no header may. */
export function toHeaderValue (value: string): string | undefined {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)) return undefined
  return /^[\u0000-\u00ff]*$/.test(value) ? value : Buffer.from(value).toString('latin1') // eslint-disable-line no-control-regex
}

/**
 * A header that the configuration gives: its name in lower case, and its value as it can be sent.
 * @throws UpstreamError when it cannot be sent
 */
export function toHeader (name: string, value: string): [string, string] {
  const check = 'check "headers" and "openapi.security"'
  if (!isHeaderName(name)) throw new UpstreamError('refused', `no header can be named ${JSON.stringify(name)}: ${check}`)
  const text = toHeaderValue(value)
  if (text === undefined) {
    throw new UpstreamError('refused', `the header "${name}" holds a control character, which no header may: ${check}`)
  }
  return [name.toLowerCase(), text]
}
