import { limits } from '../../base/limits/index.ts'
import { OAuthError } from '../../base/errors/index.ts'

/** Schemes of well-known applications without a domain in them; all others must be a reversed domain (RFC 8252, section 7.1). */
const knownSchemes = new Set(['cursor:', 'vscode:', 'vscode-insiders:', 'windsurf:', 'claude:', 'zed:', 'warp:', 'raycast:', 'goose:'])

/** Of the loopback addresses, those that RFC 8252 names (section 7.3): the library takes no others. */
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/** The reason why a redirect URI cannot be registered; undefined: it can. */
function problemOf (uri: string): string | undefined {
  if (uri.length > limits.oauth.uri) return `is longer than ${limits.oauth.uri} characters`
  // `URL` drops some of these characters without a word.
  if (/[^\x21-\x7e]|["<>\\^`{|}*]/.test(uri)) return 'holds characters that no URI has'
  if (!URL.canParse(uri)) return 'is not an absolute URI'
  const { protocol, hostname, username, password } = new URL(uri)
  if (uri.includes('#')) return 'has a fragment'
  if (username !== '' || password !== '') return 'holds a user'
  if (protocol === 'https:') return loopbackHosts.has(hostname) ? 'is a loopback address, which takes http' : undefined
  if (protocol === 'http:') return loopbackHosts.has(hostname) ? undefined : 'is not encrypted: http is for loopback addresses only'
  return protocol.includes('.') || knownSchemes.has(protocol) ? undefined : 'has a scheme that is neither https nor a reversed domain'
}

/** @param name of the member, for messages @throws OAuthError `invalid_redirect_uri` */
export function checkRedirectUris (uris: unknown, name = 'redirect_uris'): readonly string[] {
  const isList = Array.isArray(uris) && uris.length > 0 && uris.every((uri): uri is string => typeof uri === 'string')
  if (!isList) throw new OAuthError('invalid_redirect_uri', `"${name}" must be a list of one URI or more`)
  if (uris.length > limits.oauth.redirectUris) {
    throw new OAuthError('invalid_redirect_uri', `"${name}" may list ${limits.oauth.redirectUris} URIs at most`)
  }
  for (const uri of uris) {
    const problem = problemOf(uri)
    if (problem !== undefined) throw new OAuthError('invalid_redirect_uri', `${JSON.stringify(uri.slice(0, 200))} ${problem}`)
  }
  return uris
}
