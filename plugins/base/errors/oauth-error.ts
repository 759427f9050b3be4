/** Codes of errors in bodies (RFC 6749, section 5.2; RFC 7591, section 3.2.2; RFC 6750, section 3.1; RFC 8707, section 2). */
type OAuthCode =
  | 'invalid_request'
  | 'invalid_client_metadata'
  | 'invalid_redirect_uri'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'access_denied'
  | 'invalid_target'

/** An error in the terms of OAuth, answered as `{error, error_description}`. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: OAuthCode
  readonly statusCode: number

  constructor (code: OAuthCode, description: string, statusCode = 400) {
    super(description)
    this.code = code
    this.statusCode = statusCode
  }
}
